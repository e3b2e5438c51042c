// Budget: what a run may cost, and what a call costs.
//
// budget.B1. Amounts are whole numbers; dollars are counted in millionths. A cost is rounded up and a cap down, so rounding never
//   passes a cap.
// budget.B2. A dimension without a cap is counted, and never reached.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError } from "../base/index.ts";

/**
 * What something costs, in up to three dimensions.
 *
 * @example
 * ```ts
 * import type { Cost } from "reprise";
 * const answer: Cost = { usd: 0.012, tokens: 1_840, calls: 1 };
 * ```
 */
export interface Cost {
  /** US dollars; counted in millionths. */
  usd?: number;
  /** A whole number. */
  tokens?: number;
  /** A whole number. */
  calls?: number;
}

/**
 * A cap for all that a run and its children pay; an option of definitions and of `start`.
 *
 * @example
 * ```ts
 * import { workflow, type BudgetOptions } from "reprise";
 * const budget: BudgetOptions = { usd: 2, onReached: "ask" };
 * const research = workflow("research", { budget }, async (ctx) =>
 *   ctx.run("search", () => ({ found: 3, usd: 0.01 }), {
 *     cost: { reserve: { usd: 0.05 }, actual: (answer) => ({ usd: answer.usd }) },
 *   }),
 * );
 * ```
 */
export interface BudgetOptions extends Cost {
  /**
   * What a call does whose reservation does not fit. `"ask"`: it waits until a person raises the budget or declines. `"fail"`: it
   * throws BUDGET_REACHED. Default: `"ask"`.
   */
  onReached?: "ask" | "fail";
}

/**
 * The cost of a call, in a run with a budget. Without a budget it has no effect.
 *
 * @example
 * ```ts
 * import { workflow, type CallCost } from "reprise";
 * const cost: CallCost<{ usd: number }> = {
 *   reserve: { usd: 0.05 },
 *   actual: (answer) => ({ usd: answer.usd }),
 *   unbilled: (error) => error.message.includes("429"),
 * };
 * const ask = workflow("ask", { budget: { usd: 1 } }, async (ctx) => ctx.run("model", () => ({ usd: 0.01 }), { cost }));
 * ```
 */
export interface CallCost<T = any> {
  /** An upper bound. Every execution of the call reserves it before it begins. */
  reserve: Cost;
  /** What the answer cost. Spent in the commit that records the answer. */
  actual: (answer: T) => Cost;
  /** Whether a failed call cost nothing, such as one that was never connected. Default: it cost its reservation. */
  unbilled?: (error: Error) => boolean;
  /** The price is not known: in a run whose budget has a cap in dollars, the call throws PRICE_UNKNOWN instead. */
  unpriced?: boolean;
}

/**
 * The cost of a task or of an action of a flow, in a run with a budget. The reservation may depend on the input.
 *
 * @example
 * ```ts
 * import { task, type TaskCost } from "reprise";
 * const cost: TaskCost = {
 *   reserve: (input: { pages: number }) => ({ usd: input.pages * 0.01 }),
 *   actual: (answer: { usd: number }) => ({ usd: answer.usd }),
 * };
 * const scan = task("scan", { cost }, async (_ctx, input: { pages: number }) => ({ usd: input.pages * 0.008 }));
 * ```
 */
export interface TaskCost extends Omit<CallCost, "reserve"> {
  /** An upper bound, or a function of the input that returns one. A worker reserves it before every execution. */
  reserve: Cost | ((input: any) => Cost);
}

