// ExecutionSlots: limits how many user functions run at once on this worker. Operations wait for a slot; a worker claims tasks
// only for free slots.

import { Fifo } from "../base/index.ts";

export class ExecutionSlots {
  readonly size: number;
  #inUse = 0;
  #isHandingOut = false;
  readonly #idleWaiters: (() => void)[] = [];
  readonly #waiting = new Fifo<() => void>();

  constructor(size: number) {
    this.size = size;
  }

  get free(): number {
    return Math.max(0, this.size - this.#inUse - this.#waiting.length);
  }
  get inUse(): number {
    return this.#inUse;
  }

  /** Resolves when no slot is in use. */
  idle(): Promise<void> {
    if (this.#inUse === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** For work the worker has already accepted; `inUse` may then exceed `size`. */
  acquire(): void {
    this.#inUse += 1;
  }

  /** Runs `start` now, or when a slot is free, in FIFO order. */
  whenFree(start: () => void): void {
    if (this.#inUse < this.size && this.#waiting.length === 0) {
      this.#inUse += 1;
      start();
    } else this.#waiting.push(start);
  }

  release(): void {
    this.#inUse -= 1;
    // A function that ends synchronously releases its slot inside `next()`. A loop, because recursion would overflow the stack.
    if (this.#isHandingOut) return;
    this.#isHandingOut = true;
    try {
      while (this.#inUse < this.size) {
        const next = this.#waiting.shift();
        if (next === undefined) break;
        this.#inUse += 1;
        next();
      }
    } finally {
      this.#isHandingOut = false;
    }
    if (this.#inUse === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
