// Sweep: removes what a run leaves behind when it ends, a bounded number of rows at a time.

import type { EpochMs } from "../../base/index.ts";
import { DEDUP_MS, type RunNumber } from "../../kernel/index.ts";
import { freeKeys, keysOfRun } from "./gates.ts";
import type { Statement, Statements, Tx } from "./statements.ts";

/** Rows of one table deleted in the transaction that ends a run; the rest waits for `sweepLeftovers`. */
const SWEEP_LIMIT = 1_000;

/** The fence is gone with the token, so rows that stay a while can do no harm. */
export function clearEnded(tx: Tx, run: RunNumber, arrivals: number, keepsIds = false): void {
  const { sql } = tx;
  const clear = (rows: Statement): boolean => rows.run(run, SWEEP_LIMIT).changes === SWEEP_LIMIT;
  // Most runs end with nothing left: looking costs 1 µs, a bounded delete that finds nothing 12.
  let left = false;
  if (sql.hasItems.get(run) !== undefined) {
    const keys = keysOfRun(tx, run);
    left = clear(sql.clearQueue);
    freeKeys(tx, keys);
  }
  // Without a message there is neither inbox nor once.
  if (arrivals > 0) {
    if (sql.inboxAfter.get(run, 0) !== undefined && clear(sql.clearInbox)) left = true;
    if (!keepsIds && sql.hasOnce.get(run) !== undefined && clear(sql.clearOnce)) left = true;
  }
  if (left) sql.insertLeftover.run(run);
}

/** What an ended run has left behind goes at once: it is about to live again, and knows what it was told. */
export function clearLeftover({ sql }: Tx, run: RunNumber): void {
  for (const clear of [sql.clearQueue, sql.clearInbox])
    while (Number(clear.run(run, SWEEP_LIMIT).changes) === SWEEP_LIMIT);
  sql.dropLeftover.run(run);
}

/** Removes a run's row; what belongs to it goes with the leftovers. */
export function forgetRun({ sql }: Tx, run: RunNumber): void {
  // Numbers are never used again, also when the newest run goes.
  sql.keepHighestRun.run((sql.highestRun.get() as { run: number }).run);
  sql.insertLeftover.run(run);
  sql.dropTags.run(run);
  sql.dropFork.run(run);
  sql.dropRun.run(run);
}

/** Removes some thousand rows of runs that are over, as many as one transaction should; false when nothing was left. */
export function sweepLeftovers(tx: Tx): boolean {
  const { sql } = tx;
  let swept = 0;
  for (let rows = 0; rows < SWEEP_LIMIT; swept++) {
    const run = sql.leftover.get() as { run: number; kept: number; failed: number } | undefined;
    if (run === undefined) return swept > 0;
    const keys = keysOfRun(tx, run.run);
    const clears = [sql.clearQueue, sql.clearInbox];
    if (run.failed === 0) clears.push(sql.clearOnce);
    // The journal, the checkpoints and the streams of an ended run stay; those of a pruned one go.
    if (run.kept === 0) {
      clears.push(sql.clearJournal, sql.clearCheckpoints, sql.clearChunks, sql.clearEmitted);
      if (sql.hasCounted.get(run.run) !== undefined) clears.push(sql.clearArrivals, sql.clearReadiness);
    }
    const counts = clears.map((clear) => Number(clear.run(run.run, SWEEP_LIMIT).changes));
    freeKeys(tx, keys);
    if (counts.every((count) => count < SWEEP_LIMIT)) sql.dropLeftover.run(run.run);
    // A run without rows costs as much as ten rows.
    rows += 10 + counts.reduce((sum, count) => sum + count, 0);
  }
  return true;
}

export function hasOldIds(sql: Statements, now: EpochMs): boolean {
  return sql.oldOnce.get(now - DEDUP_MS) !== undefined;
}

/** Forgets ids of messages that nobody will repeat any more: a run that lives for years would keep them all. */
export function sweepOldIds({ sql, now }: Tx): void {
  sql.clearOldOnce.run(now - DEDUP_MS, SWEEP_LIMIT);
}
