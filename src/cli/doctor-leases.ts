// Doctor leases: running runs without a recent commit, and expired leases that no worker took over.

import { readWorkerProfile, type Problem, type RunRecord, type Store, type WorkerInfo } from "../kernel/index.ts";
import { explain, type WaitReason } from "../explain/index.ts";
import { reasonJson } from "./explanation.ts";
import { ageText, holderJson, runLeasesOf, leaseMsOf, type RunLeases } from "./run-leases.ts";
import { isoOf } from "./run-format.ts";
import { pluralize, plain } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

/** A running run whose last commit is older than a minute and older than its worker's lease, or whose worker and all others are gone. */
export interface StalledRun {
  readonly id: string;
  readonly generation: number;
  readonly leases: RunLeases;
}

export interface StalledRuns {
  readonly count: number;
  /** The runs with the oldest last commit, oldest first, and why they do not move. */
  readonly longest: readonly (StalledRun & { readonly waitsFor: readonly WaitReason[] })[];
  /** There are more running runs than were read. */
  readonly more: boolean;
}

const STALLED_MS = 60_000;
/** A live worker takes over an expired lease within seconds. */
const OVERDUE_MS = 60_000;
/** Reading 20,000 running runs takes half a second on SQLite. */
const PAGES = { page: 1_000, max: 20_000 };
const SHOWN = 5;

export async function readStalledRuns(
  store: Store,
  workers: readonly WorkerInfo[],
  { page: limit, max } = PAGES,
): Promise<StalledRuns> {
  const stalled: StalledRun[] = [];
  let checked = 0;
  for (let before: number | undefined; checked < max;) {
    const page = await store.listRuns({ statuses: ["running"], limit, ...(before !== undefined && { before }) });
    stalled.push(...(await stalledAmong(store, page, workers)));
    checked += page.length;
    if (page.length < limit) break;
    before = page.at(-1)!.run;
  }
  const oldest = stalled.toSorted((a, b) => (a.leases.committedAt ?? 0) - (b.leases.committedAt ?? 0)).slice(0, SHOWN);
  const longest: (StalledRun & { readonly waitsFor: readonly WaitReason[] })[] = [];
  for (const one of oldest) {
    const record = await store.findRun(one.id, one.generation);
    longest.push({ ...one, waitsFor: record === undefined ? [] : await explain(store, record) });
  }
  return { count: stalled.length, longest, more: checked >= max };
}

async function stalledAmong(
  store: Store,
  records: readonly RunRecord[],
  workers: readonly WorkerInfo[],
): Promise<readonly StalledRun[]> {
  const holders = await store.readHolders(records.map(({ run }) => run));
  const now = store.now();
  const hasLiveWorker = workers.some(({ until }) => until > now);
  const byRun = new Map(records.map((record) => [record.run, record]));
  return holders.flatMap((holder) => {
    const { id, generation } = byRun.get(holder.run)!;
    const leases = runLeasesOf(holder, workers, now);
    const { turn, committedAt } = leases;
    // The worker has released it since it was listed.
    if (turn === undefined || committedAt === undefined) return [];
    const isStalled =
      (!turn.isAlive && !hasLiveWorker) || now - committedAt > Math.max(STALLED_MS, leaseMsOf(turn) ?? 0);
    return isStalled ? [{ id, generation, leases }] : [];
  });
}

/** No worker is left that could take it over. */
function isAbandoned({ waitsFor: [first] }: StalledRuns["longest"][number]): boolean {
  return first?.reason === "lease_expired" && first.workers.length === 0;
}

/** Information only: a long step is not a problem. */
export function stalledLines({ count, longest, more }: StalledRuns): readonly string[] {
  if (count === 0) return [];
  const lines = longest.map(
    ({ id, waitsFor: [first] }) => `${plain(id)}: ${plain(first?.text ?? "it has ended since")}`,
  );
  const others = count - longest.length;
  return [
    `${pluralize(count, "running run", "running runs")} without a commit for over a minute${longest.some(isAbandoned) ? ", or without a live worker" : ""}`,
    ...lines,
    ...(others > 0 ? [`and ${others} more`] : []),
    ...(more ? [`only the newest ${PAGES.max} running runs were checked`] : []),
  ];
}

export function stalledJson({ count, longest }: StalledRuns): object {
  return {
    count,
    longest: longest.map(({ id, generation, leases: { turn, committedAt }, waitsFor }) => ({
      id,
      generation,
      holder: holderJson(turn),
      lastCommitAt: isoOf(committedAt),
      waitsFor: waitsFor.map(reasonJson),
    })),
  };
}

/** Expired leases that live workers should have taken over. `check` finds leases of workers without a row. */
export function findExpiredLeases(workers: readonly WorkerInfo[], now: number): readonly Problem[] {
  const alive = workers.filter(({ until }) => until > now).length;
  if (alive === 0) return [];
  return workers.flatMap(({ worker, name, until, profile: about }) => {
    if (now - until <= Math.max(OVERDUE_MS, 3 * (readWorkerProfile(about)?.leaseMs ?? 0))) return [];
    const others = alive === 1 ? "the live worker has not" : `none of the ${alive} live workers has`;
    const message = `The lease of worker ${workerLabel(name, worker)} expired ${ageText(until, now)} ago, and ${others} taken over its work. Check the logs of the workers for errors and restart them.`;
    return [{ invariant: "I14 leases have holders", run: undefined, seq: undefined, message }];
  });
}
