// Durable: an agent SDK inside a run. Model calls and tools are steps, and the rest of the SDK is deterministic.
//
// durable.D1. The code of the SDK runs in `ctx.deterministic`, so its ids and times are the same in a replay.
// durable.D2. A name of a model is resolved through the models that the run replaces (`ctx.models`), then through `models`: at every
//   call, because a fork replaces models from its place on, and the code made its model before.
// durable.D3. After the guard has refused a call inside a tool, no model is called, and `call` rejects with that error.
// durable.D4. A stream whose model call failed makes `call` reject with that error. The SDK passes errors of streams to `onError` only,
//   and its result would be the text so far.

import { AsyncLocalStorage } from "node:async_hooks";
import { gateway, NoOutputGeneratedError, wrapLanguageModel, type LanguageModel, type ToolSet } from "ai";
import { checkOptionNames, RepriseError, toMs, type Duration, type RetryPolicy } from "../base/index.ts";
import type { DurableContext } from "../workflow/index.ts";
import type { ApprovalPorts } from "./approvals.ts";
import { durableModel } from "./durable-model.ts";
import { durableTools } from "./durable-tools.ts";
import { checkPrices, type ModelPrice } from "./model-cost.ts";
import type { LanguageModelV4 } from "./sdk-types.ts";
import type { TokenPorts } from "./token-frames.ts";
import type { ToolHow } from "./tool-calls.ts";

/** Options of `durable`. */
export interface DurableOptions<M = {}> {
  /** The port, made by `tokens()`, that shows the deltas of model calls. */
  stream?: TokenPorts<M>;
  /** The port, made by `approvals()`, in which people approve calls of tools. */
  approve?: ApprovalPorts<M>;
  /** Models by the names that `model` gets, and that a fork may replace. */
  models?: Readonly<Record<string, LanguageModel>>;
  /** By the id or the name of a model, in US dollars per million tokens. */
  prices?: Readonly<Record<string, ModelPrice>>;
  /** Of a model call. Default: 3 attempts for errors that the SDK calls retryable. */
  retry?: RetryPolicy;
  /** Of a model call: the longest time without a chunk. Default: 60 s; of an answer that is not streamed, 10 minutes. */
  timeout?: Duration;
}

/** What `durable` returns. */
export interface DurableAi {
  /** A model whose calls are recorded: an object of a provider package, or a name in `models`. */
  model(model: LanguageModel | (string & {})): LanguageModelV4;
  /** Tools whose calls are recorded. */
  tools<T extends ToolSet>(tools: T, how?: { readonly [K in keyof T]?: ToolHow }): T;
  /** Calls the SDK: its ids and times are the same in a replay. Network and timers are refused in it. */
  call<T>(sdk: () => PromiseLike<T>): Promise<T>;
}

/** durable.D4. The first failure of a stream inside a `call`. */
interface StreamFailure {
  first?: { readonly error: unknown };
}

const failures = new AsyncLocalStorage<StreamFailure>();

function noteFailure(error: unknown): void {
  const failure = failures.getStore();
  if (failure !== undefined) failure.first ??= { error };
}

const OPTIONS = ["approve", "models", "prices", "retry", "stream", "timeout"] as const;

/**
 * Makes the calls of the AI SDK durable: one recorded step per model call and per tool call.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { durable } from "reprise/ai";
 * import { generateText, type LanguageModel } from "ai";
 * declare const model: LanguageModel;
 * const haiku = workflow("haiku", async (ctx, topic: string) => {
 *   const ai = durable(ctx);
 *   const { text } = await ai.call(() => generateText({ model: ai.model(model), prompt: `A haiku about ${topic}` }));
 *   return text;
 * });
 * ```
 */
export function durable<M>(ctx: DurableContext<M>, options: DurableOptions<M> = {}): DurableAi {
  checkOptionNames(options, OPTIONS, "durable");
  checkPrices(options.prices);
  if (options.timeout !== undefined) toMs(options.timeout, "durable: timeout");
  let stopped: { readonly error: unknown } | undefined;
  const check = (): void => {
    if (stopped !== undefined) throw stopped.error;
  };
  const { stream, approve, models = {}, prices = {}, retry, timeout } = options;
  return {
    model(given) {
      const resolve = (): LanguageModelV4 => {
        const { model: found, name, pricedAs, isReplaced } = resolveModel(ctx.models, models, given);
        const model = asV4(found);
        const price = prices[pricedAs] ?? prices[model.modelId];
        const hasPrices = options.prices !== undefined;
        const calls = {
          ctx,
          name: name ?? model.modelId,
          stream,
          price,
          hasPrices,
          retry,
          timeout,
          isLive: isReplaced,
          check,
        };
        return durableModel(model, calls, noteFailure);
      };
      return resolvedPerCall(resolve);
    },
    tools: (tools, how = {}) =>
      durableTools({ ctx, approve, stopBy: (error) => void (stopped ??= { error }) }, tools, how),
    // durable.D1
    call: async (sdk) => {
      const failure: StreamFailure = {};
      const result = await failures
        .run(failure, async () => ctx.deterministic(sdk))
        .catch((error: unknown) => {
          // The SDK's error says only that a stream failed.
          throw failure.first !== undefined && NoOutputGeneratedError.isInstance(error) ? failure.first.error : error;
        });
      check();
      if (failure.first !== undefined) throw failure.first.error;
      return result;
    },
  };
}

/** durable.D2. Wrong models are refused at once, though. */
function resolvedPerCall(resolve: () => LanguageModelV4): LanguageModelV4 {
  resolve();
  return {
    specificationVersion: "v4",
    get provider() {
      return resolve().provider;
    },
    get modelId() {
      return resolve().modelId;
    },
    get supportedUrls() {
      return resolve().supportedUrls;
    },
    doGenerate: async (options) => resolve().doGenerate(options),
    doStream: async (options) => resolve().doStream(options),
  };
}

interface ResolvedModel {
  readonly model: LanguageModel;
  /** The name that prices are given by: a model that replaces another one has its own price. */
  readonly pricedAs: string;
  /** Its name in the code; undefined for an object. */
  readonly name: string | undefined;
  readonly isReplaced: boolean;
}

/** durable.D2 */
function resolveModel(
  replaced: Readonly<Record<string, string>>,
  models: Readonly<Record<string, LanguageModel>>,
  given: LanguageModel | (string & {}),
): ResolvedModel {
  const isName = typeof given === "string";
  const name = isName ? given : given.modelId;
  const instead = Object.hasOwn(replaced, name) ? replaced[name] : undefined;
  const wanted = instead ?? given;
  const model = typeof wanted === "string" && Object.hasOwn(models, wanted) ? models[wanted]! : wanted;
  return {
    model: model as LanguageModel,
    pricedAs: instead ?? name,
    name: isName ? name : undefined,
    isReplaced: instead !== undefined,
  };
}

/** Models of specification v3 become models of v4; a text is a model of the default provider, as in the SDK. */
function asV4(model: LanguageModel): LanguageModelV4 {
  if (typeof model === "string") {
    const provider = globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway;
    return asV4(provider.languageModel(model));
  }
  if (typeof model !== "object" || model === null || typeof model.doGenerate !== "function")
    throw new RepriseError(
      "BAD_OPTIONS",
      `ai.model: expected a language model of the AI SDK, or a name in \`models\`, got ${typeof model}.`,
    );
  return wrapLanguageModel({ model, middleware: [] });
}
