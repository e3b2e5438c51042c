// Questions, and what they mean for the order of locks (L1).

import type { RunNumber } from "../../kernel/index.ts";
import type { Lock, Lookup, Question } from "./query.ts";

/** Waits for a lock, and so must keep to the order. */
function waits(lock: Lock): boolean {
  return lock === "update" || lock === "share";
}

/** 0: runs, 1: queues, 2: the rest that locks, 3: what only looks. */
export function rankOf(question: Question): number {
  if (question.ask === "count" || question.ask === "distinct" || !waits(question.lock)) return 3;
  return question.table === "runs" ? 0 : question.table === "queues" ? 1 : 2;
}

/** Of runs, by their numbers: the only questions whose order of locks is known before they are asked. */
export function isByNumber(question: Question): question is Lookup<"runs"> {
  return question.ask === "lookup" && question.table === "runs" && question.columns.join() === "run";
}

/** By number, in the order of locks. */
export function runsByNumber(runs: Iterable<RunNumber>): readonly Lookup[] {
  const keys = [...runs].map((run) => [run] as const);
  return keys.length === 0 ? [] : [{ ask: "lookup", table: "runs", columns: ["run"], keys, lock: "update" }];
}
