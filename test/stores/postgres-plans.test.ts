// How PostgreSQL finds what claims and commits ask for: by the index meant for it, whatever it believes about the tables.

import { Client } from "pg";
import { expect, test } from "vitest";
import type { Change, Question } from "../../src/stores/index.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { bindChange } from "../../src/stores/postgres/changes.ts";
import { DEFAULT_TIMEOUTS, sessionSettings } from "../../src/stores/postgres/driver.ts";
import { bindQuestion } from "../../src/stores/postgres/questions.ts";
import { Shapes } from "../../src/stores/postgres/shapes.ts";
import type { Bound, Parameter } from "../../src/stores/postgres/wire.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import { itemRow, runRow } from "./backend-cases.ts";

const shapes = new Shapes("reprise");

const SQL_TYPES = { int: "bigint", text: "text", payload: "bytea" } as const;

const typeOf = (value: Parameter): string => `${SQL_TYPES[value.type]}${"rows" in value ? "[]" : ""}`;

function literalOf(value: Parameter): string {
  if ("rows" in value) return `'{}'::${typeOf(value)}`;
  return value.value === null
    ? "null"
    : typeof value.value === "number"
      ? String(value.value)
      : `'${String(value.value)}'`;
}

let count = 0;

/** The plan that serves every value, as our connections have it. */
async function planOf(client: Client, { shape, values }: Bound): Promise<string> {
  const name = `p${(count += 1)}`;
  const types = values.length === 0 ? "" : ` (${values.map(typeOf).join(", ")})`;
  await client.query(`prepare ${name}${types} as ${shape.text}`);
  const given = values.length === 0 ? "" : ` (${values.map(literalOf).join(", ")})`;
  const { rows } = await client.query<Record<string, string>>(`explain (costs off) execute ${name}${given}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

const is = (column: string, value: number | string, fixed?: true) =>
  ({ column, is: "=", value, ...(fixed === true && { fixed }) }) as const;
const asc = (...columns: readonly string[]) => columns.map((column) => [column, "asc"] as const);

/** Which index, and whether rows come from it in order. Lists for people may use another one when that is as good. */
const QUESTIONS: readonly { index: string; sorted?: true; listed?: true; question: Question }[] = [
  {
    index: "runs_due",
    question: {
      ask: "select",
      table: "runs",
      where: [is("turn_due", 1, true), { column: "turn_token", is: "null" }, is("definition", "d"), is("version", 1)],
      order: [["priority", "desc"], ...asc("run")],
      limit: 10,
      lock: "skip",
    },
  },
  {
    index: "runs_due",
    question: {
      ask: "distinct",
      table: "runs",
      columns: ["definition"],
      where: [is("turn_due", 1, true), { column: "turn_token", is: "null" }],
    },
  },
  {
    index: "runs_suspect",
    question: {
      ask: "select",
      table: "runs",
      where: [is("turn_due", 2, true), { column: "turn_token", is: "null" }, is("definition", "d"), is("version", 1)],
      limit: 1,
      lock: "skip",
    },
  },
  {
    index: "runs_held",
    sorted: true,
    question: { ask: "select", table: "runs", where: [is("turn_worker", 7)], lock: "update" },
  },
  {
    index: "runs_live",
    question: {
      ask: "distinct",
      table: "runs",
      columns: ["definition", "version"],
      where: [{ column: "ended_at", is: "null" }],
    },
  },
  {
    index: "runs_id_generation_key",
    question: {
      ask: "select",
      table: "runs",
      where: [is("id", "x")],
      order: [["generation", "desc"]],
      limit: 1,
      lock: "update",
    },
  },
  { index: "runs_pkey", sorted: true, question: lookup("runs", ["run"], [1]) },
  { index: "runs_id_generation_key", sorted: true, question: lookup("runs", ["id"], ["x"]) },
  {
    index: "runs_by_definition",
    listed: true,
    question: {
      ask: "select",
      table: "runs",
      where: [is("definition", "d"), { column: "run", is: "<", value: 9 }],
      order: [["run", "desc"]],
      limit: 50,
      lock: "none",
    },
  },
  {
    index: "runs_by_root",
    sorted: true,
    question: { ask: "select", table: "runs", where: [is("root", 1)], lock: "update" },
  },
  {
    index: "tags_by_tag",
    listed: true,
    question: {
      ask: "select",
      table: "tags",
      where: [is("tag", "x"), { column: "run", is: "<", value: 9 }],
      order: [["run", "desc"]],
      limit: 50,
      lock: "none",
    },
  },
  {
    index: "queue_ready",
    question: {
      ask: "select",
      table: "queue",
      where: [is("state", 1, true), { column: "queue", is: "null" }, is("name", "n")],
      order: [["priority", "desc"], ...asc("available_at", "run", "item")],
      limit: 10,
      lock: "skip",
    },
  },
  {
    index: "queue_ready",
    question: {
      ask: "distinct",
      table: "queue",
      columns: ["name"],
      where: [is("state", 1, true), { column: "queue", is: "null" }],
    },
  },
  {
    index: "queue_lined",
    question: {
      ask: "distinct",
      table: "queue",
      columns: ["queue", "name"],
      where: [is("state", 1, true), { column: "queue", is: "not null" }, is("kind", "task")],
    },
  },
  {
    index: "queue_lined",
    question: {
      ask: "select",
      table: "queue",
      where: [
        is("state", 1, true),
        { column: "queue", is: "not null" },
        is("kind", "task"),
        is("queue", "q"),
        is("name", "n"),
      ],
      order: [["priority", "desc"], ...asc("available_at", "run", "item")],
      limit: 10,
      lock: "skip",
    },
  },
  {
    index: "queue_parked",
    question: {
      ask: "select",
      table: "queue",
      where: [is("state", 5, true), is("kind", "task"), is("queue", "q"), is("key", "k")],
      order: [["priority", "desc"], ...asc("available_at", "run", "item")],
      limit: 10,
      lock: "update",
    },
  },
  {
    index: "queue_busy",
    question: {
      ask: "count",
      table: "queue",
      where: [
        { column: "state", is: "in", values: [2, 6], fixed: true },
        { column: "queue", is: "not null" },
        is("kind", "task"),
        is("queue", "q"),
      ],
    },
  },
  {
    index: "queue_delayed",
    question: {
      ask: "select",
      table: "queue",
      where: [is("state", 0, true), { column: "available_at", is: "<=", value: 5 }],
      order: asc("available_at", "run", "item"),
      limit: 10,
      lock: "skip",
    },
  },
  {
    index: "queue_delayed",
    question: { ask: "count", table: "queue", where: [is("state", 0, true)], least: "available_at" },
  },
  {
    index: "queue_leased",
    sorted: true,
    question: { ask: "select", table: "queue", where: [is("state", 2, true), is("worker", 7)], lock: "update" },
  },
  { index: "queue_pkey", sorted: true, question: lookup("queue", ["run", "item"], [1, "a"]) },
  { index: "queue_pkey", sorted: true, question: lookup("queue", ["run"], [1]) },
  {
    index: "journal_pkey",
    question: {
      ask: "select",
      table: "journal",
      where: [is("run", 1), { column: "seq", is: ">", value: 5 }],
      order: asc("seq"),
      limit: 1000,
      lock: "none",
    },
  },
  {
    index: "once_by_time",
    question: {
      ask: "select",
      table: "once",
      where: [
        { column: "at", is: ">", value: 0, fixed: true },
        { column: "at", is: "<", value: 9 },
      ],
      limit: 10,
      lock: "update",
    },
  },
  {
    index: "outbox_next",
    question: {
      ask: "select",
      table: "outbox",
      where: [is("state", 1, true), is("destination", "d"), { column: "available_at", is: "<=", value: 5 }],
      order: asc("available_at", "line", "run", "seq"),
      limit: 10,
      lock: "skip",
    },
  },
  {
    index: "schedules_due",
    question: {
      ask: "select",
      table: "schedules",
      where: [{ column: "due_at", is: "not null" }, is("definition", "d"), { column: "due_at", is: "<=", value: 5 }],
      order: asc("due_at", "name"),
      limit: 10,
      lock: "update",
    },
  },
];

function lookup(table: "runs" | "queue", columns: readonly string[], key: readonly (number | string)[]): Question {
  return { ask: "lookup", table, columns, keys: [key], lock: "update" } as Question;
}

const CHANGES: readonly { index: string; change: Change }[] = [
  {
    index: "runs_pkey",
    change: {
      change: "update",
      table: "runs",
      columns: ["head", "turn_token", "turn_worker", "status"],
      rows: [runRow(1)],
      expect: ["head", "turn_token", "turn_worker", "status", "turn_due"],
      old: [runRow(1)],
    },
  },
  { index: "queue_pkey", change: { change: "update", table: "queue", columns: ["state"], rows: [itemRow(1, "a")] } },
  {
    index: "queue_pkey",
    change: { change: "delete", table: "queue", rows: [itemRow(1, "a")], expect: ["state"], old: [{ state: 1 }] },
  },
  { index: "inbox_pkey", change: { change: "delete", table: "inbox", rows: [{ run: 1, arrival: 1 }] } },
];

async function expectGoodPlans(client: Client, isNew = false): Promise<void> {
  for (const { index, sorted, listed, question } of QUESTIONS) {
    if (listed === true && !isNew) continue;
    const plan = await planOf(client, bindQuestion(shapes, question));
    expect(plan).toContain(`using ${index} on`);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
    // What was locked is sorted once more (Q1); what comes from the index is not.
    const below = plan.slice(plan.indexOf("LockRows"));
    if (sorted !== true) expect(below).not.toContain("Sort");
  }
  for (const { index, change } of CHANGES) {
    const plan = await planOf(client, bindChange(shapes, change));
    expect(plan).toContain(`using ${index} on`);
    expect(plan).toMatch(new RegExp(`Index Cond: \\(.*run = ANY \\(ARRAY\\[k\\.run\\]\\)`));
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
  }
}

describeOn("postgres", "plans on PostgreSQL", () => {
  test("claims and commits go by the index meant for them, on empty tables and on full ones", async () => {
    await using database = await freshDatabase("postgres");
    await (await (await openPostgresBackend({ url: database.url })).connect()).close();
    const client = new Client(database.url);
    await client.connect();
    try {
      for (const [name, value] of Object.entries(sessionSettings(DEFAULT_TIMEOUTS)))
        await client.query("select set_config($1, $2, false)", [name, value]);
      await expectGoodPlans(client, true);
      // Believed to be empty.
      await client.query("analyze reprise.runs, reprise.queue, reprise.inbox, reprise.journal");
      await expectGoodPlans(client);
      const values = (row: object, run: string): string =>
        Object.entries(row)
          .map(([column, value]) =>
            column === "run" || column === "root"
              ? run
              : column === "id"
                ? `'run-' || ${run}`
                : value === null
                  ? "null"
                  : typeof value === "string"
                    ? `'${value}'`
                    : String(value),
          )
          .join(", ");
      for (const [table, row] of [["runs", runRow(1)] as const, ["queue", itemRow(1, "a")] as const])
        await client.query(
          `insert into reprise.${table} (${Object.keys(row)
            .map((column) => `"${column}"`)
            .join(", ")}) select ${values(row, "g")} from generate_series(1, 20000) g`,
        );
      await expectGoodPlans(client);
      await client.query("analyze reprise.runs, reprise.queue");
      await expectGoodPlans(client);
    } finally {
      await client.end();
    }
  });
});
