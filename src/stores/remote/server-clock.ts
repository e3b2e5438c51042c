// ServerClock: the time of the database server, without asking it each time (A5).
//
// C3. The server's time is measured with a round trip now and then; in between monotonic time counts. What the clock of this
//     machine says does not matter.
// C4. Of several measurements the quickest round trip is the best: the answer was true somewhere within it.

import type { Clock, EpochMs } from "../../base/index.ts";

export class ServerClock implements Clock {
  readonly #clock: Clock;
  /** Server time minus monotonic time. */
  #offset: number | undefined;
  #roundTrip = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): EpochMs {
    return this.#offset === undefined ? this.#clock.now() : Math.floor(this.#clock.monotonic() + this.#offset);
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  async measure(ask: () => Promise<number>): Promise<void> {
    const before = this.#clock.monotonic();
    const server = await ask();
    const after = this.#clock.monotonic();
    const roundTrip = after - before;
    // Each measurement makes the old one a little worse: clocks drift.
    this.#roundTrip += 1;
    if (roundTrip > this.#roundTrip) return;
    this.#roundTrip = roundTrip;
    this.#offset = server - (before + roundTrip / 2);
  }
}
