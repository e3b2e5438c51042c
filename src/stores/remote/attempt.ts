// Attempt: applies a list to what has been loaded so far, or says what else has to be loaded.
//
// A1. A pass that misses something is given up as a whole: nothing of it is kept but what it wanted. It goes on with the
//     next write all the same, so that one round trip serves all of them.
// A2. What a write is known to need is wanted before it is applied (footprint.ts). That saves round trips and nothing else:
//     without it the same questions come one after the other.

import { InvariantError, type EpochMs } from "../../base/index.ts";
import type { Outcome, RunNumber, Write } from "../../kernel/index.ts";
import { applyNext } from "../rules/apply.ts";
import { saveFlows } from "../rules/flow-rows.ts";
import { lostOutcome } from "../rules/lost-history.ts";
import { isPoll } from "../rules/singly.ts";
import type { Tx } from "../rules/statements.ts";
import { wantFootprint } from "./footprint.ts";
import type { Question } from "./query.ts";
import { wordsOf, type Mode } from "./words.ts";
import { Miss, type WorkingSet } from "./working-set.ts";

export interface AttemptOptions {
  readonly mode: Mode;
  readonly now: EpochMs;
  /** From here on run numbers are free and this process's own. */
  readonly nextRun: RunNumber;
  /** False: whoever misses anything does not ask for it, so nobody has to know what else (A2). */
  readonly foresees?: boolean;
  /** History went back since this write was made (../rules/lost-history.ts). */
  readonly isLost?: (index: number) => boolean;
}

export type Attempt<T> = { readonly result: T } | { readonly questions: readonly Question[] };

export interface Applied {
  readonly outcomes: readonly Outcome[];
  /** The first number that was not used. */
  readonly nextRun: RunNumber;
}

/** A1, A2 */
export function tryApply(ws: WorkingSet, options: AttemptOptions, writes: readonly Write[]): Attempt<Applied> {
  ws.reset();
  const { mode, now, nextRun, foresees = true, isLost } = options;
  const tx: Tx = { sql: wordsOf(ws, mode, { writes }), now, nextRun, flows: undefined };
  const outcomes: Outcome[] = [];
  let missed = false;
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      // After a miss, what the others see may be half done.
      if (!(error instanceof Miss) && !missed) throw error;
      missed = true;
    }
  };
  for (const [index, write] of writes.entries()) {
    const lost = isLost?.(index) === true ? lostOutcome(write) : undefined;
    if (lost !== undefined) {
      outcomes.push(lost);
      continue;
    }
    attempt(() => {
      if (foresees) foresee(ws, mode, now, write);
      outcomes.push(applyNext(tx, write));
    });
    if (missed && !foresees) break;
  }
  attempt(() => saveFlows(tx));
  if (!missed) return { result: { outcomes, nextRun: tx.nextRun ?? nextRun } };
  return { questions: wantedOf(ws) };
}

/** A2. A poll is not begun before all of it is here: what it would ask for out of turn, it would lock out of turn. */
function foresee(ws: WorkingSet, mode: Mode, now: EpochMs, write: Write): void {
  if (isPoll(write)) ws.need(() => wantFootprint(ws, mode, now, write));
  else wantFootprint(ws, mode, now, write);
}

/** Any other work; for a list of writes see `tryApply`. */
export function tryWith<T>(ws: WorkingSet, work: () => T): Attempt<T> {
  ws.reset();
  try {
    return { result: work() };
  } catch (error) {
    if (!(error instanceof Miss)) throw error;
    return { questions: wantedOf(ws) };
  }
}

function wantedOf(ws: WorkingSet): readonly Question[] {
  const questions = ws.takeWanted();
  if (questions.length === 0) throw new InvariantError("Something was missed and nobody said what.");
  return questions;
}
