// Answer budget: what becomes of calls that wait for a budget: a person raises it or declines, or other calls leave room for them.
//
// answer-budget.A1. A request that waits is found by the write that raises its budget: both change under the lock of the budget.
// answer-budget.A2. A call that is woken reserves again, so waking one too many, or twice, passes no cap.

import { encode } from "../../base/index.ts";
import {
  MAX_BUDGET_REQUESTS,
  offerKey,
  QueueItemState,
  ReservationState,
  type AnswerBudgetOutcome,
  type AnswerBudgetWrite,
  type OfferBudgetOutcome,
  type OfferBudgetWrite,
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

const OFFERED = ["run", "command", "item", "at", "usd", "tokens", "calls"] as const;
const WAITS = ["state", "budget"] as const;

/**
 * spending.S6, answer-budget.A2. Oldest first, as far as there is room. The limit is about requests that fit by themselves: those
 * that do not hide none of them. Each offer that finds room for a call wakes one, so a caller that repeats it wakes all that fit.
 */
export function applyOfferBudget(tx: Tx, { id, except }: OfferBudgetWrite): OfferBudgetOutcome {
  const { rows } = tx;
  const budget = findNewest(rows, id)?.budget ?? null;
  if (budget === null) return { woken: [], pending: [], mayFree: false };
  const books = new Books(rows, budget);
  rows.barrier();
  const pending = except.filter(({ run, command }) => {
    const row = rows.get("budget_reservations", [run, command], WAITS);
    return row?.state === ReservationState.waiting && row.budget === budget;
  });
  const limit = pending.length + MAX_BUDGET_REQUESTS;
  const fitting = rows.select("budget_reservations_waiting", [budget], OFFERED, { also: books.fitting, limit });
  const waiting = rows.count("budget_reservations_waiting", [budget], limit + 1);
  const isPending = new Set(pending.map(offerKey));
  const woken = fitting
    .filter((request) => !isPending.has(offerKey(request)))
    .slice(0, MAX_BUDGET_REQUESTS)
    .filter(({ usd, tokens, calls }) => books.fit({ usd, tokens, calls }));
  for (const request of woken) answerRequest(rows, request, false);
  const operations = Map.groupBy(
    woken.filter(({ item }) => item === 0),
    ({ run }) => run,
  );
  for (const [run, requests] of operations) {
    const data = encode({ woken: requests.map(({ command }) => command) });
    appendToInbox(tx, run, { type: "BudgetRaised", target: "", data });
  }
  return {
    woken: woken.map(({ run, command }) => ({ run, command })),
    pending,
    // Those that were woken are about to reserve.
    mayFree: waiting > woken.length + pending.length && (books.isReserved || pending.length > 0),
  };
}

const STATUS = ["status"] as const;
const STATE = ["state"] as const;

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
  if (item !== 1 || status === undefined || isStopped(status)) return;
  // A worker may have claimed it already, after an earlier answer, and not have reserved yet.
  if (rows.get("queue", [run, command], STATE)?.state === QueueItemState.stopped || rows.isGuess)
    rows.set("queue", [run, command], { state: QueueItemState.ready });
}
