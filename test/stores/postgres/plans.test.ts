// PostgreSQL uses the intended index for every query of claims and commits, whatever its statistics say.

import { Client } from "pg";
import { expect, test } from "vitest";
import type { Change } from "../../../src/stores/remote/backend.ts";
import type { Query } from "../../../src/stores/remote/query.ts";
import { openPostgresBackend } from "../../../src/stores/postgres/backend.ts";
import { bindChange } from "../../../src/stores/postgres/bind-change.ts";
import { DEFAULT_TIMEOUTS, sessionSettings } from "../../../src/stores/postgres/driver.ts";
import { groupQueries } from "../../../src/stores/postgres/group-queries.ts";
import { bindQuery } from "../../../src/stores/postgres/bind-query.ts";
import { Shapes } from "../../../src/stores/postgres/shapes.ts";
import type { Bound, Parameter } from "../../../src/stores/postgres/wire.ts";
import {
  begunAt,
  busyItems,
  delayedItems,
  DUE_DEFINITIONS,
  dueRateGates,
  dueTurns,
  equal,
  fixed,
  heldIsolated,
  idsOfRun,
  inboxFrom,
  itemsOfRun,
  lastChunkOf,
  lastOfLine,
  leasedItems,
  leasedIsolated,
  linedItems,
  linesOf,
  newestOfId,
  NEXT_RATE_GATE,
  none,
  onceOfRun,
  outgoingAfter,
  outgoingTo,
  parkedItems,
  parkedOfKind,
  READY_NAMES,
  readyItems,
  some,
  SUSPECT_DEFINITIONS,
  SUSPECT_NAMES,
  suspectItemGroup,
  suspectItems,
  suspectTurnGroup,
  suspectTurns,
} from "../../../src/stores/remote/statements/selections.ts";
import { LEFTOVERS, oldIds } from "../../../src/stores/remote/statements/sweep.ts";
import { describeOn, freshDatabase } from "../../servers/index.ts";
import { listQuery } from "../list-queries.ts";
import { itemRow, runRow } from "../rows.ts";

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

