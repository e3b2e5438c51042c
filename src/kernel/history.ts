// History: what a store knows about its own past.
//
// A database can go back to an earlier state under running processes: an asynchronous standby is promoted, a backup is restored
// in place. What it lost is lost; nothing of it may be mixed with what comes after.

import type { EpochMs } from "../base/index.ts";

/** A store noticed that what this process knows may not be what the database has. */
export interface HistoryBreak {
  /**
   * `rolled-back`: commits that this process had acknowledged are gone. `failed-over`: another server answers; it has everything
   * this process wrote, but perhaps not everything it has read.
   */
  readonly kind: "rolled-back" | "failed-over";
  readonly at: EpochMs;
  readonly detail: string;
}

/** What the database itself remembers of it. */
export interface HistoryEvent {
  readonly at: EpochMs;
  readonly kind: "rolled-back" | "restored";
  readonly detail: string;
}

/** The row of `meta` that names this history: whoever changes history makes a new one. */
export const INCARNATION = "incarnation";
const EVENT = "history:";

/** The row of `meta` for something that happened then. */
export function historyKey(at: EpochMs): string {
  return `${EVENT}${String(at).padStart(16, "0")}`;
}
