// PersistentWrites: repeats a write until the store answers, or the worker stops.

import type { PartsOf } from "./worker-parts.ts";
import type { PersistentWrite } from "./released-claims.ts";

/** Delay before a failed write is repeated. */
export const RETRY_WRITE_MS = 250;

type UsedParts = PartsOf<"claimer" | "isStopped" | "log" | "pump" | "runs" | "timers">;

export class PersistentWrites {
  readonly #parts: UsedParts;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  submit(write: PersistentWrite): void {
    const { pump, timers, log } = this.#parts;
    pump.submit(write).then(
      () => this.#written(write),
      (error: unknown) => {
        log.report(error);
        if (!this.#parts.isStopped) timers.set(RETRY_WRITE_MS, () => this.submit(write), { ref: false });
      },
    );
  }

  #written(write: PersistentWrite): void {
    const { claimer, runs } = this.#parts;
    if (write.write !== "return-item") runs.arrived(write.run);
    else if (write.availableAt === undefined) claimer.request("items");
  }
}
