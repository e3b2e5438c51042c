// An import: 500 rows of a file, each saved as its own step. Rows that cannot be saved are collected, and a report is
// written only if there are any.

import { readFile } from "node:fs/promises";
import { createEngine, FatalError, flow, typed } from "reprise";
import { parseCsv } from "./csv.ts";

export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly email: string;
  readonly cents: number;
}

/** The database of the example. */
export const saved = new Map<string, Customer>();

async function save(row: Readonly<Record<string, string>>, attempt: number): Promise<number> {
  const { id = "", name = "", email = "", cents = "" } = row;
  if (Number(id) % 50 === 0 && attempt === 1) throw new Error("connection reset"); // the second attempt succeeds
  if (email === "") throw new FatalError(`row ${id} has no email`); // is not retried
  if (!/^\d+$/.test(cents)) throw new FatalError(`row ${id}: ${cents} is not an amount`);
  saved.set(id, { id, name, email, cents: Number(cents) });
  return Number(cents);
}

export const csvImport = flow("csv-import", { input: typed<{ file: string; limit?: number }>() })
  .action("text", ["input"], { retry: { maxAttempts: 3 }, timeout: "30 s" }, (_ctx, { input }) =>
    readFile(new URL(input.file, import.meta.url), "utf8"),
  )
  .inline("rows", ["input", "text"], ({ input, text }) => parseCsv(text).slice(0, input.limit))
  .spread(
    "saved",
    ["rows"],
    { concurrency: 50, settle: true, retry: { maxAttempts: 3, baseDelay: "10ms" } },
    ({ rows }) => rows,
    (ctx, row) => save(row, ctx.attempt),
  )
  .inline("refused", ["saved"], ({ saved: rows }) =>
    rows.flatMap((row) => (row.status === "rejected" ? [(row.reason as Error).message] : [])),
  )
  .when(
    "trouble",
    ["refused"],
    ({ refused }) => refused.length > 0,
    (branch) =>
      branch.action(
        "report",
        ["refused"],
        (_ctx, { refused }) => `${refused.length} rows need a person:\n${refused.join("\n")}`,
      ),
  )
  .otherwise("trouble", (branch) => branch.inline("allWell", ["refused"], () => "every row was saved"))
  .output(["saved", "report", "allWell"], ({ saved: rows, report, allWell }) => ({
    saved: rows.filter((row) => row.status === "fulfilled").length,
    cents: rows.reduce((sum, row) => sum + (row.status === "fulfilled" ? row.value : 0), 0),
    summary: report ?? allWell,
  }));

export const definitions = [csvImport] as const;

if (import.meta.main) {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions, worker: { concurrency: 50 } });
  const run = await engine.start(csvImport, { file: "customers.csv" });
  console.log(await run.result());
}
