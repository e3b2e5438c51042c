// Spending: the writes that book what runs pay, and their outcomes.
//
// spending.S1. A call begins only after its reservation is durable. Every execution makes its own reservation: what an earlier execution of the
//   same command reserved and never settled is lost, because that call may have been paid.
// spending.S2. In every budget `spent + lost + reserved` stays within the cap, unless an answer cost more than it reserved.
// spending.S3. A settlement is part of the commit that records the end of the execution.
// spending.S4. A dimension is booked in the nearest budget that caps it: that of the run, or of an ancestor that its budget came from.
//   Without a cap anywhere it is counted in the budget of the run.
// spending.S5. The end of a run turns its open reservations into losses.
// spending.S6. A call that waits tries again when others have left room for it. If none is in progress, only a person can help.

import type { EpochMs } from "../base/index.ts";
import type { Amounts, Dimension } from "./budget.ts";
import type { QueueSlot } from "./queue.ts";
import type { RunNumber } from "./run.ts";

/** What an execution that has ended cost: amounts that it spent, its whole reservation, or nothing. */
export type Charge = Amounts | "lost" | "free";

/** A budget as it stands. */
export interface BudgetState {
  /** The id of the run that it belongs to. */
  readonly owner: string;
  readonly onReached: "ask" | "fail";
  readonly cap: { readonly [D in Dimension]?: number };
  readonly spent: Amounts;
  readonly reserved: Amounts;
  readonly lost: Amounts;
}

/** spending.S1. Reserves for one execution, under the token of the turn or of the item. */
export interface ReserveWrite {
  readonly write: "reserve";
  readonly run: RunNumber;
  /** The budget of the run. */
  readonly budget: RunNumber;
  readonly token: string;
  /** Set: the token is that of this item, which waits without a worker while the budget is reached. */
  readonly item?: { readonly slot?: QueueSlot | undefined };
  readonly command: string;
  readonly execution: number;
  readonly reserve: Amounts;
  /** The price in dollars is not known, so a budget with a cap in dollars cannot hold. */
  readonly unpriced?: boolean;
}
export type ReserveOutcome =
  | { readonly status: "reserved" }
  | { readonly status: "unpriced"; readonly budget: BudgetState }
  /** The budget is reached and asks: the request is an open promise of the run. */
  | { readonly status: "waiting"; readonly budget: BudgetState }
  | { readonly status: "reached"; readonly budget: BudgetState }
  | { readonly status: "declined"; readonly budget: BudgetState }
  | { readonly status: "lease_lost" };

/** Raises the budget of a run, or declines what waits for it. */
export interface AnswerBudgetWrite {
  readonly write: "answer-budget";
  readonly id: string;
  /** Absent: the requests are declined. */
  readonly add?: { readonly [D in Dimension]?: number };
  /** The data of the entry that the run and every waiting run gets. */
  readonly data: string;
}
export type AnswerBudgetOutcome =
  /** `reached`: the runs that got the answer. */
  | { readonly status: "committed"; readonly reached: readonly RunNumber[] }
  | { readonly status: "no_run" }
  | { readonly status: "no_budget" }
  /** The budget has no cap in this dimension. */
  | { readonly status: "uncapped"; readonly dimension: Dimension }
  | { readonly status: "none_waiting" };

/** spending.S6. Wakes calls that wait for the budget of this run and that it has room for. */
export interface OfferBudgetWrite {
  readonly write: "offer-budget";
  /** The id of the run that the budget belongs to. */
  readonly id: string;
  /** Calls that were woken before, and are not woken again: as far as the caller knows, they have not tried again yet. */
  readonly except: readonly OfferedCall[];
}
export interface OfferBudgetOutcome {
  /** The calls that were woken: the oldest that fit, at most `MAX_BUDGET_REQUESTS`. */
  readonly woken: readonly OfferedCall[];
  /** Those of `except` that still wait. */
  readonly pending: readonly OfferedCall[];
  /** Whether calls still wait, and others are in progress, or about to be, that may leave room for them. */
  readonly mayFree: boolean;
}

/** A call that waits for the budget that is offered, or did. */
export interface OfferedCall {
  readonly run: RunNumber;
  readonly command: string;
}

export function offerKey({ run, command }: OfferedCall): string {
  return `${run} ${command}`;
}

/** A call that waits for its budget. */
export interface BudgetRequest {
  readonly run: RunNumber;
  readonly runId: string;
  readonly command: string;
  readonly reserve: Amounts;
  readonly at: EpochMs;
}

/** A budget with the requests that wait for it, oldest first. */
export interface BudgetReading extends BudgetState {
  readonly waiting: readonly BudgetRequest[];
}

/** How many requests a reading has at most, and how many calls an offer wakes at most. */
export const MAX_BUDGET_REQUESTS = 100;
