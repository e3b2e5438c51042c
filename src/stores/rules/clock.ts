// Clock: the store's time (A5).
//
// C1. Never backwards: not when the wall clock is set back, and not after a restart, because every batch writes a mark.
// C2. Never slower than real time: from the mark on, monotonic time counts.

import type { Clock, EpochMs } from "../../base/index.ts";

export class StoreClock {
  readonly #clock: Clock;
  /** The highest time known, and when (monotonic) it was that. */
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

  /** Takes over the time of another writer of this database, if it is ahead. */
  raise(mark: EpochMs): void {
    if (mark <= this.now()) return;
    this.#mark = mark;
    this.#markAt = this.#clock.monotonic();
  }
}
