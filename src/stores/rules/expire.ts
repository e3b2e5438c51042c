// Expire: one batch of a retention policy (retention.R1). It walks the ended runs without a parent, oldest end first, so that it costs
// two seeks when no run is old enough.

import type { EpochMs } from "../../base/index.ts";
import type { Expired, ExpireRequest, RunNumber } from "../../kernel/index.ts";
import type { RowSession } from "../rows/rows.ts";
import { deleteFamilies, MEMBER, readFamilies, sweepAll, type Member } from "./families.ts";

const WHAT = "Deleting expired runs";
/** Small: it runs beside the work of a worker. */
const BATCH = 100;

const END = ["ended_at"] as const;

/** `pause` lets other tasks of the event loop run. */
export async function expire(
  session: RowSession,
  { definition, status, endedBefore, after }: ExpireRequest,
  pause: () => Promise<void> = async () => {},
): Promise<Expired> {
  const { window, families, young } = await session.read(WHAT, (rows, now) => {
    const path = [status, definition];
    const found = rows.select("runs_ended", path, MEMBER, { after, before: endedBefore, limit: BATCH });
    return {
      window: found,
      young: rows.first("runs_ended", path, END, { after: endedBefore - 1 }),
      families: readFamilies(rows, now, found, endedBefore),
    };
  });
  const runs = await deleteFamilies(session, WHAT, families, new Set<RunNumber>(), pause);
  if (runs > 0) await sweepAll(session, WHAT, pause);
  return {
    runs,
    kept: runs === 0 ? window.length : await countKept(session, window),
    after: window.length < BATCH ? undefined : nextAfter(window, runs),
    nextEndedAt: young?.ended_at ?? undefined,
  };
}

/** How many runs of the batch still exist. */
function countKept(session: RowSession, window: readonly Member[]): Promise<number> {
  return session.read(WHAT, (rows) => {
    const left = window.map(({ run }) => rows.get("runs", [run], END));
    return left.filter((row) => row !== undefined).length;
  });
}

/** More runs may have ended at the time of the last one. They are read next, unless that would be the same batch again. */
function nextAfter(window: readonly Member[], runs: number): EpochMs {
  const first = window[0]?.ended_at ?? 0;
  const last = window.at(-1)?.ended_at ?? 0;
  return first === last && runs === 0 ? last : last - 1;
}
