// LoadingRuns: the runs being replayed, and what happened to each during its replay.

import type { RunNumber } from "../kernel/index.ts";

interface LoadingState {
  arrived: boolean;
  paused: boolean;
}

export class LoadingRuns {
  readonly #runs = new Map<RunNumber, LoadingState>();
  readonly #waiters: (() => void)[] = [];

  get size(): number {
    return this.#runs.size;
  }

  has(run: RunNumber): boolean {
    return this.#runs.has(run);
  }

  begin(run: RunNumber): void {
    this.#runs.set(run, { arrived: false, paused: false });
  }

  /** Returns what happened during the replay. */
  end(run: RunNumber): Readonly<LoadingState> {
    const meanwhile = this.#runs.get(run) ?? { arrived: false, paused: false };
    this.#runs.delete(run);
    if (this.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    return meanwhile;
  }

  /** Resolves when no run is being replayed. */
  allLoaded(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  onArrival(run: RunNumber): void {
    const loading = this.#runs.get(run);
    if (loading !== undefined) loading.arrived = true;
  }

  /** Messages may have arrived for all of them, or for the named ones. */
  onArrivals(only?: ReadonlySet<RunNumber>): void {
    for (const [run, loading] of this.#runs) if (only?.has(run) !== false) loading.arrived = true;
  }

  setPaused(run: RunNumber, paused: boolean): void {
    const loading = this.#runs.get(run);
    if (loading !== undefined) loading.paused = paused;
  }
}
