// Prune archived: deletes runs of the store whose history an archive has (F-59).
//
// prune-archived.P1. A run goes if the archive has a checkpoint that covers its statement, and so has its journal (archive.A3). Its family
//   goes with it, and stays if one of it is missing there.
// prune-archived.P2. What the archive has is remembered when it is written, per log. Another site that deletes the files is not noticed:
//   an archive is a place that nothing is deleted from.

import type { EpochMs } from "../base/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import type { Home } from "./home/home.ts";
import { firstEpoch } from "./log/origin.ts";
import { statementFacts } from "./sync/publish.ts";
import type { PushedLog } from "./sync/push.ts";
import type { SyncState } from "./sync/sync-state.ts";

/** Origin → number of records that the archive has. */
type ArchivedSizes = Readonly<Record<string, number>>;

const STATE = "archived";
const PAGE = 200;

/** prune-archived.P2 */
export function rememberArchived(home: Home, state: SyncState, logs: readonly PushedLog[]): void {
  const sizes = { ...readSizes(state) };
  for (const { origin, status } of logs)
    if (status === "pushed" || status === "unchanged") sizes[origin] = home.checkpoint(origin)?.size ?? 0;
  state.set(STATE, JSON.stringify(sizes));
}

function readSizes(state: SyncState): ArchivedSizes {
  return JSON.parse(state.get(STATE) ?? "{}") as ArchivedSizes;
}

export interface PruneParts {
  readonly store: Store;
  readonly home: Home;
  readonly state: SyncState;
  /** The origin of this site. */
  readonly own: string;
}

/** prune-archived.P1. Returns how many runs went, or would go. */
export async function pruneArchived(
  { store, home, state, own }: PruneParts,
  endedBefore: EpochMs,
  dryRun: boolean,
): Promise<number> {
  const sizes = readSizes(state);
  let runs = 0;
  for (const record of await endedRoots(store, endedBefore)) {
    const family = await readFamily(store, record);
    if (!family.every((one) => isArchived(home, own, one, sizes))) continue;
    if (dryRun) runs += family.length;
    else {
      const outcome = await store.deleteRun(record.id);
      if (outcome.status === "deleted") runs += outcome.runs;
    }
  }
  return runs;
}

function isArchived(home: Home, own: string, { id, generation, head }: RunRecord, sizes: ArchivedSizes): boolean {
  return home.findRuns({ run: id }).some(({ origin, statement, generation: of }) => {
    if (firstEpoch(origin) !== firstEpoch(own) || of !== generation || statement === undefined) return false;
    const put = home.findPut(origin, statement);
    const content = home.content(statement);
    // A run that was retried has more entries than the statement of its end before.
    const isOfThisEnd = content !== undefined && statementFacts(content)?.journal.size === head;
    return isOfThisEnd && put !== undefined && put.n <= (sizes[origin] ?? 0);
  });
}

/** Ended runs without a parent, one for each id. */
async function endedRoots(store: Store, endedBefore: EpochMs): Promise<readonly RunRecord[]> {
  const roots = new Map<string, RunRecord>();
  for (let before: number | undefined; ;) {
    const page = await store.listRuns({ endedBefore, ...(before !== undefined && { before }), limit: PAGE });
    for (const record of page) if (record.parent === undefined && !roots.has(record.id)) roots.set(record.id, record);
    if (page.length < PAGE) return [...roots.values()];
    before = page.at(-1)?.run;
  }
}

/** All generations of the run and of its descendants. */
async function readFamily(store: Store, root: RunRecord): Promise<readonly RunRecord[]> {
  const family: RunRecord[] = [];
  const ids = [root.id];
  for (const id of ids) {
    const newest = await store.findRun(id);
    for (let generation = 0; generation <= (newest?.generation ?? -1); generation += 1) {
      const one = await store.findRun(id, generation);
      if (one !== undefined) family.push(one);
    }
    for (let before: number | undefined; ;) {
      const page = await store.listRuns({ parent: id, ...(before !== undefined && { before }), limit: PAGE });
      for (const child of page) if (!ids.includes(child.id)) ids.push(child.id);
      if (page.length < PAGE) break;
      before = page.at(-1)?.run;
    }
  }
  return family;
}
