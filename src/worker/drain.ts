// Drain: what happens between the call of `drain` and the end of the worker (R5).

import type { Timers } from "../base/index.ts";
import type { HeldRuns } from "./held-runs.ts";
import type { Pump } from "./pump.ts";
import type { Slots } from "./slots.ts";

export interface DrainHost {
  readonly timers: Timers;
  readonly pump: Pump;
  readonly slots: Slots;
  runs(): HeldRuns;
}

export class Drain {
  readonly #host: DrainHost;
  #isOn = false;
  #nodesMoved: (() => void) | undefined;

  constructor(host: DrainHost) {
    this.#host = host;
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** A node has ended, or asked for something it will not get here. */
  nodesMoved(): void {
    this.#nodesMoved?.();
  }

  /** False when something was still at work when the time was up. */
  async run(graceMs: number): Promise<boolean> {
    const { timers, pump, slots } = this.#host;
    this.#isOn = true;
    pump.holdDeliveries();
    this.#host.runs().leave();
    const finished = await Promise.race([
      Promise.all([slots.idle(), this.#nodesRest()]).then(() => true),
      new Promise<boolean>((resolve) => timers.set(graceMs, () => resolve(false), { ref: false })),
    ]);
    // Twice: what was under way may leave something behind. Not `quiet`: under load it never is.
    await pump.written();
    await pump.written();
    return finished;
  }

  /** A node that has asked for something gets no answer any more: it is not waited for, its answers are in the journal. */
  #nodesRest(): Promise<void> {
    return new Promise((resolve) => {
      this.#nodesMoved = () => void (this.#host.runs().areNodesBusy || resolve());
      this.#nodesMoved();
    });
  }
}
