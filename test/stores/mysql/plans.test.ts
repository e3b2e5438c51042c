// The server's plan for each query of a claim, a poll and a scan, with enough rows to matter; and
// how many rows it reads.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "mysql2/promise";
import type { Change } from "../../../src/stores/remote/backend.ts";
import type { Condition, Query } from "../../../src/stores/remote/query.ts";
import { planQueries, statementsOf } from "../../../src/stores/mysql/merge-results.ts";
import { renderChange } from "../../../src/stores/mysql/render-change.ts";
import { renderQuery } from "../../../src/stores/mysql/render-query.ts";
import { INDEXES } from "../../../src/stores/mysql/schema-indexes.ts";
import { matches } from "../../../src/stores/remote/evaluate.ts";
import type { AnyRow } from "../../../src/stores/rows/tables.ts";
import { pathInfo, type Path } from "../../../src/stores/rows/indexes.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlFixture, type MysqlFixture } from "./fixture.ts";
import { listQuery } from "../list-queries.ts";
import { countBy, distinctBy, lookupBy, selectBy } from "../path-queries.ts";
import { itemRow, runRow } from "../rows.ts";
import { sentQueries, WHOLE_TABLES, type SentQuery } from "../sent-queries.ts";

const equal = (column: string, value: number | string): Condition => ({ column, is: "=", value });
const none = (column: string): Condition => ({ column, is: "null" });
const some = (column: string): Condition => ({ column, is: "not null" });
const upTo = (column: string, value: number): Condition => ({ column, is: "<=", value });

const MANY = { limit: 50 };

/** Each scans one index from its start and sorts nothing. */
const WALKS: readonly (readonly [path: string, index: string, query: Query])[] = [
  ["runs_due", "runs_due", selectBy("runs_due", ["shop", 1], MANY, "skip")],
  ["runs_due of a priority", "runs_due", selectBy("runs_due", ["shop", 1, 2], { limit: 1 })],
  ["runs_suspect", "runs_due", selectBy("runs_suspect", ["shop", 1], MANY)],
  [
    "runs_suspect of a level",
    "runs_due",
    selectBy("runs_suspect", ["shop", 1], { limit: 2, also: { takeovers: 3 } }, "skip"),
  ],
  ["runs_held, isolated", "runs_held", selectBy("runs_held", [3], { limit: 1, also: { takeovers: { least: 2 } } })],
  ["runs_held", "runs_held", selectBy("runs_held", [3], MANY, "update")],
  ["runs_by_id, newest", "runs_by_id", selectBy("runs_by_id", ["run-7"], { backwards: true, limit: 1 }, "update")],
  [
    "runs_by_id, newest child",
    "runs_by_id",
    selectBy("runs_by_id", ["run-7"], { backwards: true, limit: 1, also: { parent: 3 } }, "update"),
  ],
  ["runs_by_definition", "runs_by_definition", listQuery({ definition: "shop" })],
  ["runs_by_definition before", "runs_by_definition", listQuery({ definition: "shop", before: 900 })],
  ["runs_unhappy", "runs_unhappy", listQuery({ statuses: ["failed"] })],
  ["runs_unhappy before", "runs_unhappy", listQuery({ statuses: ["failed", "paused"], before: 900 })],
  ["tags_by_tag", "tags_by_tag", listQuery({ tags: ["even"] })],
  ["runs before", "PRIMARY", listQuery({ before: 900 })],
  ["runs_by_root", "runs_by_root", selectBy("runs_by_root", [5], { also: { parent: 5 } })],
  ["runs, newest", "PRIMARY", selectBy("runs", [], { backwards: true, limit: 1 })],
  ["queue_ready", "queue_open", selectBy("queue_ready", ["pack"], MANY, "skip")],
  ["queue_ready of a priority", "queue_open", selectBy("queue_ready", ["pack", 3], { limit: 1 })],
  ["queue_leased", "queue_leased", selectBy("queue_leased", [3], {}, "update")],
  [
    "queue_leased, isolated",
    "queue_leased",
    selectBy("queue_leased", [3], { limit: 1, also: { takeovers: { least: 2 } } }),
  ],
  ["queue_suspect", "queue_open", selectBy("queue_suspect", ["pack"], MANY)],
  [
    "queue_suspect of a level",
    "queue_open",
    selectBy("queue_suspect", ["pack"], { limit: 2, also: { takeovers: 3 } }, "skip"),
  ],
  ["queue_delayed", "queue_delayed", selectBy("queue_delayed", [], { upTo: 5, limit: 50 })],
  ["queue of a run", "PRIMARY", selectBy("queue", [3], MANY)],
  ["queue_lined", "queue_lined", selectBy("queue_lined", ["task", "q1", "pack"], MANY, "skip")],
  ["queue_parked", "queue_parked", selectBy("queue_parked", ["task", "q1", "k1"], MANY, "update")],
  ["queue_parked of a kind", "queue_parked", selectBy("queue_parked", ["task"], { limit: 1 })],
  ["begun", "PRIMARY", selectBy("begun", ["task", "q1", "k1"], { after: 5 })],
  ["begun_until", "begun_until", selectBy("begun_until", [], { upTo: 5, limit: 20 }, "skip")],
  ["lanes_opening", "lanes_opening", selectBy("lanes_opening", [], { upTo: 5, limit: 50 })],
  ["lanes_opening, next", "lanes_opening", selectBy("lanes_opening", [], { limit: 1 })],
  ["outbox, last of a line", "PRIMARY", selectBy("outbox", [3], { backwards: true, limit: 1 }, "update")],
  ["outbox, first of a line", "PRIMARY", selectBy("outbox", [3], { limit: 2 }, "update")],
  ["outbox_next", "outbox_next", selectBy("outbox_next", ["mail"], { upTo: 5, limit: 50 }, "skip")],
  ["outbox_next after", "outbox_next", selectBy("outbox_next", ["mail"], { after: 5, limit: 1 })],
  ["chunks, last", "PRIMARY", selectBy("chunks", [3, "s"], { backwards: true, limit: 1 })],
  ["once", "PRIMARY", selectBy("once", [3], MANY)],
  ["once of messages", "PRIMARY", selectBy("once", [3], { also: { at: { above: 0 } } })],
  ["once_by_time", "once_by_time", selectBy("once_by_time", [], { before: 9, limit: 50 }, "skip")],
  ["inbox", "PRIMARY", selectBy("inbox", [3], { after: 5 })],
  ["journal", "PRIMARY", selectBy("journal", [3], { after: 5, limit: 50 })],
  ["schedules_due", "schedules_due", selectBy("schedules_due", ["shop"], { upTo: 5, limit: 50 })],
  ["checkpoints, newest", "PRIMARY", selectBy("checkpoints", [3], { backwards: true, upTo: 9, limit: 1 })],
  [
    "checkpoints_label",
    "checkpoints_label",
    selectBy("checkpoints_label", [3, "l"], { backwards: true, upTo: 9, limit: 1 }),
  ],
  [
    "langgraph_checkpoints_by_thread",
    "langgraph_checkpoints_by_thread",
    selectBy("langgraph_checkpoints_by_thread", ["t"], { backwards: true, before: "x", limit: 50 }),
  ],
];

