// A store that was migrated to the schema with contents and budgets.

import { expect } from "vitest";
import type { WireRow } from "../../src/stores/remote/backend.ts";
import { CHAIN_START, chainAfter, markOf, type Store } from "../../src/kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  registerWorker,
  startHeld,
  takeTurn,
} from "../../src/testing/store-cases/store-actions.ts";
import { entryRow, runRow } from "./rows.ts";

/** How a database writes names and bytes. */
export interface Dialect {
  readonly table: (name: string) => string;
  readonly quote: '"' | "`";
  readonly bytes: (hex: string) => string;
}

const STARTED = '{"input":"before"}';

function insert({ table, quote, bytes }: Dialect, name: string, row: WireRow): string {
  const literal = (value: WireRow[string]): string => {
    if (value instanceof Uint8Array) return bytes(Buffer.from(value).toString("hex"));
    return value === null || typeof value === "number" ? String(value) : `'${value}'`;
  };
  const columns = Object.keys(row).map((column) => `${quote}${column}${quote}`);
  return `insert into ${table(name)} (${columns.join(", ")}) values (${Object.values(row).map(literal).join(", ")})`;
}

/** The statements with which a process of the version before starts the run `run-<number>`. */
export function startBefore(dialect: Dialect, run: number): readonly string[] {
  const chain = chainAfter(CHAIN_START, "RunStarted", "", STARTED);
  const { budget: _, ...columns } = runRow(run, { chain, definition: "checkout" });
  const entry = { ...entryRow(run, 1, Buffer.from(STARTED)), mark: markOf(chain) };
  return [insert(dialect, "runs", columns), insert(dialect, "journal", entry)];
}

/** Its run 1 is of before; `startSecond` starts run 2 as a process of the version before does. */
export async function takesBudgets(store: Store, startSecond: () => Promise<unknown>): Promise<void> {
  const worker = await registerWorker(store);
  const large = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => at));
  const expectOld = async (id: string): Promise<void> => {
    const held = await takeTurn(store, worker);
    expect(held.id).toBe(id);
    const own = await getRun(store, id);
    expect([own.budget, await store.readBudget(own.run)]).toEqual([undefined, undefined]);
    const after = await commitTurn(store, held, { entries: [["OperationCompleted", "Operation(0)", large]] });
    await commitTurn(store, after, COMPLETES);
    const [started, operation] = await store.readJournal(own.run, 0);
    expect([started?.data, operation?.data === large]).toEqual([STARTED, true]);
    expect(await getRun(store, id)).toMatchObject({ status: "completed", head: 3 });
  };
  await expectOld("run-1");
  const budget = { cap: { calls: 3 }, onReached: "ask" } as const;
  const held = await startHeld(store, worker, "new", { budget });
  await startSecond();
  await expectOld("run-2");
  const reserve = { usd: 0, tokens: 0, calls: 2 };
  const place = { run: held.run, budget: held.run, token: held.token, command: "Operation(0)", execution: 1 };
  expect(await store.write([{ write: "reserve", ...place, reserve }])).toMatchObject([{ status: "reserved" }]);
  expect(await store.readBudget(held.run)).toMatchObject({ cap: { calls: 3 }, reserved: reserve });
}
