// Steering: what somebody outside does to runs that may be held here: pausing, resuming, ending, retrying.

import { CancelledError, encode } from "../base/index.ts";
import { emit, isObserved, type NewItem, type RunNumber, type RunRecord } from "../kernel/index.ts";
import type { PauseEvidence } from "../workflow/index.ts";
import type { HeldRunsHost } from "./held-runs.ts";
import type { HotRun } from "./hot-run.ts";
import type { LoadingRuns } from "./loading-runs.ts";
import type { RunCache } from "./run-cache.ts";

export interface SteeredRuns {
  readonly runs: RunCache<HotRun>;
  readonly loading: LoadingRuns;
  /** R5. None of them goes on here, whatever the store says. */
  isLeaving(): boolean;
  evict(run: HotRun): void;
  forget(run: HotRun): void;
  loadInbox(run: HotRun): void;
  arrived(run: RunNumber): void;
}

export class Steering {
  readonly #host: HeldRunsHost;
  readonly #held: SteeredRuns;

  constructor(host: HeldRunsHost, held: SteeredRuns) {
    this.#host = host;
    this.#held = held;
  }

  /** Learns what others did to the runs held here. */
  async look(held: readonly HotRun[]): Promise<void> {
    if (held.length === 0) return;
    const asked = new Map(held.map(({ record, token }) => [record.run, token]));
    for (const { run, status, arrivals, token } of await this.#host.store.pulse([...asked.keys()])) {
      const hot = this.#held.runs.get(run);
      // Claimed anew meanwhile: what was read is older than that, and says nothing about it.
      if (hot?.token === undefined || hot.token !== asked.get(run)) continue;
      if (token !== hot.token) {
        this.#held.evict(hot);
        continue;
      }
      this.steer(hot, status === "paused");
      if (arrivals > hot.read) this.#held.loadInbox(hot);
    }
  }

  steer(hot: HotRun, paused: boolean): void {
    if (hot.isPaused === paused || (!paused && this.#held.isLeaving())) return;
    if (paused) hot.pause();
    else hot.unpause();
    if (!paused) hot.nodes?.waitAnew();
    else if (isObserved()) emit({ event: "run.paused", run: hot.record.id });
  }

  /** The run was paused here: its code stops at once. */
  paused(run: RunNumber): void {
    this.#held.loading.paused(run, true);
    const hot = this.#held.runs.get(run);
    if (hot?.token !== undefined) this.steer(hot, true);
  }

  /** G5. Until that is durable it goes on; a crash before leaves it running, and it waits anew. */
  pauseItself({ token, record, isPaused, nodes }: HotRun, evidence: PauseEvidence): void {
    if (isPaused) return;
    const { id, run } = record;
    const own = { token, evidence: encode({ status: "paused", ...evidence }) };
    this.#host.pump.submit({ write: "pause", id, own }).then(
      ({ status }) => {
        if (status !== "committed") return;
        this.#host.log("warn", evidence.message, { run: id, status: "paused" });
        this.paused(run);
        this.#host.onUnheld(record);
      },
      (error: unknown) => {
        this.#host.report(error);
        nodes?.waitAnew();
      },
    );
  }

  resumed(run: RunNumber): void {
    this.#held.loading.paused(run, false);
    const hot = this.#held.runs.get(run);
    if (hot?.token !== undefined) this.steer(hot, false);
    this.#host.claimer.want("items");
    this.#held.arrived(run);
  }

  /** V1. A failed run lives again. */
  retried(run: RunNumber, items: readonly NewItem[]): void {
    for (const { kind, availableAt } of items) if (kind === "timer") this.#host.dueAt(availableAt);
    this.#host.claimer.want("turns", "items", "due");
    this.#held.arrived(run);
  }

  /** C2. The run was ended by somebody; `told` got a message. */
  terminated(record: RunRecord, told: readonly RunNumber[]): void {
    const hot = this.#held.runs.get(record.run);
    if (hot !== undefined) this.#held.forget(hot);
    this.#host.tasks.abandon(record.run, () => new CancelledError("The run was terminated."));
    this.#host.claimer.freed();
    if (isObserved()) emit({ event: "run.ended", run: record.id, definition: record.definition, status: "cancelled" });
    for (const run of told) this.#held.arrived(run);
    this.#host.onUnheld(record);
  }
}
