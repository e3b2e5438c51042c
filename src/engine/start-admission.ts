// StartAdmission: how many starts of this process are being written at once.
//
// start-admission.A1. A start that waits keeps its encoded input and nothing else: the row of the run, its write and, on a worker, the run
//   itself are made when it is admitted. Starts are admitted in the order of their calls.
// start-admission.A2. A close refuses no start that was called before it: then all that wait are admitted.

import { Fifo } from "../base/index.ts";

/** Two batches of the pump (pump.P7): one is written while the other gathers. */
const MAX_WRITTEN = 1_000;

export class StartAdmission {
  #written = 0;
  #limit = MAX_WRITTEN;
  readonly #waiting = new Fifo<() => void>();

  /** Undefined: admitted. Each start calls `leave` once it is written or has failed. */
  enter(): Promise<void> | undefined {
    if (this.#written < this.#limit) {
      this.#written += 1;
      return undefined;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    this.#written -= 1;
    this.#admit();
  }

  /** start-admission.A2 */
  admitAll(): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#admit();
  }

  #admit(): void {
    while (this.#written < this.#limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#written += 1;
      next();
    }
  }
}
