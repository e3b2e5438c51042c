// Fork walk: what a fork says of the run it comes from is what stands there (FK1, FK4).

import { decode } from "../../base/index.ts";
import { forkOriginOf, type Entry, type ForkOrigin, type RunNumber, type RunStartedData } from "../../kernel/index.ts";
import type { CheckStatements } from "./check-store.ts";
import type { Fault } from "./check-journal.ts";

const INVARIANT = "I37 forks fit their origin";

interface Row {
  readonly origin: number;
  readonly step: number;
  /** Null where there is no such run, or no such checkpoint. */
  readonly id: string | null;
  readonly seq: number | null;
  readonly chain: string | null;
}

export const CHECK_FORKS_SQL = {
  forkOf: `select forks.origin, forks.step, runs.id, checkpoints.seq, checkpoints.chain from forks
    left join runs on runs.run = forks.origin
    left join checkpoints on checkpoints.run = forks.origin and checkpoints.step = forks.step
    where forks.run = ?`,
} as const;

export function checkFork(sql: CheckStatements, run: RunNumber, first: Entry | undefined): readonly Fault[] {
  const row = sql.forkOf.get(run) as unknown as Row | undefined;
  const forked = forkIn(first);
  const fault = (message: string): readonly Fault[] => [{ invariant: INVARIANT, seq: 1, message }];
  if (forked === undefined)
    return row === undefined ? [] : fault("The run is kept as a fork, and its journal is none.");
  const from = `step ${forked.step} of run ${forked.run}`;
  if (row === undefined) return fault(`The run is a fork from ${from}, and nothing keeps that run for it.`);
  if (row.id === null) return fault(`The run is a fork from ${from}, which does not exist any more.`);
  if (row.id !== forked.run || row.step !== forked.step)
    return fault(`The run is a fork from ${from}, but step ${row.step} of run ${row.id} is kept for it.`);
  if (row.seq === null) return fault(`The run is a fork from ${from}, which has no such checkpoint.`);
  if (row.seq !== forked.seq || row.chain !== forked.chain)
    return fault(`The run is a fork from ${from}, whose checkpoint is another one than it began from.`);
  return [];
}

/** What a first entry says. */
export function forkIn(first: Entry | undefined): ForkOrigin | undefined {
  if (first?.data.includes('"forked"') !== true) return undefined;
  try {
    return forkOriginOf(decode(first.data) as RunStartedData);
  } catch {
    // The chain says what is wrong with it.
    return undefined;
  }
}
