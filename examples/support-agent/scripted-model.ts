// A model that needs no network: a provider of the AI SDK that follows script.ts, word by word.

import { setTimeout as pause } from "node:timers/promises";
import type {
  LanguageModelV4,
  LanguageModelV4Content,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { replyTo, type Reply, type Style, type ToolResult } from "./script.ts";

/** The pause before every word, in milliseconds. */
const WORD_MS = Number(process.env["WORD_MS"] ?? 0);

export function scriptedModel(modelId: string, style: Style): LanguageModelV4 {
  const answer = (prompt: LanguageModelV4Prompt): Reply => replyTo(questionIn(prompt), resultsIn(prompt), style);
  return {
    specificationVersion: "v4",
    provider: "script",
    modelId,
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const reply = answer(prompt);
      return { content: contentOf(reply), ...endOf(reply, prompt), warnings: [] };
    },
    async doStream({ prompt, abortSignal }) {
      const reply = answer(prompt);
      return { stream: ReadableStream.from(partsOf(reply, prompt, abortSignal)) };
    },
  };
}

async function* partsOf(
  reply: Reply,
  prompt: LanguageModelV4Prompt,
  signal: AbortSignal | undefined,
): AsyncGenerator<LanguageModelV4StreamPart> {
  yield { type: "stream-start", warnings: [] };
  for (const part of contentOf(reply)) {
    if (part.type !== "text") {
      yield part as LanguageModelV4StreamPart;
      continue;
    }
    yield { type: "text-start", id: "0" };
    for (const delta of part.text.match(/\S+\s*/g) ?? []) {
      await pause(WORD_MS, undefined, { signal });
      yield { type: "text-delta", id: "0", delta };
    }
    yield { type: "text-end", id: "0" };
  }
  yield { type: "finish", ...endOf(reply, prompt) };
}

function contentOf({ text, calls }: Reply): LanguageModelV4Content[] {
  const called = calls.map(({ id, tool, input }) => ({
    type: "tool-call" as const,
    toolCallId: id,
    toolName: tool,
    input: JSON.stringify(input),
  }));
  return [...(text === "" ? [] : [{ type: "text" as const, text }]), ...called];
}

function endOf(
  reply: Reply,
  prompt: LanguageModelV4Prompt,
): { usage: LanguageModelV4Usage; finishReason: FinishReason } {
  const unified = reply.calls.length > 0 ? ("tool-calls" as const) : ("stop" as const);
  const [input, output] = [tokensIn(prompt), tokensIn(reply)];
  return {
    finishReason: { unified, raw: undefined },
    usage: {
      inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: output, text: output, reasoning: 0 },
    },
  };
}

type FinishReason = { readonly unified: "tool-calls" | "stop"; readonly raw: undefined };

const tokensIn = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4);

function questionIn(prompt: LanguageModelV4Prompt): string {
  const asked = prompt.findLast(({ role }) => role === "user")?.content ?? [];
  return typeof asked === "string" ? asked : asked.map((part) => (part.type === "text" ? part.text : "")).join(" ");
}

function resultsIn(prompt: LanguageModelV4Prompt): ToolResult[] {
  const results = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
  return results.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { output } = part;
    return [{ tool: part.toolName, output: "value" in output ? output.value : `denied: ${output.reason ?? ""}` }];
  });
}