/** Each seeks from value to value. */
const JUMPS: readonly (readonly [path: string, index: string, query: Query])[] = [
  ["runs_due", "runs_due", distinctBy("runs_due", [], "definition")],
  ["runs_due by priority", "runs_due", distinctBy("runs_due", [], "definition", "version", "priority")],
  ["runs_held", "runs_held", distinctBy("runs_held", [], "turn_worker")],
  ["runs_live", "runs_live", distinctBy("runs_live", [], "definition", "version")],
  ["queue_ready", "queue_open", distinctBy("queue_ready", [], "name")],
  ["queue_ready by priority", "queue_open", distinctBy("queue_ready", [], "name", "priority")],
  ["queue_lined of a kind", "queue_lined", distinctBy("queue_lined", ["task"], "queue", "name")],
  ["queue_lined by priority", "queue_lined", distinctBy("queue_lined", [], "kind", "queue", "name", "priority")],
  ["queue_leased", "queue_leased", distinctBy("queue_leased", [], "worker")],
  ["outbox_next", "outbox_next", distinctBy("outbox_next", [], "destination")],
];

const COUNTS: readonly (readonly [path: string, index: string, query: Query])[] = [
  ["queue_busy of a queue", "queue_lined", countBy("queue_busy", ["task", "q1"])],
  ["queue_busy of a key", "queue_parked", countBy("queue_busy", ["task", "q1", "k1"])],
  ["queue_delayed", "queue_delayed", countBy("queue_delayed", [])],
  ["runs_live of a version", "runs_live", countBy("runs_live", ["shop", 1])],
  ["runs_due of a version", "runs_due", countBy("runs_due", ["shop", 1])],
];

