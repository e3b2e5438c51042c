// Check fork: the origin in a fork's journal exists and matches (fork.F1, fork.F4).

import {
  commandForkOriginOf,
  decodeData,
  forkOriginOf,
  markOf,
  type CommandForkOrigin,
  type Entry,
  type ForkOrigin,
  type RunNumber,
} from "../../kernel/index.ts";
import type { CheckStatements } from "./check-store.ts";
import type { Fault } from "./check-journal.ts";

const INVARIANT = "I37 forks match their origin";

interface Row {
  readonly origin: number;
  readonly step: number;
  /** Null when the run or the checkpoint does not exist. */
  readonly id: string | null;
  readonly seq: number | null;
  readonly chain: string | null;
}

export const CHECK_FORKS_SQL = {
  forkOf: `select forks.origin, forks.step, runs.id, checkpoints.seq, checkpoints.chain from forks
    left join runs on runs.run = forks.origin
    left join checkpoints on checkpoints.run = forks.origin and checkpoints.step = forks.step
    where forks.run = ?`,
  commandForkOf: `select forks.origin, forks.step as seq, runs.id, runs.generation, journal.mark from forks
    left join runs on runs.run = forks.origin
    left join journal on journal.run = forks.origin and journal.seq = forks.step
    where forks.run = ?`,
} as const;

interface CommandRow {
  readonly seq: number;
  /** Null when the run or the entry does not exist. */
  readonly id: string | null;
  readonly generation: number | null;
  readonly mark: number | null;
}

/** fork.F5. The same for a fork at a command. */
export function checkCommandFork(sql: CheckStatements, run: RunNumber, first: Entry | undefined): readonly Fault[] {
  const row = sql.commandForkOf.get(run) as unknown as CommandRow | undefined;
  const forked = first && commandForkIn(first);
  const fault = (message: string): readonly Fault[] => [{ invariant: INVARIANT, seq: 1, message }];
  if (forked === undefined)
    return row === undefined ? [] : fault("The run has a row in `forks`, but its journal has no origin.");
  const origin = `${forked.at} of run ${forked.run}`;
  if (row === undefined)
    return fault(`The run is a fork of ${origin}, but has no row in \`forks\`: a prune may delete its origin.`);
  if (row.id === null) return fault(`The run is a fork of ${origin}, which does not exist.`);
  if (row.id !== forked.run || row.generation !== forked.generation || row.seq !== forked.seq)
    return fault(`The run is a fork of ${origin}, but its row in \`forks\` names entry ${row.seq} of run ${row.id}.`);
  // An origin that is a fork itself may share the entry with its own origin, which is checked as a run.
  if (forked.seq >= 1 && row.mark !== markOf(forked.chain))
    return fault(`The run is a fork of ${origin}, but the entry before it is not the one it was forked from.`);
  return [];
}

function commandForkIn({ data }: Entry): CommandForkOrigin | undefined {
  if (!data.includes('"forked"')) return undefined;
  try {
    return commandForkOriginOf(decodeData("RunStarted", data));
  } catch {
    // The check of the hash chain reports the damaged entry.
    return undefined;
  }
}

export function checkFork(sql: CheckStatements, run: RunNumber, first: Entry | undefined): readonly Fault[] {
  const row = sql.forkOf.get(run) as unknown as Row | undefined;
  const forked = forkIn(first);
  const fault = (message: string): readonly Fault[] => [{ invariant: INVARIANT, seq: 1, message }];
  if (forked === undefined)
    return row === undefined ? [] : fault("The run has a row in `forks`, but its journal has no origin.");
  const origin = `step ${forked.step} of run ${forked.run}`;
  if (row === undefined)
    return fault(`The run is a fork of ${origin}, but has no row in \`forks\`: a prune may delete its origin.`);
  if (row.id === null) return fault(`The run is a fork of ${origin}, which does not exist.`);
  if (row.id !== forked.run || row.step !== forked.step)
    return fault(`The run is a fork of ${origin}, but its row in \`forks\` names step ${row.step} of run ${row.id}.`);
  if (row.seq === null) return fault(`The run is a fork of ${origin}, which has no checkpoint of that step.`);
  if (row.seq !== forked.seq || row.chain !== forked.chain)
    return fault(`The run is a fork of ${origin}, but the checkpoint of that step is not the one it was forked from.`);
  return [];
}

/** The origin in a fork's first entry. */
export function forkIn(first: Entry | undefined): ForkOrigin | undefined {
  if (first?.data.includes('"forked"') !== true) return undefined;
  try {
    return forkOriginOf(decodeData("RunStarted", first.data));
  } catch {
    // The check of the hash chain reports the damaged entry.
    return undefined;
  }
}
