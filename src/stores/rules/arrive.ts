// Arrive: the one way a message gets into a run.
//
// The run's row counts it and makes its turn due before the inbox row is written: no wake-up can be lost, and arrival
// numbers are dense.

import { isCancel, type Arrival, type RunNumber } from "../../kernel/index.ts";
import { beginCancelled, START_ITEM } from "./begin.ts";
import type { Tx } from "./statements.ts";

/** False when the run is missing or has ended: the message is dropped. */
export function arrive(tx: Tx, run: RunNumber, { type, target, data }: Arrival): boolean {
  const { sql } = tx;
  if (sql.arrive.run(run).changes === 0) return false;
  // The holder is told that the code has never run.
  const isUnbegun = isCancel(type) && beginCancelled(tx, run);
  // Takes its number from the row that was just counted up.
  sql.insertInbox.run(type, isUnbegun ? START_ITEM : target, data, run);
  return true;
}
