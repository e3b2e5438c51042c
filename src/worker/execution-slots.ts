// ExecutionSlots: limits how many user functions run at once on this worker. Work that has no slot yet waits in FIFO order.

import { Fifo } from "../base/index.ts";

/** Work that waits for a slot. */
export interface SlotWaiter {
  /** Undefined: withdrawn. */
  start: (() => void) | undefined;
}

export class ExecutionSlots {
  #size: number;
  #inUse = 0;
  #reserved = 0;
  #isHandingOut = false;
  readonly #idleWaiters: (() => void)[] = [];
  readonly #waiting = new Fifo<SlotWaiter>();
  #withdrawn = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  /** If more slots are in use, they are released first. */
  resize(size: number): void {
    this.#size = size;
    this.#handOut();
  }

  get free(): number {
    return Math.max(0, this.#size - this.load);
  }
  get inUse(): number {
    return this.#inUse;
  }
  /** Functions that run, that wait for a slot, or that will once a commit is durable. */
  get load(): number {
    return this.#inUse + this.#waiting.length - this.#withdrawn + this.#reserved;
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

  /** For work that a commit in flight leases to this worker: it counts as load until `unreserve`. */
  reserve(): void {
    this.#reserved += 1;
  }

  unreserve(): void {
    this.#reserved -= 1;
  }

  /** Runs `start` now, or when a slot is free, in FIFO order. Returns the waiter unless `start` was called. */
  whenFree(start: () => void): SlotWaiter | undefined {
    if (this.#inUse < this.#size && this.#waiting.length === 0) {
      this.#inUse += 1;
      start();
      return undefined;
    }
    const waiter = { start };
    this.#waiting.push(waiter);
    return waiter;
  }

  withdraw(waiter: SlotWaiter): void {
    if (waiter.start === undefined) return;
    waiter.start = undefined;
    this.#withdrawn += 1;
  }

  release(): void {
    this.#inUse -= 1;
    this.#handOut();
    if (this.#inUse === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  #handOut(): void {
    // A function that ends synchronously releases its slot inside `start()`. A loop, because recursion would overflow the stack.
    if (this.#isHandingOut) return;
    this.#isHandingOut = true;
    try {
      while (this.#inUse < this.#size) {
        const next = this.#waiting.shift();
        if (next === undefined) break;
        const { start } = next;
        if (start === undefined) {
          this.#withdrawn -= 1;
          continue;
        }
        next.start = undefined;
        this.#inUse += 1;
        start();
      }
    } finally {
      this.#isHandingOut = false;
    }
  }
}
