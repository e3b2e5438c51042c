// RunCache: the runs in memory. Held runs stay; the cache evicts the least recently used of the others.

import { invariant } from "../base/index.ts";
import type { RunNumber } from "../kernel/index.ts";

export class RunCache<T> {
  readonly #size: number;
  readonly #held = new Map<RunNumber, T>();
  /** Least recently used first. */
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

  /** Returns the run that the cache evicted for it. */
  release(run: RunNumber, value: T): T | undefined {
    invariant(this.#held.get(run) === value, "only a held run is released");
    this.#held.delete(run);
    this.#idle.set(run, value);
    if (this.#idle.size <= this.#size) return undefined;
    const oldest = this.#idle.entries().next();
    if (oldest.done) return undefined;
    this.#idle.delete(oldest.value[0]);
    return oldest.value[1];
  }

  /** Removes `value` only: a newer value of the same run stays. */
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
