// Budget body: the budget of a run on the wire.

import type { BudgetBody } from "../../contract/index.ts";
import { budgetOf } from "../../engine/index.ts";
import type { BudgetReading } from "../../kernel/index.ts";
import { isoOf } from "./view.ts";

export function budgetBody(reading: BudgetReading): BudgetBody {
  const { waiting, ...budget } = budgetOf(reading);
  return {
    ...budget,
    waiting: waiting.map(({ since, ...request }) => ({ ...request, since: isoOf(since.getTime()) })),
  };
}
