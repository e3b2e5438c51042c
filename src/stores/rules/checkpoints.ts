// Checkpoints: where a graph stands after each step. Rows beside the journal that follow from it (A1).
//
// C2. Unique by (run, step) and by key; never changed, never replaced. The first one is kept.

import type { NewCheckpoint, RunNumber, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Statements, Tx } from "./statements.ts";
import { voidOutcome } from "./void-outcome.ts";

/** First, so that a duplicate is found before anything else is written; undefined when they are in. */
export function insertCheckpoints(
  tx: Tx,
  turn: TurnWrite,
  checkpoints: readonly NewCheckpoint[],
): TurnOutcome | undefined {
  const { run, token, head } = turn;
  for (const [index, { step, seq, chain, key, label, state }] of checkpoints.entries()) {
    // The fence and both kinds of uniqueness in one statement; nearly always that is all.
    const { changes } = tx.sql.insertHeldCheckpoint.run(
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
    if (forgetKey(tx, key)) return insertAgain(tx, turn, checkpoints, index);
    for (const before of checkpoints.slice(0, index)) tx.sql.dropCheckpoint.run(run, before.step);
    return refusalOf(tx, turn, checkpoints);
  }
  return undefined;
}

/**
 * A key may still lie with a run that was pruned and has rows left to be swept: a run started anew under its id makes the
 * same ones. True when one was in the way.
 */
export function forgetKey({ sql }: Tx, key: string): boolean {
  const kept = sql.checkpointByKey.get(key) as Kept | undefined;
  if (kept === undefined || sql.statusOf.get(kept.run) !== undefined) return false;
  sql.dropCheckpoint.run(kept.run, kept.step);
  return true;
}

function insertAgain(
  tx: Tx,
  turn: TurnWrite,
  checkpoints: readonly NewCheckpoint[],
  inserted: number,
): TurnOutcome | undefined {
  for (const before of checkpoints.slice(0, inserted)) tx.sql.dropCheckpoint.run(turn.run, before.step);
  return insertCheckpoints(tx, turn, checkpoints);
}

function refusalOf(tx: Tx, turn: TurnWrite, checkpoints: readonly NewCheckpoint[]): TurnOutcome {
  const { sql } = tx;
  const { run, token } = turn;
  const row = sql.turnOf.get(run) as { token: string | null } | undefined;
  const kept = checkpoints.map((checkpoint) => keptOf(sql, run, checkpoint));
  if (checkpoints.every(({ key }, index) => kept[index]?.run === run && kept[index].key === key))
    return { status: "already-committed" };
  const inTheWay = kept.findIndex((one) => one !== undefined);
  if (inTheWay < 0) return voidOutcome(tx, turn);
  return row?.token === token ? refuse(tx, turn, checkpoints[inTheWay]!, kept[inTheWay]!) : { status: "lease-lost" };
}

interface Kept {
  readonly run: RunNumber;
  readonly step: number;
  readonly key: string;
}

/** What is in the way: the run's own step first, then the key in any run. */
function keptOf(sql: Statements, run: RunNumber, { step, key }: NewCheckpoint): Kept | undefined {
  return (sql.checkpointAt.get(run, step) ?? sql.checkpointByKey.get(key)) as Kept | undefined;
}

/** C2. The holder says something else than what is committed: a person must look. */
function refuse({ sql }: Tx, { run, token }: TurnWrite, { step, key }: NewCheckpoint, kept: Kept): TurnOutcome {
  const where = kept.run === run ? `step ${step}` : `step ${step}, whose key is that of another run's checkpoint`;
  // Canonical JSON: keys in order.
  const evidence = JSON.stringify({
    actual: kept.key,
    code: "DETERMINISM_VIOLATION",
    expected: key,
    message: `Checkpoint mismatch at ${where}: expected key '${key}', got '${kept.key}'. The first one is kept.`,
    status: "determinism_violation",
    where: `step ${step}`,
  });
  sql.stop.run("determinism_violation", evidence, run, token);
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

/** The newest at or before a step; the newest of all without one. `whole`: one that holds the whole state. */
export function findCheckpoint(
  sql: Statements,
  run: RunNumber,
  step: number,
  whole: boolean,
): NewCheckpoint | undefined {
  const row = (whole ? sql.wholeCheckpoint : sql.checkpointUpTo).get(run, step) as unknown as CheckpointRow | undefined;
  return row && asCheckpoint(row);
}

export function findLabelled(sql: Statements, run: RunNumber, label: string, step: number): NewCheckpoint | undefined {
  const row = sql.labelledCheckpoint.get(run, label, step) as unknown as CheckpointRow | undefined;
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
