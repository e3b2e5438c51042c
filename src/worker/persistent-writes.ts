// Insistence: writes that must not be lost while the worker lives. Tried until the store answers.

import type { Timers } from "../base/index.ts";
import type { Insisted } from "./claims-given-back.ts";
import type { Pump } from "./pump.ts";

/** Pause before what the store could not take is tried again. */
export const INSIST_MS = 250;

export interface InsistenceHost {
  readonly timers: Timers;
  readonly pump: Pump;
  isStopped(): boolean;
  written(write: Insisted): void;
  report(error: unknown): void;
}

export class PersistentWrites {
  readonly #host: InsistenceHost;

  constructor(host: InsistenceHost) {
    this.#host = host;
  }

  on(write: Insisted): void {
    const { pump, timers } = this.#host;
    pump.submit(write).then(
      () => this.#host.written(write),
      (error: unknown) => {
        this.#host.report(error);
        if (!this.#host.isStopped()) timers.set(INSIST_MS, () => this.on(write), { ref: false });
      },
    );
  }
}
