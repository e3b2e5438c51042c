// Who holds a run: what the database says, held against the leases of the workers. "Running" alone says nothing about whether
// anything happens.

import { formatMs } from "../base/index.ts";
import { hasEnded, readAbout, type RunHolder, type RunRecord, type Store, type WorkerInfo } from "../kernel/index.ts";
import { isoOf } from "./shown-run.ts";
import { workerLabel } from "./worker-label.ts";

export interface Holder {
  readonly worker: number;
  /** Undefined: no worker of this number is registered. */
  readonly info: WorkerInfo | undefined;
  readonly isAlive: boolean;
}

export interface Holding {
  readonly turn: Holder | undefined;
  readonly items: readonly { readonly item: string; readonly by: Holder }[];
  readonly committedAt: number | undefined;
  /** Somebody is there to take over what others have lost. */
  readonly isAnyAlive: boolean;
}

/** Undefined for a run that has ended: nobody holds it. */
export async function holdingOf(store: Store, { run, status }: RunRecord): Promise<Holding | undefined> {
  if (hasEnded(status)) return undefined;
  const [holder] = await store.readHolders([run]);
  return holder && holdingAmong(holder, await store.listWorkers(), store.now());
}

export function holdingAmong(holder: RunHolder, workers: readonly WorkerInfo[], now: number): Holding {
  const by = (worker: number): Holder => {
    const info = workers.find((one) => one.worker === worker);
    return { worker, info, isAlive: info !== undefined && info.until > now };
  };
  return {
    turn: holder.worker === undefined ? undefined : by(holder.worker),
    items: holder.items.map(({ item, worker }) => ({ item, by: by(worker) })),
    committedAt: holder.committedAt,
    isAnyAlive: workers.some(({ until }) => until > now),
  };
}

/** How long its lease lasts, as it said itself. */
export function leaseMsOf({ info }: Holder): number | undefined {
  return readAbout(info?.about)?.leaseMs;
}

/** `shop-1 (2f9k)`, or the number alone. */
export function workerText({ worker, info }: Holder): string {
  return info === undefined ? String(worker) : workerLabel(info.name, worker);
}

/** Of a run whose turn is held, or should be. */
export function turnLines({ turn, committedAt, isAnyAlive }: Holding, now: number): string[] {
  const moved = committedAt === undefined ? "" : `, last commit ${ageText(committedAt, now)} ago`;
  if (turn === undefined) return [`no worker holds it${moved}: see \`reprise doctor\``];
  return [`held by worker ${workerText(turn)}${moved}`, ...lostLines(turn, isAnyAlive, now)];
}

/** `held by worker shop-1 (3), whose lease ended 12 s ago` */
export function itemText({ items }: Holding, item: string, now: number): string | undefined {
  const by = items.find((one) => one.item === item)?.by;
  return by && `held by worker ${workerText(by)}${lostText(by, now)}`;
}

function lostText({ info, isAlive }: Holder, now: number): string {
  if (isAlive) return "";
  return info === undefined ? ", which is not registered" : `, whose lease ended ${ageText(info.until, now)} ago`;
}

function lostLines({ info, isAlive }: Holder, isAnyAlive: boolean, now: number): string[] {
  if (isAlive) return [];
  const lease =
    info === undefined ? "that worker is not registered" : `its lease ended ${ageText(info.until, now)} ago`;
  return [`${lease}; ${isAnyAlive ? "another worker takes it over" : "no worker is alive to take it over"}`];
}

export function ageText(at: number, now: number): string {
  return formatMs(Math.max(0, now - at));
}

export function holderJson(holder: Holder | undefined): object | null {
  if (holder === undefined) return null;
  const { worker, info, isAlive } = holder;
  return { worker, name: info?.name ?? null, alive: isAlive, until: isoOf(info?.until) };
}

export function holdingJson(holding: Holding | undefined): object {
  return {
    holder: holderJson(holding?.turn),
    lastCommitAt: isoOf(holding?.committedAt),
    heldItems: (holding?.items ?? []).map(({ item, by }) => ({ item, ...holderJson(by) })),
  };
}
