// Durable model: a model of the AI SDK whose calls are steps of a run (model-call.ts). A stream is read to its end inside the step.

import type { OperationContext } from "../workflow/index.ts";
import {
  isDelta,
  PartCollector,
  recordedResult,
  revivedResult,
  streamOf,
  tokensOf,
  usageOf,
  type StreamAnswer,
} from "./model-answer.ts";
import { ANSWER_TIMEOUT, callModel, CHUNK_TIMEOUT, signalOf, type ModelCalls } from "./model-call.ts";
import { DEFAULT_OUTPUT_TOKENS } from "./model-cost.ts";
import { modelRequest } from "./model-request.ts";
import type { CallOptions, GenerateResult, LanguageModelV4, StreamPart } from "./sdk-types.ts";
import type { FrameWriter } from "./token-frames.ts";

/** `onFailure` gets the error of a stream, which the SDK does not throw. */
export function durableModel(
  model: LanguageModelV4,
  calls: ModelCalls,
  onFailure: (error: unknown) => void,
): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return model.supportedUrls;
    },
    async doGenerate(given) {
      const options = limited(given, calls);
      const answer = await callModel<GenerateResult>(calls, {
        request: modelRequest(model, options),
        maxOutputTokens: options.maxOutputTokens,
        timeout: ANSWER_TIMEOUT,
        call: (op, writer) => generate(model, options, op, writer),
        model: model.modelId,
        provider: model.provider,
        tokensOf: ({ usage }) => tokensOf(usage),
        finishOf: ({ finishReason }) => finishText(finishReason),
        answeredBy: ({ response }) => response?.modelId,
      });
      return revivedResult(answer);
    },
    async doStream(given) {
      const options = limited(given, calls);
      const answering = callModel<StreamAnswer>(calls, {
        request: modelRequest(model, options),
        maxOutputTokens: options.maxOutputTokens,
        timeout: CHUNK_TIMEOUT,
        call: (op, writer) => readStream(model, options, op, writer),
        model: model.modelId,
        provider: model.provider,
        tokensOf: (result) => tokensOf(usageOf(result)),
        finishOf: ({ parts }) => finishText(parts.findLast((part) => part.type === "finish")?.finishReason),
        answeredBy: ({ parts }) => parts.findLast((part) => part.type === "response-metadata")?.modelId,
      });
      answering.catch((error: unknown) => {
        if (options.abortSignal?.aborted !== true) onFailure(error);
      });
      return { stream: streamOf(await answering) };
    },
  };
}

/** model-cost.C1 needs a limit. Models without prices keep the limit of their provider. */
function limited(options: CallOptions, { hasPrices }: ModelCalls): CallOptions {
  if (!hasPrices || options.maxOutputTokens !== undefined) return options;
  return { ...options, maxOutputTokens: DEFAULT_OUTPUT_TOKENS };
}

async function generate(
  model: LanguageModelV4,
  options: CallOptions,
  op: OperationContext,
  writer: FrameWriter,
): Promise<GenerateResult> {
  const result = await model.doGenerate({ ...options, abortSignal: signalOf(op, options.abortSignal) });
  for (const part of result.content) {
    if (part.type === "text" || part.type === "reasoning") writer.delta(part.type, part.text);
    else if (part.type === "tool-call") writer.delta("tool-input", part.input);
  }
  return recordedResult(result);
}

/** model-call.M2 */
async function readStream(
  model: LanguageModelV4,
  options: CallOptions,
  op: OperationContext,
  writer: FrameWriter,
): Promise<StreamAnswer> {
  const { stream } = await model.doStream({ ...options, abortSignal: signalOf(op, options.abortSignal) });
  const collector = new PartCollector(options.includeRawChunks);
  let hasEnded = false;
  for await (const part of stream as ReadableStream<StreamPart> & AsyncIterable<StreamPart>) {
    op.heartbeat();
    if (part.type === "error") throw part.error instanceof Error ? part.error : brokenStream(part.error);
    hasEnded ||= part.type === "finish";
    if (isDelta(part)) writer.delta(DELTAS[part.type], part.delta);
    collector.add(part);
  }
  if (!hasEnded) throw brokenStream("it ended without a finish part");
  return collector.answer();
}

const DELTAS = { "text-delta": "text", "reasoning-delta": "reasoning", "tool-input-delta": "tool-input" } as const;

/** Providers report errors of their servers as any value. */
function brokenStream(reason: unknown): Error {
  const text = typeof reason === "string" ? reason : JSON.stringify(reason);
  return Object.assign(new Error(`The stream of the model failed: ${text}`), { isRetryable: true });
}

function finishText(reason: unknown): string {
  if (typeof reason === "string") return reason;
  const { unified } = (reason ?? {}) as { unified?: unknown };
  return typeof unified === "string" ? unified : "other";
}
