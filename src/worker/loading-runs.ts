// LoadingRuns: runs being replayed, and what happened to them meanwhile.

import type { RunNumber } from "../kernel/index.ts";

interface Meanwhile {
  arrived: boolean;
  paused: boolean;
}

export class LoadingRuns {
  readonly #runs = new Map<RunNumber, Meanwhile>();
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

  /** Answers with what happened meanwhile. */
  end(run: RunNumber): Readonly<Meanwhile> {
    const meanwhile = this.#runs.get(run) ?? { arrived: false, paused: false };
    this.#runs.delete(run);
    if (this.size === 0) for (const resolve of this.#waiters.splice(0)) resolve();
    return meanwhile;
  }

  /** Resolves when there is none. */
  none(): Promise<void> {
    if (this.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  arrived(run: RunNumber): void {
    const loading = this.#runs.get(run);
    if (loading !== undefined) loading.arrived = true;
  }

  /** For all of them, or for those that are named. */
  allArrived(only?: ReadonlySet<RunNumber>): void {
    for (const [run, loading] of this.#runs) if (only?.has(run) !== false) loading.arrived = true;
  }

  paused(run: RunNumber, paused: boolean): void {
    const loading = this.#runs.get(run);
    if (loading !== undefined) loading.paused = paused;
  }
}
