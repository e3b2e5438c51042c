// Queue: a named queue for tasks and runs, with limits on concurrency and rate.
//
// queue.Q1. Limits hold for the whole store, across all workers: the store checks them in the transaction that claims work.
// queue.Q2. A claim takes a slot. A task frees it when its attempt ends or its lease is taken over; a run frees it when it
//   ends, and holds it while it waits.
// queue.Q3. In any period `per`, at most `limit` claims succeed. Each attempt of a task counts.
// queue.Q4. The limits of a queue apply to its tasks and to its runs separately: a run must not hold the slot that its own
//   task waits for.
// queue.Q5. The commit that frees slots of a queue fills them again: in the same transaction, the worker that commits claims the
//   next items of that queue, if it has capacity for them. Suspects and rates that open later are left to other claims.
// queue.Q6. A worker may lease slots of a queue instead of one slot per item. It then claims more items than it has slots, and starts
//   the next one in a slot as soon as the one before has ended, without a commit in between. It never runs more of the queue's
//   functions at once than it has leased slots. Only in queues whose one limit is their concurrency.

import { inspect } from "node:util";
import { checkName, checkOptionNames, encode, RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { DefinitionVersion } from "./generation.ts";
import type { RunNumber } from "./run.ts";

/** How many may run at once, and how many may start per period. */
export interface Limit {
  /** How many tasks, and how many runs, may be in progress at the same time; default: no limit. */
  concurrency?: number;
  /** How many tasks, and how many runs, may start in any period `per`; default: no limit. Each attempt of a task counts. */
  rate?: { limit: number; per: Duration };
}

/** The limits of a queue. */
export interface QueueOptions extends Limit {
  /** The limit for each value of the task's or workflow's `key`. */
  perKey?: Limit;
}

/** What `queue()` returns: a name that tasks, workflows and workers refer to. */
export interface Queue {
  readonly kind: "queue";
  readonly name: string;
}

/** The queue of work that names none. Only the limits of the workers apply. */
export const DEFAULT_QUEUE = "default";

export interface StoredLimit {
  readonly concurrency?: number;
  readonly rate?: { readonly limit: number; readonly perMs: number };
}

/** The limits of a queue as a store keeps them. */
export interface QueueLimits extends StoredLimit {
  readonly perKey?: StoredLimit;
}

/** Where an item waits and is counted: a queue and, for limits per key, a key. */
export interface QueueSlot {
  readonly queue: string;
  readonly key?: string;
}

/** Declares a queue. Changes by an operator stay until a deployment declares other limits than the previous one. */
export interface DeclareQueueWrite {
  readonly write: "declare-queue";
  readonly name: string;
  readonly limits: QueueLimits;
}
/** A change by an operator. No worker claims from a paused queue; running work continues. */
export interface ChangeQueueWrite {
  readonly write: "change-queue";
  readonly name: string;
  readonly paused?: boolean;
  readonly limits?: QueueLimits;
}
export type QueueOutcome = { readonly status: "committed" } | { readonly status: "no_queue" };

/** Starts queued runs of these definition versions while their queues have room, by priority, then oldest first. */
export interface AdmitWrite {
  readonly write: "admit";
  readonly definitions: readonly DefinitionVersion[];
  readonly limit: number;
}
export interface AdmitOutcome extends ThrottledWork {
  readonly runs: readonly RunNumber[];
}

/** Work that a claim could not take because of limits. */
export interface ThrottledWork {
  /** When a rate limit allows the next claim; undefined: no rate limit applies. */
  readonly nextAt: EpochMs | undefined;
  /** Some work waits for a slot: poll again when one may be free. */
  readonly held: boolean;
}

/** A queue, for people. Runs count as ready until they start, and as leased until they end. */
export interface QueueState {
  readonly name: string;
  readonly limits: QueueLimits;
  readonly paused: boolean;
  /** Undefined also for a queue that an older version paused. */
  readonly pausedAt: EpochMs | undefined;
  readonly ready: number;
  readonly leased: number;
  readonly delayed: number;
  /** Since when the oldest ready item waits. */
  readonly oldestReadyAt: EpochMs | undefined;
}

/** In the global registry: two copies of the package accept each other's queues. */
const LIMITS = Symbol.for("reprise.queue");

/**
 * Declares a queue for tasks and runs, with limits that hold across all workers of a store.
 *
 * @example
 * ```ts
 * import { queue, task } from "reprise";
 * const mail = queue("mail", { concurrency: 10, rate: { limit: 100, per: "1 minute" }, perKey: { concurrency: 1 } });
 * const send = task("send", { queue: mail, key: (to: string) => to }, async (_ctx, to: string) => `sent to ${to}`);
 * ```
 */
export function queue(name: string, options: QueueOptions = {}): Queue {
  checkName(name, "queue name");
  const limits = limitsOf(options, `Queue ${name}`);
  if (name === DEFAULT_QUEUE && Object.keys(limits).length > 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Queue ${DEFAULT_QUEUE} holds all work that names no queue, and has no limits. Use another name, or set worker.concurrency.`,
    );
  return Object.freeze({ kind: "queue", name, [LIMITS]: limits });
}

/** Refuses a value that `queue()` did not return. */
export function queueLimits(made: unknown, what: string): QueueLimits {
  if (typeof made === "object" && made !== null && LIMITS in made) return made[LIMITS] as QueueLimits;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a queue from queue(), got ${inspect(made, { depth: 0 })}.`);
}

export function limitsOf(options: QueueOptions, what: string): QueueLimits {
  checkObject(options, what);
  checkOptionNames(options, ["concurrency", "rate", "perKey"], what);
  const { perKey, ...own } = options;
  if (perKey === undefined) return limitOf(own, what);
  checkObject(perKey, `${what}: perKey`);
  checkOptionNames(perKey, ["concurrency", "rate"], `${what}: perKey`);
  const ofKey = limitOf(perKey, `${what}: perKey`);
  return { ...limitOf(own, what), ...(Object.keys(ofKey).length > 0 && { perKey: ofKey }) };
}

function limitOf({ concurrency, rate }: Limit, what: string): StoredLimit {
  if (concurrency !== undefined) checkCount(concurrency, `${what}: concurrency`);
  if (rate === undefined) return { ...(concurrency !== undefined && { concurrency }) };
  checkObject(rate, `${what}: rate`);
  checkOptionNames(rate, ["limit", "per"], `${what}: rate`);
  checkCount(rate.limit, `${what}: rate.limit`);
  const perMs = toMs(rate.per, `${what}: rate.per`);
  if (perMs === 0) throw new RepriseError("BAD_OPTIONS", `${what}: expected a rate.per above 0, got ${rate.per}.`);
  return { ...(concurrency !== undefined && { concurrency }), rate: { limit: rate.limit, perMs } };
}

function checkCount(count: unknown, what: string): void {
  if (Number.isSafeInteger(count) && (count as number) >= 1) return;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a whole number of 1 or more, got ${inspect(count)}.`);
}

function checkObject(value: unknown, what: string): void {
  if (typeof value === "object" && value !== null) return;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected an object, got ${inspect(value)}.`);
}

