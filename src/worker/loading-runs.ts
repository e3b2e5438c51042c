// LoadingRuns: the runs being replayed, and what happened to each during its replay.
//
// loading-runs.L1. A run that is claimed again while it is replayed is replayed twice: a worker that restarts may claim what it has
//   just returned. Only the last replay counts, whichever ends first.
// loading-runs.L2. The result of a task that was claimed with the turn of its run waits for the replay, and joins the turn's commit.

import type { RunNumber } from "../kernel/index.ts";

export interface LoadingRun {
  arrived: boolean;
  paused: boolean;
  /** Results of tasks that ended during the replay, to be applied after it. */
  results: (() => void)[];
}

export class LoadingRuns {
  readonly #runs = new Map<RunNumber, LoadingRun>();
  readonly #waiters: (() => void)[] = [];

  get size(): number {
    return this.#runs.size;
  }

  has(run: RunNumber): boolean {
    return this.#runs.has(run);
  }

  begin(run: RunNumber): LoadingRun {
    const loading = { arrived: false, paused: false, results: this.#runs.get(run)?.results ?? [] };
    this.#runs.set(run, loading);
    return loading;
  }

  /** False: a later replay of the run has replaced this one (loading-runs.L1). */
  end(run: RunNumber, loading: LoadingRun): boolean {
    if (this.#runs.get(run) !== loading) return false;
    this.#runs.delete(run);
    // After the caller holds the run.
    const { results } = loading;
    if (results.length > 0) void Promise.resolve().then(() => results.splice(0).forEach((apply) => apply()));
    if (this.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    return true;
  }

  /** Resolves when no run is being replayed. */
  allLoaded(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** loading-runs.L2. False: the run is not being replayed. */
  defer(run: RunNumber, result: () => void): boolean {
    const loading = this.#runs.get(run);
    loading?.results.push(result);
    return loading !== undefined;
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
