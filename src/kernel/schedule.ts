// Schedule: starts a definition at planned times. One write fires it.
//
// schedule.C1. A schedule is one row. A write carries the token it read, and the store rejects the write if the row changed
//   since. So one worker fires a planned time, however many poll.
// schedule.C2. A firing is one write: the runs it starts, the run it cancels, and the row with its next time.
// schedule.C3. A store has no calendar: the caller computes the times.
// schedule.C4. The id of a planned run consists of the schedule's name and the planned time. So a time never starts a second
//   run, whether it is fired, caught up or backfilled.

import { invariant, type EpochMs } from "../base/index.ts";
import type { Arrival, NewRun } from "./commit.ts";
import type { RunNumber, RunRecord, RunStatus } from "./run.ts";

/** What happens at a planned time if the run of the previous time is live. */
export const OVERLAPS = ["skip", "queue", "cancel", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];
/** Which planned times are caught up after no worker fired them. */
export const CATCH_UPS = ["none", "last", "all"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** A calendar pattern, or an interval counted from an anchor. */
export type Timing =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number; readonly anchor: EpochMs };

/** The fields of a schedule's row that the caller decides. */
export interface ScheduleState {
  readonly name: string;
  readonly definition: string;
  readonly version: number;
  /** Encoded; undefined: no input. */
  readonly input: string | undefined;
  readonly timing: Timing;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitterMs: number;
  readonly paused: boolean;
  /** The next planned time; undefined: the pattern has no more. */
  readonly nextAt: EpochMs | undefined;
  /** When a worker must fire it: the next planned time plus jitter; undefined while paused. */
  readonly dueAt: EpochMs | undefined;
  /** The last planned time that started a run, and the id of that run. */
  readonly lastAt: EpochMs | undefined;
  readonly lastRun: string | undefined;
  /** Planned times that wait for the end of the previous run, in order. */
  readonly queued: readonly EpochMs[];
}

export interface ScheduleRecord extends ScheduleState {
  readonly token: string;
  readonly createdAt: EpochMs;
  /** The status of the last run; undefined: it does not exist, or was pruned. */
  readonly lastStatus: RunStatus | undefined;
}

/** The base of the next write of the row. */
export function scheduleStateOf(record: ScheduleRecord): ScheduleState {
  const { token: _token, createdAt: _createdAt, lastStatus: _lastStatus, ...state } = record;
  return state;
}

/** schedule.C1, schedule.C2. Writes the row, if it did not change since it was read, and starts runs in the same transaction. */
export interface PutScheduleWrite {
  readonly write: "put-schedule";
  /** The token of the row that was read; undefined: no schedule with this name may exist. */
  readonly fence: string | undefined;
  /** The new token of the row; never used before. */
  readonly token: string;
  readonly schedule: ScheduleState;
  /** schedule.C4. Skips runs whose id is taken. */
  readonly starts: readonly NewRun[];
  /** Delivered to the previous run, if it is still live. */
  readonly cancel?: { readonly to: string; readonly arrival: Arrival };
}
export type PutScheduleOutcome =
  | {
      readonly status: "committed";
      readonly record: ScheduleRecord;
      readonly started: readonly RunRecord[];
      readonly cancelled: RunNumber | undefined;
    }
  /** Another process changed the row: read it again. */
  | { readonly status: "changed" };

export interface RemoveScheduleWrite {
  readonly write: "remove-schedule";
  readonly name: string;
}
export type RemoveScheduleOutcome = { readonly status: "committed" } | { readonly status: "no_schedule" };

/** Due schedules, and when the next one is due. */
export interface DueSchedules {
  readonly due: readonly ScheduleRecord[];
  readonly nextAt: EpochMs | undefined;
}

const TAG = "schedule:";

/** The tag of every run of a schedule. */
export function scheduleTag(name: string): string {
  return `${TAG}${name}`;
}

export function isScheduled(tags: readonly string[]): boolean {
  return tags.some((tag) => tag.startsWith(TAG));
}

/** schedule.C4 */
export function plannedRunId(name: string, at: EpochMs): string {
  invariant(Number.isSafeInteger(at), "schedule.C4: a planned time is a whole number of milliseconds");
  return `${name}/${new Date(at).toISOString().replace(".000Z", "Z")}`;
}
