// Frontier: the items ready to run, smallest order key first, never more of them in memory than its capacity.
//
// F1. `length` never exceeds `capacity`: admission waits, first come first served, until there is room or its signal aborts.
// F2. `take` gives the smallest of those present; it waits while there is none.
// F3. What waits for admission holds nothing back: taking an item admits the next at once, so no capacity can deadlock.

import { Fifo } from "../base/index.ts";
import { compareItems, type OrderKey, type Path } from "./order-key.ts";

interface Keyed {
  readonly orderKey: OrderKey;
  readonly path: Path;
}

interface Waiting<T> {
  readonly item: T;
  readonly admit: () => void;
  aborted: boolean;
}

export class Frontier<T extends Keyed> {
  readonly capacity: number;
  /** A binary heap. */
  readonly #heap: T[] = [];
  readonly #waiting = new Fifo<Waiting<T>>();
  readonly #takers = new Fifo<{ give: ((item: T) => void) | undefined }>();
  #blocked = 0;
  #deepest = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.#heap.length;
  }
  /** How many were there at most. */
  get deepest(): number {
    return this.#deepest;
  }
  /** How often admission had to wait. */
  get blocked(): number {
    return this.#blocked;
  }

  /** True when there was room at once. */
  tryAdd(item: T): boolean {
    const taker = this.#nextTaker();
    if (taker !== undefined) {
      this.#deepest = Math.max(this.#deepest, 1);
      taker(item);
      return true;
    }
    if (this.#heap.length >= this.capacity) return false;
    this.#push(item);
    return true;
  }

  /** F1. Rejects with the signal's reason when it aborts first. */
  add(item: T, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.tryAdd(item)) return Promise.resolve();
    this.#blocked += 1;
    return new Promise((resolve, reject) => {
      const waiting: Waiting<T> = { item, admit: resolve, aborted: false };
      this.#waiting.push(waiting);
      signal?.addEventListener(
        "abort",
        () => {
          waiting.aborted = true;
          reject(signal.reason as Error);
        },
        { once: true },
      );
    });
  }

  /** F2. Undefined when there is none. */
  tryTake(): T | undefined {
    const smallest = this.#pop();
    if (smallest !== undefined) this.#admitWaiting();
    return smallest;
  }

  take(signal?: AbortSignal): Promise<T> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const item = this.tryTake();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve, reject) => {
      const taker: { give: ((item: T) => void) | undefined } = { give: resolve };
      this.#takers.push(taker);
      signal?.addEventListener(
        "abort",
        () => {
          taker.give = undefined;
          reject(signal.reason as Error);
        },
        { once: true },
      );
    });
  }

  #nextTaker(): ((item: T) => void) | undefined {
    for (;;) {
      const taker = this.#takers.shift();
      if (taker === undefined || taker.give !== undefined) return taker?.give;
    }
  }

  /** F3 */
  #admitWaiting(): void {
    while (this.#heap.length < this.capacity) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (next.aborted) continue;
      this.#push(next.item);
      next.admit();
    }
  }

  #push(item: T): void {
    const heap = this.#heap;
    let at = heap.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compareItems(heap[parent]!, item) <= 0) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = item;
    this.#deepest = Math.max(this.#deepest, heap.length);
  }

  #pop(): T | undefined {
    const heap = this.#heap;
    const smallest = heap[0];
    const last = heap.pop();
    if (smallest === undefined || last === undefined || heap.length === 0) return smallest;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && compareItems(heap[child + 1]!, heap[child]!) < 0) child += 1;
      if (compareItems(heap[child]!, last) >= 0) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return smallest;
  }
}
