// Journal entries: inserts rows into the journal.

import type { Entry, EntryType, RunNumber } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";

export function insertEntry(
  rows: Rows,
  run: RunNumber,
  seq: number,
  type: EntryType,
  command: string,
  data: string,
  at: number,
  mark: number,
  tookMs: number | null = null,
): void {
  rows.insert("journal", { run, seq, type, command, data, at, mark, took_ms: tookMs });
}

const ENTRY = ["type", "command", "data", "at", "mark"] as const;

/** An entry without its duration. */
export function findEntry(rows: Rows, run: RunNumber, seq: number): Entry | undefined {
  const row = rows.get("journal", [run, seq], ENTRY);
  return row && { seq, type: row.type, command: row.command, data: row.data, at: row.at, mark: row.mark };
}
