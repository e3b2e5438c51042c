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
import { describeOn, freshDatabase } from "../../servers/index.ts";
import { pathInfo, type Path } from "../../../src/stores/rows/indexes.ts";
import { keyColumns } from "../../../src/stores/rows/tables.ts";
import { listQuery } from "../list-queries.ts";
import { countBy, distinctBy, lookupBy, selectBy } from "../path-queries.ts";
import { sentQueries, WHOLE_TABLES, type SentQuery } from "../sent-queries.ts";
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
const QUERIES: readonly { index: string; sorted?: true; listed?: true; query: Query }[] = [
  // claims
  { index: "runs_due", query: selectBy("runs_due", ["d", 1], { limit: 10 }, "skip") },
  { index: "runs_due", query: selectBy("runs_due", ["d", 1], { limit: 10 }) },
  { index: "runs_due", query: distinctBy("runs_due", [], "definition") },
  { index: "runs_suspect", query: selectBy("runs_suspect", ["d", 1], { limit: 512 }) },
  { index: "runs_suspect", query: selectBy("runs_suspect", ["d", 1], { limit: 64, also: { takeovers: 3 } }, "skip") },
  { index: "runs_suspect", query: distinctBy("runs_suspect", [], "definition") },
  { index: "runs_held", query: selectBy("runs_held", [7], { limit: 1, also: { takeovers: { least: 2 } } }) },
  { index: "queue_ready", query: selectBy("queue_ready", ["n"], { limit: 10 }, "skip") },
  { index: "queue_ready", query: distinctBy("queue_ready", [], "name") },
  { index: "queue_suspect", query: selectBy("queue_suspect", ["n"], { limit: 512 }) },
  { index: "queue_suspect", query: selectBy("queue_suspect", ["n"], { limit: 64, also: { takeovers: 3 } }, "skip") },
  { index: "queue_suspect", query: distinctBy("queue_suspect", [], "name") },
  { index: "queue_leased", query: selectBy("queue_leased", [7], { limit: 1, also: { takeovers: { least: 2 } } }) },
  { index: "queue_leased", sorted: true, query: selectBy("queue_leased", [7], {}, "update") },
  { index: "queue_delayed", query: selectBy("queue_delayed", [], { upTo: 5, limit: 10 }) },
  { index: "queue_lined", query: distinctBy("queue_lined", ["task"], "queue", "name") },
  { index: "queue_lined", query: selectBy("queue_lined", ["task", "q", "n"], { limit: 10 }, "skip") },
  { index: "queue_parked", query: selectBy("queue_parked", ["task", "q", "k"], { limit: 10 }, "update") },
  { index: "queue_parked", query: selectBy("queue_parked", ["task"], { limit: 1 }) },
  { index: "queue_busy", query: countBy("queue_busy", ["task", "q"]) },
  { index: "queue_busy", query: countBy("queue_busy", ["task", "q", "k"]) },
  { index: "begun_pkey", query: selectBy("begun", ["task", "q", "k"], { after: 5 }) },
  { index: "lanes_opening", query: selectBy("lanes_opening", [], { upTo: 5, limit: 10 }, "skip") },
  { index: "lanes_opening", query: selectBy("lanes_opening", [], { limit: 1 }) },
  { index: "outbox_next", query: selectBy("outbox_next", ["d"], { upTo: 5, limit: 10 }, "skip") },
  { index: "outbox_next", query: selectBy("outbox_next", ["d"], { after: 5, limit: 1 }) },

  // rows of a run
  { index: "runs_pkey", sorted: true, query: lookupBy("runs", [1], "update") },
  { index: "runs_id_generation_key", sorted: true, query: lookupBy("runs_by_id", ["x"], "update") },
  { index: "runs_id_generation_key", sorted: true, query: lookupBy("runs_by_id", ["x", 0], "update") },
  { index: "runs_id_generation_key", query: selectBy("runs_by_id", ["x"], { backwards: true, limit: 1 }, "update") },
  { index: "queue_pkey", sorted: true, query: lookupBy("queue", [1, "a"], "update") },
  { index: "queue_pkey", sorted: true, query: lookupBy("queue", [1], "update") },
  { index: "queue_pkey", query: selectBy("queue", [1], { limit: 10 }, "update") },
  { index: "inbox_pkey", query: selectBy("inbox", [1], { after: 5 }) },
  { index: "once_pkey", query: selectBy("once", [1], { limit: 10 }) },
  { index: "once_pkey", query: selectBy("once", [1], { also: { at: { above: 0 } } }) },
  { index: "chunks_pkey", query: selectBy("chunks", [1, "s"], { backwards: true, limit: 1 }) },
  { index: "outbox_pkey", query: selectBy("outbox", [1], { backwards: true, limit: 1 }, "update") },
  { index: "journal_pkey", query: selectBy("journal", [1], { after: 5, limit: 1000 }) },

  // maintenance
  { index: "runs_held", sorted: true, query: selectBy("runs_held", [7], {}, "update") },
  { index: "runs_held", query: distinctBy("runs_held", [], "turn_worker") },
  { index: "runs_by_root", sorted: true, query: selectBy("runs_by_root", [1], { also: { parent: 2 } }, "update") },
  { index: "runs_ended", query: selectBy("runs_ended", ["failed", "d"], { after: 1, before: 5, limit: 100 }) },
  { index: "runs_ended", query: selectBy("runs_ended", ["failed", "d"], { after: 1, limit: 1 }) },
  { index: "once_by_time", query: selectBy("once_by_time", [], { before: 5, limit: 10 }, "skip") },
  { index: "leftovers_pkey", query: selectBy("leftovers", [], { limit: 10 }, "skip") },
  { index: "begun_until", query: selectBy("begun_until", [], { upTo: 5, limit: 20 }, "skip") },
  { index: "schedules_due", query: selectBy("schedules_due", ["d"], { upTo: 5, limit: 10 }, "update") },

  // backlog
  { index: "queue_ready", query: distinctBy("queue_ready", [], "name", "priority") },
  { index: "runs_due", query: distinctBy("runs_due", [], "definition", "version", "priority") },

  // lists
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", before: 9 }) },
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", kind: "graph", before: 9 }) },
  { index: "runs_by_definition", listed: true, query: listQuery({ definition: "d", statuses: ["queued", "failed"] }) },
  { index: "runs_unhappy", listed: true, query: listQuery({ statuses: ["failed"], before: 9 }) },
  { index: "runs_unhappy", listed: true, query: listQuery({ statuses: ["failed", "paused"] }) },
  { index: "runs_pkey", listed: true, query: listQuery({ statuses: ["queued", "failed"], kind: "graph" }) },
  { index: "runs_pkey", listed: true, query: listQuery({ before: 9 }) },
  { index: "runs_pkey", listed: true, query: listQuery({ idContains: "x", errorCode: "E", endedAfter: 5 }) },
  { index: "tags_by_tag", listed: true, query: listQuery({ tags: ["x"], before: 9 }) },
];

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

