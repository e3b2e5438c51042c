// Apply writes: applies a list of writes to the loaded rows, or returns the queries whose rows are missing.
//
// apply-writes.A1. A pass that misses a row is discarded as a whole; only its queries are kept. It still applies the remaining
//   writes, so that one round trip loads the rows of all of them.
// apply-writes.A2. The rows a write is known to need are prefetched before it is applied (prefetch.ts). That only saves round
//   trips: without it the same queries are sent one after the other.

import { InvariantError, type EpochMs } from "../../base/index.ts";
import type { Outcome, RunNumber, Write } from "../../kernel/index.ts";
import { applyNext } from "../rules/apply.ts";
import { saveFlows } from "../rules/flow-rows.ts";
import { rolledBackOutcome } from "../rules/rolled-back-outcome.ts";
import { isPoll } from "../rules/write-one-by-one.ts";
import type { Tx } from "../rules/statements.ts";
import { prefetch } from "./prefetch.ts";
import type { Query } from "./query.ts";
import { rowStatements, type AccessMode } from "./statements/row-statements.ts";
import { Miss } from "./miss.ts";
import { TransactionRows } from "./transaction-rows.ts";
import type { WorkingSet } from "./working-set.ts";

export interface ApplyOptions {
  readonly mode: AccessMode;
  readonly now: EpochMs;
  /** The first of the run numbers reserved for this transaction. */
  readonly nextRun: RunNumber;
  /** False for an optimistic attempt, which ends at the first miss (apply-writes.A2). */
  readonly prefetches?: boolean;
  /** Whether history went back since the write at this index was made (../rules/rolled-back-outcome.ts). */
  readonly isLost?: (index: number) => boolean;
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
  const { mode, now, nextRun, prefetches = true, isLost } = options;
  const rows = new TransactionRows(ws, mode, prefetches);
  const tx: Tx = { rows, sql: rowStatements(ws, mode, { writes }), now, nextRun, flows: undefined };
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
      if (prefetches) prefetchWrite(ws, mode, now, write);
      outcomes.push(applyNext(tx, write));
    });
    if (missed && !prefetches) break;
  }
  attempt(() => saveFlows(tx));
  missed ||= rows.isGuess;
  if (!missed) return { result: { outcomes, nextRun: tx.nextRun ?? nextRun } };
  return { queries: missingQueries(ws) };
}

/** apply-writes.A2. A poll is applied only when all its rows are loaded: it would lock rows out of order otherwise. */
function prefetchWrite(ws: WorkingSet, mode: AccessMode, now: EpochMs, write: Write): void {
  if (isPoll(write)) ws.require(() => prefetch(ws, mode, now, write));
  else prefetch(ws, mode, now, write);
}

/** Applies any other work; `applyWrites` applies a list of writes. */
export function applyWork<T>(ws: WorkingSet, work: () => T): ApplyResult<T> {
  ws.reset();
  try {
    return { result: work() };
  } catch (error) {
    if (!(error instanceof Miss)) throw error;
    return { queries: missingQueries(ws) };
  }
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
