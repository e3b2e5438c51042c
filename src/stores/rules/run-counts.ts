// Run counts: runs by status, and the times of ended runs.
//
// run-counts.C1. The cost is bounded by `upTo`, however many runs there are. Live runs and those that people search for have indexes of
//   their own, so their counts are exact up to `upTo`. Other ended runs are counted among the newest
//   `upTo` runs. The rows are read and counted here: behind a network, `countBy` would scan the table.

import {
  hasEnded,
  RUN_STATUSES,
  type RunStatus,
  type RunTimes,
  type RunTimesFilter,
  type StatusCounts,
} from "../../kernel/index.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import type { Rows } from "../rows/rows.ts";

const STATUS = ["status"] as const;

/** run-counts.C1. Of all definitions, or of one. */
export function countStatuses(rows: Rows, upTo: number, definition?: string): StatusCounts {
  const prefix = definition === undefined ? [] : [definition];
  const live = tally(rows.select("runs_live", prefix, STATUS, { limit: upTo }));
  const newest = { limit: upTo, backwards: true } as const;
  const all = tally(
    definition === undefined
      ? rows.select("runs", [], STATUS, newest)
      : rows.select("runs_by_definition", [definition], STATUS, newest),
  );
  const isLiveCut = sum(live) >= upTo;
  const isCut = sum(all) >= upTo;
  const counts = {} as Record<RunStatus, number>;
  const atLeast: RunStatus[] = [];
  for (const status of RUN_STATUSES) {
    const isIndexed = definition === undefined && UNHAPPY.includes(status);
    const isEnded = hasEnded(status);
    const found = (isEnded ? all : live).get(status) ?? 0;
    counts[status] = isIndexed ? rows.count("runs_unhappy", [status], upTo) : found;
    if (isIndexed ? counts[status] >= upTo : isEnded ? isCut : isLiveCut) atLeast.push(status);
  }
  return { counts, atLeast };
}

function tally(found: readonly { readonly status: RunStatus }[]): ReadonlyMap<RunStatus, number> {
  const counts = new Map<RunStatus, number>();
  for (const { status } of found) counts.set(status, (counts.get(status) ?? 0) + 1);
  return counts;
}

function sum(counts: ReadonlyMap<RunStatus, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}

const TIMES = ["created_at", "ended_at"] as const;

/** The runs without a parent that ended last. */
export function readRunTimes(
  rows: Rows,
  { definition, status, endedAfter, limit }: RunTimesFilter,
): readonly RunTimes[] {
  return rows
    .select("runs_ended", [status, definition], TIMES, { after: endedAfter - 1, backwards: true, limit })
    .map(({ created_at: createdAt, ended_at: endedAt }) => ({ createdAt, endedAt: endedAt ?? createdAt }));
}
