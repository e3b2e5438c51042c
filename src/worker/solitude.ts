// Solitude: while a suspect (S5) has not shown that it can commit, this worker takes up nothing else.
//
// If it dies now, it was the suspect. Bounded in time: a suspect whose honest work takes long must not stop a worker.

import type { Timers } from "../base/index.ts";

const AT_MOST_MS = 1_000;

export class Solitude {
  readonly #timers: Timers;
  readonly #over: () => void;
  readonly #suspects = new Map<string, () => void>();

  constructor(timers: Timers, over: () => void) {
    this.#timers = timers;
    this.#over = over;
  }

  get isKept(): boolean {
    return this.#suspects.size > 0;
  }

  begin(suspect: string): void {
    this.#suspects.set(
      suspect,
      this.#timers.set(AT_MOST_MS, () => this.end(suspect), { ref: false }),
    );
  }

  end(suspect: string): void {
    if (this.#suspects.size === 0) return;
    this.#suspects.get(suspect)?.();
    if (this.#suspects.delete(suspect) && this.#suspects.size === 0) this.#over();
  }
}
