// A scripted model: answers by the number of assistant messages in the prompt, so it has no memory that a crash could lose.

import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import type { JournalEntry } from "reprise";

export type Content =
  | { readonly text: string }
  | { readonly tool: string; readonly id: string; readonly input: unknown }
  | { readonly reasoning: string };

/** The answers of a conversation, one per round. */
export type Script = readonly (readonly Content[])[];

export const USAGE = {
  inputTokens: { total: 100, noCache: 60, cacheRead: 40, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 },
} as const;

type Result = Awaited<ReturnType<LanguageModelV4["doGenerate"]>>;

/** The number of the round that a prompt asks for, from 0. */
export function roundOf({ prompt }: LanguageModelV4CallOptions): number {
  return prompt.filter(({ role }) => role === "assistant").length;
}

export function contentOf(round: readonly Content[]): Result["content"] {
  return round.map((part) => {
    if ("text" in part) return { type: "text", text: part.text };
    if ("reasoning" in part) return { type: "reasoning", text: part.reasoning };
    return { type: "tool-call", toolCallId: part.id, toolName: part.tool, input: JSON.stringify(part.input) };
  });
}

export function resultOf(round: readonly Content[]): Result {
  const hasCalls = round.some((part) => "tool" in part);
  return {
    content: contentOf(round),
    finishReason: { unified: hasCalls ? "tool-calls" : "stop", raw: undefined },
    usage: USAGE,
    warnings: [],
  };
}

type Part = Awaited<ReturnType<LanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

/** The parts of a streamed round: texts word by word, unless `split` divides them. */
export function partsOf(
  round: readonly Content[],
  split = (text: string): readonly string[] => text.split(/(?<= )/),
): Part[] {
  const { finishReason, usage } = resultOf(round);
  const parts = contentOf(round).flatMap((part, at): Part[] => {
    const id = String(at);
    if (part.type === "text" || part.type === "reasoning") {
      const deltas = split(part.text).map((delta): Part => ({ type: `${part.type}-delta`, id, delta }));
      return [{ type: `${part.type}-start`, id }, ...deltas, { type: `${part.type}-end`, id }];
    }
    return [part as Part];
  });
  return [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }];
}

export interface ScriptedModel extends MockLanguageModelV4 {
  /** The rounds that were called, in order. */
  readonly rounds: number[];
}

export function scriptedModel(script: Script, modelId = "scripted"): ScriptedModel {
  const rounds: number[] = [];
  const next = (options: LanguageModelV4CallOptions): readonly Content[] => {
    const round = roundOf(options);
    rounds.push(round);
    return script[round] ?? [{ text: `no round ${round}` }];
  };
  const model = new MockLanguageModelV4({
    modelId,
    doGenerate: async (options) => resultOf(next(options)),
    doStream: async (options) => ({ stream: convertArrayToReadableStream(partsOf(next(options))) }),
  });
  return Object.assign(model, { rounds });
}

export interface RecordedStep {
  readonly name: string;
  readonly input: unknown;
  readonly result: unknown;
}

/** The completed operations of a run, in the order of its journal. */
export async function operationsOf(run: { journal(): AsyncIterable<JournalEntry> }): Promise<RecordedStep[]> {
  const steps: RecordedStep[] = [];
  for await (const { type, data } of run.journal()) {
    if (type !== "OperationCompleted") continue;
    const { operationName, input, result } = data as { operationName: string; input: unknown; result: unknown };
    steps.push({ name: operationName, input, result });
  }
  return steps;
}
