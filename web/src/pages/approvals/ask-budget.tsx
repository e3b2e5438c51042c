// The questions about the budget of a run: raise it by an amount, or decline to.

import { signal } from "@preact/signals";
import type { CostBody } from "../../../../src/contract/run.ts";
import { ask } from "../../components/dialog.tsx";
import { answerBudget } from "./decide.ts";
import { booksOf, budgetCommand, DIMENSIONS, missingCost } from "./promise-text.ts";

/** `show`: the books of the budget, and what the call that waits would reserve. */
export function askRaise(id: string, show: unknown): void {
  const { cap } = booksOf(show);
  const add = signal<CostBody>(missingCost(show));
  ask({
    title: `Raise the budget of ${id}?`,
    text: DIMENSIONS.filter((one) => cap[one] !== undefined).map((one) => (
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

export function askDecline(id: string): void {
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
