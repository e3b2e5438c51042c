// PersistentWrites: repeats a write until the store answers, or the worker stops.

import type { Timers } from "../base/index.ts";
import type { PersistentWrite } from "./released-claims.ts";
import type { Pump } from "./pump.ts";

/** Delay before a failed write is repeated. */
export const RETRY_WRITE_MS = 250;

export interface PersistentWritesHost {
  readonly timers: Timers;
  readonly pump: Pump;
  isStopped(): boolean;
  written(write: PersistentWrite): void;
  report(error: unknown): void;
}

export class PersistentWrites {
  readonly #host: PersistentWritesHost;

  constructor(host: PersistentWritesHost) {
    this.#host = host;
  }

  submit(write: PersistentWrite): void {
    const { pump, timers } = this.#host;
    pump.submit(write).then(
      () => this.#host.written(write),
      (error: unknown) => {
        this.#host.report(error);
        if (!this.#host.isStopped()) timers.set(RETRY_WRITE_MS, () => this.submit(write), { ref: false });
      },
    );
  }
}
