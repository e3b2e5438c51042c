// RunCache: the runs in memory. Held ones stay; the others are kept as long as there is room, oldest use first out.

import type { RunNumber } from "../kernel/index.ts";

export class RunCache<T> {
  readonly #size: number;
  readonly #held = new Map<RunNumber, T>();
  /** In order of last use. */
  readonly #idle = new Map<RunNumber, T>();

  constructor(size: number) {
    this.#size = size;
  }

  get heldCount(): number {
    return this.#held.size;
  }

  held(): readonly T[] {
    return [...this.#held.values()];
  }

  idle(): readonly T[] {
    return [...this.#idle.values()];
  }

  get(run: RunNumber): T | undefined {
    return this.#held.get(run) ?? this.#idle.get(run);
  }

  hold(run: RunNumber, value: T): void {
    this.#idle.delete(run);
    this.#held.set(run, value);
  }

  /** Answers the one that had to go for it. */
  release(run: RunNumber, value: T): T | undefined {
    this.#held.delete(run);
    this.#idle.set(run, value);
    if (this.#idle.size <= this.#size) return undefined;
    const oldest = this.#idle.entries().next();
    if (oldest.done) return undefined;
    this.#idle.delete(oldest.value[0]);
    return oldest.value[1];
  }

  /** Only the value itself: a newer one under the same number stays. */
  delete(run: RunNumber, value: T): void {
    if (this.#held.get(run) === value) this.#held.delete(run);
    if (this.#idle.get(run) === value) this.#idle.delete(run);
  }

  clear(): readonly T[] {
    const all = [...this.#held.values(), ...this.#idle.values()];
    this.#held.clear();
    this.#idle.clear();
    return all;
  }
}
