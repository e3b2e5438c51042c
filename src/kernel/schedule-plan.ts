// Schedule plan: what a schedule does now. Pure; the caller passes the calendar.
//
// schedule-plan.E1. Each planned time is considered once: `nextAt` of the plan is later than all times it considered.
// schedule-plan.E2. With `skip` and `queue`, at most one planned run is live.
// schedule-plan.E3. A plan starts, queues and skips at most `MAX_CATCH_UP` times, however long no worker fired the schedule.

import { drawInt, invariant, seedOf, type EpochMs } from "../base/index.ts";
import { hasEnded } from "./run.ts";
import type { ScheduleRecord } from "./schedule.ts";

/** schedule-plan.E3. Of more missed times, the newest are caught up. Also the maximum of queued times. */
export const MAX_CATCH_UP = 1_000;
/** A time that fires later than this counts as missed. A busy worker may be a little late. */
export const MISSED_AFTER_MS = 60_000;

/** The planned times of a schedule. */
export interface PlannedTimes {
  /** The first one later than `at`; undefined: none. */
  after(at: EpochMs): EpochMs | undefined;
  /** Those from `first` to `last`, inclusive, in order; of more than `limit`, the newest. */
  within(first: EpochMs, last: EpochMs, limit: number): readonly EpochMs[];
}

export interface SchedulePlan {
  /** Planned times to start now, in order. */
  readonly starts: readonly EpochMs[];
  /** Due times that are not started. */
  readonly skipped: readonly EpochMs[];
  readonly queued: readonly EpochMs[];
  /** Whether to cancel the live run of the previous time. */
  readonly cancels: boolean;
  readonly nextAt: EpochMs | undefined;
  readonly dueAt: EpochMs | undefined;
}

/** When a planned time is due: the same on every worker, and spread over the jitter by name and time. */
export function dueTimeOf(name: string, at: EpochMs, jitterMs: number): EpochMs;
export function dueTimeOf(name: string, at: EpochMs | undefined, jitterMs: number): EpochMs | undefined;
export function dueTimeOf(name: string, at: EpochMs | undefined, jitterMs: number): EpochMs | undefined {
  if (at === undefined || jitterMs === 0) return at;
  return at + drawInt(seedOf(name), "schedule jitter", at, jitterMs);
}

export function planFiring(record: ScheduleRecord, times: PlannedTimes, now: EpochMs): SchedulePlan {
  const { due, nextAt } = findDue(record, times, now);
  const dueAt = dueTimeOf(record.name, nextAt, record.jitterMs);
  const wanted = caughtUp(record, due, now);
  const given = due.filter((at) => !wanted.includes(at));
  const placed = place(record, wanted);
  invariant(placed.queued.length <= MAX_CATCH_UP, "schedule-plan.E3: at most MAX_CATCH_UP times are queued");
  return { ...placed, skipped: [...given, ...placed.skipped], nextAt, dueAt };
}

/** schedule-plan.E1. The due times, and the planned time after them. */
function findDue(
  { name, nextAt, dueAt, jitterMs, catchUp }: ScheduleRecord,
  times: PlannedTimes,
  now: EpochMs,
): { due: readonly EpochMs[]; nextAt: EpochMs | undefined } {
  if (nextAt === undefined || dueAt === undefined || dueAt > now) return { due: [], nextAt };
  // One more: the newest may not be due yet because of its jitter.
  const limit = (catchUp === "all" ? MAX_CATCH_UP : 1) + 1;
  const planned = times.within(nextAt, now, limit);
  // Fire a time that the calendar no longer contains, because the rules of its time zone changed: it was announced.
  const reached = planned.length === 0 ? [nextAt] : planned;
  const due = reached.filter((at) => at === nextAt || dueTimeOf(name, at, jitterMs) <= now);
  const next = reached.find((at) => !due.includes(at)) ?? times.after(now);
  return { due: due.slice(1 - limit), nextAt: next };
}

function caughtUp({ name, jitterMs, catchUp }: ScheduleRecord, due: readonly EpochMs[], now: EpochMs) {
  const last = due.at(-1);
  if (last === undefined || catchUp === "all") return due;
  const missed = now - dueTimeOf(name, last, jitterMs) > MISSED_AFTER_MS;
  return catchUp === "none" && missed ? [] : [last];
}

type Placed = Pick<SchedulePlan, "starts" | "queued" | "skipped" | "cancels">;

/** schedule-plan.E2 */
function place(record: ScheduleRecord, wanted: readonly EpochMs[]): Placed {
  const { overlap, queued: line, lastStatus } = record;
  const isRunning = lastStatus !== undefined && !hasEnded(lastStatus);
  const nothing: Placed = { starts: [], queued: line, skipped: [], cancels: false };
  switch (overlap) {
    case "allow":
      return { ...nothing, starts: [...line, ...wanted], queued: [] };
    case "cancel":
      // Queued times are from before the policy changed.
      return { ...nothing, starts: wanted, queued: [], skipped: line, cancels: isRunning && wanted.length > 0 };
    case "skip":
      if (isRunning) return { ...nothing, skipped: wanted };
      // With `skip`, the queued times are missed ones, which run one after the other.
      if (line.length > 0) return { ...nothing, starts: line.slice(0, 1), queued: line.slice(1), skipped: wanted };
      return { ...nothing, starts: wanted.slice(0, 1), queued: wanted.slice(1) };
    case "queue": {
      const all = [...line, ...wanted];
      const starts = isRunning ? [] : all.slice(0, 1);
      const waiting = all.slice(starts.length);
      return {
        ...nothing,
        starts,
        queued: waiting.slice(0, MAX_CATCH_UP),
        skipped: waiting.slice(MAX_CATCH_UP),
      };
    }
  }
}
