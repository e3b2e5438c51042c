// The budget of a run: reading it, raising it, and declining what waits for it.

import { encode, RepriseError, shellWord, type EpochMs } from "../base/index.ts";
import {
  amountsOf,
  checkAnswerer,
  costOf,
  costText,
  DIMENSIONS,
  shownCost,
  type Amounts,
  type BudgetAnswerData,
  type BudgetReading,
  type Cost,
  type Dimension,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { ControlledRun } from "./run-control.ts";

/** A call that waits for its budget. */
export interface BudgetRequestInfo {
  /** The run that waits: the owner of the budget, or one of its children. */
  readonly run: string;
  readonly command: string;
  /** What it would reserve. */
  readonly reserve: Cost;
  readonly since: Date;
}

/**
 * What `run.budget` returns. The dimensions are those of the cap, and those that something was paid in.
 *
 * @example
 * ```ts
 * import type { Budget } from "reprise";
 * export const left = ({ cap, spent, reserved, lost }: Budget): number =>
 *   (cap.usd ?? Infinity) - (spent.usd ?? 0) - (reserved.usd ?? 0) - (lost.usd ?? 0);
 * ```
 */
export interface Budget {
  /** The run that it belongs to; its children share it. */
  readonly owner: string;
  readonly onReached: "ask" | "fail";
  readonly cap: Cost;
  /** What answers cost. */
  readonly spent: Cost;
  /** What calls in progress may cost. */
  readonly reserved: Cost;
  /** What calls may have cost whose end is unknown: their worker crashed, they failed, or they were canceled. */
  readonly lost: Cost;
  /** The calls that wait for it, oldest first; at most 100. */
  readonly waiting: readonly BudgetRequestInfo[];
}

/** Options of `run.raise` and `run.declineBudget`. */
export interface BudgetAnswerOptions extends WaitOptions {
  /** Who decided. The journal keeps it. At most 200 characters. */
  by?: string;
  /** Why. The journal keeps it. At most 1,000 characters. */
  reason?: string;
}

export async function readRunBudget(store: Store, { budget }: RunRecord): Promise<Budget | undefined> {
  const reading = budget === undefined ? undefined : await store.readBudget(budget);
  return reading && budgetOf(reading);
}

export function budgetOf({ owner, onReached, cap, spent, reserved, lost, waiting }: BudgetReading): Budget {
  const paid = (amounts: Amounts): Cost => shownCost(amounts, cap);
  return {
    ...{ owner, onReached, cap: costOf(cap), spent: paid(spent), reserved: paid(reserved), lost: paid(lost) },
    waiting: waiting.map(({ runId: run, command, reserve, at }) => ({
      ...{ run, command, reserve: paid(reserve) },
      since: new Date(at satisfies EpochMs),
    })),
  };
}

/** Every call that waits for the budget tries again. */
export async function raiseBudget(run: ControlledRun, add: Cost, options: BudgetAnswerOptions): Promise<void> {
  const amounts = amountsOf(add, "raise");
  const named = DIMENSIONS.filter((dimension) => amounts[dimension] > 0);
  if (named.length === 0)
    throw new RepriseError("BAD_OPTIONS", "raise: expected an amount above 0, such as { usd: 2 }.");
  const change = Object.fromEntries(named.map((dimension) => [dimension, amounts[dimension]]));
  await answer(run, change, { add: costOf(change), ...checkAnswerer(options, "raise") });
}

/** Every call that waits for the budget throws BUDGET_REACHED. */
export async function declineBudget(run: ControlledRun, options: BudgetAnswerOptions): Promise<void> {
  await answer(run, undefined, checkAnswerer(options, "declineBudget"));
}

async function answer(
  { host, id }: ControlledRun,
  add: { readonly [D in Dimension]?: number } | undefined,
  data: BudgetAnswerData,
): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const outcome = await worker.submit({ write: "answer-budget", id, ...(add && { add }), data: encode(data) });
  switch (outcome.status) {
    case "committed":
      for (const run of outcome.reached) worker.onArrival(run);
      return worker.wake();
    case "no_run":
      throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Start it first, or check the id and the store.`);
    case "no_budget":
      throw new RepriseError(
        "USAGE",
        `Run ${id} has no budget. A budget is set when a run starts: engine.start(definition, input, { budget: { usd: 2 } }).`,
      );
    case "uncapped":
      throw new RepriseError(
        "USAGE",
        `The budget of run ${id} has no cap of ${outcome.dimension}, so ${costText(data.add ?? {})} cannot be added to it. Raise what it caps: \`reprise budget ${shellWord(id)}\` shows it.`,
      );
    case "none_waiting":
      throw new RepriseError("USAGE", `No call waits for the budget of run ${id}, so there is nothing to decline.`);
  }
}
