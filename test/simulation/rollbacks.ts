// Rollbacks: history goes back (fault `rollback`), and the judges learn what the database lost.
//
// RB1. What the database lost is lost: nobody has to find it again. Everything else must hold as if nothing had happened.
// RB2. An answer that was on its way when history went back counts for nothing: the judge cannot know on which side it was.
// RB3. A run's number is never given to another run, whatever became of the first.

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

/** Takes the database back once; answers how many runs are gone, or undefined when there is nothing to go back to. */
export async function rollBack(host: RollbacksHost, chance: RandomSource): Promise<number | undefined> {
  const { scheduler, loop, stores, ledger, client, leastMs } = host;
  const { steps } = scheduler;
  const before = await readAll(stores.calm);
  const how = stores.rollBack(chance, leastMs);
  if (how === undefined) return undefined;
  const after = await readAll(stores.calm);
  if (scheduler.steps !== steps) throw new InvariantError("Something else happened while history went back.");
  // RB2
  ledger.rolledBack(journalsOf(before), journalsOf(after));
  // RB3
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
