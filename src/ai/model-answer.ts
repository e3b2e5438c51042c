// Model answer: what the journal keeps of an answer, and what the SDK gets from it.
//
// model-answer.A1. The SDK always gets the recorded answer, live and in a replay, after the commit that holds it.
// model-answer.A2. Consecutive deltas of one block are one part. `ping` parts and, unless they were requested, `raw` parts are left
//   out, and so are headers and bodies of HTTP.

import type { TokenCounts } from "./model-cost.ts";
import { plainData } from "./plain-data.ts";
import type { GenerateResult, StreamPart, Usage } from "./sdk-types.ts";

/** The result of the step of a streamed call. */
export interface StreamAnswer {
  readonly parts: readonly StreamPart[];
}

/** model-answer.A2 */
export function recordedResult(result: GenerateResult): GenerateResult {
  const { content, structuredOutputText, finishReason, usage, providerMetadata, response, warnings } = result;
  const { id, timestamp, modelId } = response ?? {};
  return plainData({
    content,
    structuredOutputText,
    finishReason,
    usage,
    providerMetadata,
    response: { id, timestamp, modelId },
    warnings,
  }) as GenerateResult;
}

/** model-answer.A1 */
export function revivedResult(recorded: GenerateResult): GenerateResult {
  return { ...recorded, content: recorded.content.map(revived) };
}

/** Collects the parts of a stream. */
export class PartCollector {
  readonly #parts: StreamPart[] = [];
  readonly #isRaw: boolean;

  constructor(includeRawChunks: boolean | undefined) {
    this.#isRaw = includeRawChunks === true;
  }

  /** model-answer.A2 */
  add(part: StreamPart): void {
    if (part.type === "ping" || (part.type === "raw" && !this.#isRaw)) return;
    const last = this.#parts.at(-1);
    if (isDelta(part) && last !== undefined && isDelta(last) && last.type === part.type && last.id === part.id)
      this.#parts[this.#parts.length - 1] = { ...last, ...part, delta: last.delta + part.delta };
    else this.#parts.push(part);
  }

  answer(): StreamAnswer {
    return plainData({ parts: this.#parts }) as StreamAnswer;
  }
}

type DeltaPart = Extract<StreamPart, { type: "text-delta" | "reasoning-delta" | "tool-input-delta" }>;

export function isDelta(part: StreamPart): part is DeltaPart {
  return part.type === "text-delta" || part.type === "reasoning-delta" || part.type === "tool-input-delta";
}

/** model-answer.A1 */
export function streamOf({ parts }: StreamAnswer): ReadableStream<StreamPart> {
  return new ReadableStream<StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(revived(part));
      controller.close();
    },
  });
}

/** A file by URL has an object of this class, which a journal does not keep. */
function revived<T extends { type: string }>(part: T): T {
  const { data } = part as { data?: { type?: string; url?: unknown } };
  if (part.type !== "file" && part.type !== "reasoning-file") return part;
  return data?.type === "url" ? { ...part, data: { ...data, url: new URL(String(data.url)) } } : part;
}

/** Providers of earlier specifications report plain numbers. */
export function tokensOf(usage: Usage | undefined): TokenCounts {
  const { inputTokens, outputTokens } = (usage ?? {}) as { inputTokens?: unknown; outputTokens?: unknown };
  const { total: input = inputTokens, cacheRead } = (inputTokens ?? {}) as { total?: unknown; cacheRead?: unknown };
  const { total: output = outputTokens } = (outputTokens ?? {}) as { total?: unknown };
  const count = (tokens: unknown): number => (typeof tokens === "number" && tokens > 0 ? Math.ceil(tokens) : 0);
  return {
    ...{ input: count(input), cached: count(cacheRead), output: count(output) },
    // No request is without a token, but some providers report 0 for what they do not count.
    isReported: count(input) > 0 && typeof output === "number",
  };
}

/** The usage that the last part of a stream reports. */
export function usageOf({ parts }: StreamAnswer): Usage | undefined {
  return parts.findLast((part) => part.type === "finish")?.usage;
}
