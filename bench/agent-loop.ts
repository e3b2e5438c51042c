// The agent of the workload `agent`: the same loop of the AI SDK on the same model, as a run and without Reprise.

import { setTimeout as pause } from "node:timers/promises";
import type {
  LanguageModelV4,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { generateText, isStepCount, streamText, tool, type ToolSet } from "ai";
import { workflow } from "reprise";
import { durable, tokens } from "reprise/ai";
import { z } from "zod";

export interface Conversation {
  /** The calls of the model: all but the last request a tool. */
  readonly calls: number;
  /** The tokens of every answer. */
  readonly tokens: number;
  /** The pause before every token of a stream. Undefined: answers are not streamed. */
  readonly tokenMs?: number;
}

/** A model that costs nothing: what is measured is what surrounds it. */
function scriptedModel({ calls, tokens: count, tokenMs = 0 }: Conversation): LanguageModelV4 {
  // The answers so far are the assistant's messages of the prompt.
  const made = (prompt: LanguageModelV4Prompt): number => prompt.filter(({ role }) => role === "assistant").length;
  const callAfter = (round: number): LanguageModelV4ToolCall[] =>
    round + 1 < calls ? [{ type: "tool-call", toolCallId: `call-${round}`, toolName: "note", input: '{"n":1}' }] : [];
  const endAfter = (round: number): { usage: LanguageModelV4Usage; finishReason: LanguageModelV4FinishReason } => ({
    finishReason: { unified: round + 1 < calls ? "tool-calls" : "stop", raw: undefined },
    usage: {
      inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: count, text: count, reasoning: 0 },
    },
  });
  const parts = async function* (round: number): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: "stream-start", warnings: [] };
    yield { type: "text-start", id: "0" };
    for (let token = 0; token < count; token += 1) {
      if (tokenMs > 0) await pause(tokenMs);
      yield { type: "text-delta", id: "0", delta: WORD };
    }
    yield { type: "text-end", id: "0" };
    yield* callAfter(round);
    yield { type: "finish", ...endAfter(round) };
  };
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "script",
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const text = { type: "text" as const, text: WORD.repeat(count) };
      return { content: [text, ...callAfter(made(prompt))], ...endAfter(made(prompt)), warnings: [] };
    },
    doStream: async ({ prompt }) => ({ stream: ReadableStream.from(parts(made(prompt))) }),
  };
}

const WORD = "word ";

const tools = {
  note: tool({ inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => ({ noted: n }) }),
};

async function converse(model: LanguageModelV4, given: ToolSet, { calls, tokenMs }: Conversation): Promise<number> {
  const options = { model, tools: given, prompt: "Go on.", stopWhen: isStepCount(calls) };
  return (await (tokenMs === undefined ? (await generateText(options)).text : streamText(options).text)).length;
}

/** Without Reprise. */
export function converseDirectly(conversation: Conversation): Promise<number> {
  return converse(scriptedModel(conversation), tools, conversation);
}

export const conversing = workflow(
  "conversing",
  { ports: { words: tokens() } },
  async (ctx, conversation: Conversation) => {
    const ai = durable(ctx, { stream: "words" });
    return ai.call(() => converse(ai.model(scriptedModel(conversation)), ai.tools(tools), conversation));
  },
);
