// The handle of a schedule, its options and what is known about it. Types only.

import type { Duration } from "../base/index.ts";
import type { CatchUp, Overlap, RunStatus } from "../kernel/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { RunInfo } from "./run-api.ts";

/** When `engine.schedule` starts runs, and what happens when runs overlap or times were missed. */
export interface ScheduleOptions {
  /** Five fields, `"0 9 * * MON-FRI"`, six with seconds in front, or `"@daily"`. Give either `cron` or `every`. */
  cron?: string;
  /** An interval of at least one second, counted from when the schedule is created. */
  every?: Duration;
  /** The time zone of `cron`; default `"UTC"`, independent of the machine. */
  timeZone?: string;
  /** If the previous run has not ended: `"skip"` this time (default), `"queue"` it, `"cancel"` that run, or `"allow"` both. */
  overlap?: Overlap;
  /** Times that passed while no worker was alive: start `"none"`, the `"last"` (default), or `"all"`, at most 1,000. */
  catchUp?: CatchUp;
  /** Delays each run by up to this much; the delay follows from the schedule's name and the planned time. */
  jitter?: Duration;
}

/** What `engine.findSchedule` and `engine.listSchedules` say about a schedule. */
export interface ScheduleInfo {
  readonly name: string;
  readonly definition: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly everyMs?: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitterMs: number;
  readonly paused: boolean;
  /** The next planned time; absent while paused, or when the pattern has no further time. */
  readonly nextAt?: Date;
  /** The last planned time that started a run. */
  readonly lastAt?: Date;
  /** The id of that run. */
  readonly lastRun?: string;
  readonly lastStatus?: RunStatus;
  /** Planned times that wait for the previous run to end. */
  readonly waiting: readonly Date[];
  readonly createdAt: Date;
}

/** The input that a schedule passes to every run; `undefined` for a definition without input. */
export type ScheduleInput<Input> = [Input] extends [void] ? undefined : Input;

/**
 * Controls one schedule; from `engine.schedule` or `engine.getSchedule`.
 *
 * @example
 * ```ts
 * import type { ScheduleHandle } from "reprise";
 * async function startMissed(schedule: ScheduleHandle, day: Date): Promise<number> {
 *   const next = new Date(day.getTime() + 86_400_000);
 *   return (await schedule.backfill(day, next)).count;
 * }
 * ```
 */
export interface ScheduleHandle {
  readonly name: string;
  /** Reads the schedule's options, its next time and its last run; throws SCHEDULE_NOT_FOUND if it was removed. */
  info(options?: WaitOptions): Promise<ScheduleInfo>;
  /** Starts no more runs; runs that were started continue. */
  pause(options?: WaitOptions): Promise<void>;
  /** Continues with the next planned time; times that passed while it was paused are not made up for. */
  resume(options?: WaitOptions): Promise<void>;
  /**
   * Starts one run now, in addition to the planned ones and regardless of `overlap`. Its id is `<schedule>/triggered-<id>`: a caller
   * that repeats the request with the same `id` gets the same run. Default: a random one.
   */
  trigger(options?: WaitOptions & { id?: string }): Promise<RunInfo>;
  /** Starts every planned time from `from` until before `to` that has no run yet, at most 1,000; returns how many. */
  backfill(from: Date, to: Date, options?: WaitOptions): Promise<{ readonly count: number }>;
  /** Removes the schedule; its runs stay. */
  remove(options?: WaitOptions): Promise<void>;
}
