// Copied run: a run as another store or a bundle holds it, to be put into a mirror.
//
// copied-run.C1. A copy has what the journal holds, byte for byte, and what the run's row says. What changes without an entry, such as
//   queue items, attempts and chunks of streams, comes from a store only; a bundle has none of it.
// copied-run.C2. Entries and other rows come in pages: a copy of any size needs the memory of one page.

import { RepriseError } from "../../base/index.ts";
import type { Entry, RunRecord, Store } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";

/** One generation of a run, by names that mean the same in every store. */
export interface RunName {
  readonly id: string;
  readonly generation: number;
}

/** Tables with rows of a run that do not follow from its journal. */
export const COPIED_TABLES = [
  "queue",
  "inbox",
  "run_attempts",
  "run_promises",
  "chunks",
  "arrivals",
  "readiness",
] as const;
export type CopiedTable = (typeof COPIED_TABLES)[number];

export type CopiedPage = {
  [T in CopiedTable]: { readonly table: T; readonly rows: readonly RowOf<T>[] };
}[CopiedTable];

export type CopiedEntry = Omit<Entry, "mark">;

/** The columns that the record of a run has no field for. */
type TurnColumns = Pick<RowOf<"runs">, "turn_due" | "takeovers" | "turn_at">;

export interface CopiedRun extends RunName {
  /** Without the number, which is another one in each store. */
  readonly record: Omit<RunRecord, "run" | "parent">;
  readonly parent: RunName | undefined;
  /** Its number at home; undefined: a bundle does not tell. */
  readonly number: number | undefined;
  /** Undefined: a bundle does not tell. */
  readonly turn: TurnColumns | undefined;
  /** copied-run.C2. From the first to the entry `record.head`. */
  entries(): AsyncIterable<readonly CopiedEntry[]>;
  /** copied-run.C1 */
  rows(): AsyncIterable<CopiedPage>;
}

/** A store that runs can be copied from. */
export interface CopySource {
  readonly "~copyOf": (run: RunName) => Promise<CopiedRun | undefined>;
}

/** A copy of one generation; undefined: the store does not have it. */
export function copyOf(store: Store, run: RunName): Promise<CopiedRun | undefined> {
  if ("~copyOf" in store) return (store as Store & CopySource)["~copyOf"](run);
  throw new RepriseError(
    "USAGE",
    `Runs of a ${store.kind} store cannot be copied. Use a store in SQLite, PostgreSQL or MySQL.`,
  );
}
