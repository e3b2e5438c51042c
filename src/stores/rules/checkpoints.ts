// Checkpoints: one row per committed step of a graph. The rows follow from the journal (rules.A1).
//
// A checkpoint is unique by (run, step) and by key, and is never changed or replaced: the first one is kept (rules.C2).

import type { NewCheckpoint, RunNumber, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Statements, Tx } from "./statements.ts";
import { fenceFailure } from "./fence-failure.ts";

/** Runs first, so that a duplicate is found before anything else is written. Undefined when all checkpoints are inserted. */
export function insertCheckpoints(
  tx: Tx,
  turn: TurnWrite,
  checkpoints: readonly NewCheckpoint[],
): TurnOutcome | undefined {
  const { run, token, head } = turn;
  for (const [index, { step, seq, chain, key, label, state }] of checkpoints.entries()) {
    // One statement checks the fence and both kinds of uniqueness.
    const { changes } = tx.sql.insertFencedCheckpoint.run(
      run,
      step,
      seq,
      chain,
      key,
      label ?? null,
      state ?? null,
      token,
      head,
    );
    if (changes === 1) continue;
    if (deleteOrphanedKey(tx, key)) return insertAgain(tx, turn, checkpoints, index);
    for (const before of checkpoints.slice(0, index)) tx.sql.deleteCheckpoint.run(run, before.step);
    return refusalOf(tx, turn, checkpoints);
  }
  return undefined;
}

/**
 * Deletes the checkpoint with this key of a pruned run whose rows are not swept yet: a new run with the same id makes the same
 * keys. True when there was one.
 */
export function deleteOrphanedKey({ sql }: Tx, key: string): boolean {
  const kept = sql.checkpointByKey.get(key) as Kept | undefined;
  if (kept === undefined || sql.statusOf.get(kept.run) !== undefined) return false;
  sql.deleteCheckpoint.run(kept.run, kept.step);
  return true;
}

function insertAgain(
  tx: Tx,
  turn: TurnWrite,
  checkpoints: readonly NewCheckpoint[],
  inserted: number,
): TurnOutcome | undefined {
  for (const before of checkpoints.slice(0, inserted)) tx.sql.deleteCheckpoint.run(turn.run, before.step);
  return insertCheckpoints(tx, turn, checkpoints);
}

function refusalOf(tx: Tx, turn: TurnWrite, checkpoints: readonly NewCheckpoint[]): TurnOutcome {
  const { sql } = tx;
  const { run, token } = turn;
  const row = sql.turnFence.get(run) as { token: string | null } | undefined;
  const kept = checkpoints.map((checkpoint) => keptOf(sql, run, checkpoint));
  if (checkpoints.every(({ key }, index) => kept[index]?.run === run && kept[index].key === key))
    return { status: "already_committed" };
  const conflict = kept.findIndex((row) => row !== undefined);
  if (conflict < 0) return fenceFailure(tx, turn);
  return row?.token === token ? refuse(tx, turn, checkpoints[conflict]!, kept[conflict]!) : { status: "lease_lost" };
}

interface Kept {
  readonly run: RunNumber;
  readonly step: number;
  readonly key: string;
}

/** The row that a checkpoint conflicts with: the run's own step first, then the key in any run. */
function keptOf(sql: Statements, run: RunNumber, { step, key }: NewCheckpoint): Kept | undefined {
  return (sql.checkpointAt.get(run, step) ?? sql.checkpointByKey.get(key)) as Kept | undefined;
}

/** rules.C2. The holder computed another checkpoint than the committed one: the run stops with the evidence. */
function refuse({ sql }: Tx, { run, token }: TurnWrite, { step, key }: NewCheckpoint, kept: Kept): TurnOutcome {
  const where = kept.run === run ? `step ${step}` : `step ${step}, whose key belongs to a checkpoint of another run`;
  // Canonical JSON: keys in order.
  const evidence = JSON.stringify({
    actual: kept.key,
    code: "DETERMINISM_VIOLATION",
    expected: key,
    message: `the journal recorded checkpoint key '${kept.key}'; the commit has key '${key}' (at ${where}). The recorded one is kept.`,
    status: "determinism_violation",
    where: `step ${step}`,
  });
  sql.stopRun.run("determinism_violation", evidence, run, token);
  return { status: "conflict" };
}

export function readCheckpoints(
  sql: Statements,
  run: RunNumber,
  after: number,
  limit: number,
): readonly NewCheckpoint[] {
  return (sql.checkpointsAfter.all(run, after, limit) as unknown as CheckpointRow[]).map(asCheckpoint);
}

/** The newest checkpoint at or before a step. `whole`: the newest one that holds the whole state. */
export function findCheckpoint(
  sql: Statements,
  run: RunNumber,
  step: number,
  whole: boolean,
): NewCheckpoint | undefined {
  const row = (whole ? sql.wholeCheckpoint : sql.checkpointUpTo).get(run, step) as unknown as CheckpointRow | undefined;
  return row && asCheckpoint(row);
}

export function findLabeledCheckpoint(
  sql: Statements,
  run: RunNumber,
  label: string,
  step: number,
): NewCheckpoint | undefined {
  const row = sql.labeledCheckpoint.get(run, label, step) as unknown as CheckpointRow | undefined;
  return row && asCheckpoint(row);
}

interface CheckpointRow {
  readonly step: number;
  readonly seq: number;
  readonly chain: string;
  readonly key: string;
  readonly label: string | null;
  readonly state: string | null;
}

function asCheckpoint({ step, seq, chain, key, label, state }: CheckpointRow): NewCheckpoint {
  return { step, seq, chain, key, label: label ?? undefined, state: state ?? undefined };
}
