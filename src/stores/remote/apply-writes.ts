// Apply writes: applies a list of writes to the loaded rows, or returns the queries whose rows are missing.
//
// apply-writes.A1. A pass that misses a row is discarded as a whole; only its queries are kept. It still applies the remaining
//   writes, so that one round trip loads the rows of all of them.
// apply-writes.A2. A pass in which an answer was guessed (rows.P4) is discarded, too. What a rule throws after a guess proves
//   nothing. The last pass is free of guesses.

import { InvariantError, type EpochMs } from "../../base/index.ts";
import type { Outcome, OutcomeOf, RunNumber, RunRecord, Write } from "../../kernel/index.ts";
import { applyNext } from "../rules/apply.ts";
import { saveFlows } from "../rules/flow-rows.ts";
import { rolledBackOutcome } from "../rules/rolled-back-outcome.ts";
import { isRefill } from "../rules/write-one-by-one.ts";
import type { Tx, TxSettings } from "../rules/transaction.ts";
import { lookup, type Query } from "./query.ts";
import type { AccessMode } from "./locks.ts";
import { Miss } from "./miss.ts";
import { TransactionRows } from "./transaction-rows.ts";
import type { WorkingSet } from "./working-set.ts";

const RUN: readonly string[] = ["run"];
const NONE: readonly never[] = [];
/** Runs with more entries may have many items. */
const FEW_ENTRIES = 8;

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
  // queue.Q5. A refill takes unlocked rows and never waits, as other claims do.
  const claiming = writes.some(isRefill) ? new TransactionRows(ws, "claim", mayGuess) : undefined;
  const hasGuessed = (): boolean => rows.isGuess || claiming?.isGuess === true;
  const outcomes: Outcome[] = [];
  let missed = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      // After a miss, later writes may see half-applied changes; their errors are ignored.
      if (!(error instanceof Miss) && !missed && !hasGuessed()) throw error;
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
      const outcome = applyNext(tx, write, claiming !== undefined && isRefill(write) ? claiming : rows);
      prefetchItems(ws, turnsOf(write, outcome));
      outcomes.push(outcome);
    });
    if (missed && !mayGuess) break;
  }
  attempt(() => saveFlows(tx));
  missed ||= hasGuessed();
  if (!missed) return { result: { outcomes, nextRun: tx.nextRun ?? nextRun } };
  return { queries: missingQueries(ws) };
}

/** The runs whose turns a write claimed. */
function turnsOf(write: Write, outcome: Outcome): readonly RunRecord[] {
  if (write.write === "claim-turns")
    return (outcome as OutcomeOf<typeof write>).flatMap(({ record }) => (record.head === 1 ? record : NONE));
  if (write.write !== "claim-items" || write.turnsOf === undefined) return NONE;
  return (outcome as OutcomeOf<typeof write>).items.flatMap(({ turn }) => turn ?? NONE);
}

/**
 * The items of claimed runs with few entries, which have few items. Not for the claim itself: a process that has all items of a run
 * cached sends no query when the run ends (row-cache.M2).
 */
function prefetchItems(ws: WorkingSet, claimed: readonly RunRecord[]): void {
  for (const { run, head, kind } of claimed)
    if (head <= FEW_ENTRIES && kind !== "flow" && !ws.isLoadedBy("queue", RUN, [run], "none"))
      ws.recordMissing(lookup("queue", RUN, [[run]], "none"));
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
