// Budget: the work of budget, raise and decline.

import { formatMs, RepriseError } from "../base/index.ts";
import { budgetOf, type Budget, type BudgetAnswerOptions, type Run } from "../engine/index.ts";
import { costText, type Cost, type RunRecord, type Store } from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { getRun, withStore, withStoreToRead } from "./open-store.ts";
import { paint, print, printJson } from "./output.ts";
import { isoOf } from "./run-format.ts";
import { plain } from "./text.ts";

export interface CostOptions {
  readonly usd?: number;
  readonly tokens?: number;
  readonly calls?: number;
}

export interface AnswerOptions extends GlobalOptions {
  readonly by?: string;
  readonly reason?: string;
}

export interface RaiseOptions extends AnswerOptions, CostOptions {}

/** `2`, `usd=2` or `usd=2,tokens=100000`. */
export function parseBudget(text: string): Cost {
  const parts = text.split(",").map((part) => /^(?:(usd|tokens|calls)=)?\$?(\d+(?:\.\d+)?)$/.exec(part.trim()));
  if (parts.some((part) => part === null))
    throw new RepriseError(
      "USAGE",
      `--budget: expected dollars, or amounts such as usd=2,tokens=100000, got ${plain(text)}.`,
    );
  return Object.fromEntries(parts.map((part) => [part![1] ?? "usd", Number(part![2])]));
}

/** The budget that a run pays from; undefined: it has none. */
export async function readBudget(store: Store, { budget }: RunRecord): Promise<Budget | undefined> {
  const reading = budget === undefined ? undefined : await store.readBudget(budget);
  return reading && budgetOf(reading);
}

export async function showBudget(id: string, options: GlobalOptions): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id);
    const budget = await readBudget(store, record);
    if (options.json) await printJson({ id: record.id, budget: budget === undefined ? null : budgetJson(budget) });
    else if (budget === undefined) await print(`Run ${plain(record.id)} has no budget.`);
    else for (const line of budgetLines(budget, store.now())) await print(line);
    return EXIT.ok;
  });
}

export function raise(id: string, { usd, tokens, calls, ...options }: RaiseOptions): Promise<number> {
  const add: Cost = {
    ...(usd !== undefined && { usd }),
    ...(tokens !== undefined && { tokens }),
    ...(calls !== undefined && { calls }),
  };
  if (Object.keys(add).length === 0)
    throw new RepriseError("USAGE", "raise: expected an amount: --usd, --tokens or --calls.");
  return answer(id, options, "raised the budget of", (run, answered) => run.raise(add, answered));
}

export function decline(id: string, options: AnswerOptions): Promise<number> {
  return answer(id, options, "declined to raise the budget of", (run, answered) => run.declineBudget(answered));
}

async function answer(
  id: string,
  options: AnswerOptions,
  past: string,
  act: (run: Run<any>, options: BudgetAnswerOptions) => Promise<void>,
): Promise<number> {
  const { by, reason } = options;
  return withStore(options.store, async (store) => {
    const record = await getRun(store, id);
    const definition = placeholderDefinition(record.definition);
    await withClient(store, [definition], (client) =>
      act(client.get(definition, record.id), {
        ...(by !== undefined && { by }),
        ...(reason !== undefined && { reason }),
      }),
    );
    if (options.json) await printJson({ id: record.id, done: true });
    else await print(`${paint("green", past)} ${plain(record.id)}`);
    return EXIT.ok;
  });
}

export function budgetJson({ waiting, ...budget }: Budget): object {
  return { ...budget, waiting: waiting.map(({ since, ...request }) => ({ ...request, since: isoOf(since) })) };
}

/** The budget as lines for people. */
export function budgetLines(budget: Budget, now: number): readonly string[] {
  const { owner, cap, spent, reserved, lost, onReached, waiting } = budget;
  const books = [`${costText(spent)} spent`, `${costText(reserved)} reserved`, `${costText(lost)} lost`];
  const then = onReached === "ask" ? "asks when it is reached" : "fails when it is reached";
  return [
    `${paint("bold", "budget")} ${costText(cap)} of ${plain(owner)}, ${then}`,
    `  ${books.join(", ")}`,
    ...waiting.map(({ run, command, reserve, since }) => {
      const of = run === owner ? "" : ` of ${plain(run)}`;
      const waited = formatMs(Math.max(0, now - since.getTime()));
      return `  ${paint("yellow", "waiting")} ${plain(command)}${of} would reserve ${costText(reserve)}, for ${waited}`;
    }),
    ...(waiting.length === 0 ? [] : [`  ${paint("dim", "next:")} ${withStoreOption(raiseCommand(owner, cap))}`]),
  ];
}

/** Names a dimension that the budget caps: others cannot be raised. */
export function raiseCommand(id: string, cap: Cost): string {
  return `reprise raise ${shellWord(id)} --${Object.keys(cap)[0] ?? "usd"} <amount>`;
}