/** Every dimension of a budget. */
export const DIMENSIONS = ["usd", "tokens", "calls"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** budget.B1 */
export type Amounts = { readonly [D in Dimension]: number };

export const NO_AMOUNTS: Amounts = { usd: 0, tokens: 0, calls: 0 };

/** budget.B2. A checked budget. */
export interface BudgetCap {
  readonly cap: { readonly [D in Dimension]?: number };
  readonly onReached: "ask" | "fail";
}

/** How a child pays: from the budget of its parent, without a budget, or from a part of it. */
export type ChildBudget = "share" | "none" | BudgetCap;

const MICRO = 1_000_000;
/** Products such as 1.1 * 1,000,000 are off by less than this. */
const SLACK = 0.001;

/** A cost in whole numbers. `what` names it in the error. */
export function amountsOf(cost: unknown, what: string, options?: { readonly isCap: true }): Amounts {
  if (typeof cost !== "object" || cost === null || Array.isArray(cost))
    throw bad(what, `expected a cost such as { usd: 0.01 }, got ${inspect(cost, { depth: 0 })}`);
  if (options === undefined) checkOptionNames(cost, DIMENSIONS, what);
  const { usd = 0, tokens = 0, calls = 0 } = cost as Cost;
  if (typeof usd !== "number" || !(usd >= 0) || usd * MICRO > Number.MAX_SAFE_INTEGER)
    throw bad(what, `expected usd of 0 or more, got ${inspect(usd)}`);
  for (const [name, count] of [["tokens", tokens] as const, ["calls", calls] as const])
    if (!Number.isSafeInteger(count) || count < 0)
      throw bad(what, `expected a whole number of 0 or more as ${name}, got ${inspect(count)}`);
  const micros = options === undefined ? Math.ceil(usd * MICRO - SLACK) : Math.floor(usd * MICRO + SLACK);
  return { usd: Math.max(0, micros), tokens, calls };
}

/** The public form of amounts. */
export function costOf(amounts: { readonly [D in Dimension]?: number }): Cost {
  const { usd, ...counts } = amounts;
  return usd === undefined ? counts : { usd: usd / MICRO, ...counts };
}

/** The public form of amounts in a budget: the dimensions that it caps, and those that are not 0. */
export function shownCost(amounts: { readonly [D in Dimension]?: number }, cap: object): Cost {
  const shown = DIMENSIONS.filter((one) => Object.hasOwn(cap, one) || (amounts[one] ?? 0) !== 0);
  return costOf(Object.fromEntries(shown.map((one) => [one, amounts[one] ?? 0])));
}

/** `$0.05, 1,200 tokens and 1 call` */
export function costText(cost: Cost): string {
  const parts = [
    cost.usd === undefined ? [] : [`$${String(cost.usd)}`],
    cost.tokens === undefined ? [] : [`${cost.tokens.toLocaleString("en-US")} tokens`],
    cost.calls === undefined ? [] : [`${cost.calls.toLocaleString("en-US")} ${cost.calls === 1 ? "call" : "calls"}`],
  ].flat();
  return parts.length < 2 ? (parts[0] ?? "$0") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

export function checkBudget(budget: unknown, what: string): BudgetCap {
  const name = `${what}: budget`;
  if (typeof budget !== "object" || budget === null || Array.isArray(budget))
    throw bad(name, `expected an object such as { usd: 2 }, got ${inspect(budget, { depth: 0 })}`);
  checkOptionNames(budget, [...DIMENSIONS, "onReached"], name);
  const { onReached = "ask", ...cost } = budget as BudgetOptions;
  if (onReached !== "ask" && onReached !== "fail")
    throw bad(name, `expected an onReached of "ask" or "fail", got ${inspect(onReached)}`);
  const amounts = amountsOf(cost, name, { isCap: true });
  const capped = DIMENSIONS.filter((dimension) => cost[dimension] !== undefined);
  if (capped.length === 0) throw bad(name, "expected a cap: at least one of usd, tokens and calls");
  return { cap: Object.fromEntries(capped.map((dimension) => [dimension, amounts[dimension]])), onReached };
}

/** The options that `checkBudget` turns into this cap. */
export function budgetOptionsOf({ cap, onReached }: BudgetCap): BudgetOptions {
  return { ...costOf(cap), onReached };
}

export function checkChildBudget(budget: unknown, what: string): ChildBudget {
  return budget === undefined || budget === "share" || budget === "none"
    ? (budget ?? "share")
    : checkBudget(budget, what);
}

/** Refuses a cost that could not be applied when the call ends. */
export function checkCost<C extends CallCost | TaskCost>(cost: C | undefined, what: string): C | undefined {
  if (cost === undefined) return undefined;
  const name = `${what}: cost`;
  if (typeof cost !== "object" || cost === null)
    throw bad(name, `expected { reserve, actual }, got ${inspect(cost, { depth: 0 })}`);
  checkOptionNames(cost, ["actual", "reserve", "unbilled", "unpriced"], name);
  if (typeof cost.actual !== "function")
    throw bad(name, `expected a function \`actual\` from the answer to its cost, got ${typeof cost.actual}`);
  if (cost.unbilled !== undefined && typeof cost.unbilled !== "function")
    throw bad(name, `expected a function \`unbilled\`, got ${typeof cost.unbilled}`);
  if (typeof cost.reserve !== "function") amountsOf(cost.reserve, `${name}.reserve`);
  return cost;
}

function bad(what: string, problem: string): RepriseError {
  return new RepriseError("BAD_OPTIONS", `${what}: ${problem}.`);
}
