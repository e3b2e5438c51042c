// Run event: what a webhook reports about a run. It is a row of the outbox, written in the commit that it reports.
//
// run-event.E1. An event is no entry: journals, hash chains, claims and receipts do not depend on webhooks. What it says is derived
//   when it is delivered, from its row, the row of its run and the entry that it names.
// run-event.E2. Its line is the negative number of its run. Nothing waits for it, neither a message of `ctx.send` nor another event, and
//   it waits for nothing: an endpoint that does not answer delays only what is sent to it.
// run-event.E3. The `seq` of its row packs the entry, the kind and a number, so that each endpoint has a row. A stop and a reached
//   budget have no entry: they name the head at that time, and events at the same head have different numbers.
// run-event.E4. An undelivered event keeps its run from being pruned for `EVENT_MS`, and is dropped after that time.

import { invariant, type EpochMs } from "../base/index.ts";
import type { RunNumber } from "./run.ts";

/** What webhooks report. */
export const RUN_EVENT_TYPES = ["run.ended", "run.failed", "run.stopped", "promise.opened", "budget.reached"] as const;
export type RunEventType = (typeof RUN_EVENT_TYPES)[number];

/** The kinds of events in the order of their numbers, which are stored: new kinds go to the end, and at most eight fit. */
const KINDS = ["completed", "cancelled", "failed", "blocked", "determinism_violation", "promise", "budget"] as const;
export type RunEventKind = (typeof KINDS)[number];

const TYPE_OF: Readonly<Record<RunEventKind, RunEventType>> = {
  completed: "run.ended",
  cancelled: "run.ended",
  failed: "run.failed",
  blocked: "run.stopped",
  determinism_violation: "run.stopped",
  promise: "promise.opened",
  budget: "budget.reached",
};

export function eventTypeOf(kind: RunEventKind): RunEventType {
  return TYPE_OF[kind];
}

/** How long the delivery of an event is tried. */
export const EVENT_MS = 3 * 86_400_000;

/** Which events a process writes, and for whom. */
export interface EventSubscription {
  /** The destination of the rows: `webhook:<name>`. */
  readonly destination: string;
  readonly types: readonly RunEventType[];
  /** Only runs of these definitions; absent: all. */
  readonly definitions?: readonly string[] | undefined;
}

/** run-event.E2 */
export function eventLineOf(run: RunNumber): number {
  return -run;
}

export function isEventLine(line: number): boolean {
  return line < 0;
}

export interface EventPlace {
  /** The entry that it reports; of a stop or a reached budget, the head of the journal. */
  readonly entry: number;
  readonly kind: RunEventKind;
  /** Tells the rows of one event apart. */
  readonly n: number;
}

const KIND_LIMIT = 8;
const N_LIMIT = 2 ** 20;

/** run-event.E3 */
export function eventSeqOf({ entry, kind, n }: EventPlace): number {
  const seq = (entry * KIND_LIMIT + KINDS.indexOf(kind)) * N_LIMIT + n;
  invariant(n < N_LIMIT && Number.isSafeInteger(seq), "The place of an event must fit into its seq.");
  return seq;
}

/** The least seq of the rows of an event, and the least one above them. */
export function eventSeqLimits(entry: number, kind: RunEventKind): { readonly from: number; readonly before: number } {
  const from = eventSeqOf({ entry, kind, n: 0 });
  return { from, before: from + N_LIMIT };
}

/** Undefined: a row of a later version, or a damaged one. */
export function eventPlaceOf(seq: number): EventPlace | undefined {
  const place = Math.floor(seq / N_LIMIT);
  const kind = KINDS[place % KIND_LIMIT];
  return kind && { entry: Math.floor(place / KIND_LIMIT), kind, n: seq % N_LIMIT };
}

/** What a claimed row of the outbox says about its event. */
export interface ClaimedEvent extends EventPlace {
  readonly definition: string;
  readonly version: number;
  readonly runCreatedAt: EpochMs;
  /** When it happened. */
  readonly at: EpochMs;
}
