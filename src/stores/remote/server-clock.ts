// ServerClock: the time of the database server, without a round trip per call (rules.A5).
//
// server-clock.C1. The server's time is measured regularly with a round trip; in between, monotonic time is added. This machine's
//   wall clock is not used.
// server-clock.C2. The measurement with the shortest round trip is the most precise: the server read its clock somewhere within it.

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

  async measure(readServerTime: () => Promise<number>): Promise<void> {
    const before = this.#clock.monotonic();
    const server = await readServerTime();
    const after = this.#clock.monotonic();
    const roundTrip = after - before;
    // Clocks drift: each measurement makes the old one a little less precise.
    this.#roundTrip += 1;
    if (roundTrip > this.#roundTrip) return;
    this.#roundTrip = roundTrip;
    this.#offset = server - (before + roundTrip / 2);
  }
}
