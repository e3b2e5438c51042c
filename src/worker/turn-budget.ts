// TurnBudget: how much payload one turn of the event loop handles.
//
// turn-budget.B1. Encoding, hashing and decoding a megabyte takes about 30 ms. So the results of functions that end in the same turn
//   are handled until they reach the budget, and the others in later turns, in the order in which the functions ended. An attempt
//   keeps its slot until then.

import { Fifo } from "../base/index.ts";

/** In characters of encoded payloads. */
export const TURN_SIZE = 512 * 1024;

export class TurnBudget {
  readonly #wake: () => void;
  #left = TURN_SIZE;
  readonly #waiting = new Fifo<() => void>();

  /** `wake`: work waits for the next turn. */
  constructor(wake: () => void) {
    this.#wake = wake;
  }

  get hasWork(): boolean {
    return this.#waiting.length > 0;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(size: number): void {
    this.#left -= size;
  }

  /** Calls `work` now or in a later turn. */
  run(work: () => void): void {
    if (!this.isSpent && !this.hasWork) return work();
    this.#waiting.push(work);
    this.#wake();
  }

  /** A turn begins. */
  renew(): void {
    this.#left = TURN_SIZE;
    while (!this.isSpent) {
      const work = this.#waiting.shift();
      if (work === undefined) return;
      work();
    }
  }
}
