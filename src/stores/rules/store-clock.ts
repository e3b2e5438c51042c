// Store clock: the store's time (rules.A5).
//
// store-clock.C1. The time never goes backwards: not when the wall clock is set back, and not after a restart, because every
//   batch writes a mark.
// store-clock.C2. The time is never slower than real time: from the mark on it follows monotonic time.

import type { Clock, EpochMs } from "../../base/index.ts";

export class StoreClock {
  readonly #clock: Clock;
  /** The highest known time, and the monotonic time at which it was read. */
  #mark: number;
  #markAt: number;

  constructor(clock: Clock, mark: EpochMs) {
    this.#clock = clock;
    this.#mark = mark;
    this.#markAt = clock.monotonic();
  }

  now(): EpochMs {
    const monotonic = this.#clock.monotonic();
    const wall = this.#clock.now();
    const counted = this.#mark + Math.max(0, monotonic - this.#markAt);
    if (wall < counted) return Math.floor(counted);
    this.#mark = wall;
    this.#markAt = monotonic;
    return wall;
  }

  /** Adopts the time of another writer of this database when that one is ahead. */
  raise(mark: EpochMs): void {
    if (mark <= this.now()) return;
    this.#mark = mark;
    this.#markAt = this.#clock.monotonic();
  }
}
