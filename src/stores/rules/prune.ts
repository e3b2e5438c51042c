// Prune: deletes every family of runs that ended before a time, some at a time (families.E1). It walks all runs, starting with the
// newest: a fork has a higher number than its origin, and is deleted before it.

import type { EpochMs } from "../../base/index.ts";
import type { PruneOptions, RunNumber } from "../../kernel/index.ts";
import type { Rows, RowSession } from "../rows/rows.ts";
import { deleteFamilies, hasEndedBefore, isFree, MEMBER, readFamilies, sweepAll, type Family } from "./families.ts";
import { deleteStartKeys } from "./unused-keys.ts";

const WHAT = "Pruning";
/** How many runs are read at once: some milliseconds. */
const WINDOW = 500;

/** `pause` lets other tasks of the event loop run. */
export async function prune(
  session: RowSession,
  endedBefore: EpochMs,
  { dryRun = false, onProgress, signal }: PruneOptions,
  pause: () => Promise<void> = async () => {},
): Promise<{ readonly runs: number }> {
  let runs = 0;
  const highest = await session.read(WHAT, highestRun);
  const gone = new Set<RunNumber>();
  for (let upTo = highest + 1; upTo > 0;) {
    signal?.throwIfAborted();
    const { from, families } = await session.read(WHAT, (rows, now) => readWindow(rows, now, upTo, endedBefore));
    runs += dryRun ? countDeletable(families, gone) : await deleteFamilies(session, WHAT, families, gone, pause);
    upTo = from;
    onProgress?.(highest - from, highest);
    await pause();
  }
  if (dryRun) return { runs };
  await sweepAll(session, WHAT, pause);
  if (runs > 0) await deleteStartKeys(session, undefined, pause);
  return { runs };
}

const NUMBER = ["run"] as const;

function highestRun(rows: Rows): RunNumber {
  return rows.first("runs", [], NUMBER, { backwards: true })?.run ?? 0;
}

/** The next runs below a number, and the families among them that are old enough. */
function readWindow(
  rows: Rows,
  now: EpochMs,
  upTo: RunNumber,
  endedBefore: EpochMs,
): { readonly from: RunNumber; readonly families: readonly Family[] } {
  const window = rows.select("runs", [], MEMBER, { before: upTo, backwards: true, limit: WINDOW });
  const roots = window.filter((row) => row.root === row.run && hasEndedBefore(row, endedBefore));
  const families = readFamilies(rows, now, roots, endedBefore);
  return { from: window.length < WINDOW ? 0 : (window.at(-1)?.run ?? 0), families };
}

/** `gone`: the forks that would be deleted by now. */
function countDeletable(families: readonly Family[], gone: Set<RunNumber>): number {
  let runs = 0;
  for (const family of families) {
    if (!isFree(family, gone)) continue;
    if (family.isFork) gone.add(family.root.run);
    runs += family.members.length;
  }
  return runs;
}
