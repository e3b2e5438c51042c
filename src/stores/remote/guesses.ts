// Guesses: the likely row where a transaction reads one that is not loaded (rows.P4). Tables that are not listed likely have no such
// row. A guess only lets the rules continue, so that they record what they read next; nothing of it is written.

import { CHAIN_START, TurnDue } from "../../kernel/index.ts";
import type { Key } from "../rows/rows.ts";
import type { AnyRow, RowOf, TableName } from "../rows/tables.ts";

const RUN: Omit<RowOf<"runs">, "run" | "root"> = {
  id: "",
  generation: 0,
  definition: "",
  kind: "workflow",
  version: 1,
  status: "running",
  parent: null,
  parent_command: null,
  priority: 0,
  head: 1,
  chain: CHAIN_START,
  arrivals: 0,
  read: 0,
  unread: 0,
  turn_due: TurnDue.no,
  turn_token: null,
  turn_worker: null,
  takeovers: 0,
  created_at: 0,
  ended_at: null,
  runtime: "",
  evidence: null,
  lost_turns: 0,
  turn_at: null,
  error_code: null,
  budget: null,
};

const LIKELY: Partial<Record<TableName, (key: Key) => AnyRow>> = {
  runs: ([run]) => ({ ...RUN, run: run!, root: run! }),
  workers: ([worker]) => ({ worker: worker!, name: "", until: 0, started_at: 0, about: null, doing: null }),
  journal: ([run, seq]) => ({
    run: run!,
    seq: seq!,
    type: "RunStarted",
    command: "",
    data: "{}",
    at: 0,
    mark: 0,
    took_ms: null,
    worker: null,
    execution: null,
    started_at: null,
  }),
};

export function likelyRow(table: TableName, key: Key): AnyRow | undefined {
  return LIKELY[table]?.(key);
}
