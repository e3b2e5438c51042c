// Attempts: one row per execution that ends without an entry (attempts.X2): a failed attempt that is retried, and work that a worker
// lost or returned.

import type { AttemptOutcome, AttemptRecord, FailedExecution, RunNumber } from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { returnedTurn } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";

export const LOST_TURN = ["run", "status", "takeovers", "head", "lost_turns", "turn_worker", "turn_at"] as const;
type LostTurn = Part<"runs", (typeof LOST_TURN)[number]>;

/** Records that a turn ended without a commit (attempts.X1); returns the columns of the run's row. */
export function recordLostTurn(
  { rows, now }: Tx,
  { run, head, lost_turns: before, turn_at: startedAt }: LostTurn,
  outcome: AttemptOutcome,
  worker: string | undefined,
): { readonly lost_turns: number } {
  const execution = (before ?? 0) + 1;
  rows.add("run_attempts", {
    run,
    step: "",
    at: now,
    execution,
    attempt: 0,
    seq: head,
    outcome,
    worker: worker ?? null,
    started_at: startedAt,
    data: null,
  });
  return { lost_turns: execution };
}

/** Returns a turn that its holder gives up without a commit. */
export function returnTurn(tx: Tx, turn: LostTurn): void {
  const lost = recordLostTurn(tx, turn, "returned", workerName(tx.rows, turn.turn_worker));
  tx.rows.set("runs", [turn.run], { ...returnedTurn(turn.status, turn.takeovers), ...lost });
}

export const LOST_ITEM = ["run", "item", "attempt", "executions", "leased_at"] as const;
type LostItem = Part<"queue", (typeof LOST_ITEM)[number]>;

/** Returns the columns of the item: one that a worker of an earlier version claimed does not count its executions. */
export function recordLostItem(
  { rows, now }: Tx,
  { run, item, attempt, executions, leased_at: startedAt }: LostItem,
  outcome: AttemptOutcome,
  worker: string | undefined,
): { readonly executions: number } {
  const execution = executions ?? attempt + 1;
  rows.add("run_attempts", {
    run,
    step: item,
    at: now,
    execution,
    attempt,
    seq: 0,
    outcome,
    worker: worker ?? null,
    started_at: startedAt,
    data: null,
  });
  return { executions: execution };
}

/** A task may be retried for years: the oldest records of a step give way. */
const KEPT_PER_STEP = 100;
const OLDEST = ["at", "execution"] as const;

export function recordFailedAttempt({ rows, now }: Tx, run: RunNumber, step: string, failed: FailedExecution): void {
  const { execution, attempt, worker, startedAt, data } = failed;
  if (execution > KEPT_PER_STEP && rows.count("run_attempts", [run, step], KEPT_PER_STEP) >= KEPT_PER_STEP) {
    const oldest = rows.first("run_attempts", [run, step], OLDEST);
    if (oldest !== undefined) rows.drop("run_attempts", [run, step, oldest.at, oldest.execution]);
  }
  rows.add("run_attempts", {
    run,
    step,
    at: now,
    execution,
    attempt,
    seq: 0,
    outcome: "failed",
    worker,
    started_at: startedAt,
    data,
  });
}

const NAME = ["name"] as const;

export function workerName(rows: Rows, worker: number | null): string | undefined {
  return worker === null ? undefined : rows.get("workers", [worker], NAME)?.name;
}

const ATTEMPT = ["step", "at", "execution", "attempt", "seq", "outcome", "worker", "started_at", "data"] as const;

/** In order of time. */
export function readAttempts(rows: Rows, run: RunNumber, step?: string): readonly AttemptRecord[] {
  return rows
    .select("run_attempts", step === undefined ? [run] : [run, step], ATTEMPT)
    .toSorted((a, b) => a.at - b.at || a.execution - b.execution)
    .map(({ started_at: startedAt, worker, data, ...row }) => ({
      step: row.step,
      execution: row.execution,
      attempt: row.attempt,
      outcome: row.outcome,
      at: row.at,
      seq: row.seq,
      worker: worker ?? undefined,
      startedAt: startedAt ?? undefined,
      data: data ?? undefined,
    }));
}
