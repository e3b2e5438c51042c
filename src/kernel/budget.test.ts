import { expect, test } from "vitest";
import { flow, graph, last, task, typed, workflow } from "../index.ts";
import { amountsOf, budgetOptionsOf, checkBudget, checkCost, shownCost } from "./budget.ts";

test("a cost is rounded up and a cap is rounded down to a millionth of a dollar", () => {
  expect(amountsOf({ usd: 0.000_000_1 }, "cost").usd).toBe(1);
  expect(amountsOf({ usd: 0.000_000_9 }, "cap", { isCap: true }).usd).toBe(0);
  for (const usd of [0.1, 0.29, 1.1, 2.3, 4.35, 1_234.567_89])
    expect(amountsOf({ usd }, "cost"), String(usd)).toEqual(amountsOf({ usd }, "cap", { isCap: true }));
});

test("a budget keeps only the dimensions that it caps", () => {
  const cap = checkBudget({ usd: 2, calls: 0 }, "start");
  expect(cap).toEqual({ cap: { usd: 2_000_000, calls: 0 }, onReached: "ask" });
  expect(budgetOptionsOf(cap)).toEqual({ usd: 2, calls: 0, onReached: "ask" });
  expect(shownCost({ usd: 5, tokens: 0, calls: 0 }, cap.cap)).toEqual({ usd: 0.000_005, calls: 0 });
});

test.each([
  [{}, "at least one of usd, tokens and calls"],
  [{ onReached: "fail" }, "at least one of usd, tokens and calls"],
  [{ usd: -1 }, "usd of 0 or more, got -1"],
  [{ usd: Number.NaN }, "usd of 0 or more, got NaN"],
  [{ usd: 1e10 }, "usd of 0 or more, got 10000000000"],
  [{ tokens: 1.5 }, "a whole number of 0 or more as tokens, got 1.5"],
  [{ calls: "3" }, "a whole number of 0 or more as calls, got '3'"],
  [{ usd: 1, onReached: "stop" }, 'an onReached of "ask" or "fail", got \'stop\''],
  [{ euros: 1 }, "euros"],
  [7, "got 7"],
])("the budget %j is refused wherever it is given", (budget, problem) => {
  const given = { budget } as { budget: { usd: number } };
  const run = async (): Promise<number> => 1;
  const tries = [
    () => workflow("w", given, run),
    () => graph("g", { state: { answer: last(0) }, ...given }),
    () => flow("f", { input: typed<number>(), ...given }),
    () => checkBudget(budget, "start"),
  ];
  for (const attempt of tries)
    expect(attempt).toThrow(
      expect.objectContaining({ code: "BAD_OPTIONS", message: expect.stringContaining(problem) as string }),
    );
});

test.each([
  [{ reserve: { usd: 1 } }, "a function `actual`"],
  [{ reserve: { usd: -1 }, actual: () => ({}) }, "usd of 0 or more"],
  [{ reserve: undefined, actual: () => ({}) }, "expected a cost such as"],
  [{ reserve: {}, actual: () => ({}), unbilled: true }, "a function `unbilled`"],
  [{ reserve: {}, actual: () => ({}), price: 1 }, "price"],
])("the cost %o is refused", (cost, problem) => {
  expect(() => checkCost(cost as never, "Operation pay")).toThrow(problem);
  expect(() => task("pay", { cost: cost as never }, () => 1)).toThrow(problem);
  const spread = flow("f", { input: typed<number[]>() });
  expect(() => spread.action("a", ["input"], { cost: cost as never }, async () => 1)).toThrow(problem);
});
