// The server's plan for each query of a claim, a poll and a scan, with enough rows to matter; and
// how many rows it reads.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "mysql2/promise";
import type { Change } from "../../../src/stores/remote/backend.ts";
import type { Condition, Query, Select } from "../../../src/stores/remote/query.ts";
import { planQueries, statementsOf } from "../../../src/stores/mysql/merge-results.ts";
import { renderChange } from "../../../src/stores/mysql/render-change.ts";
import { renderQuery } from "../../../src/stores/mysql/render-query.ts";
import { INDEXES } from "../../../src/stores/mysql/schema.ts";
import { matches } from "../../../src/stores/remote/evaluate.ts";
import type { AnyRow } from "../../../src/stores/rows/tables.ts";
import * as selections from "../../../src/stores/remote/statements/selections.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlFixture, type MysqlFixture } from "./fixture.ts";
import { listQuery } from "../list-queries.ts";
import { itemRow, runRow } from "../rows.ts";

const { equal, none, some } = selections;
const upTo = (column: string, value: number): Condition => ({ column, is: "<=", value });

function select(table: Select["table"], where: readonly Condition[], order: Select["order"]): Query {
  return { kind: "select", table, where, order: order ?? [], limit: 50, lock: "none" };
}

/** Each scans one index from its start and sorts nothing. */
const WALKS: readonly (readonly [name: string, index: string, query: Query])[] = [
  ["dueTurns", "runs_due", selections.dueTurns("skip", "shop", 1, 50)],
  ["suspectTurns", "runs_due", selections.suspectTurns("shop", 1, 50)],
  ["suspectTurnGroup", "runs_due", selections.suspectTurnGroup("skip", "shop", 1, 3, 2)],
  ["heldIsolated", "runs_held", selections.heldIsolated(3)],
  ["newestOfId", "runs_by_id", selections.newestOfId("update", "run-7")],
  ["newestChild", "runs_by_id", selections.newestChild("update", "run-7", 3)],
  ["listed by definition", "runs_by_definition", listQuery({ definition: "shop" })],
  ["listed by definition before", "runs_by_definition", listQuery({ definition: "shop", before: 900 })],
  ["listed by unhappy status", "runs_unhappy", listQuery({ statuses: ["failed"] })],
  ["listed by unhappy statuses", "runs_unhappy", listQuery({ statuses: ["failed", "paused"], before: 900 })],
  ["listed by tag", "tags_by_tag", listQuery({ tag: "even" })],
  ["listed", "PRIMARY", listQuery({ before: 900 })],
  ["children", "runs_by_root", select("runs", [equal("root", 5), equal("parent", 5)], undefined)],
  ["newestRun", "PRIMARY", select("runs", [some("run")], [["run", "desc"]])],
  ["readyItems", "queue_open", selections.readyItems("skip", "pack", 50)],
  ["leasedItems", "queue_leased", selections.leasedItems("update", 3)],
  ["suspectItems", "queue_open", selections.suspectItems("pack", 50)],
  ["suspectItemGroup", "queue_open", selections.suspectItemGroup("skip", "pack", 3, 2)],
  ["leasedIsolated", "queue_leased", selections.leasedIsolated(3)],
  ["delayedItems", "queue_delayed", selections.delayedItems(50)],
  ["itemsOfRun", "PRIMARY", selections.itemsOfRun("none", 3, 50)],
  ["linedItems", "queue_lined", selections.linedItems("skip", "task", "q1", "pack", 50)],
  ["parkedItems", "queue_parked", selections.parkedItems("update", "task", "q1", "k1", 50)],
  ["parkedOfKind", "queue_lined", selections.parkedOfKind("task")],
  ["begunAt", "PRIMARY", selections.begunAt("task", "q1", "k1", 5)],
  ["dueLanes", "lanes_opening", selections.dueRateGates("none", 5, 50)],
  ["nextLane", "lanes_opening", selections.NEXT_RATE_GATE],
  ["lastOfLine", "PRIMARY", selections.lastOfLine("update", 3)],
  ["firstOfLine", "PRIMARY", selections.firstOfLine("update", 3)],
  ["outgoingTo", "outbox_next", selections.outgoingTo("update", "mail", 5, 50)],
  ["outgoingAfter", "outbox_next", selections.outgoingAfter("mail", 5)],
  ["lastChunkOf", "PRIMARY", selections.lastChunkOf(3, "s")],
  ["onceOfRun", "PRIMARY", selections.onceOfRun(3, 50)],
  ["idsOfRun", "PRIMARY", selections.idsOfRun(3)],
  ["inboxFrom", "PRIMARY", selections.inboxFrom(3, 5)],
  [
    "entriesAfter",
    "PRIMARY",
    select("journal", [equal("run", 3), { column: "seq", is: ">", value: 5 }], [["seq", "asc"]]),
  ],
  ["oldOnce", "once_by_time", select("once", [{ column: "at", is: ">", value: 0 }, upTo("at", 9)], undefined)],
  [
    "dueSchedules",
    "schedules_due",
    select("schedules", [some("due_at"), equal("definition", "shop"), upTo("due_at", 5)], [["due_at", "asc"]]),
  ],
  ["newestCheckpoint", "PRIMARY", select("checkpoints", [equal("run", 3), upTo("step", 9)], [["step", "desc"]])],
  [
    "labelledCheckpoint",
    "checkpoints_label",
    select("checkpoints", [equal("run", 3), equal("label", "l"), upTo("step", 9)], [["step", "desc"]]),
  ],
  [
    "threadCheckpoints",
    "langgraph_checkpoints_by_thread",
    select(
      "langgraph_checkpoints",
      [equal("thread", "t"), { column: "id", is: "<", value: "x" }],
      [
        ["id", "desc"],
        ["checkpoint", "desc"],
      ],
    ),
  ],
  [
    "firstOfPriority",
    "queue_open",
    select(
      "queue",
      [equal("state", 1), none("queue"), equal("name", "pack"), equal("priority", 3)],
      [["available_at", "asc"]],
    ),
  ],
];

