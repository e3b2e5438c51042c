// Task: work any worker may claim. Registered beside definitions, so that a worker knows what it can run.

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
import type { Awaitable } from "./definition.ts";
import type { InputOfKey, KeyFunction, KeyTakes } from "./key-function.ts";
import { labelOption } from "./label.ts";
import { checkQueueSlot, type QueueSlotOptions, type Queue } from "./queue.ts";
import type { Schema } from "./schema.ts";

/** Retry and the time one attempt may take. */
export interface Policy {
  retry?: RetryPolicy;
  timeout?: Duration;
}

/** Where log lines go. */
export interface Logger {
  info(message: string, data?: object): void;
  warn(message: string, data?: object): void;
  error(message: string, data?: object): void;
}

/** What a task's function is given: who it is, which attempt, and how it learns that nobody waits for it any more. */
export interface TaskContext {
  /** The id of the run. */
  readonly runId: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** The same for every attempt of this call: hand it to the outside so that a repeated call is recognised. */
  readonly idempotencyKey: string;
  /** Aborted when the run is cancelled, the attempt has timed out, or the work was lost: hand it to `fetch`. */
  readonly abortSignal: AbortSignal;
  /** To the engine's `logger`, with the run's id; silent during replay. */
  readonly log: Logger;
  /** Says that the function is still at work: the attempt's `timeout` starts anew. */
  heartbeat(): void;
}

/** Options of `task`. */
export interface TaskOptions<Input, Parsed> extends Policy {
  /** A Standard Schema (zod, valibot, arktype): inputs are checked where the task is asked for. */
  input?: Schema<Input, Parsed>;
  /** Higher goes first; default 0. */
  priority?: number;
  /** Where it waits; its limits hold across all workers. */
  queue?: Queue;
  /** What the queue's limits per key count by. */
  key?: (input: Parsed) => string;
  /** Only workers that have this label take it; default: any worker. */
  label?: string;
}

/** What `task()` makes: work that any worker may claim. */
export interface Task<Name extends string, Input, Output> {
  readonly kind: "task";
  readonly name: Name;
  readonly "~types"?: { input: (value: Input) => void; output: Output };
}
/** A task of whatever input and output. */
export type AnyTask = Task<string, any, any>;

/** The part of a task the engine runs; reached by `taskBody`, so that it does not show in the editor. */
export interface TaskBody {
  readonly run: (ctx: TaskContext, input: unknown) => unknown;
  readonly schema: Schema<never, unknown> | undefined;
  readonly policy: Policy;
  readonly priority: number;
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
}
/** In the global registry: two copies of the package accept each other's tasks. */
const BODY = Symbol.for("reprise.task");

export function taskBody(task: AnyTask): TaskBody {
  const body = (task as { [BODY]?: TaskBody })[BODY];
  if (body === undefined)
    throw new RepriseError("UNKNOWN_TASK", `Expected a task made by task(), got ${describe(task)}.`);
  return body;
}

export function isTask(value: unknown): value is AnyTask {
  return typeof value === "object" && value !== null && BODY in value;
}

function describe(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return "name" in value ? `an object named ${String(value.name)}` : "another object";
}

/** Refuses a policy that cannot be kept, before anything runs. */
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
 * Defines a task: a function any worker may run, retried by its policy, its result journaled once.
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
export function task<
  const Name extends string,
  Output,
  Key extends KeyFunction = KeyFunction,
  Input = InputOfKey<Key>,
>(
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
  checkOptionNames(options, ["input", "key", "label", "priority", "queue", "retry", "timeout"], `Task ${name}`);
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
  };
  return Object.freeze({ kind: "task", name, [BODY]: body });
}
