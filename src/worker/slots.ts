// Slots: how many user functions run at once on this worker. Operations wait in line; tasks are not claimed without one.

import { Fifo } from "../base/index.ts";

export class Slots {
  readonly size: number;
  #taken = 0;
  #handingOut = false;
  readonly #idleWaiters: (() => void)[] = [];
  readonly #waiting = new Fifo<() => void>();

  constructor(size: number) {
    this.size = size;
  }

  get free(): number {
    return Math.max(0, this.size - this.#taken - this.#waiting.length);
  }
  get taken(): number {
    return this.#taken;
  }

  /** Resolves when nothing is at work. */
  idle(): Promise<void> {
    if (this.#taken === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** For work that is already promised: may exceed `size` only by what was promised. */
  take(): void {
    this.#taken += 1;
  }

  /** Runs `start` now, or when a slot is free; first come, first served. */
  whenFree(start: () => void): void {
    if (this.#taken < this.size && this.#waiting.length === 0) {
      this.#taken += 1;
      start();
    } else this.#waiting.push(start);
  }

  give(): void {
    this.#taken -= 1;
    // Work that ends at once gives its slot back from in here: a loop, or a long line of it would overflow the stack.
    if (this.#handingOut) return;
    this.#handingOut = true;
    try {
      while (this.#taken < this.size) {
        const next = this.#waiting.shift();
        if (next === undefined) break;
        this.#taken += 1;
        next();
      }
    } finally {
      this.#handingOut = false;
    }
    if (this.#taken === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }
}
