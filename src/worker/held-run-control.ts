// HeldRunControl: applies pause, resume, retry and terminate to runs that this worker may hold.

import { CancelledError, encode } from "../base/index.ts";
import { emit, emitEnded, isObserved, type NewItem, type RunNumber, type RunRecord } from "../kernel/index.ts";
import type { PauseEvidence } from "../workflow/index.ts";
import type { HeldRunsHost } from "./held-runs.ts";
import type { HotRun } from "./hot-run.ts";
import type { LoadingRuns } from "./loading-runs.ts";
import type { RunCache } from "./run-cache.ts";

export interface ControlledRuns {
  readonly runs: RunCache<HotRun>;
  readonly loading: LoadingRuns;
  /** worker.R2. A draining worker resumes no run. */
  isDraining(): boolean;
  evict(run: HotRun): void;
  forget(run: HotRun): void;
  loadInbox(run: HotRun): void;
  onArrival(run: RunNumber): void;
}

export class HeldRunControl {
  readonly #host: HeldRunsHost;
  readonly #held: ControlledRuns;

  constructor(host: HeldRunsHost, held: ControlledRuns) {
    this.#host = host;
    this.#held = held;
  }

  /** Reads what other processes did to the held runs. */
  async refresh(held: readonly HotRun[]): Promise<void> {
    if (held.length === 0) return;
    const tokens = new Map(held.map(({ record, token }) => [record.run, token]));
    for (const { run, status, arrivals, token } of await this.#host.store.readProgress([...tokens.keys()])) {
      const hot = this.#held.runs.get(run);
      // The run was claimed again during the read, so the row is out of date.
      if (hot?.token === undefined || hot.token !== tokens.get(run)) continue;
      if (token !== hot.token) {
        this.#held.evict(hot);
        continue;
      }
      this.setPaused(hot, status === "paused");
      if (arrivals > hot.read) this.#held.loadInbox(hot);
    }
  }

  setPaused(hot: HotRun, paused: boolean): void {
    if (hot.isPaused === paused || (!paused && this.#held.isDraining())) return;
    if (paused) hot.pause();
    else hot.unpause();
    if (!paused) hot.nodes?.restartWaitLimit();
    else if (isObserved()) emit({ event: "run.paused", run: hot.record.id });
  }

  /** The pause is durable: the run's code stops at once. */
  onPaused(run: RunNumber): void {
    this.#held.loading.setPaused(run, true);
    const hot = this.#held.runs.get(run);
    if (hot?.token !== undefined) this.setPaused(hot, true);
  }

  /** rules.G5. The run continues until the pause is durable; after a crash before that, it waits again. */
  pauseFromCode({ token, record, isPaused, nodes }: HotRun, evidence: PauseEvidence): void {
    if (isPaused) return;
    const { id, run } = record;
    const own = { token, evidence: encode({ status: "paused", ...evidence }) };
    this.#host.pump.submit({ write: "pause", id, own }).then(
      ({ status }) => {
        if (status !== "committed") return;
        this.#host.log("warn", evidence.message, { run: id, status: "paused" });
        this.onPaused(run);
        this.#host.onUnheld(record);
      },
      (error: unknown) => {
        this.#host.report(error);
        nodes?.restartWaitLimit();
      },
    );
  }

  onResumed(run: RunNumber): void {
    this.#held.loading.setPaused(run, false);
    const hot = this.#held.runs.get(run);
    if (hot?.token !== undefined) this.setPaused(hot, false);
    this.#host.claimer.request("items");
    this.#held.onArrival(run);
  }

  /** retry-record.V1. A failed run starts its next epoch. */
  onRetried(run: RunNumber, items: readonly NewItem[]): void {
    for (const { kind, availableAt } of items) if (kind === "timer") this.#host.dueAt(availableAt);
    this.#host.claimer.request("turns", "items", "due");
    this.#held.onArrival(run);
  }

  /** migrate.M3. The turn and the nodes of the run were leased to the old version. */
  onMigrated(run: RunNumber): void {
    const hot = this.#held.runs.get(run);
    if (hot?.token !== undefined) this.#held.evict(hot);
    this.#host.claimer.onQueueSlotFreed();
    this.#host.claimer.request("turns", "items", "starts");
    this.#held.onArrival(run);
  }

  /** control.C2. `notified`: the runs that the termination sent a message to. */
  onTerminated(record: RunRecord, notified: readonly RunNumber[]): void {
    const hot = this.#held.runs.get(record.run);
    if (hot !== undefined) this.#held.forget(hot);
    this.#host.tasks.abandon(record.run, () => new CancelledError("The run was terminated."));
    this.#host.claimer.onQueueSlotFreed();
    if (isObserved()) emitEnded(record, "cancelled", this.#host.store.now());
    for (const run of notified) this.#held.onArrival(run);
    this.#host.onUnheld(record);
  }
}
