// Model call: one call of a model as a step of a run, whatever SDK made it.
//
// model-call.M1. A call is one step, `chat <name>`. Its input is the request, its result the answer.
// model-call.M2. Readers of the run see the deltas of an answer while it arrives (token-frames.ts), the SDK sees them after the commit.
// model-call.M3. A call that ended is never made again. One that a crash interrupted is made again, with the same idempotency key.
// model-call.M4. The signal of the step aborts the request, and so does the one that the SDK was given.

import { encode, type Duration, type RetryPolicy } from "../base/index.ts";
import { emit, isObserved, STEP_TRACE, type Cost, type SpanAttributes, type StepTrace } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import {
  billedCost,
  callCost,
  costOfTokens,
  DEFAULT_OUTPUT_TOKENS,
  reservation,
  type ModelPrice,
  type TokenCounts,
} from "./model-cost.ts";
import { modelRetry, recordedError } from "./model-errors.ts";
import { FrameWriter } from "./token-frames.ts";

/** How the calls of one model are made. */
export interface ModelCalls {
  readonly ctx: DurableContext<any>;
  /** In step names and frames. */
  readonly name: string;
  /** The port of token frames. */
  readonly stream: string | undefined;
  readonly price: ModelPrice | undefined;
  /** Some models have prices, so an answer without a limit gets one. */
  readonly hasPrices: boolean;
  readonly retry: RetryPolicy | undefined;
  readonly timeout: Duration | undefined;
  /** A fork replaces this model: its calls are made. */
  readonly isLive: boolean;
  /** Throws what must stop the run instead of another call. */
  readonly check: () => void;
}

/** Without a chunk. */
export const CHUNK_TIMEOUT: Duration = "60 s";
/** Of an answer that is not streamed, which may take as long as all its chunks together. */
export const ANSWER_TIMEOUT: Duration = "10 minutes";

/** One call. */
export interface ModelCall<T> {
  /** What the journal keeps, and compares on replay. */
  readonly request: object;
  readonly maxOutputTokens: number | undefined;
  readonly timeout: Duration;
  /** The id of the model, and its provider if it is known. */
  readonly model: string;
  readonly provider?: string;
  readonly call: (op: OperationContext, writer: FrameWriter) => Promise<T>;
  readonly tokensOf: (answer: T) => TokenCounts;
  /** Why the answer ended, for readers. */
  readonly finishOf: (answer: T) => string;
  /** The model that answered, as the provider reports it. */
  readonly answeredBy: (answer: T) => string | undefined;
}

/** model-call.M1 */
export async function callModel<T>(calls: ModelCalls, made: ModelCall<T>): Promise<T> {
  calls.check();
  const { ctx, name, stream, price } = calls;
  const { request, call, finishOf, maxOutputTokens = DEFAULT_OUTPUT_TOKENS } = made;
  const retry = modelRetry(calls.retry);
  const costOf = (answer: T): Cost => costOfTokens(made.tokensOf(answer), price);
  const attempt = async (op: OperationContext): Promise<T> => {
    const writer = new FrameWriter(op, stream);
    writer.write({ part: "begin", model: name });
    try {
      const answer = await call(op, writer);
      writer.write({ part: "end", finish: finishOf(answer), usage: costOf(answer) });
      firstDeltas.set(answer as object, writer.firstDeltaMs);
      if (isObserved()) emitAnswer(ctx.runId, name, made, answer, costOf(answer));
      return answer;
    } catch (error) {
      const again = op.attempt < retry.maxAttempts && retry.retryable?.(error) !== false;
      writer.write({ part: "failed", error: error instanceof Error ? error.message : String(error), again });
      throw recordedError(error, retry);
    }
  };
  const reserve = (): Cost => reservation(Buffer.byteLength(encode(request)), maxOutputTokens, price);
  const cost = callCost(reserve, (answer: T) => billedCost(made.tokensOf(answer), price), price);
  const live = calls.isLive ? { live: true } : {};
  const policy = { retry, timeout: calls.timeout ?? made.timeout, cost, ...live, [STEP_TRACE]: traceOf(made) };
  // The types of answers have members that may be undefined; what is stored has none of them.
  return ctx.run<object, T>(`chat ${name}`, request, attempt as never, policy);
}

/** model-call.M4 */
export function signalOf({ abortSignal }: OperationContext, given: AbortSignal | undefined): AbortSignal {
  return given === undefined ? abortSignal : AbortSignal.any([abortSignal, given]);
}

/** The time to the first delta of an answer that is about to be recorded. */
const firstDeltas = new WeakMap<object, number | undefined>();

/** The span of the call, by the conventions of OpenTelemetry for generative AI. */
function traceOf<T>(made: ModelCall<T>): StepTrace {
  const { model, provider, maxOutputTokens, request } = made;
  const attributes: Record<string, string | number> = { "gen_ai.request.model": model };
  if (provider !== undefined) attributes["gen_ai.provider.name"] = provider;
  if (maxOutputTokens !== undefined) attributes["gen_ai.request.max_tokens"] = maxOutputTokens;
  return {
    kind: "chat",
    name: model,
    attributes,
    content: () => ({ "gen_ai.input.messages": JSON.stringify((request as { prompt?: unknown }).prompt) }),
    resultOf: (answer) => resultAttributes(made, answer as T),
    resultContentOf: (answer) => ({ "gen_ai.output.messages": JSON.stringify(answer) }),
  };
}

function resultAttributes<T>({ tokensOf, finishOf, answeredBy }: ModelCall<T>, answer: T): SpanAttributes {
  const { input, cached, output } = tokensOf(answer);
  const model = answeredBy(answer);
  const firstMs = firstDeltas.get(answer as object);
  return {
    "gen_ai.usage.input_tokens": input,
    "gen_ai.usage.output_tokens": output,
    "gen_ai.usage.cache_read.input_tokens": cached,
    "gen_ai.response.finish_reasons": [finishOf(answer)],
    ...(model !== undefined && { "gen_ai.response.model": model }),
    ...(firstMs !== undefined && { "gen_ai.response.time_to_first_chunk": firstMs / 1000 }),
  };
}

function emitAnswer<T>(run: string, name: string, { model, tokensOf }: ModelCall<T>, answer: T, cost: Cost): void {
  const { input: inputTokens, cached: cachedTokens, output: outputTokens } = tokensOf(answer);
  emit({ event: "model.answered", run, name, model, inputTokens, cachedTokens, outputTokens, usd: cost.usd });
}
