// Lock order: where a query stands in it (remote.L1).

import type { RunNumber } from "../../kernel/index.ts";
import type { Lock, Lookup, Query } from "./query.ts";

/** Whether the query may wait for a lock, and so must follow the order. */
function waits(lock: Lock): boolean {
  return lock === "update" || lock === "share";
}

/** 0: locks runs, 1: locks queues, 2: locks other rows, 3: locks nothing. */
export function lockRank(query: Query): number {
  if (query.kind === "count" || query.kind === "distinct" || !waits(query.lock)) return 3;
  return query.table === "runs" ? 0 : query.table === "queues" ? 1 : 2;
}

/** Whether the query looks runs up by number: only then is the order of its locks known before it is sent. */
export function isByRunNumber(query: Query): query is Lookup<"runs"> {
  return query.kind === "lookup" && query.table === "runs" && query.columns.join() === "run";
}

/** A lookup that locks these runs, in lock order. */
export function runsByNumber(runs: Iterable<RunNumber>): readonly Lookup[] {
  const keys = [...runs].map((run) => [run] as const);
  return keys.length === 0 ? [] : [{ kind: "lookup", table: "runs", columns: ["run"], keys, lock: "update" }];
}