/** The indexes that serve paths of another name (indexes.X2). */
const OTHER_INDEXES: Partial<Record<Path, readonly string[]>> = {
  runs_suspect: ["runs_due"],
  queue_ready: ["queue_open"],
  queue_suspect: ["queue_open"],
  queue_parked: ["queue_parked", "queue_lined"],
  queue_busy: ["queue_lined", "queue_parked"],
  queue_later: ["queue_open", "queue_lined", "queue_parked"],
  schedules_in_line: ["schedules_due"],
  checkpoints_whole: ["PRIMARY"],
};

function indexesOf(path: Path): readonly string[] {
  return OTHER_INDEXES[path] ?? [pathInfo(path).isPrimary ? "PRIMARY" : path];
}

/** Shapes of queries that no index has in order: they read all rows in the given states, and sort. */
const SORTED: ReadonlyMap<string, string> = new Map([
  ["distinct outbox [state = 2, worker not null] worker", "few messages are leased"],
  ['distinct queue [state = 0, kind <> "timer", queue not null] queue', "people count the items of queues"],
  ["distinct queue [state in [2,6], queue not null] kind,queue", "few items of a queue are busy"],
]);

const NOT_FOUND = /^(?:Impossible WHERE noticed|No matching min\/max row|no matching row)/;

interface Step {
  readonly table: string;
  readonly type: string;
  readonly key: string | null;
  readonly extra: string;
}

