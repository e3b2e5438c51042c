// Queue: a named line that tasks and runs wait in, and how much of it may be at work at once.
//
// Q1. Limits hold for the whole store, whoever works: they are judged where work is handed out, in the same transaction.
// Q2. A place is taken when work is handed out. A task gives it back when its attempt is over or its lease is taken over,
//     a run when it ends, waiting included.
// Q3. In any `per`, at most `limit` are handed out. Each attempt of a task counts.
// Q4. Tasks and runs of one queue stand in two lines with the same limits: a run must not hold the place that its own
//     task waits for.

import { inspect } from "node:util";
import { checkName, checkOptionNames, encode, RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { DefinitionVersion } from "./generation.ts";
import type { RunNumber } from "./run.ts";

/** How much may be at work at once, and how much may begin in a time. */
export interface Limit {
  concurrency?: number;
  rate?: { limit: number; per: Duration };
}

/** The limits of a queue. */
export interface QueueOptions extends Limit {
  /** The same for each value of the task's or workflow's `key`. */
  perKey?: Limit;
}

/** What `queue()` makes: a name that tasks, workflows and workers refer to. */
export interface Queue {
  readonly kind: "queue";
  readonly name: string;
}

/** Where everything waits that names no queue. It has no limits but those of the workers. */
export const DEFAULT_QUEUE = "default";

export interface StoredLimit {
  readonly concurrency?: number;
  readonly rate?: { readonly limit: number; readonly perMs: number };
}

/** A queue's limits as a store keeps them. */
export interface QueueLimits extends StoredLimit {
  readonly perKey?: StoredLimit;
}

/** Where a piece of work waits: in a named queue, and under which key. */
export interface QueueSlot {
  readonly queue: string;
  readonly key?: string;
}

/** Makes a queue known. What an operator changed stays until a deployment declares other limits than the last one did. */
export interface DeclareQueueWrite {
  readonly write: "declare-queue";
  readonly name: string;
  readonly limits: QueueLimits;
}
/** An operator's change. A paused queue hands out nothing; what is at work goes on. */
export interface ChangeQueueWrite {
  readonly write: "change-queue";
  readonly name: string;
  readonly paused?: boolean;
  readonly limits?: QueueLimits;
}
export type QueueOutcome = { readonly status: "committed" } | { readonly status: "no_queue" };

/** Lets runs of these versions of definitions begin that stand in a queue with room, most urgent first, then oldest. */
export interface AdmitWrite {
  readonly write: "admit";
  readonly definitions: readonly DefinitionVersion[];
  readonly limit: number;
}
export interface AdmitOutcome extends ThrottledWork {
  readonly runs: readonly RunNumber[];
}

/** What a claim left behind because of limits. */
export interface ThrottledWork {
  /** When a rate lets the next one through, if one stands in the way. */
  readonly nextAt: EpochMs | undefined;
  /** Something waits for a place: look again when one may have become free. */
  readonly held: boolean;
}

/** A queue as people look at it. Runs count as ready until they begin, and as leased until they end. */
export interface QueueState {
  readonly name: string;
  readonly limits: QueueLimits;
  readonly paused: boolean;
  readonly ready: number;
  readonly leased: number;
  readonly delayed: number;
  /** Since when the oldest of those that are ready has been waiting. */
  readonly oldestReadyAt: EpochMs | undefined;
}

/** In the global registry: two copies of the package accept each other's queues. */
const LIMITS = Symbol.for("reprise.queue");

/**
 * Names a line for tasks and runs, with limits that hold across all workers of a store.
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
      `Queue ${DEFAULT_QUEUE} is where everything waits that names no queue; it takes no limits. Give the queue another name, or set worker.concurrency.`,
    );
  return Object.freeze({ kind: "queue", name, [LIMITS]: limits });
}

/** Refuses what is not made by `queue()`. */
export function queueLimits(made: unknown, what: string): QueueLimits {
  if (typeof made === "object" && made !== null && LIMITS in made) return made[LIMITS] as QueueLimits;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected what queue() made, got ${inspect(made, { depth: 0 })}.`);
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

/** Two declarations with the same text are the same queue. */
export function limitsText(limits: QueueLimits): string {
  return encode(limits);
}

export type KeyOf = (input: unknown) => string;

/** The queue and key of a task's or workflow's options. */
export interface QueueSlotOptions {
  readonly queue: Queue;
  readonly limits: QueueLimits;
  readonly key: KeyOf | undefined;
}

/** Undefined where everything waits: in the default queue. */
export function checkQueueSlot(
  { queue: given, key }: { readonly queue?: unknown; readonly key?: unknown },
  what: string,
): QueueSlotOptions | undefined {
  if (key !== undefined && typeof key !== "function")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a function of the input as key, got ${typeof key}.`);
  if (given === undefined) {
    if (key === undefined) return undefined;
    throw new RepriseError("BAD_OPTIONS", `${what}: a key without a queue limits nothing. Give it a queue.`);
  }
  const limits = queueLimits(given, `${what}: queue`);
  const { name } = given as Queue;
  if (limits.perKey !== undefined && key === undefined)
    throw new RepriseError("BAD_OPTIONS", `${what}: queue ${name} has limits per key. Say which with \`key\`.`);
  if (name === DEFAULT_QUEUE) return undefined;
  return { queue: given as Queue, limits, key: key as KeyOf | undefined };
}

/** The line a piece of work stands in. `key` is user code: what it throws or answers is checked before anything is written. */
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
