// RateBudget: how often something may be read: at once after a pause, a few times in a row, and then once a second.

const BURST = 5;
const REFILL_MS = 1_000;

export class RateBudget {
  #left: number = BURST;
  #at: number;

  constructor(now: number) {
    this.#at = now;
  }

  /** Milliseconds until the next read is allowed; 0: it is, and this call counts it. */
  take(now: number): number {
    this.#refill(now);
    if (this.#left < 1) return Math.max(1, this.#at + REFILL_MS - now);
    this.#left -= 1;
    return 0;
  }

  /** Nothing was read for long enough that a new budget would be the same. */
  isFull(now: number): boolean {
    this.#refill(now);
    return this.#left >= BURST;
  }

  #refill(now: number): void {
    const earned = Math.floor((now - this.#at) / REFILL_MS);
    if (earned <= 0) return;
    this.#left = Math.min(BURST, this.#left + earned);
    this.#at += earned * REFILL_MS;
  }
}
