// Durable agent model: a model of the OpenAI Agents SDK whose calls are steps of a run (model-call.ts).
//
// durable-agent-model.O1. Raw events of a provider and bodies of its responses are not kept: the normalized answer has what the SDK
//   uses.

import { Usage, type Model, type ModelRequest, type ModelResponse, type StreamEvent } from "@openai/agents";
import type { OperationContext } from "../../workflow/index.ts";
import { ANSWER_TIMEOUT, callModel, CHUNK_TIMEOUT, signalOf, type ModelCalls } from "../model-call.ts";
import { DEFAULT_OUTPUT_TOKENS, type TokenCounts } from "../model-cost.ts";
import { plainData } from "../plain-data.ts";
import type { FrameWriter } from "../token-frames.ts";

/** What a journal has of an object of this class. */
type UsageFields = NonNullable<ConstructorParameters<typeof Usage>[0]>;

/** The result of the step of a streamed call. */
interface StreamAnswer {
  readonly events: readonly StreamEvent[];
}

type DoneEvent = Extract<StreamEvent, { type: "response_done" }>;

/** `modelOf` is called inside a step. */
export function durableAgentModel(modelOf: () => Promise<Model>, calls: ModelCalls): Model {
  return {
    async getResponse(given) {
      const request = limited(given, calls);
      const answer = await callModel<ModelResponse>(calls, {
        request: recordedRequest(calls, request),
        maxOutputTokens: request.modelSettings.maxTokens,
        timeout: ANSWER_TIMEOUT,
        call: (op, writer) => respond(modelOf, request, op, writer),
        model: calls.name,
        tokensOf: ({ usage }) => tokensOf(usage),
        finishOf: ({ output }) => finishOf(output),
        answeredBy: () => undefined,
      });
      return { ...answer, usage: new Usage(answer.usage as UsageFields) };
    },
    async *getStreamedResponse(given) {
      const request = limited(given, calls);
      const { events } = await callModel<StreamAnswer>(calls, {
        request: recordedRequest(calls, request),
        maxOutputTokens: request.modelSettings.maxTokens,
        timeout: CHUNK_TIMEOUT,
        call: (op, writer) => readEvents(modelOf, request, op, writer),
        model: calls.name,
        tokensOf: (answer) => tokensOf(doneOf(answer)?.response.usage),
        finishOf: (answer) => finishOf(doneOf(answer)?.response.output ?? []),
        answeredBy: () => undefined,
      });
      yield* events;
    },
  };
}

/** model-cost.C1 needs a limit. Models without prices keep the limit of their provider. */
function limited(request: ModelRequest, { hasPrices }: ModelCalls): ModelRequest {
  if (!hasPrices || request.modelSettings.maxTokens !== undefined) return request;
  return { ...request, modelSettings: { ...request.modelSettings, maxTokens: DEFAULT_OUTPUT_TOKENS } };
}

/** Members of `providerData` that may be secrets. */
const HEADERS = /headers?$/i;

/** What the journal keeps of a request. */
function recordedRequest({ name }: ModelCalls, request: ModelRequest): object {
  const { systemInstructions, input, tools, modelSettings, prompt: template, ...others } = request;
  const { signal: _signal, tracing: _tracing, ...rest } = others;
  const { retry: _retry, providerData = {}, ...settings } = modelSettings;
  const kept = Object.entries(providerData).filter(([key]) => !HEADERS.test(key));
  const data = kept.length === 0 ? undefined : Object.fromEntries(kept);
  return plainData({
    model: name,
    instructions: systemInstructions,
    prompt: input,
    tools,
    settings: { ...settings, providerData: data },
    template,
    ...rest,
  }) as object;
}

async function respond(
  modelOf: () => Promise<Model>,
  request: ModelRequest,
  op: OperationContext,
  writer: FrameWriter,
): Promise<ModelResponse> {
  const model = await modelOf();
  const response = await model.getResponse({ ...request, signal: signalOf(op, request.signal) });
  const { usage, output, responseId, requestId } = response;
  for (const item of output) writeItem(item, writer);
  return plainData({ usage, output, responseId, requestId }) as ModelResponse;
}

function writeItem(item: ModelResponse["output"][number], writer: FrameWriter): void {
  if (item.type === "function_call") writer.delta("tool-input", item.arguments);
  if (item.type !== "message" || item.role !== "assistant") return;
  for (const part of item.content) if (part.type === "output_text") writer.delta("text", part.text);
}

/** model-call.M2 */
async function readEvents(
  modelOf: () => Promise<Model>,
  request: ModelRequest,
  op: OperationContext,
  writer: FrameWriter,
): Promise<StreamAnswer> {
  const model = await modelOf();
  const events: StreamEvent[] = [];
  for await (const event of model.getStreamedResponse({ ...request, signal: signalOf(op, request.signal) })) {
    op.heartbeat();
    // durable-agent-model.O1
    if (event.type === "model") continue;
    if (event.type === "output_text_delta") writer.delta("text", event.delta);
    const last = events.at(-1);
    if (event.type === "output_text_delta" && last?.type === "output_text_delta" && last.itemId === event.itemId)
      events[events.length - 1] = { ...last, delta: last.delta + event.delta };
    else events.push(event.type === "response_done" ? withoutRaw(event) : event);
  }
  const answer = plainData({ events }) as StreamAnswer;
  if (doneOf(answer) === undefined)
    throw Object.assign(new Error("The stream of the model ended before its response was complete."), {
      isRetryable: true,
    });
  return answer;
}

/** durable-agent-model.O1 */
function withoutRaw({ response: { providerData: _body, ...response }, ...event }: DoneEvent): DoneEvent {
  return { ...event, response };
}

function doneOf({ events }: StreamAnswer): DoneEvent | undefined {
  return events.findLast((event) => event.type === "response_done");
}

function finishOf(output: readonly { readonly type?: string | undefined }[]): string {
  return output.some(({ type }) => type === "function_call") ? "tool-calls" : "stop";
}

interface AnyUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly inputTokensDetails?: unknown;
}

function tokensOf(usage: AnyUsage | undefined): TokenCounts {
  const details = [usage?.inputTokensDetails].flat() as readonly (Readonly<Record<string, number>> | undefined)[];
  const cached = details.reduce((sum, one) => sum + (one?.["cached_tokens"] ?? 0), 0);
  const { inputTokens: input = 0, outputTokens: output = 0 } = usage ?? {};
  // The SDK counts 0 for what a provider does not report, and no request is without a token.
  return { input, cached, output, isReported: input > 0 };
}