/** Two declarations with the same text declare the same limits. */
export function limitsText(limits: QueueLimits): string {
  return encode(limits);
}

export type KeyOf = (input: unknown) => string;

/** The `queue` and `key` options of a task or workflow. */
export interface QueueSlotOptions {
  readonly queue: Queue;
  readonly limits: QueueLimits;
  readonly key: KeyOf | undefined;
}

/** Undefined: the default queue. */
export function checkQueueSlot(
  { queue: given, key }: { readonly queue?: unknown; readonly key?: unknown },
  what: string,
): QueueSlotOptions | undefined {
  if (key !== undefined && typeof key !== "function")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a function of the input as key, got ${typeof key}.`);
  if (given === undefined) {
    if (key === undefined) return undefined;
    throw new RepriseError("BAD_OPTIONS", `${what}: \`key\` has no effect without \`queue\`. Add \`queue: queue(…)\`.`);
  }
  const limits = queueLimits(given, `${what}: queue`);
  const { name } = given as Queue;
  if (limits.perKey !== undefined && key === undefined)
    throw new RepriseError("BAD_OPTIONS", `${what}: queue ${name} has limits per key. Add \`key: (input) => …\`.`);
  if (name === DEFAULT_QUEUE) return undefined;
  return { queue: given as Queue, limits, key: key as KeyOf | undefined };
}

/** The slot of an item. `key` is user code: it runs, and its result is checked, before the engine writes anything. */
export function queueSlotOf(
  options: QueueSlotOptions | undefined,
  input: unknown,
  what: string,
): QueueSlot | undefined {
  if (options === undefined) return undefined;
  const { name } = options.queue;
  if (options.key === undefined) return { queue: name };
  return { queue: name, key: checkName(options.key(input), `${what}: key`) };
}
