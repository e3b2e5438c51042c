// ScheduleRunner: fires due schedules of the definitions this worker has.
//
// schedule-runner.D1. A poll writes only when a schedule is due. The token of the schedule's row decides between workers that
//   fire it at the same time.
// schedule-runner.D2. After a firing the worker polls again until nothing is due, and only then sets the timer. Otherwise a
//   run that ends between a poll and its write could leave a queued firing behind.
// schedule-runner.D3. A poll that failed, or could fire none of the due schedules, is repeated after a delay.

import type { EpochMs } from "../base/index.ts";
import {
  emit,
  isObserved,
  planFiring,
  plannedRunId,
  scheduleStateOf,
  type PutScheduleWrite,
  type ScheduleRecord,
  type SchedulePlan,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { plannedRun, timesOf } from "../process/index.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<
  "claimant" | "claimer" | "log" | "options" | "poller" | "pump" | "registry" | "runs" | "store" | "timers"
>;

const FIRE_LIMIT = 100;
/** schedule-runner.D3 */
const RETRY_MS = 250;
const STUCK_MS = 5_000;

interface Firing {
  readonly write: PutScheduleWrite;
  readonly skipped: readonly EpochMs[];
}

export class ScheduleRunner {
  readonly #parts: UsedParts;
  #polling = false;
  #polled: Promise<void> = Promise.resolve();
  #pollAgain = false;

  constructor(parts: UsedParts) {
    this.#parts = parts;
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
    if (this.#parts.claimant === undefined) return;
    this.#pollAgain = true;
    if (!this.#polling) this.#polled = this.#pollUntilDone();
  }

  /** schedule-runner.D2 */
  async #pollUntilDone(): Promise<void> {
    const { store, registry, timers, poller, log } = this.#parts;
    this.#polling = true;
    try {
      while (this.#pollAgain && this.#parts.claimant !== undefined) {
        this.#pollAgain = false;
        const { due, nextAt } = await store.dueSchedules(registry.definitionNames, FIRE_LIMIT);
        if (due.length === 0) poller.dueAt(nextAt);
        else if (await this.#fireAll(due)) this.#pollAgain = true;
        else timers.set(STUCK_MS, () => this.poll(), { ref: false });
      }
    } catch (error) {
      log.report(error);
      timers.set(RETRY_MS, () => this.poll(), { ref: false });
    }
    this.#polling = false;
  }

  /** Whether any of them was fired. */
  async #fireAll(due: readonly ScheduleRecord[]): Promise<boolean> {
    let moved = false;
    for (const record of due) {
      if (this.#parts.claimant === undefined) break;
      const write = this.#plan(record);
      if (write === undefined) continue;
      await this.#fire(record, write);
      moved = true;
    }
    return moved;
  }

  async #fire({ name }: ScheduleRecord, { write, skipped }: Firing): Promise<void> {
    const outcome = await this.#parts.pump.submit(write);
    // schedule-runner.D1. Another worker fired it first.
    if (outcome.status === "changed") return;
    if (isObserved()) {
      for (const { id } of outcome.started) emit({ event: "schedule.fired", schedule: name, run: id });
      for (const at of skipped) emit({ event: "schedule.skipped", schedule: name, at: new Date(at) });
    }
    if (outcome.cancelled !== undefined) this.#parts.runs.arrived(outcome.cancelled);
    if (outcome.started.length > 0) this.#parts.claimer.request("starts", "turns");
  }

  /** Undefined when the row is damaged; the other schedules are still fired. */
  #plan(record: ScheduleRecord): Firing | undefined {
    try {
      const plan = planFiring(record, timesOf(record.timing), this.#parts.store.now());
      return { write: this.#writeOf(record, plan), skipped: plan.skipped };
    } catch (error) {
      this.#parts.log.report(error);
      return undefined;
    }
  }

  #writeOf(record: ScheduleRecord, { starts, queued, cancels, nextAt, dueAt }: SchedulePlan): PutScheduleWrite {
    const { options } = this.#parts;
    const last = starts.at(-1);
    return {
      write: "put-schedule",
      fence: record.token,
      token: options.random.token(),
      schedule: {
        ...scheduleStateOf(record),
        queued,
        nextAt,
        dueAt,
        ...(last !== undefined && { lastAt: last, lastRun: plannedRunId(record.name, last) }),
      },
      starts: starts.map((at) => plannedRun(options, record, at)),
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
