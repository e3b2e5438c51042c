// Worker leases: registers workers, renews their leases, and takes over the work of expired workers (store.S3 to store.S5).

import type { EpochMs, Random } from "../../base/index.ts";
import { ALONE_AFTER, MAX_TAKEOVERS, type HeldWork, type WorkerInfo } from "../../kernel/index.ts";
import { freeSlots, slotsOfWorker } from "./queue-limiter.ts";
import { plainRows } from "./run-rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { hasOldIds, sweepLeftovers, sweepOldIds } from "./sweep.ts";

/**
 * A worker's number is its identity in every claim, renewal and commit. It is random, because a counter would give one number
 * twice after the store is rolled back. It is greater than the counters of earlier versions.
 */
export function randomWorkerNumber(random: Random): number {
  return random.bytes(6).reduce((number, byte) => number * 256 + byte, 1);
}

/** False when the number is taken: the caller tries another. */
export function registerWorker(
  { sql, now }: Tx,
  worker: number,
  name: string,
  leaseMs: number,
  about?: string,
): boolean {
  return sql.insertWorker.run(worker, name, now + leaseMs, now, about ?? null).changes === 1;
}

/** An expired lease can be renewed until another worker has taken over. */
export function renewLease({ sql, now }: Tx, worker: number, leaseMs: number, doing?: string): boolean {
  return sql.renewWorker.run(now + leaseMs, doing ?? null, worker).changes === 1;
}

export function listWorkers(sql: Statements): readonly WorkerInfo[] {
  return (sql.workers.all() as unknown as WorkerRow[]).map(({ about, doing, ...row }) => ({
    ...row,
    profile: about ?? undefined,
    activity: doing ?? undefined,
  }));
}

interface WorkerRow extends Omit<WorkerInfo, "profile" | "activity"> {
  readonly about: string | null;
  readonly doing: string | null;
}

interface HeldItem {
  readonly run: number;
  readonly item: string;
  readonly token: string;
  readonly attempt: number;
  readonly queue: string | null;
  readonly key: string | null;
}

interface HeldMessage {
  readonly line: number;
  readonly run: number;
  readonly seq: number;
  readonly token: string;
  readonly attempt: number;
}

export function readHeld(sql: Statements, worker: number): HeldWork {
  const items = sql.heldItems.all(worker) as unknown as readonly HeldItem[];
  return {
    turns: plainRows(sql.heldTurns.all(worker)),
    items: items.map(({ queue, key, ...item }) =>
      queue === null ? { ...item } : { ...item, slot: { queue, ...(key !== null && { key }) } },
    ),
    messages: (sql.heldOutgoing.all(worker) as unknown as HeldMessage[]).map(({ line: firstRun, ...message }) => ({
      ...message,
      firstRun,
    })),
  };
}

/** Returns the work of a worker that shuts down, without counting a takeover. */
export function releaseWorker(tx: Tx, worker: number): void {
  const { sql } = tx;
  sql.returnWorkerTurns.run(worker);
  const keys = slotsOfWorker(tx, worker);
  sql.returnWorkerItems.run(worker);
  freeSlots(tx, keys);
  sql.returnWorkerOutgoing.run(worker);
  sql.deleteWorker.run(worker);
}

export interface Reaped {
  readonly workers: number;
  readonly turns: number;
  readonly items: number;
}

export function reap(tx: Tx, self: number): Reaped {
  const { sql, now } = tx;
  let turns = 0;
  let items = 0;
  const dead = deadWorkers(sql, now, self);
  for (const worker of dead) {
    const name = (sql.worker.get(worker) as { name: string } | undefined)?.name;
    turns += Number(sql.takeOverTurns.run(MAX_TAKEOVERS, takeoverEvidence("turn", name), worker).changes);
    for (const { run, item } of sql.poisonItems.all(worker, MAX_TAKEOVERS) as unknown as {
      run: number;
      item: string;
    }[])
      sql.blockRun.run(takeoverEvidence(item, name), run);
    const keys = slotsOfWorker(tx, worker);
    items += Number(sql.takeOverItems.run(MAX_TAKEOVERS, worker).changes);
    freeSlots(tx, keys);
    sql.takeOverOutgoing.run(now, worker);
    sql.deleteWorker.run(worker);
  }
  sweepLeftovers(tx);
  sweepOldIds(tx);
  return { workers: dead.length, turns, items };
}

export function hasNothingToReap(sql: Statements, now: EpochMs, self: number): boolean {
  return sql.leftover.get() === undefined && !hasOldIds(sql, now) && deadWorkers(sql, now, self).length === 0;
}

/** Workers whose lease expired at `now` or before, and holders without a row in `workers`: their lease would never expire. */
function deadWorkers(sql: Statements, now: EpochMs, self: number): readonly number[] {
  const expired = sql.expiredWorkers.all(now, self) as unknown as { worker: number }[];
  const dead = new Set(expired.map(({ worker }) => worker));
  for (const holders of [sql.turnHolders, sql.itemHolders, sql.outgoingHolders])
    for (const { value } of holders.all() as unknown as { value: number }[])
      if (value !== self && sql.worker.get(value) === undefined) dead.add(value);
  return [...dead];
}

/** store.S5. Canonical JSON: keys in order. */
function takeoverEvidence(what: string, worker = "unknown"): string {
  return JSON.stringify({
    item: what,
    message: `${MAX_TAKEOVERS} workers in a row lost their lease without a commit (${what}). The last ${MAX_TAKEOVERS - ALONE_AFTER} of them ran nothing else; the last one was ${worker}. Check the workers for crashes, stalls and memory limits.`,
    reason: "takeovers",
    takeovers: MAX_TAKEOVERS,
    worker,
  });
}
