// Schedules: fires what is due of the definitions this worker has.
//
// D1. A look reads; it writes only when something is due. The token of the row decides between workers that look at once.
// D2. After a firing it looks again, until nothing is due; only then is the alarm set. So a run that ended between a look
//     and its write keeps nobody in line for ever.
// D3. A look that fails is repeated after a pause, and so is one that could fire nothing of what is due.

import { type EpochMs, type Random, type Timers } from "../base/index.ts";
import {
  emit,
  isObserved,
  planFiring,
  plannedRunId,
  scheduleStateOf,
  type PutScheduleWrite,
  type RunNumber,
  type ScheduleRecord,
  type SchedulePlan,
  type Store,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { Pump } from "./pump.ts";
import { plannedRun, type ScheduledRunHost } from "./scheduled-run.ts";
import { timesOf } from "./schedule-times.ts";

export interface SchedulesHost extends ScheduledRunHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  readonly pump: Pump;
  mayFire(): boolean;
  started(): void;
  arrived(run: RunNumber): void;
  dueAt(at: EpochMs | undefined): void;
  failed(error: unknown): void;
}

const FIRE_AT_MOST = 100;
/** D3 */
const PAUSE_MS = 250;
const STUCK_MS = 5_000;

interface Firing {
  readonly write: PutScheduleWrite;
  readonly skipped: readonly EpochMs[];
}

export class Schedules {
  readonly #host: SchedulesHost;
  #looking = false;
  #looked: Promise<void> = Promise.resolve();
  #again = false;

  constructor(host: SchedulesHost) {
    this.#host = host;
  }

  get isLooking(): boolean {
    return this.#looking;
  }

  /** Resolves when the look under way, if any, is over. */
  looked(): Promise<void> {
    return this.#looked;
  }

  /** There may be something to fire. */
  look(): void {
    if (!this.#host.mayFire()) return;
    this.#again = true;
    if (!this.#looking) this.#looked = this.#lookOn();
  }

  /** D2 */
  async #lookOn(): Promise<void> {
    const { store, registry, timers } = this.#host;
    this.#looking = true;
    try {
      while (this.#again && this.#host.mayFire()) {
        this.#again = false;
        const { due, nextAt } = await store.dueSchedules(registry.definitionNames, FIRE_AT_MOST);
        if (due.length === 0) this.#host.dueAt(nextAt);
        else if (await this.#fireAll(due)) this.#again = true;
        else timers.set(STUCK_MS, () => this.look(), { ref: false });
      }
    } catch (error) {
      this.#host.failed(error);
      timers.set(PAUSE_MS, () => this.look(), { ref: false });
    }
    this.#looking = false;
  }

  /** Whether any of them has moved. */
  async #fireAll(due: readonly ScheduleRecord[]): Promise<boolean> {
    let moved = false;
    for (const record of due) {
      if (!this.#host.mayFire()) break;
      const write = this.#plan(record);
      if (write === undefined) continue;
      await this.#fire(record, write);
      moved = true;
    }
    return moved;
  }

  async #fire({ name }: ScheduleRecord, { write, skipped }: Firing): Promise<void> {
    const outcome = await this.#host.pump.submit(write);
    // Another worker was faster.
    if (outcome.status === "changed") return;
    if (isObserved()) {
      for (const { id } of outcome.started) emit({ event: "schedule.fired", schedule: name, run: id });
      for (const at of skipped) emit({ event: "schedule.skipped", schedule: name, at: new Date(at) });
    }
    if (outcome.cancelled !== undefined) this.#host.arrived(outcome.cancelled);
    if (outcome.started.length > 0) this.#host.started();
  }

  /** Undefined when the row is damaged: that must not keep the others from being fired. */
  #plan(record: ScheduleRecord): Firing | undefined {
    try {
      const plan = planFiring(record, timesOf(record.timing), this.#host.store.now());
      return { write: this.#writeOf(record, plan), skipped: plan.skipped };
    } catch (error) {
      this.#host.failed(error);
      return undefined;
    }
  }

  #writeOf(record: ScheduleRecord, { starts, line, cancels, nextAt, dueAt }: SchedulePlan): PutScheduleWrite {
    const { random } = this.#host;
    const last = starts.at(-1);
    return {
      write: "put-schedule",
      fence: record.token,
      token: random.token(),
      schedule: {
        ...scheduleStateOf(record),
        line,
        nextAt,
        dueAt,
        ...(last !== undefined && { lastAt: last, lastRun: plannedRunId(record.name, last) }),
      },
      starts: starts.map((at) => plannedRun(this.#host, record, at)),
      ...(cancels && record.lastRun !== undefined && { cancel: cancelOf(record.name, record.lastRun) }),
    };
  }
}

function cancelOf(schedule: string, to: string): NonNullable<PutScheduleWrite["cancel"]> {
  const data = entryData.cancelRequestedData(`The next run of the schedule ${schedule} has begun.`);
  return { to, arrival: { type: "CancelRequested", target: "", data } };
}
