// What the server says it would do for each question of a claim, a poll and a scan, with rows enough to make it think.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "mysql2/promise";
import type { Change, Condition, Question, Select, TableName } from "../../../src/stores/index.ts";
import { renderChange } from "../../../src/stores/mysql/render-change.ts";
import { renderQuestion } from "../../../src/stores/mysql/render-question.ts";
import { INDEXES } from "../../../src/stores/mysql/schema.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlWorld, itemRow, runRow, type MysqlWorld } from "./world.ts";

const eq = (column: string, value: number | string): Condition => ({ column, is: "=", value });
const isNull = (column: string): Condition => ({ column, is: "null" });
const notNull = (column: string): Condition => ({ column, is: "not null" });
const after = (column: string, value: number | string): Condition => ({ column, is: ">", value });
const upTo = (column: string, value: number): Condition => ({ column, is: "<=", value });

const MOST_URGENT: Select["order"] = [
  ["priority", "desc"],
  ["available_at", "asc"],
  ["run", "asc"],
  ["item", "asc"],
];

function claim(
  table: TableName,
  where: readonly Condition[],
  order: Select["order"],
  lock: Select["lock"] = "skip",
): Question {
  return { ask: "select", table, where, order: order ?? [], limit: 50, lock };
}

const DUE = [eq("turn_due", 1), isNull("turn_token"), eq("definition", "shop"), eq("version", 1)];

/** Each walks one index from its front and sorts nothing. */
const WALKS: readonly (readonly [name: string, index: string, question: Question])[] = [
  [
    "dueTurns",
    "runs_due",
    claim("runs", DUE, [
      ["priority", "desc"],
      ["run", "asc"],
    ]),
  ],
  ["suspectTurns", "runs_due", claim("runs", [eq("turn_due", 2), ...DUE.slice(1)], undefined)],
  ["heldTurns", "runs_held", claim("runs", [eq("turn_worker", 3)], undefined, "update")],
  ["newestOfId", "runs_by_id", claim("runs", [eq("id", "run-7")], [["generation", "desc"]], "none")],
  ["byDefinition", "runs_by_definition", claim("runs", [eq("definition", "shop")], [["run", "desc"]], "none")],
  ["unhappy", "runs_unhappy", claim("runs", [eq("status", "failed")], [["run", "desc"]], "none")],
  ["children", "runs_by_root", claim("runs", [eq("root", 5), eq("parent", 5)], undefined, "none")],
  ["readyItems", "queue_ready", claim("queue", [eq("state", 1), isNull("queue"), eq("name", "pack")], MOST_URGENT)],
  [
    "linedItems",
    "queue_lined",
    claim("queue", [eq("state", 1), eq("kind", "task"), eq("queue", "q"), eq("name", "pack")], MOST_URGENT),
  ],
  [
    "parked",
    "queue_parked",
    claim("queue", [eq("state", 5), eq("kind", "task"), eq("queue", "q"), eq("key", "k")], MOST_URGENT),
  ],
  [
    "dueItems",
    "queue_delayed",
    claim(
      "queue",
      [eq("state", 0), upTo("available_at", 5)],
      [
        ["available_at", "asc"],
        ["run", "asc"],
        ["item", "asc"],
      ],
    ),
  ],
  ["leasedItems", "queue_leased", claim("queue", [eq("state", 2), eq("worker", 3)], undefined, "update")],
  ["itemsOfRun", "PRIMARY", claim("queue", [eq("run", 3)], undefined, "none")],
  ["entriesAfter", "PRIMARY", claim("journal", [eq("run", 3), after("seq", 5)], [["seq", "asc"]], "none")],
  [
    "nextOutgoing",
    "outbox_next",
    claim(
      "outbox",
      [eq("state", 1), eq("destination", "d"), upTo("available_at", 5)],
      [
        ["available_at", "asc"],
        ["line", "asc"],
      ],
    ),
  ],
  ["dueLanes", "lanes_opening", claim("lanes", [upTo("opens_at", 5)], [["opens_at", "asc"]])],
  ["oldOnce", "once_by_time", claim("once", [after("at", 0), { column: "at", is: "<", value: 9 }], undefined, "none")],
  [
    "dueSchedules",
    "schedules_due",
    claim("schedules", [notNull("due_at"), eq("definition", "shop"), upTo("due_at", 5)], [["due_at", "asc"]], "none"),
  ],
  ["newestCheckpoint", "PRIMARY", claim("checkpoints", [eq("run", 3), upTo("step", 9)], [["step", "desc"]], "none")],
  [
    "threadCheckpoints",
    "langgraph_checkpoints_by_thread",
    claim(
      "langgraph_checkpoints",
      [eq("thread", "t"), { column: "id", is: "<", value: "x" }],
      [
        ["id", "desc"],
        ["checkpoint", "desc"],
      ],
      "none",
    ),
  ],
];

