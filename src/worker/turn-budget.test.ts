import { expect, test } from "vitest";
import { TURN_SIZE, TurnBudget } from "./turn-budget.ts";

test("work runs at once until the budget is spent, and then in order in later turns", () => {
  let woken = 0;
  const budget = new TurnBudget(() => (woken += 1));
  const done: number[] = [];
  const add = (n: number): void =>
    budget.run(() => {
      done.push(n);
      budget.spend(TURN_SIZE / 2);
    });
  for (const n of [1, 2, 3, 4, 5]) add(n);
  expect(done).toEqual([1, 2]);
  expect(woken).toBe(3);
  budget.renew();
  expect(done).toEqual([1, 2, 3, 4]);
  expect(budget.hasWork).toBe(true);
  // Not before work that waits.
  add(6);
  budget.renew();
  expect(done).toEqual([1, 2, 3, 4, 5, 6]);
  expect(budget.hasWork).toBe(false);
});

test("work larger than the budget runs alone", () => {
  const budget = new TurnBudget(() => {});
  const done: string[] = [];
  budget.run(() => {
    done.push("large");
    budget.spend(10 * TURN_SIZE);
  });
  budget.run(() => done.push("small"));
  expect(done).toEqual(["large"]);
  budget.renew();
  expect(done).toEqual(["large", "small"]);
});
