// reprise/ai: the AI SDK inside durable code. Model calls and tools are steps of a run; tokens reach readers while they arrive, and
// people approve calls of tools. Only this room imports `ai`, and no other room imports it.

export { durable, type DurableAi, type DurableOptions } from "./durable.ts";
export type { ToolHow } from "./tool-calls.ts";
export type { ModelPrice } from "./model-cost.ts";
export { approvals, type Approval } from "./approvals.ts";
export { tokens, type TokenFrame } from "./token-frames.ts";
