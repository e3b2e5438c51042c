// Answer budget: what a person decides about a budget: more of it, or no more for the calls that wait.
//
// answer-budget.A1. A request that waits is found by the write that raises its budget: both change under the lock of the budget.

import {
  QueueItemState,
  ReservationState,
  type AnswerBudgetOutcome,
  type AnswerBudgetWrite,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { Books } from "./budgets.ts";
import { appendToInbox } from "./inbox.ts";
import { findNewest, isStopped } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";

const REQUEST = ["run", "command", "item", "at"] as const;

/** answer-budget.A1 */
export function applyAnswerBudget(tx: Tx, { id, add, data }: AnswerBudgetWrite): AnswerBudgetOutcome {
  const { rows } = tx;
  const row = findNewest(rows, id);
  if (row === undefined) return { status: "no_run" };
  if (row.budget === null) return rows.isGuess ? { status: "committed", reached: [] } : { status: "no_budget" };
  const books = new Books(rows, row.budget);
  rows.barrier();
  const requests = rows.select("budget_reservations_waiting", [row.budget], REQUEST);
  const uncapped = add === undefined ? undefined : books.raise(add);
  if (uncapped !== undefined) return { status: "uncapped", dimension: uncapped };
  if (add === undefined && requests.length === 0 && !rows.isGuess) return { status: "none_waiting" };
  books.save();
  for (const request of requests) answerRequest(rows, request, add === undefined);
  const type = add === undefined ? "BudgetDeclined" : "BudgetRaised";
  const runs = [...new Set([row.run, ...requests.map(({ run }) => run)])];
  return { status: "committed", reached: runs.filter((run) => appendToInbox(tx, run, { type, target: "", data })) };
}

const STATUS = ["status"] as const;

function answerRequest(
  rows: Rows,
  { run, command, item }: Part<"budget_reservations", (typeof REQUEST)[number]>,
  isDeclined: boolean,
): void {
  if (isDeclined) {
    rows.set("budget_reservations", [run, command], { state: ReservationState.declined });
    rows.drop("run_promises", [run, command]);
  }
  // An item of a stopped run becomes ready when the run is resumed.
  const status = rows.get("runs", [run], STATUS)?.status;
  if (item === 1 && status !== undefined && !isStopped(status))
    rows.set("queue", [run, command], { state: QueueItemState.ready });
}
