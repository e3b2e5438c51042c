// The budget of a run: what it paid, and the buttons that raise it or decline to.

import type { JSX } from "preact";
import type { CostBody, RunDetail } from "../../../../src/contract/run.ts";
import { Button } from "../../components/controls.tsx";
import { can } from "../../site.ts";
import { askDecline, askRaise } from "../approvals/ask-budget.tsx";
import { amountText, DIMENSIONS } from "../approvals/promise-text.ts";

/** Beside the command of a run that waits for its budget. */
export function budgetButtons({ id, budget }: RunDetail): JSX.Element | undefined {
  if (budget?.waiting.some(({ run }) => run === id) !== true || !can("operator")) return undefined;
  return (
    <>
      <Button kind="primary" acts onClick={() => askRaise(id, { ...budget, reserve: budget.waiting[0]?.reserve })}>
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
        <Button small acts onClick={() => askRaise(id, { ...budget, reserve: budget.waiting[0]?.reserve })}>
          Raise…
        </Button>
      )}
    </>
  );
}
