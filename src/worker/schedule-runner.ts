// ScheduleRunner: fires due schedules of the definitions this worker has.
//
// schedule-runner.D1. A poll writes only when a schedule is due. The token of the schedule's row decides between workers that
//   fire it at the same time.
// schedule-runner.D2. After a firing the worker polls again until nothing is due, and only then sets the timer. Otherwise a
//   run that ends between a poll and its write could leave a queued firing behind.
// schedule-runner.D3. A poll that failed, or could fire none of the due schedules, is repeated after a delay.

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
import { plannedRun, type NewRunHost } from "../process/index.ts";
import { timesOf } from "../process/index.ts";

export interface ScheduleRunnerHost extends NewRunHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  readonly pump: Pump;
  mayFire(): boolean;
  onStarted(): void;
  onArrival(run: RunNumber): void;
  dueAt(at: EpochMs | undefined): void;
  report(error: unknown): void;
}

const FIRE_LIMIT = 100;
/** schedule-runner.D3 */
const RETRY_MS = 250;
const STUCK_MS = 5_000;

interface Firing {
  readonly write: PutScheduleWrite;
  readonly skipped: readonly EpochMs[];
}

export class ScheduleRunner {
  readonly #host: ScheduleRunnerHost;
  #polling = false;
  #polled: Promise<void> = Promise.resolve();
  #pollAgain = false;

  constructor(host: ScheduleRunnerHost) {
    this.#host = host;
  }

  get isPolling(): boolean {
    return this.#polling;
  }

  /** Resolves when no poll is in progress. */
  polled(): Promise<void> {
    return this.#polled;
  }

  /** A schedule may be due. */
  poll(): void {
    if (!this.#host.mayFire()) return;
    this.#pollAgain = true;
    if (!this.#polling) this.#polled = this.#pollUntilDone();
  }

  /** schedule-runner.D2 */
  async #pollUntilDone(): Promise<void> {
    const { store, registry, timers } = this.#host;
    this.#polling = true;
    try {
      while (this.#pollAgain && this.#host.mayFire()) {
        this.#pollAgain = false;
        const { due, nextAt } = await store.dueSchedules(registry.definitionNames, FIRE_LIMIT);
        if (due.length === 0) this.#host.dueAt(nextAt);
        else if (await this.#fireAll(due)) this.#pollAgain = true;
        else timers.set(STUCK_MS, () => this.poll(), { ref: false });
      }
    } catch (error) {
      this.#host.report(error);
      timers.set(RETRY_MS, () => this.poll(), { ref: false });
    }
    this.#polling = false;
  }

  /** Whether any of them was fired. */
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
    // schedule-runner.D1. Another worker fired it first.
    if (outcome.status === "changed") return;
    if (isObserved()) {
      for (const { id } of outcome.started) emit({ event: "schedule.fired", schedule: name, run: id });
      for (const at of skipped) emit({ event: "schedule.skipped", schedule: name, at: new Date(at) });
    }
    if (outcome.cancelled !== undefined) this.#host.onArrival(outcome.cancelled);
    if (outcome.started.length > 0) this.#host.onStarted();
  }

  /** Undefined when the row is damaged; the other schedules are still fired. */
  #plan(record: ScheduleRecord): Firing | undefined {
    try {
      const plan = planFiring(record, timesOf(record.timing), this.#host.store.now());
      return { write: this.#writeOf(record, plan), skipped: plan.skipped };
    } catch (error) {
      this.#host.report(error);
      return undefined;
    }
  }

  #writeOf(record: ScheduleRecord, { starts, queued, cancels, nextAt, dueAt }: SchedulePlan): PutScheduleWrite {
    const { random } = this.#host;
    const last = starts.at(-1);
    return {
      write: "put-schedule",
      fence: record.token,
      token: random.token(),
      schedule: {
        ...scheduleStateOf(record),
        queued,
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
  const data = entryData.cancelRequestedData(
    `The next run of the schedule ${schedule} has started, and its overlap policy cancels this one.`,
  );
  return { to, arrival: { type: "CancelRequested", target: "", data } };
}
