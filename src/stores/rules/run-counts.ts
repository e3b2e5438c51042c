// Run counts: runs by status, and the times of ended runs.
//
// run-counts.C1. The cost is bounded by `upTo`, however many runs there are. Live runs and those that people search for have indexes of
//   their own, so their counts are exact up to `upTo`. Other ended runs are counted among the first `upTo` rows.

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
  const live = new Map<RunStatus, number>();
  for (const { status, count } of rows.countBy("runs_live", prefix, STATUS, "run", upTo)) live.set(status, count);
  const all = new Map<RunStatus, number>();
  const path = definition === undefined ? "runs" : "runs_by_definition";
  for (const { status, count } of rows.countBy(path, prefix, STATUS, "run", upTo)) all.set(status, count);
  const isLiveCut = sum(live) >= upTo;
  const isCut = sum(all) >= upTo;
  const counts = {} as Record<RunStatus, number>;
  const atLeast: RunStatus[] = [];
  for (const status of RUN_STATUSES) {
    const isIndexed = definition === undefined && UNHAPPY.includes(status);
    const isEnded = hasEnded(status);
    // A store may count further than it has to.
    const found = Math.min(upTo, (isEnded ? all : live).get(status) ?? 0);
    counts[status] = isIndexed ? rows.count("runs_unhappy", [status], upTo) : found;
    if (isIndexed ? counts[status] >= upTo : isEnded ? isCut : isLiveCut) atLeast.push(status);
  }
  return { counts, atLeast };
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
