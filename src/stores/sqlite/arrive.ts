// Arrive: the one way a message gets into a run.
//
// The run's row counts it and makes its turn due before the inbox row is written: no wake-up can be lost, and arrival
// numbers are dense.

import type { Arrival, RunNumber } from "../../kernel/index.ts";
import type { Tx } from "./session.ts";

/** False when the run is missing or has ended: the message is dropped. */
export function arrive({ sql }: Tx, run: RunNumber, arrival: Arrival): boolean {
  const counted = sql.arrive.get(run) as { arrivals: number } | undefined;
  if (counted === undefined) return false;
  sql.insertInbox.run(run, counted.arrivals, arrival.type, arrival.target, arrival.data);
  return true;
}
