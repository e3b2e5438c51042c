// Describe: the counts that `reprise doctor` and `reprise info` show.
//
// describe.D1. Statuses of runs and messages of the outbox are counted over whole tables. No path leads there, and reading the rows
//   through the port would send a whole table over the network. So each store counts them itself (`Tallies`), and with SQLite in
//   parts, so that the event loop is free.

import type { DestinationInfo, StoreInfo } from "../../kernel/index.ts";
import type { RowSession, Rows } from "../rows/rows.ts";
import { outboxInfo } from "./outbox.ts";
import { listWorkers } from "./worker-leases.ts";

/** describe.D1 */
export interface Tallies {
  /** The number of runs by status. */
  countRuns(): Promise<StoreInfo["runs"]>;
  /** The undelivered messages by destination, in order. */
  countMessages(): Promise<readonly DestinationInfo[]>;
}

type StoreCounts = Pick<StoreInfo, "runs" | "workers" | "items" | "outbox">;

export async function countWork(session: RowSession, tallies: Tallies): Promise<StoreCounts> {
  const runs = await tallies.countRuns();
  const destinations = await tallies.countMessages();
  const { workers, items } = await session.read("Describing the store", (rows) => ({
    workers: listWorkers(rows),
    items: countItems(rows),
  }));
  return { runs, workers, items, outbox: outboxInfo(destinations) };
}

/** Tasks and nodes. A start that waits in its queue is no item for people, until it is delayed. */
function countItems(rows: Rows): StoreInfo["items"] {
  const ready =
    rows.count("queue_ready", []) +
    rows.count("queue_lined", ["task"]) +
    rows.count("queue_parked", ["task"]) +
    rows.count("queue_suspect", []);
  return { ready, leased: rows.count("queue_leased", []), delayed: rows.count("queue_delayed", []) };
}
