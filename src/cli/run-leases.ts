// Run leases: the workers that execute a run and its tasks, and whether their leases are still valid. The status "running"
// alone does not show whether a worker is alive.

import { formatMs } from "../base/index.ts";
import {
  hasEnded,
  readWorkerProfile,
  type RunHolder,
  type RunRecord,
  type Store,
  type WorkerInfo,
} from "../kernel/index.ts";
import { withStoreOption } from "./next-command.ts";
import { isoOf } from "./run-format.ts";
import { workerLabel } from "./worker-label.ts";

export interface LeaseHolder {
  readonly worker: number;
  /** Undefined if no worker with this number is registered. */
  readonly info: WorkerInfo | undefined;
  readonly isAlive: boolean;
}

export interface RunLeases {
  readonly turn: LeaseHolder | undefined;
  readonly items: readonly { readonly item: string; readonly by: LeaseHolder }[];
  readonly committedAt: number | undefined;
  /** A live worker exists that can take over expired leases. */
  readonly hasLiveWorker: boolean;
}

/** Undefined for a run that has ended. */
export async function readRunLeases(store: Store, { run, status }: RunRecord): Promise<RunLeases | undefined> {
  if (hasEnded(status)) return undefined;
  const [holder] = await store.readHolders([run]);
  return holder && runLeasesOf(holder, await store.listWorkers(), store.now());
}

export function runLeasesOf(holder: RunHolder, workers: readonly WorkerInfo[], now: number): RunLeases {
  const by = (worker: number): LeaseHolder => {
    const info = workers.find((one) => one.worker === worker);
    return { worker, info, isAlive: info !== undefined && info.until > now };
  };
  return {
    turn: holder.worker === undefined ? undefined : by(holder.worker),
    items: holder.items.map(({ item, worker }) => ({ item, by: by(worker) })),
    committedAt: holder.committedAt,
    hasLiveWorker: workers.some(({ until }) => until > now),
  };
}

/** The lease duration that the worker reported. */
export function leaseMsOf({ info }: LeaseHolder): number | undefined {
  return readWorkerProfile(info?.profile)?.leaseMs;
}

/** `shop-1 (2f9k)`, or only the number. */
export function workerText({ worker, info }: LeaseHolder): string {
  return info === undefined ? String(worker) : workerLabel(info.name, worker);
}

/** Lines for a running run. */
export function turnLines({ turn, committedAt, hasLiveWorker }: RunLeases, now: number): string[] {
  const progress = committedAt === undefined ? "" : `, last commit ${ageText(committedAt, now)} ago`;
  if (turn === undefined) return [withStoreOption(`no worker is executing it${progress}; run \`reprise doctor\``)];
  return [`being executed by worker ${workerText(turn)}${progress}`, ...expiredLines(turn, hasLiveWorker, now)];
}

/** `running on worker shop-1 (3), whose lease expired 12 s ago` */
export function itemText({ items }: RunLeases, item: string, now: number): string | undefined {
  const by = items.find((one) => one.item === item)?.by;
  return by && `running on worker ${workerText(by)}${expiredText(by, now)}`;
}

function expiredText({ info, isAlive }: LeaseHolder, now: number): string {
  if (isAlive) return "";
  return info === undefined ? ", which is not registered" : `, whose lease expired ${ageText(info.until, now)} ago`;
}

function expiredLines({ info, isAlive }: LeaseHolder, hasLiveWorker: boolean, now: number): string[] {
  if (isAlive) return [];
  const lease =
    info === undefined ? "that worker is not registered" : `its lease expired ${ageText(info.until, now)} ago`;
  return [`${lease}; ${hasLiveWorker ? "another worker will take it over" : "no live worker can take it over"}`];
}

export function ageText(at: number, now: number): string {
  return formatMs(Math.max(0, now - at));
}

export function holderJson(holder: LeaseHolder | undefined): object | null {
  if (holder === undefined) return null;
  const { worker, info, isAlive } = holder;
  return { worker, name: info?.name ?? null, alive: isAlive, until: isoOf(info?.until) };
}

export function leasesJson(leases: RunLeases | undefined): object {
  return {
    holder: holderJson(leases?.turn),
    lastCommitAt: isoOf(leases?.committedAt),
    heldItems: (leases?.items ?? []).map(({ item, by }) => ({ item, ...holderJson(by) })),
  };
}
