// Inbox: the only way to append a message to a run's inbox.
//
// The run's row counts the message and makes the turn due before the inbox row is written. So no wake-up is lost, and arrival
// numbers are dense.

import { invariant } from "../../base/index.ts";
import { isCancel, type Arrival, type RunNumber } from "../../kernel/index.ts";
import { startCancelled, START_ITEM } from "./pending-start.ts";
import type { Tx } from "./statements.ts";

/** False when the run does not exist or has ended: the message is dropped. */
export function appendToInbox(tx: Tx, run: RunNumber, { type, target, data }: Arrival): boolean {
  const { sql } = tx;
  if (sql.countArrival.run(run).changes === 0) return false;
  // The target `Start` says to the holder of the turn that the run's code has never run.
  const wasNotStarted = isCancel(type) && startCancelled(tx, run);
  // The arrival number comes from the row that was just counted up.
  const { changes } = sql.insertInbox.run(type, wasNotStarted ? START_ITEM : target, data, run);
  invariant(changes === 1, "A message that was counted must get one row in the inbox.");
  return true;
}
