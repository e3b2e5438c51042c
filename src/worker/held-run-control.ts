// HeldRunControl: applies pause, resume, retry and terminate to runs that this worker may hold.

import { CancelledError, encode } from "../base/index.ts";
import { emit, emitEnded, isObserved, type NewItem, type RunNumber, type RunRecord } from "../kernel/index.ts";
import type { PauseEvidence } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"claimer" | "drain" | "log" | "options" | "poller" | "pump" | "runs" | "store" | "tasks">;

export class HeldRunControl {
  readonly #parts: UsedParts;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Reads what other processes did to the held runs. */
  async refresh(held: readonly HotRun[]): Promise<void> {
    if (held.length === 0) return;
    const tokens = new Map(held.map(({ record, token }) => [record.run, token]));
    for (const { run, status, arrivals, token } of await this.#parts.store.readProgress([...tokens.keys()])) {
      const hot = this.#parts.runs.find(run);
      // The run was claimed again during the read, so the row is out of date.
      if (hot?.token === undefined || hot.token !== tokens.get(run)) continue;
      if (token !== hot.token) {
        this.#parts.runs.drop(hot, false);
        continue;
      }
      this.setPaused(hot, status === "paused");
      if (arrivals > hot.read) this.#parts.runs.loadInbox(hot);
    }
  }

  setPaused(hot: HotRun, paused: boolean): void {
    if (hot.isPaused === paused || (!paused && this.#parts.drain.isDraining)) return;
    if (paused) hot.pause();
    else hot.unpause();
    if (!paused) hot.nodes?.restartWaitLimit();
    else if (isObserved()) emit({ event: "run.paused", run: hot.record.id });
  }

  /** The pause is durable: the run's code stops at once. */
  onPaused(run: RunNumber): void {
    this.#parts.runs.loading.setPaused(run, true);
    const hot = this.#parts.runs.find(run);
    if (hot?.token !== undefined) this.setPaused(hot, true);
  }

  /** rules.G5. The run continues until the pause is durable; after a crash before that, it waits again. */
  pauseFromCode({ token, record, isPaused, nodes }: HotRun, evidence: PauseEvidence): void {
    if (isPaused) return;
    const { id, run } = record;
    const own = { token, evidence: encode({ status: "paused", ...evidence }) };
    this.#parts.pump.submit({ write: "pause", id, own }).then(
      ({ status }) => {
        if (status !== "committed") return;
        this.#parts.options.log("warn", evidence.message, { run: id, status: "paused" });
        this.onPaused(run);
        this.#parts.options.onUnheld(record);
      },
      (error: unknown) => {
        this.#parts.log.report(error);
        nodes?.restartWaitLimit();
      },
    );
  }

  onResumed(run: RunNumber): void {
    this.#parts.runs.loading.setPaused(run, false);
    const hot = this.#parts.runs.find(run);
    if (hot?.token !== undefined) this.setPaused(hot, false);
    this.#parts.claimer.request("items");
    this.#parts.runs.arrived(run);
  }

  /** retry-record.V1. A failed run starts its next epoch. */
  onRetried(run: RunNumber, items: readonly NewItem[]): void {
    for (const { kind, availableAt } of items) if (kind === "timer") this.#parts.poller.dueAt(availableAt);
    this.#parts.claimer.request("turns", "items", "due");
    this.#parts.runs.arrived(run);
  }

  /** migrate.M3. The turn and the nodes of the run were leased to the old version. */
  onMigrated(run: RunNumber): void {
    const hot = this.#parts.runs.find(run);
    if (hot?.token !== undefined) this.#parts.runs.drop(hot, false);
    this.#parts.claimer.onQueueSlotFreed();
    this.#parts.claimer.request("turns", "items", "starts");
    this.#parts.runs.arrived(run);
  }

  /** control.C2. `notified`: the runs that the termination sent a message to. */
  onTerminated(record: RunRecord, notified: readonly RunNumber[]): void {
    const hot = this.#parts.runs.find(record.run);
    if (hot !== undefined) this.#parts.runs.forget(hot);
    this.#parts.tasks.abandon(record.run, () => new CancelledError("The run was terminated."));
    this.#parts.claimer.onQueueSlotFreed();
    if (isObserved()) emitEnded(record, "cancelled", this.#parts.store.now());
    for (const run of notified) this.#parts.runs.arrived(run);
    this.#parts.options.onUnheld(record);
  }
}
