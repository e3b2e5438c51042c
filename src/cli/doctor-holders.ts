// What doctor sees of holders: runs that are held and have not moved for long, and leases that ended and nobody took over.

import { readAbout, type Problem, type RunRecord, type Store, type WorkerInfo } from "../kernel/index.ts";
import { ageText, holderJson, holdingAmong, leaseMsOf, workerText, type Holding } from "./holding.ts";
import { isoOf } from "./shown-run.ts";
import { countOf, plain } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

/** A run that a worker holds, with its last commit longer ago than the worker's lease and than a minute. */
export interface QuietRun {
  readonly id: string;
  readonly generation: number;
  readonly holding: Holding;
}

export interface QuietRuns {
  readonly count: number;
  /** Those that have been quiet for longest, first. */
  readonly longest: readonly QuietRun[];
  /** There are more runs than were looked at. */
  readonly more: boolean;
}

const QUIET_MS = 60_000;
/** A live worker takes over within seconds of the end of a lease. */
const OVERDUE_MS = 60_000;
/** 20,000 running runs take half a second of work on a file. */
const PAGES = { page: 1_000, lookAt: 20_000 };
const SHOWN = 5;

export async function quietRunsOf(
  store: Store,
  workers: readonly WorkerInfo[],
  { page: limit, lookAt } = PAGES,
): Promise<QuietRuns> {
  const quiet: QuietRun[] = [];
  let looked = 0;
  for (let before: number | undefined; looked < lookAt;) {
    const page = await store.listRuns({ statuses: ["running"], limit, ...(before !== undefined && { before }) });
    quiet.push(...(await quietAmong(store, page, workers)));
    looked += page.length;
    if (page.length < limit) break;
    before = page.at(-1)!.run;
  }
  const longest = quiet.toSorted((a, b) => (a.holding.committedAt ?? 0) - (b.holding.committedAt ?? 0));
  return { count: quiet.length, longest: longest.slice(0, SHOWN), more: looked >= lookAt };
}

async function quietAmong(
  store: Store,
  records: readonly RunRecord[],
  workers: readonly WorkerInfo[],
): Promise<readonly QuietRun[]> {
  const holders = await store.readHolders(records.map(({ run }) => run));
  const now = store.now();
  const byRun = new Map(records.map((record) => [record.run, record]));
  return holders.flatMap((holder) => {
    const { id, generation } = byRun.get(holder.run)!;
    const holding = holdingAmong(holder, workers, now);
    const { turn, committedAt } = holding;
    // Given back since it was listed.
    if (turn === undefined || committedAt === undefined) return [];
    const isQuiet = now - committedAt > Math.max(QUIET_MS, leaseMsOf(turn) ?? 0);
    return isQuiet ? [{ id, generation, holding }] : [];
  });
}

/** For information: a step may take as long as it likes. */
export function quietLines({ count, longest, more }: QuietRuns, now: number): readonly string[] {
  if (count === 0) return [];
  const lines = longest.map(({ id, holding: { turn, committedAt } }) => {
    const lease = turn!.isAlive ? "" : ", its lease is over";
    return `${plain(id)}: worker ${workerText(turn!)}${lease}, last commit ${ageText(committedAt!, now)} ago`;
  });
  const others = count - longest.length;
  return [
    `${countOf(count, "running run", "running runs")} without a commit for over a minute`,
    ...lines,
    ...(others > 0 ? [`and ${others} more`] : []),
    ...(more ? [`the newest ${PAGES.lookAt} running runs were looked at`] : []),
  ];
}

export function quietJson({ count, longest }: QuietRuns): object {
  return {
    count,
    longest: longest.map(({ id, generation, holding: { turn, committedAt } }) => ({
      id,
      generation,
      holder: holderJson(turn),
      lastCommitAt: isoOf(committedAt),
    })),
  };
}

/** Somebody is alive and does not do what he should. A worker without a row is found by `check`. */
export function overdueLeases(workers: readonly WorkerInfo[], now: number): readonly Problem[] {
  const alive = workers.filter(({ until }) => until > now).length;
  if (alive === 0) return [];
  return workers.flatMap(({ worker, name, until, about }) => {
    if (now - until <= Math.max(OVERDUE_MS, 3 * (readAbout(about)?.leaseMs ?? 0))) return [];
    const others =
      alive === 1 ? "the one worker that is alive has not" : `none of the ${alive} workers that are alive has`;
    const message = `The lease of worker ${workerLabel(name, worker)} ended ${ageText(until, now)} ago, and ${others} taken over what it holds. Look for errors in the logs of the workers, and restart them.`;
    return [{ invariant: "I14 leases have holders", run: undefined, seq: undefined, message }];
  });
}
