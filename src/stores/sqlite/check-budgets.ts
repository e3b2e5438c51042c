// Check budgets: what a budget has reserved is what its reservations say, and every call that waits is listed (spending.S2).

import { costText, DIMENSIONS, shownCost, type Amounts, type Dimension, type Problem } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import type { CheckStatements } from "./check-store.ts";

export const CHECK_BUDGETS_SQL = {
  budgetsReserved: "select * from run_budgets where reserved_usd <> 0 or reserved_tokens <> 0 or reserved_calls <> 0",
  budgetsMoved: "select * from run_budgets where parent is not null and closed = 0",
  budgetRow: "select * from run_budgets where budget = ?",
  reservationsOpen: "select * from budget_reservations where state = 0",
  budgetsMissing: `select id, budget from runs where budget is not null
    and not exists (select 1 from run_budgets where run_budgets.budget = runs.budget) limit 100`,
  budgetsUnowned: `select owner from run_budgets
    where not exists (select 1 from runs where runs.run = run_budgets.budget) limit 100`,
  requestsOf: "select 1 from budget_reservations where run = ? and state = 1 limit 1",
  requestsUnlisted: `select runs.id as id, held.command as command from budget_reservations as held join runs on runs.run = held.run
    where held.state = 1 and not exists
      (select 1 from run_promises as listed where listed.run = held.run and listed.command = held.command) limit 100`,
  requestsStale: `select runs.id as id, listed.command as command from run_promises as listed join runs on runs.run = listed.run
    where listed.seq = 0 and not exists
      (select 1 from budget_reservations as held where held.run = listed.run and held.command = listed.command and held.state = 1)
    limit 100`,
} as const;

type BudgetRow = RowOf<"run_budgets">;

const BOOKS = "I51 budgets match their reservations";
const LISTED = "I52 requests of budgets listed";

export function checkBudgets(sql: CheckStatements): readonly Problem[] {
  const expected = expectedAmounts(sql);
  const reserved = sql.budgetsReserved.all() as unknown as BudgetRow[];
  const numbers = new Set([...expected.keys(), ...reserved.map(({ budget }) => budget)]);
  const problems: Problem[] = [];
  for (const number of numbers) {
    const row = sql.budgetRow.get(number) as unknown as BudgetRow | undefined;
    if (row === undefined) continue;
    const wanted: Amounts = expected.get(number) ?? { usd: 0, tokens: 0, calls: 0 };
    const actual = { usd: row.reserved_usd, tokens: row.reserved_tokens, calls: row.reserved_calls };
    if (DIMENSIONS.every((dimension) => actual[dimension] === wanted[dimension])) continue;
    const text = (amounts: Amounts): string => costText(shownCost(amounts, capsOf(row)));
    problems.push({
      invariant: BOOKS,
      run: row.owner,
      seq: undefined,
      message: `The budget of run ${row.owner} has ${text(actual)} reserved, but its reservations are ${text(wanted)}.`,
    });
  }
  for (const { id, budget } of sql.budgetsMissing.all() as unknown as { id: string; budget: number }[])
    problems.push({
      invariant: BOOKS,
      run: id,
      seq: undefined,
      message: `The run pays from budget ${budget}, which does not exist.`,
    });
  for (const { owner } of sql.budgetsUnowned.all() as unknown as { owner: string }[])
    problems.push({
      invariant: BOOKS,
      run: owner,
      seq: undefined,
      message: `The budget of run ${owner} is left, and the run is not.`,
    });
  return [...problems, ...checkRequests(sql)];
}

interface Listed {
  readonly id: string;
  readonly command: string;
}

function checkRequests(sql: CheckStatements): readonly Problem[] {
  const unlisted = sql.requestsUnlisted.all() as unknown as Listed[];
  const stale = sql.requestsStale.all() as unknown as Listed[];
  return [
    ...unlisted.map(({ id, command }) => ({
      invariant: LISTED,
      run: id,
      seq: undefined,
      message: `${command} waits for the budget, which \`reprise promises\` does not show. \`reprise raise\` still works.`,
    })),
    ...stale.map(({ id, command }) => ({
      invariant: LISTED,
      run: id,
      seq: undefined,
      message: `${command} is listed as waiting for the budget, but it does not wait. \`reprise promises\` shows it until the run ends.`,
    })),
  ];
}

/** What each budget should have reserved: open reservations, and what moved to budgets of children. */
function expectedAmounts(sql: CheckStatements): ReadonlyMap<number, Amounts> {
  const expected = new Map<number, { [D in Dimension]: number }>();
  const add = (from: number, dimension: Dimension, amount: number): void => {
    const budget = amount === 0 ? undefined : nearestCap(sql, from, dimension);
    if (budget === undefined) return;
    const amounts = expected.get(budget) ?? { usd: 0, tokens: 0, calls: 0 };
    amounts[dimension] += amount;
    expected.set(budget, amounts);
  };
  for (const row of sql.reservationsOpen.all() as unknown as RowOf<"budget_reservations">[])
    for (const dimension of DIMENSIONS) add(row.budget, dimension, row[dimension]);
  for (const row of sql.budgetsMoved.all() as unknown as BudgetRow[])
    for (const dimension of DIMENSIONS) add(row.parent ?? 0, dimension, row[`moved_${dimension}`]);
  return expected;
}

/** spending.S4 */
function nearestCap(sql: CheckStatements, from: number, dimension: Dimension): number | undefined {
  for (let next: number | null = from; next !== null;) {
    const row = sql.budgetRow.get(next) as unknown as BudgetRow | undefined;
    if (row === undefined) break;
    if (row[`cap_${dimension}`] !== null) return next;
    next = row.parent;
  }
  return from;
}

function capsOf(row: BudgetRow): object {
  return Object.fromEntries(DIMENSIONS.filter((one) => row[`cap_${one}`] !== null).map((one) => [one, 0]));
}
