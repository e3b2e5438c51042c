// Locks: which lock a transaction takes on a row, by what it does and by the table (rows.P5).

import type { PathInfo } from "../rows/indexes.ts";
import type { TableName } from "../rows/tables.ts";
import type { Lock } from "./query.ts";

/** `write` locks the runs it changes. `claim` takes unlocked rows and never waits. `read` locks nothing. */
export type AccessMode = "write" | "claim" | "read";

/**
 * The lock for reading a row. Tables that are not listed change only under the lock of their run's row, or of their queue's row
 * (`begun`, `lanes`). A deleted worker row is never created again: a check whether it exists needs no lock, and a claim takes a
 * share lock to prevent its deletion. A value of a thread is shared by the checkpoints that refer to it.
 */
const LOCKS: Readonly<Record<AccessMode, Partial<Record<TableName, Lock>>>> = {
  write: {
    runs: "update",
    queue: "update",
    queues: "update",
    schedules: "update",
    start_keys: "update",
    keyed_answers: "update",
    outbox: "update",
    leftovers: "update",
    run_budgets: "update",
    langgraph_values: "share",
    langgraph_writes: "update",
    meta: "update",
    writers: "update",
  },
  claim: { queue: "skip", outbox: "skip", workers: "share" },
  read: {},
};

export function lockOf(mode: AccessMode, table: TableName): Lock {
  return LOCKS[mode][table] ?? "none";
}

export function pathLock(mode: AccessMode, path: PathInfo): Lock {
  if (mode === "read") return "none";
  if (path.isSwept || (path.isClaimed && mode === "claim")) return "skip";
  return lockOf(mode, path.table);
}

/** The lock for changing a row: none where the lock of its run or queue protects it. */
export function changeLock(mode: AccessMode, table: TableName): Lock {
  if (lockOf("write", table) === "none" && table !== "workers") return "none";
  return mode === "claim" ? "skip" : "update";
}
