// Drain: stops a worker without losing finished work (worker.R2).

import type { Timers } from "../base/index.ts";
import type { HeldRuns } from "./held-runs.ts";
import type { Pump } from "./pump.ts";
import type { ExecutionSlots } from "./execution-slots.ts";

export interface DrainHost {
  readonly timers: Timers;
  readonly pump: Pump;
  readonly slots: ExecutionSlots;
  runs(): HeldRuns;
}

export class Drain {
  readonly #host: DrainHost;
  #isDraining = false;
  #onNodeProgress: (() => void) | undefined;

  constructor(host: DrainHost) {
    this.#host = host;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** A node has ended, or now waits for a result that this worker no longer delivers. */
  onNodeProgress(): void {
    this.#onNodeProgress?.();
  }

  /** False when user functions were still running after `graceMs`. */
  async run(graceMs: number): Promise<boolean> {
    const { timers, pump, slots } = this.#host;
    this.#isDraining = true;
    pump.stopDeliveries();
    this.#host.runs().beginDrain();
    const finished = await Promise.race([
      Promise.all([slots.idle(), this.#nodesIdle()]).then(() => true),
      new Promise<boolean>((resolve) => timers.set(graceMs, () => resolve(false), { ref: false })),
    ]);
    // Twice: results of the first flush may submit writes. Not `idle`: a loaded pump never is.
    await pump.flushed();
    await pump.flushed();
    await this.#host.runs().unawaited.idle();
    return finished;
  }

  /** Does not wait for nodes that wait themselves: they receive no result here, and their recorded results are in the journal. */
  #nodesIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onNodeProgress = () => void (this.#host.runs().areNodesBusy || resolve());
      this.#onNodeProgress();
    });
  }
}
