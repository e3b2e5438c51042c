// Rollbacks: performs the fault `rollback`, and informs the checks of what the database lost.
//
// rollbacks.R1. Lost commits need not be found again. Everything else must hold as if nothing had happened.
// rollbacks.R2. A response in flight during a rollback is ignored: the checks cannot know whether it was before or after.
// rollbacks.R3. A run's number is never used for another run, even if the first one is lost.

import { InvariantError } from "../../src/base/index.ts";
import type { Entry, RunRecord } from "../../src/kernel/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import { readAll, type Ledger } from "./checks.ts";
import type { Client } from "./client.ts";
import type { EventLoop, Scheduler } from "./scheduler.ts";
import type { SimStores } from "./stores.ts";

export interface RollbacksHost {
  readonly scheduler: Scheduler;
  readonly loop: EventLoop;
  readonly stores: SimStores;
  readonly ledger: Ledger;
  readonly client: Client;
  /** A restore goes back at least this far. */
  readonly leastMs: number;
}

/** Rolls the database back once; returns the number of lost runs, or undefined when there is no earlier state. */
export async function rollBack(host: RollbacksHost, chance: RandomSource): Promise<number | undefined> {
  const { scheduler, loop, stores, ledger, client, leastMs } = host;
  const { steps } = scheduler;
  const before = await readAll(stores.calm);
  const how = stores.rollBack(chance, leastMs);
  if (how === undefined) return undefined;
  const after = await readAll(stores.calm);
  if (scheduler.steps !== steps) throw new InvariantError("Something else happened while history went back.");
  // rollbacks.R2
  ledger.rolledBack(journalsOf(before), journalsOf(after));
  // rollbacks.R3
  for (const record of before.keys()) ledger.noteNumber(record);
  const left = new Set([...after.keys()].map(({ id }) => id));
  const vanished = new Set([...before.keys()].map(({ id }) => id).filter((id) => !left.has(id)));
  loop.log(`history goes back: ${how}; gone: ${[...vanished].join() || "no run"}`);
  client.rolledBack(vanished);
  return vanished.size;
}

function journalsOf(all: ReadonlyMap<RunRecord, readonly Entry[]>): ReadonlyMap<number, readonly Entry[]> {
  return new Map([...all].map(([{ run }, journal]) => [run, journal]));
}
