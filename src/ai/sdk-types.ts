// SDK types: the parts of the AI SDK's provider specification that this room uses, derived from what `ai` exports.

import type { LanguageModel } from "ai";

/** A model of specification v4. */
export type LanguageModelV4 = Extract<LanguageModel, { readonly specificationVersion: "v4" }>;
export type CallOptions = Parameters<LanguageModelV4["doGenerate"]>[0];
export type GenerateResult = Awaited<ReturnType<LanguageModelV4["doGenerate"]>>;
export type StreamResult = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
export type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
export type Usage = GenerateResult["usage"];
