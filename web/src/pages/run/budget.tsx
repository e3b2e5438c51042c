// The budget of a run: what it paid, and the questions that raise it or decline to.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { BudgetBody, CostBody, RunDetail } from "../../../../src/contract/run.ts";
import { Button } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { can } from "../../site.ts";
import { answerBudget } from "../approvals/decide.ts";
import { amountText, budgetCommand, DIMENSIONS, missingCost } from "../approvals/promise-text.ts";

function askRaise(id: string, budget: BudgetBody): void {
  const add = signal<CostBody>(missingCost({ ...budget, reserve: budget.waiting[0]?.reserve }));
  ask({
    title: `Raise the budget of ${id}?`,
    text: DIMENSIONS.filter((one) => budget.cap[one] !== undefined).map((one) => (
      <label key={one} class="field">
        <span class="eyebrow">Add {one}</span>
        <input
          type="number"
          min={0}
          step="any"
          value={add.peek()[one]}
          onInput={({ currentTarget: { valueAsNumber: more } }) => {
            const { [one]: _, ...others } = add.peek();
            add.value = more > 0 ? { ...others, [one]: more } : others;
          }}
        />
      </label>
    )),
    confirm: "Raise",
    reason: true,
    command: (reason) => budgetCommand(id, add.value, reason),
    run: (reason) => answerBudget(id, add.peek(), reason),
  });
}

function askDecline(id: string): void {
  ask({
    title: `Decline to raise the budget of ${id}?`,
    text: "The calls that wait for it throw BUDGET_REACHED.",
    confirm: "Decline",
    danger: true,
    reason: true,
    command: (reason) => budgetCommand(id, undefined, reason),
    run: (reason) => answerBudget(id, undefined, reason),
  });
}

/** Beside the command of a run that waits for its budget. */
export function budgetButtons({ id, budget }: RunDetail): JSX.Element | undefined {
  if (budget?.waiting.some(({ run }) => run === id) !== true || !can("operator")) return undefined;
  return (
    <>
      <Button kind="primary" acts onClick={() => askRaise(id, budget)}>
        Raise…
      </Button>
      <Button acts onClick={() => askDecline(id)}>
        Decline…
      </Button>
    </>
  );
}

export function BudgetFacts({ id, budget }: RunDetail): JSX.Element | null {
  if (budget === undefined) return null;
  const text = (book: "spent" | "reserved" | "lost", one: keyof CostBody): string =>
    `${one === "usd" ? "$" : ""}${budget[book][one] ?? 0} ${book}`;
  return (
    <>
      {DIMENSIONS.filter((one) => budget.cap[one] !== undefined).map((one) => (
        <span key={one}>
          budget <b>{amountText({ [one]: budget.cap[one] })}</b> {text("spent", one)}, {text("reserved", one)},{" "}
          {text("lost", one)}
        </span>
      ))}
      {can("operator") && budget.waiting.length === 0 && (
        <Button small acts onClick={() => askRaise(id, budget)}>
          Raise…
        </Button>
      )}
    </>
  );
}
