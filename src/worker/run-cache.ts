// RunCache: the runs in memory. Held runs stay; the others stay as long as the estimated memory of all runs is below a limit.
//
// run-cache.C1. Above the limit the cache evicts runs that are not held: of a few random ones, the one that is least likely to continue
//   soon. Runs that continue one after the other, more of them than fit, would each find that the least recently used run, which
//   is the next one to continue, was evicted just before.
// run-cache.C2. The cache does not evict a run that continues when work in progress on this worker ends.
// run-cache.C3. A worker holds at most so many runs, whatever their memory. It leaves the others to other workers, although many more would
//   fit into its memory.

import { invariant } from "../base/index.ts";
import type { RunNumber } from "../kernel/index.ts";

export interface CachedRun {
  readonly record: { readonly run: RunNumber; readonly parent: RunNumber | undefined };
}

/** How soon a run that is not held is expected to continue. */
export type Continuation = "at_once" | "soon" | "unknown";

/** run-cache.C1. So many runs that are not held stay, whatever their memory: a replay of a large one takes long. */
const MIN_IDLE = 16;
/** run-cache.C1. How many runs an eviction chooses from. */
const CANDIDATES = 8;

export interface RunCacheOptions<T> {
  /** In bytes. */
  readonly limit: number;
  /** run-cache.C3 */
  readonly maxHeld: number;
  /** An estimate, in bytes. */
  readonly memoryOf: (value: T) => number;
  readonly continuationOf: (value: T) => Continuation;
}

const NONE: readonly never[] = [];

interface Place<T> {
  readonly value: T;
  memory: number;
  /** Its index among the runs that are not held; -1: held. */
  index: number;
}

export class RunCache<T extends CachedRun> {
  readonly #options: RunCacheOptions<T>;
  readonly #places = new Map<RunNumber, Place<T>>();
  readonly #held = new Set<T>();
  readonly #idle: T[] = [];
  /** How many children of each run are held. */
  readonly #heldChildren = new Map<RunNumber, number>();
  #memory = 0;
  #random = 0x2545f491;

  constructor(options: RunCacheOptions<T>) {
    this.#options = options;
  }

  get heldCount(): number {
    return this.#held.size;
  }

  /** run-cache.C3. How many more runs may be held. */
  get room(): number {
    return Math.max(0, this.#options.maxHeld - this.#held.size);
  }

  held(): readonly T[] {
    return [...this.#held];
  }

  idle(): readonly T[] {
    return [...this.#idle];
  }

  get(run: RunNumber): T | undefined {
    return this.#places.get(run)?.value;
  }

  /** Returns the runs that the cache evicted. */
  hold(value: T): readonly T[] {
    const { run, parent } = value.record;
    const before = this.#places.get(run);
    if (before !== undefined) this.#remove(before);
    const place = { value, memory: this.#options.memoryOf(value), index: -1 };
    this.#places.set(run, place);
    this.#held.add(value);
    this.#memory += place.memory;
    if (parent !== undefined) this.#heldChildren.set(parent, (this.#heldChildren.get(parent) ?? 0) + 1);
    return this.#evict();
  }

  /** Returns the runs that the cache evicted, perhaps this one. */
  release(value: T): readonly T[] {
    const place = this.#places.get(value.record.run);
    invariant(place?.value === value && place.index < 0, "only a held run is released");
    this.#remove(place);
    const memory = this.#options.memoryOf(value);
    this.#places.set(value.record.run, { value, memory, index: this.#idle.length });
    this.#idle.push(value);
    this.#memory += memory;
    return this.#evict();
  }

  /** Removes `value` only: a newer value of the same run stays. */
  delete(value: T): void {
    const place = this.#places.get(value.record.run);
    if (place?.value === value) this.#remove(place);
  }

  clear(): readonly T[] {
    const all = [...this.#places.values()];
    for (const place of all) this.#remove(place);
    return all.map(({ value }) => value);
  }

  #remove(place: Place<T>): void {
    const { value, memory, index } = place;
    const { run, parent } = value.record;
    this.#places.delete(run);
    this.#memory -= memory;
    if (index < 0) {
      this.#held.delete(value);
      if (parent !== undefined) this.#removeHeldChild(parent);
      return;
    }
    const last = this.#idle.pop()!;
    if (last === value) return;
    this.#idle[index] = last;
    this.#places.get(last.record.run)!.index = index;
  }

  #removeHeldChild(parent: RunNumber): void {
    const left = (this.#heldChildren.get(parent) ?? 0) - 1;
    if (left > 0) this.#heldChildren.set(parent, left);
    else this.#heldChildren.delete(parent);
  }

  /** run-cache.C1 */
  #evict(): readonly T[] {
    const { limit } = this.#options;
    if (this.#memory <= limit) return NONE;
    const evicted: T[] = [];
    while (this.#memory > limit && this.#idle.length > MIN_IDLE) {
      const value = this.#chooseEvicted();
      if (value === undefined) break;
      this.delete(value);
      evicted.push(value);
    }
    return evicted;
  }

  #chooseEvicted(): T | undefined {
    const { length } = this.#idle;
    let chosen: T | undefined;
    for (let candidate = 0; candidate < Math.min(CANDIDATES, length); candidate += 1) {
      const value = this.#idle[this.#nextRandom(length)]!;
      // run-cache.C2
      const continues = this.#heldChildren.has(value.record.run) ? "at_once" : this.#options.continuationOf(value);
      if (continues === "unknown") return value;
      if (continues === "soon") chosen ??= value;
    }
    return chosen;
  }

  /** Xorshift: it decides about memory only, and is the same in every execution of a test. */
  #nextRandom(below: number): number {
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    return (this.#random >>> 0) % below;
  }
}
