// Checkpoints: one row per committed step of a graph. The rows follow from the journal (rules.A1).
//
// A checkpoint is unique by (run, step) and by key, and is never changed or replaced: the first one is kept (rules.C2).

import type { NewCheckpoint, RunNumber, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import type { RowOf } from "../rows/tables.ts";
import { NO_TURN } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { fenceFailure } from "./fence-failure.ts";

const KEPT = ["run", "step", "key"] as const;
type Kept = Part<"checkpoints", (typeof KEPT)[number]>;

/**
 * Runs first, so that a duplicate is found before anything else is written. Undefined when all checkpoints are inserted; the caller
 * deletes them again when the fence of the turn does not hold (`deleteCheckpoints`).
 */
export function insertCheckpoints(
  tx: Tx,
  turn: TurnWrite,
  checkpoints: readonly NewCheckpoint[],
): TurnOutcome | undefined {
  const { run } = turn;
  for (let index = 0; index < checkpoints.length; index++) {
    const checkpoint = checkpoints[index]!;
    if (tx.rows.add("checkpoints", rowOf(run, checkpoint), "checkpoints", "checkpoints_key")) continue;
    const isOrphan = deleteOrphanedKey(tx, checkpoint.key);
    deleteCheckpoints(tx.rows, run, checkpoints.slice(0, index));
    return isOrphan ? insertCheckpoints(tx, turn, checkpoints) : refusalOf(tx, turn, checkpoints);
  }
  return undefined;
}

export function deleteCheckpoints(rows: Rows, run: RunNumber, checkpoints: readonly NewCheckpoint[]): void {
  for (const { step } of checkpoints) rows.drop("checkpoints", [run, step]);
}

export function insertCheckpoint(rows: Rows, run: RunNumber, checkpoint: NewCheckpoint): void {
  rows.insert("checkpoints", rowOf(run, checkpoint));
}

function rowOf(run: RunNumber, { step, seq, chain, key, label, state }: NewCheckpoint): RowOf<"checkpoints"> {
  return { run, step, seq, chain, key, label: label ?? null, state: state ?? null };
}

const STATUS = ["status"] as const;

/**
 * Deletes the checkpoint with this key of a pruned run whose rows are not swept yet: a new run with the same id makes the same
 * keys. True when there was one.
 */
export function deleteOrphanedKey({ rows }: Tx, key: string): boolean {
  const kept = rows.first("checkpoints_key", [key], KEPT);
  if (kept === undefined || rows.get("runs", [kept.run], STATUS) !== undefined) return false;
  rows.drop("checkpoints", [kept.run, kept.step]);
  return true;
}

const TOKEN = ["turn_token"] as const;

function refusalOf(tx: Tx, turn: TurnWrite, checkpoints: readonly NewCheckpoint[]): TurnOutcome {
  const { rows } = tx;
  const { run, token } = turn;
  const row = rows.get("runs", [run], TOKEN);
  const kept = checkpoints.map((checkpoint) => keptOf(rows, run, checkpoint));
  if (checkpoints.every(({ key }, index) => kept[index]?.run === run && kept[index].key === key))
    return { status: "already_committed" };
  for (const [index, checkpoint] of checkpoints.entries()) {
    const conflict = kept[index];
    if (conflict === undefined) continue;
    return row?.turn_token === token ? refuse(tx, turn, checkpoint, conflict) : { status: "lease_lost" };
  }
  return fenceFailure(tx, turn);
}

/** The row that a checkpoint conflicts with: the run's own step first, then the key in any run. */
function keptOf(rows: Rows, run: RunNumber, { step, key }: NewCheckpoint): Kept | undefined {
  return rows.get("checkpoints", [run, step], KEPT) ?? rows.first("checkpoints_key", [key], KEPT);
}

/** rules.C2. The holder computed another checkpoint than the committed one: the run stops with the evidence. */
function refuse({ rows }: Tx, { run, token }: TurnWrite, { step, key }: NewCheckpoint, kept: Kept): TurnOutcome {
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
  rows.change("runs", [run], { ...NO_TURN, status: "determinism_violation", evidence }, { turn_token: token });
  return { status: "conflict" };
}

const LISTED = ["step", "seq", "chain", "key", "label"] as const;
const WHOLE = [...LISTED, "state"] as const;

/** Without their states. */
export function readCheckpoints(rows: Rows, run: RunNumber, after: number, limit?: number): readonly NewCheckpoint[] {
  const span = limit === undefined ? { after } : { after, limit };
  return rows.select("checkpoints", [run], LISTED, span).map((row) => checkpointOf(row, null));
}

/** The newest checkpoint at or before a step. `whole`: the newest one that holds the whole state. */
export function findCheckpoint(rows: Rows, run: RunNumber, step: number, whole: boolean): NewCheckpoint | undefined {
  const span = { upTo: step, backwards: true } as const;
  if (whole) {
    const row = rows.first("checkpoints_whole", [run], WHOLE, span);
    return row && checkpointOf(row, row.state);
  }
  const row = rows.first("checkpoints", [run], LISTED, span);
  return row && checkpointOf(row, null);
}

export function findLabeledCheckpoint(
  rows: Rows,
  run: RunNumber,
  label: string,
  step: number,
): NewCheckpoint | undefined {
  const row = rows.first("checkpoints_label", [run, label], LISTED, { upTo: step, backwards: true });
  return row && checkpointOf(row, null);
}

function checkpointOf(row: Part<"checkpoints", (typeof LISTED)[number]>, state: string | null): NewCheckpoint {
  const { step, seq, chain, key, label } = row;
  return { step, seq, chain, key, label: label ?? undefined, state: state ?? undefined };
}