describeOn("mysql", "plans on MariaDB", () => {
  let world: MysqlFixture;
  let raw: Connection;
  beforeAll(async () => {
    world = await createMysqlFixture();
    const connection = await world.backend.connect();
    await connection.commit(1, 1, crowd());
    await connection.close();
    raw = await world.raw();
    await raw.query("set @reprise_0_0='task',@reprise_0_1='q1',@reprise_0_2='pack',@reprise_0_3=1");
    await raw.query("set session in_predicate_conversion_threshold=0");
  });
  afterAll(async () => world[Symbol.asyncDispose]());

  async function planOf(statement: string): Promise<readonly Step[]> {
    const [rows] = await raw.query({ sql: `explain ${statement}`, rowsAsArray: false });
    return (rows as Record<string, unknown>[]).map(({ table, type, key, Extra }) => ({
      table: String(table),
      type: String(type),
      key: key as string | null,
      extra: String(Extra),
    }));
  }

  /** The number of rows or index entries read. */
  async function reads(...statements: readonly string[]): Promise<number> {
    const connection = await world.raw();
    await connection.query("set session transaction isolation level read committed");
    await connection.query("flush status");
    await connection.query("begin");
    for (const statement of statements) await connection.query(statement);
    const [rows] = await connection.query("show session status like 'Handler_read%'");
    connection.destroy();
    const counts = rows as unknown as [name: string, value: string][];
    return counts.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  test.each(WALKS)("%s scans %s from its start and sorts nothing", async (_name, index, query) => {
    const [statement] = renderQuery(query).statements;
    const steps = await planOf(statement!);
    expect(steps).toHaveLength(1);
    expect(steps[0]?.key).toBe(index);
    expect(["ref", "range", "const", "eq_ref", "index"]).toContain(steps[0]?.type);
    expect(steps[0]?.extra).not.toMatch(/filesort|temporary/);
    expect(await reads(statement!)).toBeLessThanOrEqual(60);
  });

  test.each(JUMPS)("%s seeks from value to value in %s", async (_name, index, query) => {
    const [, first, next] = renderQuery(query).statements;
    for (const statement of [first!, next!]) {
      const [step] = await planOf(statement.replace(/ into @\S+/, ""));
      expect(step?.key).toBe(index);
      expect(step?.extra).not.toMatch(/filesort|temporary/);
    }
    // A variable is a constant: the seek starts after it.
    const [step] = await planOf(next!.replace(/ into @\S+/, ""));
    expect(step?.type).toBe("range");
    expect(await reads(...renderQuery(query).statements)).toBeLessThanOrEqual(60);
  });

  test.each(COUNTS)("%s counts in %s", async (_name, index, query) => {
    const [step] = await planOf(renderQuery(query).statements[0]!);
    expect(step?.key).toBe(index);
    expect(["ref", "range"]).toContain(step?.type);
    expect(step?.extra).toMatch(/Using index/);
  });

  /** What is wrong with the plan of a query that the store cases send. */
  async function problemOf({ shape, query, walk }: SentQuery): Promise<string | undefined> {
    if (WHOLE_TABLES.has(shape) || SORTED.has(shape)) return undefined;
    if (walk === undefined) return `${shape}: no declared path`;
    const statements = renderQuery(query).statements.filter((statement) => statement.includes(" from "));
    for (const statement of statements.slice(0, 2)) {
      const steps = await planOf(statement.replace(/ into @\S+/, ""));
      const problem = (what: string): string => `${shape}: ${what}\n${statement}\n${JSON.stringify(steps)}`;
      // The server has looked the key up already.
      if (steps.every(({ extra }) => NOT_FOUND.test(extra))) continue;
      const [step] = steps.filter(({ table }) => table.startsWith("reprise_"));
      if (step === undefined || !indexesOf(walk.path).includes(step.key ?? "")) return problem("uses another index");
      const isFirst = query.kind === "distinct" || (query.kind === "select" && query.limit !== undefined);
      const isSeek = walk.prefix.length > 0 || !(isFirst || pathInfo(walk.path).isPrimary);
      if (isSeek && !["ref", "range", "const", "eq_ref"].includes(step.type)) return problem("reads the whole index");
      // Rows without a limit are sorted when all of them were found; the first of many must come from the index.
      if (isFirst && /filesort|temporary/.test(step.extra)) return problem("sorts");
    }
    return undefined;
  }

  test("everything that the store cases read uses the index of its path", async () => {
    const problems: string[] = [];
    for (const sent of await sentQueries()) {
      const problem = await problemOf(sent);
      if (problem !== undefined) problems.push(problem);
    }
    expect(problems).toEqual([]);
  }, 180_000);

  test("queries return the same rows with every index", async () => {
    const [inserted] = crowd().filter(({ table }) => table === "queue");
    const rows = inserted!.rows as readonly AnyRow[];
    const connection = await world.backend.connect();
    const random = numbersFrom(7);
    const pick = <T>(...choices: readonly T[]): T => choices[random(choices.length)]!;
    const maybe = (...choices: readonly Condition[]): readonly Condition[] =>
      random(2) === 0 ? [] : [pick(...choices)];
    for (let round = 0; round < 200; round++) {
      const where: readonly Condition[] = [
        pick<Condition>(equal("state", random(7)), { column: "state", is: "in", values: [random(7), random(7)] }),
        ...maybe(none("queue"), some("queue"), equal("queue", "q1"), { column: "queue", is: ">", value: "q0" }),
        ...maybe(equal("kind", "task"), { column: "kind", is: "<>", value: "timer" }),
        ...maybe(equal("name", "pack"), { column: "name", is: ">", value: "n3" }),
        ...maybe(equal("priority", 3), { column: "priority", is: "<=", value: 3 }),
        ...maybe(upTo("available_at", 1), equal("key", "k1"), equal("run", 9), equal("worker", 3)),
      ];
      const expected = rows.filter((row) => matches(where, row));
      const columns = pick(["name"], ["kind", "queue"], ["queue", "name"], ["name", "priority"], ["worker"]);
      const known = expected.filter((row) => columns.every((column) => row[column] !== null));
      const [found, counted, different] = await connection.read([
        { kind: "select", table: "queue", where, order: [["run", "asc"]], lock: "none" },
        { kind: "count", table: "queue", where, least: "available_at" },
        { kind: "distinct", table: "queue", columns, where: [...where, ...columns.map(some)] },
      ]);
      expect(found!.map(({ run }) => run)).toEqual(expected.map(({ run }) => run));
      expect(counted![0]!["count"]).toBe(expected.length);
      const valuesOf = (row: object): string => JSON.stringify(columns.map((column) => (row as AnyRow)[column]));
      expect(different!.map(valuesOf).toSorted()).toEqual([...new Set(known.map(valuesOf))].toSorted());
    }
    await connection.close();
  });

  test("many queries of one kind become one statement, and each gets its own result", async () => {
    const ids = Array.from({ length: 250 }, (_, at) => `run-${at * 7 + 1}`);
    const queries: Query[] = [
      ...ids.map((id) => selectBy("runs_by_id", [id], { backwards: true, limit: 1 })),
      ...ids.map((_, at): Query => ({ ...lookupBy("queue", [at]), keys: [[at], [9]] })),
      ...ids.map((_, at) => selectBy("queue_parked", [`kind${at}`], { limit: 1 })),
      { kind: "count", table: "runs", where: [] },
    ];
    const open = planQueries(queries);
    expect(statementsOf(open)).toHaveLength(6);
    const [newest] = statementsOf(open);
    expect((await planOf(newest!)).map(({ key }) => key)).toEqual([null, "runs_by_id", "runs_by_id"]);
    expect(await reads(newest!)).toBeLessThanOrEqual(2_000);
    const connection = await world.backend.connect();
    const together = await connection.read(queries);
    const [one, ...others] = [0, 249, 260, 499, 500, 750];
    for (const at of [one!, ...others]) expect([await connection.read([queries[at]!])]).toEqual([[together[at]]]);
    expect(together[3]!.map(({ id }) => id)).toEqual(["run-22"]);
    expect(together[259]!.map(({ run }) => run)).toEqual([9]);
    expect(together[253]!.map(({ run }) => run)).toEqual([3, 9]);
    await connection.close();
  });

  test("rows are looked up by ranges of the primary key, however many", async () => {
    for (const count of [1, 10, 400]) {
      const items = Array.from({ length: count }, (_, at) => [at + 1, `Task(${at + 1})`]);
      const runs = Array.from({ length: count }, (_, at) => [at * 3 + 1]);
      for (const query of [
        { kind: "lookup", table: "runs", columns: ["run"], keys: runs, lock: "update" },
        { kind: "lookup", table: "queue", columns: ["run", "item"], keys: items, lock: "update" },
        { kind: "lookup", table: "queue", columns: ["run"], keys: runs, lock: "none" },
      ] satisfies Query[]) {
        const [step] = await planOf(renderQuery(query).statements[0]!);
        expect(step?.key).toBe("PRIMARY");
        expect(["range", "const", "ref"]).toContain(step?.type);
        expect(step?.extra).not.toMatch(/filesort|temporary/);
      }
    }
  });

  test("changed rows are found by their key, in the order of the statement", async () => {
    const rows = [
      { run: 2, head: 3 },
      { run: 1, head: 3 },
    ];
    const changes: Change[] = [
      { change: "update", table: "runs", columns: ["head"], rows, expect: ["head"], old: [{ head: 1 }, { head: 1 }] },
      { change: "delete", table: "queue", rows: [{ run: 1, item: "Task(1)" }] },
    ];
    for (const change of changes) {
      const steps = await planOf(renderChange(change)[0]!);
      expect(steps.map(({ table }) => table)).toEqual(["n", "t"]);
      expect(steps[1]).toMatchObject({ type: "eq_ref", key: "PRIMARY" });
    }
  });

  test("the indexes in statements exist on the tables", async () => {
    const [rows] = await raw.query(
      "select table_name, index_name, column_name from information_schema.statistics where table_schema = database() order by table_name, index_name, seq_in_index",
    );
    const found = new Map<string, string[]>();
    for (const [table, index, column] of rows as unknown as [string, string, string][])
      found.set(`${table}.${index}`, [...(found.get(`${table}.${index}`) ?? []), column]);
    for (const [table, indexes] of INDEXES)
      for (const { name, columns } of indexes) {
        const own = found.get(`reprise_${table}.${name}`);
        expect(columns.slice(0, own?.length)).toEqual(own);
        found.delete(`reprise_${table}.${name}`);
      }
    expect([...found]).toEqual([]);
  });
});

/** Deterministic numbers below a maximum. */
function numbersFrom(seed: number): (below: number) => number {
  let last = seed;
  return (below) => {
    last = (last * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((last / 2_147_483_648) * below);
  };
}

const STATUSES = ["queued", "running", "waiting", "completed", "failed"];

function crowd(): Change[] {
  const numbers = Array.from({ length: 3_000 }, (_, at) => at + 1);
  return [
    {
      change: "insert",
      table: "runs",
      rows: numbers.map((run) =>
        runRow(run, {
          definition: run % 3 === 0 ? "shop" : `d${run % 7}`,
          status: STATUSES[run % 5]!,
          turn_due: run % 7 === 5 ? 2 : run % 2,
          takeovers: 2 + (run % 5),
          priority: run % 3,
          ...(run % 4 === 0 && { turn_token: "t", turn_worker: run % 9, takeovers: run % 11 }),
        }),
      ),
    },
    {
      change: "insert",
      table: "queue",
      rows: numbers.map((run) =>
        itemRow(run, `Task(${run})`, {
          kind: run % 6 === 0 ? "start" : run % 35 === 0 ? "timer" : "task",
          name: run % 2 === 0 ? "pack" : `n${run % 7}`,
          state: run % 7,
          takeovers: 2 + (run % 3),
          priority: run % 5,
          ...(run % 3 === 0 && { queue: `q${run % 4}`, key: `k${run % 5}` }),
          ...(run % 7 === 2 && { worker: run % 9, token: "t", takeovers: run % 8 }),
        }),
      ),
    },
  ];
}