/** Names of indexes that differ from their paths. */
const INDEX_NAMES: Partial<Record<Path, string>> = {
  runs_by_id: "runs_id_generation_key",
  langgraph_checkpoints_key: "langgraph_checkpoints_thread_namespace_id_key",
};

function indexOf(path: Path): string {
  return INDEX_NAMES[path] ?? (pathInfo(path).isPrimary ? `${path}_pkey` : path);
}

/** Paths of lists and counts for people: like lists, they may use another index after a table has grown (docs/decisions/0080). */
const FOR_PEOPLE: ReadonlySet<Path> = new Set<Path>([
  "runs_by_definition",
  "runs_unhappy",
  "tags_by_tag",
  "queue_later",
]);

/** Its index must not contain the run's number (docs/decisions/0080): a list of children sorts the runs of one family. */
const SORTED: ReadonlySet<Path> = new Set<Path>(["runs_by_root"]);

function isForPeople({ walk }: SentQuery): boolean {
  // The first turn of each priority is read only to count a backlog.
  return walk !== undefined && (FOR_PEOPLE.has(walk.path) || (walk.path === "runs_due" && walk.prefix.length === 3));
}

/** What is wrong with the plan of a query that the store cases send. */
async function problemOf(client: Client, { shape, query, walk }: SentQuery): Promise<string | undefined> {
  if (WHOLE_TABLES.has(shape)) return undefined;
  const plan = await planOf(client, bindQuery(shapes, query));
  const problem = (what: string): string => `${shape}: ${what}\n${plan}`;
  if (walk === undefined) return problem("no declared path");
  if (/Seq Scan|Bitmap|Hash Join|Merge Join/.test(plan)) return problem("scans the table");
  if (!plan.includes(`using ${indexOf(walk.path)} on`)) return problem(`does not use ${indexOf(walk.path)}`);
  const seeks = plan.split("\n").filter((line) => line.includes("Index Cond:"));
  if (walk.prefix.some((column) => !seeks.some((seek) => new RegExp(`\\b"?${column}"? = `).test(seek))))
    return problem(`does not seek ${walk.prefix.join()}`);
  // Rows without a limit are sorted when all of them were found; the first of many must come from the index.
  const isLimited = query.kind === "select" && query.limit !== undefined && !SORTED.has(walk.path);
  const below = plan.includes("LockRows") ? plan.slice(plan.indexOf("LockRows")) : plan;
  return isLimited && below.replaceAll("Incremental Sort", "").includes("Sort ") ? problem("sorts") : undefined;
}

async function problemsOf(client: Client, sent: readonly SentQuery[]): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const one of sent) {
    const problem = await problemOf(client, one);
    if (problem !== undefined) problems.push(problem);
  }
  return problems;
}

async function expectGoodPlans(client: Client, sent: readonly SentQuery[], isNew = false): Promise<void> {
  for (const { index, sorted, listed, query } of QUERIES) {
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
  for (const { index, listed, query } of QUERIES) {
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
    const [seek = ""] = /Index Cond: .*/.exec(plan) ?? [];
    expect(seek).toContain("run = ANY (ARRAY[k.run])");
    for (const column of keyColumns(change.table).slice(1)) expect(seek).toMatch(`${column} = `);
    expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash Join|Merge Join/);
  }
  const checked = sent.filter((one) => isNew || !isForPeople(one));
  expect(await problemsOf(client, checked)).toEqual([]);
}

describeOn("postgres", "plans on PostgreSQL", () => {
  test("claims, commits and everything that store cases read use the intended index, on empty and on full tables", async () => {
    const sent = await sentQueries();
    await using database = await freshDatabase("postgres");
    await (await (await openPostgresBackend({ url: database.url })).connect()).close();
    const client = new Client(database.url);
    await client.connect();
    try {
      for (const [name, value] of Object.entries(sessionSettings(DEFAULT_TIMEOUTS)))
        await client.query("select set_config($1, $2, false)", [name, value]);
      await expectGoodPlans(client, sent, true);
      // Statistics say that the tables are empty.
      await client.query("analyze");
      await expectGoodPlans(client, sent);
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
      await expectGoodPlans(client, sent);
      await client.query("analyze reprise.runs, reprise.queue");
      await expectGoodPlans(client, sent);
    } finally {
      await client.end();
    }
  }, 180_000);
});
