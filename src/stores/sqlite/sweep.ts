// Sweep: removes what a run leaves behind when it ends, a bounded number of rows at a time.

import type { RunNumber } from "../../kernel/index.ts";
import type { Tx } from "./session.ts";

/** Rows of one table deleted in the transaction that ends a run; the rest waits for `sweepLeftover`. */
const SWEEP_LIMIT = 1_000;

/** The fence is gone with the token, so rows that stay a while can do no harm. */
export function clearEnded(tx: Tx, run: RunNumber, arrivals: number): void {
  let left = tx.sql.clearQueue.run(run, SWEEP_LIMIT).changes === SWEEP_LIMIT;
  // Without a message there is neither inbox nor once.
  if (arrivals > 0) {
    if (tx.sql.clearInbox.run(run, SWEEP_LIMIT).changes === SWEEP_LIMIT) left = true;
    if (tx.sql.clearOnce.run(run, SWEEP_LIMIT).changes === SWEEP_LIMIT) left = true;
  }
  if (left) tx.sql.insertLeftover.run(run);
}

/** Removes up to a thousand rows per table of one run that is over; false when nothing is left of any. */
export function sweepLeftover({ sql }: Tx): boolean {
  const row = sql.leftover.get() as { run: number; kept: number } | undefined;
  if (row === undefined) return false;
  const clears = [sql.clearQueue, sql.clearInbox, sql.clearOnce];
  // The journal of an ended run stays; that of a pruned one goes.
  if (row.kept === 0) clears.push(sql.clearJournal);
  let left = false;
  for (const clear of clears) if (clear.run(row.run, SWEEP_LIMIT).changes === SWEEP_LIMIT) left = true;
  if (!left) sql.dropLeftover.run(row.run);
  return true;
}
