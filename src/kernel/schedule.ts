// Schedule: a definition that is started at planned times, and the one write that moves it.
//
// C1. A schedule is one row. Whoever changes it names the token it read; a row that has moved on voids the whole write. So a
//     planned time is fired by one worker, however many look.
// C2. A firing is one write: the runs it starts, the run it cancels, and the row with its next time.
// C3. A store knows nothing of calendars: times are computed outside and handed in.
// C4. The id of a planned run is made of the schedule's name and the planned time, so that the same time can never start a
//     second one, whether it is fired, caught up with or backfilled.

import type { EpochMs } from "../base/index.ts";
import type { Arrival, NewRun } from "./commit.ts";
import type { RunNumber, RunRecord, RunStatus } from "./run.ts";

/** What happens at a planned time when the run of the one before has not ended. */
export const OVERLAPS = ["skip", "queue", "cancel", "allow"] as const;
export type Overlap = (typeof OVERLAPS)[number];
/** Which planned times are made up for when nobody was there to fire them. */
export const CATCH_UPS = ["none", "last", "all"] as const;
export type CatchUp = (typeof CATCH_UPS)[number];

/** A calendar pattern, or an interval counted from an anchor. */
export type Timing =
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number; readonly anchor: EpochMs };

/** Everything a schedule's row holds that somebody outside the store decides. */
export interface ScheduleState {
  readonly name: string;
  readonly definition: string;
  readonly version: number;
  /** Encoded; undefined where there is none. */
  readonly input: string | undefined;
  readonly timing: Timing;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitterMs: number;
  readonly paused: boolean;
  /** The next planned time; undefined when the pattern has no more. */
  readonly nextAt: EpochMs | undefined;
  /** When somebody must look: the next planned time with its jitter, never while paused. */
  readonly dueAt: EpochMs | undefined;
  /** The last planned time that started a run, and that run's id. */
  readonly lastAt: EpochMs | undefined;
  readonly lastRun: string | undefined;
  /** Planned times that wait until the run before them has ended, in order. */
  readonly queued: readonly EpochMs[];
}

export interface ScheduleRecord extends ScheduleState {
  readonly token: string;
  readonly createdAt: EpochMs;
  /** How the last run stands; undefined when there is none, or no more. */
  readonly lastStatus: RunStatus | undefined;
}

/** What the next write of the row starts from. */
export function scheduleStateOf(record: ScheduleRecord): ScheduleState {
  const { token: _token, createdAt: _createdAt, lastStatus: _lastStatus, ...state } = record;
  return state;
}

/** C1, C2. Writes the row, if it is still the one that was read, and starts runs in the same transaction. */
export interface PutScheduleWrite {
  readonly write: "put-schedule";
  /** The token of the row that was read; undefined: there must be none of this name. */
  readonly fence: string | undefined;
  /** What the row will be known by; never used before. */
  readonly token: string;
  readonly schedule: ScheduleState;
  /** C4. Those whose id is taken are left alone. */
  readonly starts: readonly NewRun[];
  /** Goes to a run that is in the way, if it is still alive. */
  readonly cancel?: { readonly to: string; readonly arrival: Arrival };
}
export type PutScheduleOutcome =
  | {
      readonly status: "committed";
      readonly record: ScheduleRecord;
      readonly started: readonly RunRecord[];
      readonly cancelled: RunNumber | undefined;
    }
  /** Somebody was first: read again. */
  | { readonly status: "changed" };

export interface RemoveScheduleWrite {
  readonly write: "remove-schedule";
  readonly name: string;
}
export type RemoveScheduleOutcome = { readonly status: "committed" } | { readonly status: "no_schedule" };

/** Schedules with something to do now, and when the next one will have. */
export interface DueSchedules {
  readonly due: readonly ScheduleRecord[];
  readonly nextAt: EpochMs | undefined;
}

const TAG = "schedule:";

/** Every run of a schedule carries it. */
export function scheduleTag(name: string): string {
  return `${TAG}${name}`;
}

export function isScheduled(tags: readonly string[]): boolean {
  return tags.some((tag) => tag.startsWith(TAG));
}

/** C4 */
export function plannedRunId(name: string, at: EpochMs): string {
  return `${name}/${new Date(at).toISOString().replace(".000Z", "Z")}`;
}
