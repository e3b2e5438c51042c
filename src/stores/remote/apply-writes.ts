// Apply writes: applies a list of writes to the loaded rows, or returns the queries whose rows are missing.
//
// apply-writes.A1. A pass that misses a row is discarded as a whole; only its queries are kept. It still applies the remaining
//   writes, so that one round trip loads the rows of all of them.
// apply-writes.A2. A pass in which an answer was guessed (rows.P4) is discarded, too. What a rule throws after a guess proves
//   nothing. The last pass is free of guesses.

import { InvariantError, type EpochMs } from "../../base/index.ts";
import type { ClaimedTurn, Outcome, RunNumber, Write } from "../../kernel/index.ts";
import { applyNext } from "../rules/apply.ts";
import { saveFlows } from "../rules/flow-rows.ts";
import { rolledBackOutcome } from "../rules/rolled-back-outcome.ts";
import type { Tx, TxSettings } from "../rules/transaction.ts";
import { lookup, type Query } from "./query.ts";
import type { AccessMode } from "./locks.ts";
import { Miss } from "./miss.ts";
import { TransactionRows } from "./transaction-rows.ts";
import type { WorkingSet } from "./working-set.ts";

const RUN: readonly string[] = ["run"];

export interface ApplyOptions {
  readonly mode: AccessMode;
  readonly now: EpochMs;
  /** The first of the run numbers reserved for this transaction. */
  readonly nextRun: RunNumber;
  /** False for an optimistic attempt, which sends no queries and ends at the first miss. */
  readonly mayGuess?: boolean;
  /** Whether history went back since the write at this index was made (../rules/rolled-back-outcome.ts). */
  readonly isLost?: (index: number) => boolean;
  readonly settings?: TxSettings;
}

export type ApplyResult<T> = { readonly result: T } | { readonly queries: readonly Query[] };

export interface AppliedWrites {
  readonly outcomes: readonly Outcome[];
  /** The first unused run number. */
  readonly nextRun: RunNumber;
}

/** apply-writes.A1, apply-writes.A2 */
export function applyWrites(
  ws: WorkingSet,
  options: ApplyOptions,
  writes: readonly Write[],
): ApplyResult<AppliedWrites> {
  ws.reset();
  const { mode, now, nextRun, mayGuess = true, isLost, settings = {} } = options;
  const rows = new TransactionRows(ws, mode, mayGuess);
  const { isFederated = false, subscriptions } = settings;
  const tx: Tx = { rows, now, nextRun, isFederated, subscriptions };
  const outcomes: Outcome[] = [];
  let missed = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      // After a miss, later writes may see half-applied changes; their errors are ignored.
      if (!(error instanceof Miss) && !missed && !rows.isGuess) throw error;
      missed = true;
    }
  };
  for (const [index, write] of writes.entries()) {
    const lost = isLost?.(index) === true ? rolledBackOutcome(write) : undefined;
    if (lost !== undefined) {
      outcomes.push(lost);
      continue;
    }
    attempt(() => {
      const outcome = applyNext(tx, write);
      if (write.write === "claim-turns") prefetchItems(ws, outcome as readonly ClaimedTurn[]);
      outcomes.push(outcome);
    });
    if (missed && !mayGuess) break;
  }
  attempt(() => saveFlows(tx));
  missed ||= rows.isGuess;
  if (!missed) return { result: { outcomes, nextRun: tx.nextRun ?? nextRun } };
  return { queries: missingQueries(ws) };
}

/**
 * The items of claimed runs that were only started, which have next to none. Not for the claim itself: a process that has all items
 * of a run cached sends no query when the run ends (row-cache.M2).
 */
function prefetchItems(ws: WorkingSet, turns: readonly ClaimedTurn[]): void {
  const started = turns.filter(({ record: { head, kind } }) => head === 1 && kind !== "flow");
  for (const { record } of started)
    if (!ws.isLoadedBy("queue", RUN, [record.run], "none"))
      ws.recordMissing(lookup("queue", RUN, [[record.run]], "none"));
}

/** Applies other work of the rules than a list of writes. */
export function applyRules<T>(ws: WorkingSet, work: (rows: TransactionRows) => T): ApplyResult<T> {
  ws.reset();
  const rows = new TransactionRows(ws, "write");
  try {
    const result = work(rows);
    if (!rows.isGuess) return { result };
  } catch (error) {
    if (!(error instanceof Miss) && !rows.isGuess) throw error;
  }
  return { queries: missingQueries(ws) };
}

function missingQueries(ws: WorkingSet): readonly Query[] {
  const queries = ws.takeMissing();
  // Before rows are loaded: a row that a guess has inserted must not be taken for one of the database.
  ws.reset();
  if (queries.length === 0) throw new InvariantError("A row was missed, but no query was recorded for it.");
  return queries;
}
