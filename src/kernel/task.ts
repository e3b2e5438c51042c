// Task: a function that any worker may run. Registered in `definitions`, so that a worker knows what it can claim.

import { inspect } from "node:util";
import {
  checkName,
  checkOptionNames,
  checkRetryPolicy,
  RepriseError,
  toMs,
  type Duration,
  type RetryPolicy,
} from "../base/index.ts";
import { checkCost, type TaskCost } from "./budget.ts";
import type { Awaitable } from "./definition.ts";
import type { InputOfKey, KeyFunction, KeyTakes } from "./key-function.ts";
import { labelOption } from "./label.ts";
import { checkPure } from "./memo.ts";
import { checkQueueSlot, type QueueSlotOptions, type Queue } from "./queue.ts";
import type { Schema } from "./schema.ts";

/** The retry policy, and the time limit of one attempt. */
export interface Policy {
  /** How often and after which delays a failed attempt is repeated. Default: one attempt. */
  retry?: RetryPolicy;
  /**
   * Fails an attempt that takes longer with ATTEMPT_TIMEOUT; `ctx.heartbeat()` of a task restarts it. Default: none, and
   * 30 seconds for the nodes of a graph.
   */
  timeout?: Duration;
}

/** How much a log line matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** From the least important on. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** Receives log lines, by level. Without `debug`, those lines are dropped. */
export interface Logger {
  debug?(message: string, data?: object): void;
  info(message: string, data?: object): void;
  warn(message: string, data?: object): void;
  error(message: string, data?: object): void;
}

export const silentLogger: Required<Logger> = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The first argument of a task's function: its identity, its attempt and its abort signal. */
export interface TaskContext {
  /** The id of the run. */
  readonly runId: string;
  /** 1 for the first attempt; a failed attempt adds one. */
  readonly attempt: number;
  /**
   * Counts the calls of this function for this step, this one included: also those whose worker was lost before their result was
   * recorded, which `attempt` does not count.
   */
  readonly execution: number;
  /** The same for every attempt of this call: pass it to the remote service, so that it recognizes a repeated call. */
  readonly idempotencyKey: string;
  /** Aborts if the run is canceled, the attempt times out, or the worker loses the lease: pass it to `fetch`. */
  readonly abortSignal: AbortSignal;
  /** Writes to the engine's `logger`, with the run's id; not during replay. */
  readonly log: Required<Logger>;
  /** Reports progress: restarts the attempt's `timeout`. */
  heartbeat(): void;
}

/** Options of `task`. */
export interface TaskOptions<Input, Parsed> extends Policy {
  /** A Standard Schema (zod, valibot, arktype): the engine checks inputs where the task is called. */
  input?: Schema<Input, Parsed>;
  /** Workers claim higher priorities first; default 0. */
  priority?: number;
  /** The queue of the task; its limits hold across all workers. */
  queue?: Queue;
  /** The key for the queue's limits per key. */
  key?: (input: Parsed) => string;
  /** Only workers with this label claim it; default: any worker. */
  label?: string;
  /**
   * The version of the function, if it is pure: its result depends on its input alone. A known result of the same task, input and
   * version is reused instead of a call.
   */
  pure?: string;
  /** What an execution costs, in runs with a budget. */
  cost?: TaskCost;
}

/** What `task()` returns: a function that any worker may run. */
export interface Task<Name extends string, Input, Output> {
  readonly kind: "task";
  readonly name: Name;
  readonly "~types"?: { input: (value: Input) => void; output: Output };
}
/** A task of any input and output. */
export type AnyTask = Task<string, any, any>;

/** The internals of a task, behind a symbol, so that the editor does not show them. */
export interface TaskBody {
  readonly run: (ctx: TaskContext, input: unknown) => unknown;
  readonly schema: Schema<never, unknown> | undefined;
  readonly policy: Policy;
  readonly priority: number;
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
  readonly pure: string | undefined;
  readonly cost: TaskCost | undefined;
}
/** In the global registry: two copies of the package accept each other's tasks. */
const BODY = Symbol.for("reprise.task");

export function taskBody(task: AnyTask): TaskBody {
  const body = (task as { [BODY]?: TaskBody })[BODY];
  if (body === undefined) throw new RepriseError("UNKNOWN_TASK", `Expected a task from task(), got ${describe(task)}.`);
  return body;
}

export function isTask(value: unknown): value is AnyTask {
  return typeof value === "object" && value !== null && BODY in value;
}

function describe(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return "name" in value ? `an object named ${String(value.name)}` : "another object";
}

/** Refuses an invalid policy before any code runs. */
export function checkPolicy(policy: Policy, what: string): void {
  if (policy.retry !== undefined) checkRetryPolicy(policy.retry, what);
  if (policy.timeout !== undefined && toMs(policy.timeout, `${what}: timeout`) === 0)
    throw new RepriseError("BAD_POLICY", `${what}: expected a timeout above 0, got ${String(policy.timeout)}.`);
}

export function checkPriority(priority: unknown, what: string): void {
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a whole number as priority, got ${inspect(priority)}.`);
}

/**
 * Defines a task: a function that any worker may run. The engine retries it by its policy and records its result once.
 *
 * @example
 * ```ts
 * import { task } from "reprise";
 * const charge = task("charge", { retry: { maxAttempts: 5 } }, async (ctx, order: { cents: number }) => {
 *   return { paid: order.cents, key: ctx.idempotencyKey };
 * });
 * ```
 */
export function task<const Name extends string, Output, Input = void>(
  name: Name,
  run: (ctx: TaskContext, input: Input) => Awaitable<Output>,
): Task<Name, Input, Output>;
export function task<const Name extends string, Output, Parsed, Input>(
  name: Name,
  options: TaskOptions<Input, Parsed> & { input: Schema<Input, Parsed> },
  run: (ctx: TaskContext, input: Parsed) => Awaitable<Output>,
): Task<Name, Input, Output>;
export function task<const Name extends string, Output, Key extends KeyFunction = KeyFunction, Input = InputOfKey<Key>>(
  name: Name,
  options: Omit<TaskOptions<never, never>, "input" | "key"> & { input?: never; key?: Key },
  run: (ctx: TaskContext, input: Input) => Output & KeyTakes<Key, Input>,
): Task<Name, Input, Awaited<Output>>;
export function task(name: string, ...rest: readonly unknown[]): AnyTask {
  const options = (rest.length === 1 ? {} : rest[0]) as TaskOptions<never, unknown>;
  const run = rest.at(-1);
  checkName(name, "task name");
  if (typeof run !== "function")
    throw new RepriseError("BAD_OPTIONS", `Task ${name}: expected a function as the last argument, got ${typeof run}.`);
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `Task ${name}: expected an object of options, got ${typeof options}.`);
  checkOptionNames(
    options,
    ["cost", "input", "key", "label", "priority", "pure", "queue", "retry", "timeout"],
    `Task ${name}`,
  );
  checkPolicy(options, `Task ${name}`);
  checkPriority(options.priority, `Task ${name}`);
  const body: TaskBody = {
    run: run as TaskBody["run"],
    schema: options.input as Schema<never, unknown> | undefined,
    policy: {
      ...(options.retry && { retry: options.retry }),
      ...(options.timeout !== undefined && { timeout: options.timeout }),
    },
    priority: options.priority ?? 0,
    slotOptions: checkQueueSlot(options, `Task ${name}`),
    label: labelOption(options, `Task ${name}`),
    pure: checkPure(options.pure, `Task ${name}`),
    cost: checkCost(options.cost, `Task ${name}`),
  };
  return Object.freeze({ kind: "task", name, [BODY]: body });
}
