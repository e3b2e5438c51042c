// Journal entries: inserts rows into the journal.

import type { Entry, EntryType, ExecutionFacts, RunNumber } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { insertMemo } from "./memo.ts";

/** The facts of the execution that the entry ends, if it ends one. */
type StoredFacts = { readonly [K in keyof ExecutionFacts]?: ExecutionFacts[K] | undefined };

export function insertEntry(
  rows: Rows,
  run: RunNumber,
  seq: number,
  type: EntryType,
  command: string,
  data: string,
  at: number,
  mark: number,
  ran?: StoredFacts,
): void {
  rows.insert("journal", {
    run,
    seq,
    type,
    command,
    data,
    at,
    mark,
    took_ms: ran?.tookMs ?? null,
    worker: ran?.worker ?? null,
    execution: ran?.execution ?? null,
    started_at: ran?.startedAt ?? null,
  });
  if (ran?.memo !== undefined) insertMemo(rows, run, seq, ran.memo);
}

const ENTRY = ["type", "command", "data", "at", "mark"] as const;

/** An entry without the facts of its execution. */
export function findEntry(rows: Rows, run: RunNumber, seq: number): Entry | undefined {
  const row = rows.get("journal", [run, seq], ENTRY);
  return row && { seq, type: row.type, command: row.command, data: row.data, at: row.at, mark: row.mark };
}
