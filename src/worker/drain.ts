// Drain: stops a worker without losing finished work (worker.R2).

import type { PartsOf } from "./worker-parts.ts";

type UsedParts = PartsOf<"pump" | "runs" | "slots" | "timers" | "unawaited">;

export class Drain {
  readonly #parts: UsedParts;
  #isDraining = false;
  #onNodeProgress: (() => void) | undefined;

  constructor(parts: UsedParts) {
    this.#parts = parts;
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
    const { timers, pump, slots, runs, unawaited } = this.#parts;
    this.#isDraining = true;
    pump.stopDeliveries();
    runs.beginDrain();
    const finished = await Promise.race([
      Promise.all([slots.idle(), this.#nodesIdle()]).then(() => true),
      new Promise<boolean>((resolve) => timers.set(graceMs, () => resolve(false), { ref: false })),
    ]);
    // Twice: results of the first flush may submit writes. Not `idle`: a loaded pump never is.
    await pump.flushed();
    await pump.flushed();
    await unawaited.idle();
    return finished;
  }

  /** Does not wait for nodes that wait themselves: they receive no result here, and their recorded results are in the journal. */
  #nodesIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onNodeProgress = () => {
        if (this.#parts.runs.areNodesBusy) return;
        this.#onNodeProgress = undefined;
        resolve();
      };
      this.#onNodeProgress();
    });
  }
}