/** Each seeks from value to value. */
const JUMPS: readonly (readonly [name: string, index: string, query: Query])[] = [
  ["dueDefinitions", "runs_due", selections.DUE_DEFINITIONS],
  ["readyNames", "queue_open", selections.READY_NAMES],
  ["linesOf", "queue_lined", selections.linesOf("task")],
  ["turnHolders", "runs_held", jump("runs", ["turn_worker"], [some("turn_worker")])],
  ["itemHolders", "queue_leased", jump("queue", ["worker"], [some("worker")])],
  ["liveVersions", "runs_live", jump("runs", ["definition", "version"], [none("ended_at")])],
  [
    "duePriorities",
    "runs_due",
    jump("runs", ["definition", "version", "priority"], [equal("turn_due", 1), none("turn_token")]),
  ],
  ["readyPriorities", "queue_open", jump("queue", ["name", "priority"], [equal("state", 1), none("queue")])],
  [
    "linedPriorities",
    "queue_lined",
    jump("queue", ["kind", "queue", "name", "priority"], [equal("state", 1), some("queue")]),
  ],
  ["destinations", "outbox_next", jump("outbox", ["destination"], [equal("state", 1)])],
];

function jump(table: Select["table"], columns: readonly string[], where: readonly Condition[]): Query {
  return { kind: "distinct", table, columns, where };
}

const COUNTS: readonly (readonly [name: string, index: string, query: Query])[] = [
  ["busyInQueue", "queue_lined", counted(selections.busyItems("task", "q1"))],
  ["busyInKey", "queue_parked", counted(selections.busyItems("task", "q1", "k1"))],
  ["nextDue", "queue_delayed", { kind: "count", table: "queue", where: [equal("state", 0)], least: "available_at" }],
  ["live", "runs_live", { kind: "count", table: "runs", where: [none("ended_at")], by: ["definition", "version"] }],
];

function counted(where: readonly Condition[]): Query {
  return { kind: "count", table: "queue", where };
}

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
      ...ids.map((id) => selections.newestOfId("none", id)),
      ...ids.map((_, at): Query => ({
        kind: "lookup",
        table: "queue",
        columns: ["run"],
        keys: [[at], [9]],
        lock: "none",
      })),
      ...ids.map((_, at) => selections.parkedOfKind(`kind${at}`)),
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
