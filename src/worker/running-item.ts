// RunningItem: a claimed item that runs here, and what follows from the outcome of its attempt.

import type { EpochMs } from "../base/index.ts";
import type { Arrival, ClaimedItem } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { PartsOf } from "./worker-parts.ts";
import type { QueuedItem } from "./local-queue.ts";
import type { NextAttempt } from "./run-task.ts";

export type ItemParts = PartsOf<
  | "budgetOffers"
  | "claimer"
  | "failures"
  | "limits"
  | "log"
  | "logger"
  | "memos"
  | "now"
  | "options"
  | "persistentWrites"
  | "poller"
  | "pump"
  | "quarantine"
  | "runs"
  | "tasks"
  | "timers"
>;

export class RunningItem implements QueuedItem {
  readonly parts: ItemParts;
  readonly item: ClaimedItem;
  /** Claimed eagerly, in the commit that scheduled it, or with the turn of its run. */
  readonly isLocal: boolean;
  readonly isEager: boolean;
  /** It was claimed, and its start is left to a later turn (turn-budget.B1). */
  isArriving = false;
  /** Undefined while it waits for a slot, or its function is being called. */
  attempt: Attempt | undefined;
  startedAt: EpochMs | undefined;

  constructor(parts: ItemParts, item: ClaimedItem, isLocal: boolean) {
    this.parts = parts;
    this.item = item;
    this.isLocal = isLocal;
    this.isEager = isLocal && item.turn === undefined;
  }

  start(): void {
    this.parts.tasks.onSlot(this);
  }

  giveBack(): void {
    this.parts.tasks.onWaitedTooLong(this);
  }

  /** The attempt has settled: its slot is free. */
  onSettled(): void {
    this.parts.tasks.onSettled(this);
  }

  /** The item has its terminal entry. */
  onEnded(arrival: Arrival): void {
    if (arrival.type === "TaskFailed") this.parts.failures.onTaskFailed(this.item);
    this.clearSuspect();
    this.#submit(arrival);
  }

  #submit(arrival: Arrival): void {
    const { runs, persistentWrites } = this.parts;
    const { run, item, token, slot } = this.item;
    const hot = runs.find(run);
    if (hot?.acceptsResults === true) hot.endTask(this.item, arrival, this.isLocal);
    // loading-runs.L2
    else if (this.isLocal && runs.loading.defer(run, () => this.#submit(arrival))) return;
    else persistentWrites.submit({ write: "end-item", run, item, token, ...(slot && { slot }), arrival });
  }

  /** The item waits for its budget: the store has released it. */
  onWaiting(): void {
    this.clearSuspect();
    this.#leave();
    this.parts.claimer.onQueueSlotFreed();
  }

  /** The worker releases the item; any worker runs the next attempt. */
  onRetry(next: NextAttempt): void {
    const { run, item, token, slot } = this.item;
    this.clearSuspect();
    this.#leave();
    this.parts.persistentWrites.submit({ write: "return-item", run, item, token, ...(slot && { slot }), ...next });
    this.parts.poller.dueAt(next.availableAt);
  }

  /** The worker does not start the item; any worker may. */
  onGivenBack(): void {
    const { run, item, token, attempt, execution, slot } = this.item;
    this.#leave();
    const unused = { attempt, executions: execution - 1, ...(slot && { slot }) };
    this.parts.persistentWrites.submit({ write: "return-item", run, item, token, ...unused });
  }

  /** The item did not kill its worker. */
  clearSuspect(): void {
    this.parts.quarantine.clear(`${this.item.run} ${this.item.item}`);
  }

  #leave(): void {
    if (this.isLocal) this.parts.runs.find(this.item.run)?.onLocalTaskGone();
  }
}
