// Run holders: the workers that hold a run, the time of its last commit, and the history of the store. For people.

import { historyOf, MAX_HELD_ITEMS, type HistoryEvent, type RunHolder, type RunNumber } from "../../kernel/index.ts";
import { plainRows } from "../rules/run-rows.ts";
import type { Statements } from "./statements.ts";

interface HolderRow {
  readonly worker: number | null;
  readonly committedAt: number | null;
}

export function readHolders(sql: Statements, runs: readonly RunNumber[]): readonly RunHolder[] {
  return runs.flatMap((run): RunHolder[] => {
    const row = sql.holder.get(run) as unknown as HolderRow | undefined;
    if (row === undefined) return [];
    const items = plainRows<RunHolder["items"][number]>(sql.itemsHeld.all(run, MAX_HELD_ITEMS));
    return [{ run, worker: row.worker ?? undefined, committedAt: row.committedAt ?? undefined, items }];
  });
}

export function readHistory(sql: Statements): readonly HistoryEvent[] {
  return historyOf(sql.history.all() as unknown as { key: string; value: string }[]);
}