/** Each jumps from value to value. */
const JUMPS: readonly (readonly [name: string, index: string, question: Question])[] = [
  ["dueDefinitions", "runs_due", jump("runs", ["definition"], DUE.slice(0, 2))],
  ["turnHolders", "runs_held", jump("runs", ["turn_worker"], [notNull("turn_worker")])],
  ["liveVersions", "runs_live", jump("runs", ["definition", "version"], [isNull("ended_at")])],
  ["readyNames", "queue_ready", jump("queue", ["name"], [eq("state", 1), isNull("queue")])],
  ["lines", "queue_lined", jump("queue", ["queue", "name"], [eq("state", 1), eq("kind", "task"), notNull("queue")])],
  ["itemHolders", "queue_leased", jump("queue", ["worker"], [notNull("worker")])],
  ["destinations", "outbox_next", jump("outbox", ["destination"], [eq("state", 1)])],
];

function jump(table: TableName, columns: readonly string[], where: readonly Condition[]): Question {
  return { ask: "distinct", table, columns, where };
}

const COUNTS: readonly (readonly [name: string, index: string, question: Question])[] = [
  [
    "busyInQueue",
    "queue_lined",
    counted([eq("kind", "task"), eq("queue", "q"), { column: "state", is: "in", values: [2, 6] }]),
  ],
  [
    "busyInKey",
    "queue_parked",
    counted([eq("kind", "task"), eq("queue", "q"), eq("key", "k"), { column: "state", is: "in", values: [2, 6] }]),
  ],
  ["nextDue", "queue_delayed", { ask: "count", table: "queue", where: [eq("state", 0)], least: "available_at" }],
];

function counted(where: readonly Condition[]): Question {
  return { ask: "count", table: "queue", where };
}

interface Step {
  readonly table: string;
  readonly type: string;
  readonly key: string | null;
  readonly extra: string;
}

describeOn("mysql", "plans on MariaDB", () => {
  let world: MysqlWorld;
  let raw: Connection;
  beforeAll(async () => {
    world = await createMysqlWorld();
    const link = await world.backend.connect();
    await link.commit(1, 1, crowd());
    await link.close();
    raw = await world.raw();
    await raw.query("set @reprise_0_0='x',@reprise_0_1='x',@reprise_1_0='x',@reprise_1_1='x'");
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

  test.each(WALKS)("%s walks %s from its front and sorts nothing", async (_name, index, question) => {
    const [statement] = renderQuestion(question).statements;
    const steps = await planOf(statement!);
    expect(steps).toHaveLength(1);
    expect(steps[0]?.key).toBe(index);
    expect(["ref", "range", "const", "eq_ref"]).toContain(steps[0]?.type);
    expect(steps[0]?.extra).not.toMatch(/filesort|temporary/);
  });

  test.each(JUMPS)("%s jumps from value to value in %s", async (_name, index, question) => {
    const [, first, next] = renderQuestion(question).statements;
    for (const statement of [first!, next!]) {
      const [step] = await planOf(statement.replace(/ into @\S+/, ""));
      expect(step?.key).toBe(index);
      expect(step?.extra).not.toMatch(/filesort|temporary/);
    }
    // A variable is a constant: the seek begins behind it.
    const [step] = await planOf(next!.replace(/ into @\S+/, ""));
    expect(step?.type).toBe("range");
  });

  test.each(COUNTS)("%s counts in %s", async (_name, index, question) => {
    const [step] = await planOf(renderQuestion(question).statements[0]!);
    expect(step?.key).toBe(index);
    expect(["ref", "range"]).toContain(step?.type);
    expect(step?.extra).toMatch(/Using index/);
  });

  test("rows are looked up by ranges of the primary key, however many", async () => {
    for (const count of [1, 10, 400]) {
      const items = Array.from({ length: count }, (_, at) => [at + 1, `Task(${at + 1})`]);
      const runs = Array.from({ length: count }, (_, at) => [at * 3 + 1]);
      for (const question of [
        { ask: "lookup", table: "runs", columns: ["run"], keys: runs, lock: "update" },
        { ask: "lookup", table: "queue", columns: ["run", "item"], keys: items, lock: "update" },
        { ask: "lookup", table: "queue", columns: ["run"], keys: runs, lock: "none" },
      ] satisfies Question[]) {
        const [step] = await planOf(renderQuestion(question).statements[0]!);
        expect(step?.key).toBe("PRIMARY");
        expect(["range", "const", "ref"]).toContain(step?.type);
        expect(step?.extra).not.toMatch(/filesort|temporary/);
      }
    }
  });

  test("rows that are changed are found by their key, in the order of the text", async () => {
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

  test("the indexes that statements name are those of the tables", async () => {
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
          turn_due: run % 2,
          ...(run % 4 === 0 && { turn_token: "t", turn_worker: run % 9 }),
        }),
      ),
    },
    {
      change: "insert",
      table: "queue",
      rows: numbers.map((run) =>
        itemRow(run, `Task(${run})`, {
          name: run % 2 === 0 ? "pack" : `n${run % 7}`,
          state: run % 7,
          priority: run % 5,
          ...(run % 3 === 0 && { queue: `q${run % 4}`, key: `k${run % 5}` }),
          ...(run % 7 === 2 && { worker: run % 9, token: "t" }),
        }),
      ),
    },
  ];
}
