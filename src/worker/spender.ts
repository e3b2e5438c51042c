// Spender: reserves before the function of a step is called, and says what the call cost when it has ended.
//
// spender.W1. The function is called only after the reservation is durable (spending.S1). A step without a cost, and a run without
//   a budget, take no part in any of this.
// spender.W2. A call whose answer is known reserves nothing: a replay, a fork with recorded effects, a pure step.
// spender.W3. A reservation with an unknown outcome is repeated: if it was made, it becomes a loss. A run that lost its lease is
//   discarded, because it may be held again before the worker learns of it, and its call would never begin.

import { RepriseError } from "../base/index.ts";
import {
  amountsOf,
  costOf,
  costText,
  shownCost,
  DIMENSIONS,
  emit,
  isObserved,
  type Amounts,
  type BudgetState,
  type CallCost,
  type Charge,
  type ReserveOutcome,
  type ReserveWrite,
  type TaskCost,
} from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { PartsOf } from "./worker-parts.ts";

/** spender.W3. How long after a failure of the store. */
const REPEAT_MS = 100;

type UsedParts = PartsOf<"budgetOffers" | "options" | "pump" | "timers">;

/** The step that spends, and where it reserves. */
export interface Spender extends Omit<ReserveWrite, "write" | "reserve"> {
  readonly runId: string;
  readonly definition: string;
  /** What a message calls the step. */
  readonly name: string;
  readonly cost: CallCost | TaskCost;
  /** The budget is reached and asks: the step waits, without an attempt. */
  readonly onWaiting: () => void;
  /** spender.W3. Undefined: the worker aborts the step when it learns that its lease is lost. */
  readonly onLost?: () => void;
}

export class Spending {
  readonly #parts: UsedParts;
  readonly #spender: Spender;
  #reserved: Amounts | undefined;

  constructor(parts: UsedParts, spender: Spender) {
    this.#parts = parts;
    this.#spender = spender;
  }

  /** spender.W1. `announces`: nothing else publishes that the function is called. */
  async call(attempt: Attempt, input: unknown, call: () => unknown, announces: boolean): Promise<unknown> {
    const { runId, definition: _definition, name, cost, onWaiting, onLost, ...place } = this.#spender;
    const { reserve } = cost;
    const amounts = amountsOf(typeof reserve === "function" ? reserve(input) : reserve, `${name}: cost.reserve`);
    const unpriced = cost.unpriced === true && { unpriced: true };
    const write: ReserveWrite = { write: "reserve", ...place, reserve: amounts, ...unpriced };
    let outcome = await this.#reserve(write);
    while (outcome === undefined && !attempt.isSettled) {
      await new Promise<void>((resolve) => this.#parts.timers.set(REPEAT_MS, resolve, { ref: false }));
      if (!attempt.isSettled) outcome = await this.#reserve(write);
    }
    // Aborted meanwhile: the call does not begin. The reservation stays open, and the next execution makes it a loss.
    if (attempt.isSettled) return undefined;
    switch (outcome?.status) {
      case "reserved":
        this.#reserved = amounts;
        if (announces) attempt.announce();
        return call();
      case "waiting":
        this.#announceReached(true);
        attempt.abandon(new RepriseError("BUDGET_REACHED", reachedText(runId, name, amounts, outcome.budget)));
        onWaiting();
        this.#parts.budgetOffers.watch(outcome.budget.owner, place);
        return undefined;
      case "reached":
        this.#announceReached(false);
        throw budgetReached(runId, name, amounts, outcome.budget, false);
      case "declined":
        throw budgetReached(runId, name, amounts, outcome.budget, true);
      case "unpriced":
        throw new RepriseError(
          "PRICE_UNKNOWN",
          `${name} has no price, but the budget of run ${outcome.budget.owner} is ${costText(costOf(outcome.budget.cap))}, which it could pass. Add the price of the model to \`prices\` of durable(), or give the run a budget of tokens or calls.`,
        );
      case "lease_lost":
      case undefined:
        onLost?.();
        return new Promise(() => {});
    }
  }

  #announceReached(waits: boolean): void {
    const { runId: run, definition, command: step } = this.#spender;
    if (isObserved()) emit({ event: "budget.reached", run, definition, step, waits });
  }

  async #reserve(write: ReserveWrite): Promise<ReserveOutcome | undefined> {
    try {
      return await this.#parts.pump.submit(write);
    } catch {
      return undefined;
    }
  }

  /** What the answer cost; undefined: nothing was reserved. */
  chargeOf(answer: unknown): Charge | undefined {
    const reserved = this.#reserved;
    if (reserved === undefined) return undefined;
    const { cost, name, runId: run, command: step } = this.#spender;
    let actual: Amounts;
    try {
      actual = amountsOf(cost.actual(answer), `${name}: cost.actual`);
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      this.#parts.options.log(
        "warn",
        `The cost of ${name} is unknown, so all that it reserved counts as lost: \`cost.actual\` failed: ${said}`,
        { run, step },
      );
      return "lost";
    }
    if (DIMENSIONS.some((dimension) => actual[dimension] > reserved[dimension]))
      this.#parts.options.log(
        "warn",
        `${name} cost ${costText(shownCost(actual, NOTHING))}, more than the ${costText(shownCost(reserved, NOTHING))} it had reserved. The difference may pass the budget. Raise \`cost.reserve\` to an upper bound.`,
        { code: "BUDGET_ESTIMATE", run, step },
      );
    return actual;
  }

  /** What a failed call cost; undefined: nothing was reserved. */
  chargeOfFailure(error: unknown): Charge | undefined {
    if (this.#reserved === undefined) return undefined;
    const { unbilled } = this.#spender.cost;
    try {
      return unbilled?.(error as Error) === true ? "free" : "lost";
    } catch {
      return "lost";
    }
  }
}

const NOTHING = {};

function reachedText(
  run: string,
  name: string,
  asked: Amounts,
  { cap, spent, reserved, lost, owner }: BudgetState,
): string {
  const used = [
    `${costText(shownCost(spent, cap))} spent`,
    `${costText(shownCost(reserved, cap))} reserved`,
    `${costText(shownCost(lost, cap))} lost`,
  ];
  const of = owner === run ? "the run's budget" : `the budget of run ${owner}`;
  return `${name} would reserve ${costText(shownCost(asked, NOTHING))}, but ${of} of ${costText(costOf(cap))} is reached: ${used.join(", ")}.`;
}

function budgetReached(
  run: string,
  name: string,
  asked: Amounts,
  budget: BudgetState,
  isDeclined: boolean,
): RepriseError {
  const text = reachedText(run, name, asked, budget);
  const { cap, spent, reserved, lost, owner } = budget;
  const details = {
    run: owner,
    asked: shownCost(asked, NOTHING),
    cap: costOf(cap),
    spent: shownCost(spent, cap),
    reserved: shownCost(reserved, cap),
    lost: shownCost(lost, cap),
  };
  const next = isDeclined
    ? "A person declined to raise it."
    : `Raise it with run.raise({ usd: … }) or \`reprise raise ${owner} --usd …\`, then \`reprise retry ${owner}\`.`;
  return new RepriseError("BUDGET_REACHED", `${text} ${next}`, { details });
}
