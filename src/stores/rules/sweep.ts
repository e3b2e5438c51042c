// Sweep: deletes the rows of ended and pruned runs, a bounded number per transaction.

import type { EpochMs } from "../../base/index.ts";
import { DEDUP_MS, type RunNumber } from "../../kernel/index.ts";
import { freeSlots, slotsOfRun } from "./queue-limiter.ts";
import type { Statement, Statements, Tx } from "./statements.ts";

/** How many rows of one table a transaction deletes. `sweepLeftovers` deletes the rest. */
const SWEEP_LIMIT = 1_000;

/** Deletes the rows of a run that ends. Its token is gone, so rows that stay for a while cannot be used. */
export function clearEnded(tx: Tx, run: RunNumber, arrivals: number, keepsIds = false): void {
  const { sql } = tx;
  const clear = (rows: Statement): boolean => rows.run(run, SWEEP_LIMIT).changes === SWEEP_LIMIT;
  // Most runs end without rows: the select takes 1 µs, a bounded delete that finds nothing 12.
  let left = false;
  if (sql.hasItems.get(run) !== undefined) {
    const keys = slotsOfRun(tx, run);
    left = clear(sql.clearQueue);
    freeSlots(tx, keys);
  }
  // A run that received no message has no rows in `inbox` and `once`.
  if (arrivals > 0) {
    if (sql.inboxAfter.get(run, 0) !== undefined && clear(sql.clearInbox)) left = true;
    if (!keepsIds && sql.hasDedupKeys.get(run) !== undefined && clear(sql.clearDedupKeys)) left = true;
  }
  if (left) sql.insertLeftover.run(run);
}

/** Deletes all rows of an ended run that is about to be retried. Its journal holds the messages it read. */
export function clearLeftover({ sql }: Tx, run: RunNumber): void {
  for (const clear of [sql.clearQueue, sql.clearInbox])
    while (Number(clear.run(run, SWEEP_LIMIT).changes) === SWEEP_LIMIT);
  sql.deleteLeftover.run(run);
}

/** Deletes a run's row. Its other rows are leftovers. */
export function deleteRun({ sql }: Tx, run: RunNumber): void {
  // A number is never used again, even when the newest run is deleted.
  sql.saveHighestRun.run((sql.highestRun.get() as { run: number }).run);
  sql.insertLeftover.run(run);
  sql.deleteTags.run(run);
  sql.deleteFork.run(run);
  sql.deleteRun.run(run);
}

/** Deletes some thousand rows of ended runs, as many as one transaction should; false when there were none. */
export function sweepLeftovers(tx: Tx): boolean {
  const { sql } = tx;
  let swept = 0;
  for (let rows = 0; rows < SWEEP_LIMIT; swept++) {
    const run = sql.leftover.get() as { run: number; kept: number; failed: number } | undefined;
    if (run === undefined) return swept > 0;
    const keys = slotsOfRun(tx, run.run);
    const clears = [sql.clearQueue, sql.clearInbox];
    if (run.failed === 0) clears.push(sql.clearDedupKeys);
    // An ended run keeps its journal, checkpoints and streams; a pruned run does not.
    if (run.kept === 0) {
      clears.push(sql.clearJournal, sql.clearCheckpoints, sql.clearChunks, sql.clearEmitted);
      if (sql.hasFlowRows.get(run.run) !== undefined) clears.push(sql.clearArrivals, sql.clearReadiness);
    }
    const counts = clears.map((clear) => Number(clear.run(run.run, SWEEP_LIMIT).changes));
    freeSlots(tx, keys);
    if (counts.every((count) => count < SWEEP_LIMIT)) sql.deleteLeftover.run(run.run);
    // A run without rows costs as much as ten rows.
    rows += 10 + counts.reduce((sum, count) => sum + count, 0);
  }
  return true;
}

export function hasOldIds(sql: Statements, now: EpochMs): boolean {
  return sql.oldDedupId.get(now - DEDUP_MS) !== undefined;
}

/** Deletes dedup ids that are older than their guarantee: a run that lasts for years would keep all of them. */
export function sweepOldIds({ sql, now }: Tx): void {
  sql.clearOldDedupIds.run(now - DEDUP_MS, SWEEP_LIMIT);
}
