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
import { isoOf } from "./run-format.ts";

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
  };
}

/** The lease duration that the worker reported. */
export function leaseMsOf({ info }: LeaseHolder): number | undefined {
  return readWorkerProfile(info?.profile)?.leaseMs;
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
