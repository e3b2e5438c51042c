// Run: one execution of a definition, and the states it can be in.

import { RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";

/** The integer a database knows a run by; the public id stands only in the run's own row. */
export type RunNumber = number;

const NUMBERS_SINCE = Date.UTC(2026, 0, 1);
const NUMBERS_PER_MS = 100;

/**
 * Numbers that a store gives at a time are at least this. A database that goes back to an earlier state takes its counters
 * with it; time does not go back, so a number that was given in the lost history is not given again.
 */
export function leastNumberAt(now: EpochMs): number {
  return Math.max(0, Math.floor((now - NUMBERS_SINCE) * NUMBERS_PER_MS));
}

export type LiveStatus = "expected" | "queued" | "running" | "waiting" | "paused" | "blocked" | "determinism_violation";
export type EndStatus = "completed" | "failed" | "cancelled" | "continued";
/** Where a run stands. The first seven are live, the last four have ended. */
export type Status = LiveStatus | EndStatus;

const ENDED: ReadonlySet<Status> = new Set<Status>(["completed", "failed", "cancelled", "continued"]);

export const STATUSES: readonly Status[] = [
  "expected",
  "queued",
  "running",
  "waiting",
  "paused",
  "blocked",
  "determinism_violation",
  "completed",
  "failed",
  "cancelled",
  "continued",
];

/** An end needs a live run; nothing leaves an ended one. */
export function hasEnded(status: Status): status is EndStatus {
  return ENDED.has(status);
}

/** The whole time a run may take, in milliseconds; refused when it cannot be kept. */
export function checkDeadline(deadline: Duration, what: string): number {
  const ms = toMs(deadline, `${what}: deadline`);
  if (ms > 0) return ms;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a deadline above 0, got ${String(deadline)}.`);
}

/** A run's row, without payloads: the input is in entry 1, the output in the last one. */
export interface RunRecord {
  readonly run: RunNumber;
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  readonly kind: "workflow" | "graph" | "flow";
  readonly version: number;
  readonly status: Status;
  readonly parent: RunNumber | undefined;
  /** The parent's command this run answers, such as `ChildWorkflow(0)`. */
  readonly parentCommand: string | undefined;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly head: number;
  readonly chain: string;
  /** How many messages have come. */
  readonly arrivals: number;
  /** How many of them the run has taken in. */
  readonly read: number;
  /** Messages that came after the last one the run read before it ended. */
  readonly unread: number;
  readonly createdAt: EpochMs;
  readonly endedAt: EpochMs | undefined;
  /** Node, V8, ICU and time zone data of the process that started the run; never hashed. */
  readonly runtime: string;
  /** Why a run is `blocked`, in `determinism_violation`, or `paused` by its own holder: kept beside the journal, as encoded data. */
  readonly evidence: string | undefined;
}
