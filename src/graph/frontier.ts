// Frontier: a bounded priority queue of the items that are ready to run, smallest order key first.
//
// frontier.F1. `length` never exceeds `capacity`. Admission is first come, first served; it waits until there is room or its
//   signal aborts.
// frontier.F2. `take` returns the smallest item present, and waits while there is none.
// frontier.F3. Taking an item admits the next waiting one at once, so no capacity can cause a deadlock.

import { Fifo } from "../base/index.ts";
import { compareItems, type OrderKey, type Path } from "./order-key.ts";

interface Keyed {
  readonly orderKey: OrderKey;
  readonly path: Path;
}

interface PendingAdmission<T> {
  readonly item: T;
  readonly admit: () => void;
  aborted: boolean;
}

export class Frontier<T extends Keyed> {
  readonly capacity: number;
  /** A binary heap. */
  readonly #heap: T[] = [];
  readonly #waiting = new Fifo<PendingAdmission<T>>();
  readonly #takers = new Fifo<{ give: ((item: T) => void) | undefined }>();
  #blocked = 0;
  #deepest = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.#heap.length;
  }
  /** The highest length so far. */
  get deepest(): number {
    return this.#deepest;
  }
  /** How often admission had to wait. */
  get blocked(): number {
    return this.#blocked;
  }

  /** False if there is no room. */
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

  /** frontier.F1. Rejects with the signal's reason if the signal aborts first. */
  add(item: T, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.tryAdd(item)) return Promise.resolve();
    this.#blocked += 1;
    return new Promise((resolve, reject) => {
      const waiting: PendingAdmission<T> = { item, admit: resolve, aborted: false };
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

  /** frontier.F2. Undefined if the frontier is empty. */
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

  /** frontier.F3 */
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
