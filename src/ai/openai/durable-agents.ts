// Durable agents: the OpenAI Agents SDK inside a run. Model calls and tools are steps, and interruptions are promises.
//
// durable-agents.G1. The state of the SDK (`RunState`) is never stored. A replay builds it again from recorded answers.
// durable-agents.G2. The SDK refuses a call whose arguments changed after its approval. An input that a person edited is kept beside
//   the state, and the wrapped tool uses it.
// durable-agents.G3. Tracing of the SDK is off in `run`: it would send what a replay repeats.

import {
  Runner,
  type Agent,
  type AgentInputItem,
  type FunctionTool,
  type Model,
  type RunResult,
  type RunToolApprovalItem,
} from "@openai/agents";
import { checkOptionNames, RepriseError, toMs, type Duration, type RetryPolicy } from "../../base/index.ts";
import type { DurableContext } from "../../workflow/index.ts";
import { deniedText, type ApprovalPorts } from "../approvals.ts";
import { checkPrices, type ModelPrice } from "../model-cost.ts";
import type { TokenPorts } from "../token-frames.ts";
import { askForCall, type ToolHow } from "../tool-calls.ts";
import { durableAgentModel } from "./durable-agent-model.ts";
import { durableAgentTool, type AgentToolCalls } from "./durable-agent-tool.ts";
import { parsedArguments } from "./tool-arguments.ts";

/** Options of `durable` for the OpenAI Agents SDK. */
export interface DurableAgentOptions<M = {}> {
  /** The port, made by `tokens()`, that shows the deltas of model calls; `run` then streams. */
  stream?: TokenPorts<M>;
  /** The port, made by `approvals()`, in which people approve calls of tools. */
  approve?: ApprovalPorts<M>;
  /** Models by the names that agents use, and that a fork may replace. */
  models?: Readonly<Record<string, Model>>;
  /** By the name of a model, in US dollars per million tokens. */
  prices?: Readonly<Record<string, ModelPrice>>;
  /** Of a model call. Default: 3 attempts for errors that another attempt can fix. */
  retry?: RetryPolicy;
  /** Of a model call: the longest time without an event. Default: 60 s; of an answer that is not streamed, 10 minutes. */
  timeout?: Duration;
}

/** Options of `run`. */
export interface AgentRunOptions<Context> {
  context?: Context;
  /** Default: that of the SDK. */
  maxTurns?: number;
}

/** What `durable` returns. */
export interface DurableAgents {
  /** A model whose calls are recorded: an object, a name in `models`, or a name of the SDK's default provider. */
  model(model: Model | string): Model;
  /** Tools whose calls are recorded. */
  tools<T extends FunctionTool<any, any, any>>(tools: readonly T[], how?: Readonly<Record<string, ToolHow>>): T[];
  /** Calls the SDK: its ids and times are the same in a replay. Network and timers are refused in it. */
  call<T>(sdk: () => PromiseLike<T>): Promise<T>;
  /**
   * Runs an agent to its end. The models of agents that are named by text are recorded. A tool with `needsApproval` waits for a
   * person: each call opens a promise of the port `approve`.
   */
  run<A extends Agent<any, any>, Context = unknown>(
    agent: A,
    input: string | AgentInputItem[],
    options?: AgentRunOptions<Context>,
  ): Promise<RunResult<Context, A>>;
}

const OPTIONS = ["approve", "models", "prices", "retry", "stream", "timeout"] as const;

/**
 * Makes the calls of the OpenAI Agents SDK durable: one recorded step per model call and per tool call.
 *
 * @example
 * ```ts
 * import { Agent } from "@openai/agents";
 * import { workflow } from "reprise";
 * import { durable } from "reprise/ai/openai";
 * const haiku = workflow("haiku", async (ctx, topic: string) => {
 *   const ai = durable(ctx);
 *   const poet = new Agent({ name: "poet", instructions: "Write haiku.", model: "gpt-5-mini" });
 *   return (await ai.run(poet, topic)).finalOutput ?? "";
 * });
 * ```
 */
