// PersistentWrites: repeats a write until the store answers, or the worker stops.

import { RepriseError } from "../base/index.ts";
import type { RunNumber } from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";
import type { PersistentWrite } from "./released-claims.ts";

/** Delay before a failed write is repeated. */
export const RETRY_WRITE_MS = 250;

/**
 * How long a worker keeps the turn of a run whose journal it cannot read. It would claim a turn that it returns at once again, in a
 * loop. Another worker may be able to read the journal: one of a later version that wrote the entry.
 */
const UNREADABLE_MS = 1_000;

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

  /** Returns the turn of a run that could not be loaded because of `error`. */
  returnTurn(run: RunNumber, token: string, error: unknown): void {
    const returnNow = (): void => this.submit({ write: "return-turn", run, token });
    if (error instanceof RepriseError && error.code === "STORE_CORRUPT")
      this.#parts.timers.set(UNREADABLE_MS, () => void (this.#parts.isStopped || returnNow()), { ref: false });
    else returnNow();
  }

  #written(write: PersistentWrite): void {
    const { claimer, runs } = this.#parts;
    if (write.write !== "return-item") runs.arrived(write.run);
    else if (write.availableAt === undefined) claimer.request("items");
  }
}