/** The generic plan, as Reprise's connections use it. */
async function planOf(client: Client, { shape, values }: Bound): Promise<string> {
  const name = `p${(count += 1)}`;
  const types = values.length === 0 ? "" : ` (${values.map(typeOf).join(", ")})`;
  await client.query(`prepare ${name}${types} as ${shape.text}`);
  const given = values.length === 0 ? "" : ` (${values.map(literalOf).join(", ")})`;
  const { rows } = await client.query<Record<string, string>>(`explain (costs off) execute ${name}${given}`);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** The index, and whether rows are sorted. Lists for people may use another index if it is as good. */
const QUESTIONS: readonly { index: string; sorted?: true; listed?: true; query: Query }[] = [
  // claims
  { index: "runs_due", query: dueTurns("skip", "d", 1, 10) },
  { index: "runs_due", query: dueTurns("none", "d", 1, 10) },
  { index: "runs_due", query: DUE_DEFINITIONS },
  { index: "runs_suspect", query: suspectTurns("d", 1, 512) },
  { index: "runs_suspect", query: suspectTurnGroup("skip", "d", 1, 3, 64) },
  { index: "runs_suspect", query: SUSPECT_DEFINITIONS },
  { index: "runs_held", query: heldIsolated(7) },
  { index: "queue_ready", query: readyItems("skip", "n", 10) },
  { index: "queue_ready", query: READY_NAMES },
  { index: "queue_suspect", query: suspectItems("n", 512) },
  { index: "queue_suspect", query: suspectItemGroup("skip", "n", 3, 64) },
  { index: "queue_suspect", query: SUSPECT_NAMES },
  { index: "queue_leased", query: leasedIsolated(7) },
  { index: "queue_leased", sorted: true, query: leasedItems("update", 7) },
  { index: "queue_delayed", query: delayedItems(10) },
  { index: "queue_lined", query: linesOf("task") },
  { index: "queue_lined", query: linedItems("skip", "task", "q", "n", 10) },
  { index: "queue_parked", query: parkedItems("update", "task", "q", "k", 10) },
  { index: "queue_parked", query: parkedOfKind("task") },
  { index: "queue_busy", query: { kind: "count", table: "queue", where: busyItems("task", "q") } },
  { index: "queue_busy", query: { kind: "count", table: "queue", where: busyItems("task", "q", "k") } },
  { index: "begun_pkey", query: begunAt("task", "q", "k", 5) },
  { index: "lanes_opening", query: dueRateGates("skip", 5, 10) },
  { index: "lanes_opening", query: NEXT_RATE_GATE },
  { index: "outbox_next", query: outgoingTo("skip", "d", 5, 10) },
  { index: "outbox_next", query: outgoingAfter("d", 5) },

  // rows of a run
  { index: "runs_pkey", sorted: true, query: lookup("runs", ["run"], [1]) },
  { index: "runs_id_generation_key", sorted: true, query: lookup("runs", ["id"], ["x"]) },
  { index: "runs_id_generation_key", sorted: true, query: lookup("runs", ["id", "generation"], ["x", 0]) },
  { index: "runs_id_generation_key", query: newestOfId("update", "x") },
  { index: "queue_pkey", sorted: true, query: lookup("queue", ["run", "item"], [1, "a"]) },
  { index: "queue_pkey", sorted: true, query: lookup("queue", ["run"], [1]) },
  { index: "queue_pkey", query: itemsOfRun("update", 1, 10) },
  { index: "inbox_pkey", query: inboxFrom(1, 5) },
  { index: "once_pkey", query: onceOfRun(1, 10) },
  { index: "once_pkey", query: idsOfRun(1) },
  { index: "chunks_pkey", query: lastChunkOf(1, "s") },
  { index: "outbox_pkey", query: lastOfLine("update", 1) },
  {
    index: "journal_pkey",
    query: {
      kind: "select",
      table: "journal",
      where: [equal("run", 1), { column: "seq", is: ">", value: 5 }],
      order: [["seq", "asc"]],
      limit: 1000,
      lock: "none",
    },
  },

  // maintenance
  {
    index: "runs_held",
    sorted: true,
    query: {
      kind: "select",
      table: "runs",
      where: [some("turn_worker"), equal("turn_worker", 7)],
      order: [["run", "asc"]],
      lock: "update",
    },
  },
  {
    index: "runs_held",
    query: { kind: "distinct", table: "runs", columns: ["turn_worker"], where: [some("turn_worker")] },
  },
  {
    index: "runs_by_root",
    sorted: true,
    query: {
      kind: "select",
      table: "runs",
      where: [equal("root", 1), equal("parent", 2)],
      order: [["run", "asc"]],
      lock: "update",
    },
  },
  { index: "once_by_time", sorted: true, query: oldIds("write", 5, 10) },
  { index: "leftovers_pkey", query: LEFTOVERS("write") },
  {
    index: "begun_until",
    query: {
      kind: "select",
      table: "begun",
      where: [{ column: "until", is: "<=", value: 5 }],
      order: [["until", "asc"]],
      limit: 20,
      lock: "skip",
    },
  },
  {
    index: "schedules_due",
    query: {
      kind: "select",
      table: "schedules",
      where: [some("due_at"), equal("definition", "d"), { column: "due_at", is: "<=", value: 5 }],
      order: [["due_at", "asc"]],
      limit: 10,
      lock: "update",
    },
  },

  // backlog
  {
    index: "queue_ready",
    query: {
      kind: "distinct",
      table: "queue",
      columns: ["name", "priority"],
      where: [fixed("state", 1), none("queue")],
    },
  },
  {
    index: "runs_due",
    query: {
      kind: "distinct",
      table: "runs",
      columns: ["definition", "version", "priority"],
      where: [fixed("turn_due", 1), none("turn_token")],
    },
  },

  // lists
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", before: 9 }) },
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", kind: "graph", before: 9 }) },
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", statuses: ["queued", "failed"] }) },
  { index: "runs_unhappy", listed: true, query: listQuery({ statuses: ["failed"], before: 9 }) },
  { index: "runs_unhappy", listed: true, query: listQuery({ statuses: ["failed", "paused"] }) },
  { index: "runs_pkey", listed: true, query: listQuery({ statuses: ["queued", "failed"], kind: "graph" }) },
  { index: "runs_pkey", listed: true, query: listQuery({ before: 9 }) },
  { index: "tags_by_tag", listed: true, query: listQuery({ tag: "x", before: 9 }) },
];

function lookup(table: "runs" | "queue", columns: readonly string[], key: readonly (number | string)[]): Query {
  return { kind: "lookup", table, columns, keys: [key], lock: "update" } as Query;
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
  for (const { index, sorted, listed, query } of QUESTIONS) {
    if (listed === true && !isNew) continue;
    const plan = await planOf(client, bindQuery(shapes, query));
    expect(plan).toContain(`using ${index} on`);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
    // Locked rows are sorted once more (bind-query.Q1); rows from the index are not.
    const below =
      query.kind === "distinct" ? plan.slice(plan.indexOf("Recursive")) : plan.slice(plan.indexOf("LockRows"));
    if (sorted !== true && !below.includes("Incremental Sort"))
      expect([below, below.includes("Sort")]).toEqual([below, false]);
  }
  for (const { index, listed, query } of QUESTIONS) {
    if (listed === true && !isNew) continue;
    const groups = groupQueries(shapes, Array(5).fill(bindQuery(shapes, query)));
    if (groups.length !== 1) continue;
    const plan = await planOf(client, groups[0]!);
    expect(plan).toContain(`using ${index} on`);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
  }
  for (const { index, change } of CHANGES) {
    const plan = await planOf(client, bindChange(shapes, change));
    expect(plan).toContain(`using ${index} on`);
    expect(plan).toMatch(new RegExp(`Index Cond: \\(.*run = ANY \\(ARRAY\\[k\\.run\\]\\)`));
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
  }
}

describeOn("postgres", "plans on PostgreSQL", () => {
  test("claims and commits use the intended index, on empty tables and on full ones", async () => {
    await using database = await freshDatabase("postgres");
    await (await (await openPostgresBackend({ url: database.url })).connect()).close();
    const client = new Client(database.url);
    await client.connect();
    try {
      for (const [name, value] of Object.entries(sessionSettings(DEFAULT_TIMEOUTS)))
        await client.query("select set_config($1, $2, false)", [name, value]);
      await expectGoodPlans(client, true);
      // Statistics say that the tables are empty.
      await client.query("analyze");
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
