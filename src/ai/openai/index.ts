// reprise/ai/openai: the OpenAI Agents SDK inside durable code. Only this folder imports `@openai/agents`, and it does not import `ai`.

export { durable, type AgentRunOptions, type DurableAgentOptions, type DurableAgents } from "./durable-agents.ts";
export { approvals, type Approval } from "../approvals.ts";
export { tokens, type TokenFrame } from "../token-frames.ts";
export type { ModelPrice } from "../model-cost.ts";
export type { ToolHow } from "../tool-calls.ts";
