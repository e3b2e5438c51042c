// Reap: leases of workers, and what becomes of their work when they are gone (S3–S5).

import type { EpochMs, Random } from "../../base/index.ts";
import { ALONE_AFTER, MAX_TAKEOVERS, type HeldWork, type WorkerInfo } from "../../kernel/index.ts";
import { freeKeys, keysOfWorker } from "./gates.ts";
import { plain } from "./rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { hasOldIds, sweepLeftovers, sweepOldIds } from "./sweep.ts";

/**
 * A worker's number is random: it is the worker's identity, which every claim, renewal and commit names. A counter would give
 * one number twice when the database goes back to an earlier state. Above all numbers that counters once gave.
 */
export function drawWorker(random: Random): number {
  return random.bytes(6).reduce((number, byte) => number * 256 + byte, 1);
}

/** False when the number is taken: the caller draws another. */
export function registerWorker(
  { sql, now }: Tx,
  worker: number,
  name: string,
  leaseMs: number,
  about?: string,
): boolean {
  return sql.insertWorker.run(worker, name, now + leaseMs, now, about ?? null).changes === 1;
}

/** A lease that ran out can still be renewed while nobody has taken over. */
export function renewLease({ sql, now }: Tx, worker: number, leaseMs: number, doing?: string): boolean {
  return sql.renewWorker.run(now + leaseMs, doing ?? null, worker).changes === 1;
}

export function listWorkers(sql: Statements): readonly WorkerInfo[] {
  const rows = sql.workers.all() as unknown as (WorkerInfo & { about: string | null; doing: string | null })[];
  return rows.map(({ about, doing, ...row }) => ({ ...row, about: about ?? undefined, doing: doing ?? undefined }));
}

interface HeldItem {
  readonly run: number;
  readonly item: string;
  readonly token: string;
  readonly attempt: number;
  readonly queue: string | null;
  readonly key: string | null;
}

export function readHeld(sql: Statements, worker: number): HeldWork {
  const items = sql.heldItems.all(worker) as unknown as readonly HeldItem[];
  return {
    turns: plain(sql.heldTurns.all(worker)),
    items: items.map(({ queue, key, ...item }) =>
      queue === null ? { ...item } : { ...item, line: { queue, ...(key !== null && { key }) } },
    ),
    messages: plain(sql.heldOutgoing.all(worker)),
  };
}

/** The worker says goodbye: that is no takeover. */
export function releaseWorker(tx: Tx, worker: number): void {
  const { sql } = tx;
  sql.freeTurns.run(worker);
  const keys = keysOfWorker(tx, worker);
  sql.freeItems.run(worker);
  freeKeys(tx, keys);
  sql.freeOutgoing.run(worker);
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
      sql.block.run(takeoverEvidence(item, name), run);
    const keys = keysOfWorker(tx, worker);
    items += Number(sql.takeOverItems.run(MAX_TAKEOVERS, worker).changes);
    freeKeys(tx, keys);
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

/** Those whose lease ran out, at `now` included, and holders nobody knows: a lease without a row would last for ever. */
function deadWorkers(sql: Statements, now: EpochMs, self: number): readonly number[] {
  const expired = sql.expiredWorkers.all(now, self) as unknown as { worker: number }[];
  const dead = new Set(expired.map(({ worker }) => worker));
  for (const holders of [sql.turnHolders, sql.itemHolders, sql.outgoingHolders])
    for (const { value } of holders.all() as unknown as { value: number }[])
      if (value !== self && sql.worker.get(value) === undefined) dead.add(value);
  return [...dead];
}

/** S5. Canonical JSON: keys in order. */
function takeoverEvidence(what: string, worker = "unknown"): string {
  return JSON.stringify({
    item: what,
    message: `${MAX_TAKEOVERS} workers in a row lost their lease on this without a commit, the last ${MAX_TAKEOVERS - ALONE_AFTER} while they tried it alone, the last of them ${worker}. Look for crashes, stalls or memory limits of the workers, then resume the run.`,
    reason: "takeovers",
    takeovers: MAX_TAKEOVERS,
    worker,
  });
}