export function durable<M>(ctx: DurableContext<M>, options: DurableAgentOptions<M> = {}): DurableAgents {
  checkOptionNames(options, OPTIONS, "durable");
  checkPrices(options.prices);
  if (options.timeout !== undefined) toMs(options.timeout, "durable: timeout");
  const { stream, approve, models = {}, prices = {}, retry, timeout } = options;
  let stopped: { readonly error: unknown } | undefined;
  const check = (): void => {
    if (stopped !== undefined) throw stopped.error;
  };
  const stopBy = (error: unknown): void => void (stopped ??= { error });
  const calls: AgentToolCalls = { ctx, approve, stopBy, edited: new Map(), wrapped: new Set() };
  const model = (given: Model | string): Model => {
    const { name, instead, isReplaced } = resolveName(ctx.models, models, given);
    return durableAgentModel(() => modelOf(models, instead), {
      ctx,
      name,
      stream,
      // A model that replaces another one has its own price.
      price: prices[isReplaced && typeof instead === "string" ? instead : name],
      hasPrices: options.prices !== undefined,
      retry,
      timeout,
      isLive: isReplaced,
      check,
    });
  };
  const call = async <T>(sdk: () => PromiseLike<T>): Promise<T> => {
    const result = await ctx.deterministic(sdk);
    check();
    return result;
  };
  return {
    model,
    tools: (tools, how = {}) => tools.map((tool) => durableAgentTool(calls, tools, tool, how)),
    call,
    run: (agent, input, given = {}) =>
      call(async () => {
        checkOptionNames(given, ["context", "maxTurns"], "ai.run");
        // durable-agents.G3
        const runner = new Runner({
          tracingDisabled: true,
          modelProvider: { getModel: (name) => model(name ?? DEFAULT_MODEL) },
        });
        const result = await runToEnd(
          calls,
          (from) => runOnce(runner, agent, from, given, stream !== undefined),
          input,
        );
        return result as RunResult<any, any>;
      }),
  };
}

/** The provider of the SDK chooses. */
const DEFAULT_MODEL = "";

type Result = Pick<RunResult<any, Agent<any, any>>, "interruptions" | "state">;
type Input = Parameters<DurableAgents["run"]>[1] | Result["state"];

async function runOnce(
  runner: Runner,
  agent: Agent<any, any>,
  input: Input,
  options: AgentRunOptions<any>,
  isStreamed: boolean,
): Promise<Result> {
  if (!isStreamed) return runner.run(agent, input as string, options);
  const result = await runner.run(agent, input as string, { ...options, stream: true });
  await result.completed;
  return result;
}

/** durable-agents.G1. Answers of people lead to another run from the state in memory. */
async function runToEnd(calls: AgentToolCalls, run: (input: Input) => Promise<Result>, input: Input): Promise<Result> {
  const result = await run(input);
  if (result.interruptions.length === 0) return result;
  await Promise.all(result.interruptions.map((item) => decide(calls, result.state, item)));
  return runToEnd(calls, run, result.state);
}

async function decide(calls: AgentToolCalls, state: Result["state"], item: RunToolApprovalItem): Promise<void> {
  const { rawItem } = item;
  const name = item.name ?? "tool";
  if (calls.approve === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Tool ${name} needs approval, but no port for it is named. Declare ports: { approve: approvals() } and pass durable(ctx, { approve: "approve" }).`,
    );
  const callId = "callId" in rawItem ? rawItem.callId : (rawItem.id ?? name);
  const answer = await askForCall(calls, name, parsedArguments(item.arguments), callId);
  if (!answer.ok) return state.reject(item, { message: deniedText(answer) });
  if (answer.input !== undefined) {
    // durable-agents.G2
    if (!calls.wrapped.has(name))
      throw new RepriseError(
        "BAD_OPTIONS",
        `The input of tool ${name} was edited, but the tool is not one of ai.tools([…]), which could use it. Wrap the tool.`,
      );
    calls.edited.set(callId, answer.input);
  }
  state.approve(item);
}

interface ResolvedName {
  /** In the code. */
  readonly name: string;
  readonly instead: Model | string;
  readonly isReplaced: boolean;
}

function resolveName(
  replaced: Readonly<Record<string, string>>,
  models: Readonly<Record<string, Model>>,
  given: Model | string,
): ResolvedName {
  const known = Object.entries(models).find(([, model]) => model === given);
  const name = typeof given === "string" ? given || "default" : (known?.[0] ?? "model");
  const instead = Object.hasOwn(replaced, name) ? replaced[name] : undefined;
  return { name, instead: instead ?? given, isReplaced: instead !== undefined };
}

/** Called inside a step: a provider may have to load something. */
async function modelOf(models: Readonly<Record<string, Model>>, model: Model | string): Promise<Model> {
  if (typeof model !== "string") return model;
  if (Object.hasOwn(models, model)) return models[model]!;
  // A runner without options has the provider that the program has set, or OpenAI's.
  return new Runner().config.modelProvider.getModel(model === DEFAULT_MODEL ? undefined : model);
}
