// Backend cases: the guarantees of every backend (src/stores/remote/backend.ts) as plain data, run on each database and on the simulated one.

import assert from "node:assert/strict";
import {
  ConnectionError,
  type Backend,
  type Change,
  type Connection,
  type WireRow,
} from "../../src/stores/remote/backend.ts";
import type { Query } from "../../src/stores/remote/query.ts";
import { columnsOf, TABLES, type TableName } from "../../src/stores/rows/tables.ts";
import { entryRow, itemRow, runRow } from "./rows.ts";

export interface BackendWorld {
  readonly backend: Backend;
  /** Another process: a second backend on the same database. */
  readonly other: Backend;
  /** Closed after the case. */
  connect(backend?: Backend): Promise<Connection>;
}

export interface BackendCase {
  readonly name: string;
  run(world: BackendWorld): Promise<void>;
}

let lastBatch = 0;

async function put(connection: Connection, table: TableName, rows: readonly WireRow[]): Promise<void> {
  await written(connection, [{ change: "insert", table, rows }]);
}

async function written(connection: Connection, changes: readonly Change[]): Promise<void> {
  assert.equal(await connection.commit((lastBatch += 1), 0, changes), "committed");
}

/** Reads outside a transaction; payloads as text. */
async function readOne(connection: Connection, query: Query): Promise<readonly WireRow[]> {
  const [answer = []] = await connection.read([query]);
  return answer.map(readable);
}

function readable(row: WireRow): WireRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      value instanceof Uint8Array ? Buffer.from(value).toString() : value,
    ]),
  );
}

const allOf = (table: TableName): Query => ({ kind: "select", table, where: [], lock: "none" });
const runs = (numbers: readonly number[], lock: "none" | "share" | "update" | "skip"): Query => ({
  kind: "lookup",
  table: "runs",
  columns: ["run"],
  keys: numbers.map((run) => [run]),
  lock,
});
const column = (rows: readonly WireRow[], name: string): unknown[] => rows.map((row) => row[name]);
const headTo = (run: number, head: number): Change => ({
  change: "update",
  table: "runs",
  columns: ["head"],
  rows: [{ run, head }],
});

/** Whether the promise is still pending after other calls have settled. */
async function isWaiting(answer: Promise<unknown>, connection: Connection): Promise<boolean> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  answer.then(settle, settle);
  // Round trips on another connection: in that time the other one would have responded.
  for (let trip = 0; trip < 20; trip += 1) await connection.read([{ kind: "count", table: "meta", where: [] }]);
  return !isSettled;
}

async function expectLost(act: Promise<unknown>): Promise<void> {
  await assert.rejects(act, (error) => error instanceof ConnectionError && error.reason === "lost");
}

// ── cases ──

const READING: readonly BackendCase[] = [
  {
    name: "inserted numbers, texts, bytes and nulls are read back unchanged",
    async run({ connect }) {
      const connection = await connect();
      const bytes = Buffer.from([0, 255, 10, 92, 39, 128]);
      const texts = ["", "it's", 'a "quote"', "back\\slash", "é\u{1f600}", "{a,b}", "NULL", "$1", "line\nbreak"];
      await put(connection, "runs", [
        runRow(1, { created_at: 2 ** 53 - 1, head: -5, evidence: "text as bytes" }),
        runRow(2 ** 40, { id: "x".repeat(255), turn_worker: 0, turn_token: "" }),
      ]);
      await put(connection, "journal", [
        entryRow(1, 1, bytes),
        entryRow(1, 2, ""),
        entryRow(1, 3, "x".repeat(100_000)),
      ]);
      await put(
        connection,
        "tags",
        texts.map((tag, position) => ({ run: 1, tag, position })),
      );
      const [first, second] = await readOne(connection, runs([1, 2 ** 40], "none"));
      assert.deepEqual({ ...first }, runRow(1, { created_at: 2 ** 53 - 1, head: -5, evidence: "text as bytes" }));
      assert.deepEqual({ ...second }, runRow(2 ** 40, { id: "x".repeat(255), turn_worker: 0, turn_token: "" }));
      const [entries = []] = await connection.read([
        { kind: "select", table: "journal", where: [], order: [["seq", "asc"]], lock: "none" },
      ]);
      assert.deepEqual(Buffer.from(entries[0]?.["data"] as Uint8Array), bytes);
      assert.ok(entries[1]?.["data"] instanceof Uint8Array && entries[1]["data"].length === 0);
      assert.equal((entries[2]!["data"] as Uint8Array).length, 100_000);
      const tags = await readOne(connection, {
        kind: "select",
        table: "tags",
        where: [],
        order: [["position", "asc"]],
        lock: "none",
      });
      assert.deepEqual(column(tags, "tag"), texts);
      assert.deepEqual(Object.keys(tags[0] ?? {}), columnsOf("tags"));
    },
  },
  {
    name: "every table can be written, read, changed and emptied",
    async run({ connect }) {
      const connection = await connect();
      for (const [name, shape] of Object.entries(TABLES)) {
        const table = name as TableName;
        const key: readonly string[] = shape.key;
        const columns = Object.entries(shape.columns) as [string, { type: string; nullable: boolean }][];
        const row: WireRow = Object.fromEntries(
          columns.map(([column, { type }], index) => [column, type === "int" ? 700 + index : `v${index}`]),
        );
        // The smallest possible row.
        const bareWith = (int: number, text: string): WireRow =>
          Object.fromEntries(
            columns.map(([column, { type, nullable }]) => [column, nullable ? null : type === "int" ? int : text]),
          );
        const bare = bareWith(9, "w");
        await put(connection, table, [row, bare]);
        const found = async (): Promise<readonly WireRow[]> =>
          readOne(connection, {
            kind: "lookup",
            table,
            columns: key,
            keys: [row, bare].map((it) => key.map((column) => it[column] as string)),
            lock: "none",
          } as Query);
        assert.deepEqual(
          new Set((await found()).map((it) => JSON.stringify(it))),
          new Set([row, bare].map((it) => JSON.stringify(it))),
        );
        const set = columns.map(([column]) => column).filter((column) => !key.includes(column));
        const keys = (it: WireRow): WireRow => Object.fromEntries(key.map((column) => [column, it[column] ?? null]));
        if (set.length > 0) {
          const changed = { ...bareWith(11, "x"), ...keys(row) };
          await written(connection, [
            { change: "update", table, columns: set, rows: [changed], expect: set, old: [row] },
          ]);
          assert.ok(
            (await found()).some((it) => JSON.stringify(it) === JSON.stringify(changed)),
            table,
          );
        }
        await written(connection, [{ change: "delete", table, rows: [keys(row), keys(bare)] }]);
        assert.deepEqual(await found(), []);
      }
    },
  },
  {
    name: "conditions select rows, and order and limit apply",
    async run({ connect }) {
      const connection = await connect();
      await put(connection, "queue", [
        itemRow(1, "a", { priority: 5, available_at: 30 }),
        itemRow(1, "b", { priority: 5, available_at: 10, worker: 7, state: 2 }),
        itemRow(2, "a", { priority: 9, available_at: 20, queue: "mail", key: "k" }),
        itemRow(3, "a", { priority: 1, available_at: 40, name: "ship" }),
      ]);
      const found = async (query: Omit<Extract<Query, { kind: "select" }>, "kind" | "table" | "lock">) =>
        (
          await readOne(connection, {
            kind: "select",
            table: "queue",
            lock: "none",
            order: [
              ["run", "asc"],
              ["item", "asc"],
            ],
            ...query,
          })
        ).map((row) => `${String(row["run"])}${String(row["item"])}`);
      assert.deepEqual(await found({ where: [] }), ["1a", "1b", "2a", "3a"]);
      assert.deepEqual(await found({ where: [{ column: "name", is: "=", value: "ship" }] }), ["3a"]);
      assert.deepEqual(await found({ where: [{ column: "name", is: "<>", value: "ship", fixed: true }] }), [
        "1a",
        "1b",
        "2a",
      ]);
      assert.deepEqual(await found({ where: [{ column: "priority", is: ">", value: 5 }] }), ["2a"]);
      assert.deepEqual(await found({ where: [{ column: "priority", is: ">=", value: 5 }] }), ["1a", "1b", "2a"]);
      assert.deepEqual(await found({ where: [{ column: "priority", is: "<", value: 5 }] }), ["3a"]);
      assert.deepEqual(await found({ where: [{ column: "priority", is: "<=", value: 5 }] }), ["1a", "1b", "3a"]);
      assert.deepEqual(await found({ where: [{ column: "queue", is: "null" }] }), ["1a", "1b", "3a"]);
      assert.deepEqual(await found({ where: [{ column: "queue", is: "not null" }] }), ["2a"]);
      assert.deepEqual(await found({ where: [{ column: "run", is: "in", values: [3, 1, 99] }] }), ["1a", "1b", "3a"]);
      assert.deepEqual(await found({ where: [{ column: "state", is: "in", values: [2, 6], fixed: true }] }), ["1b"]);
      assert.deepEqual(await found({ where: [{ column: "name", is: "in", values: [] }] }), []);
      assert.deepEqual(await found({ where: [{ column: "name", is: "in", values: [], fixed: true }] }), []);
      assert.deepEqual(
        await found({
          where: [
            { column: "state", is: "=", value: 1, fixed: true },
            { column: "queue", is: "null" },
          ],
          order: [
            ["priority", "desc"],
            ["available_at", "asc"],
          ],
          limit: 1,
        }),
        ["1a"],
      );
      assert.deepEqual(
        await found({
          where: [],
          order: [
            ["priority", "desc"],
            ["available_at", "asc"],
          ],
          limit: 3,
        }),
        ["2a", "1b", "1a"],
      );
    },
  },
  {
    name: "texts are distinguished, compared and ordered by bytes",
    async run({ connect }) {
      const connection = await connect();
      // "\uffff" before "\u{10000}": the order of bytes, which is not that of UTF-16.
      const tags = ["A", "B", "a", "a ", "a\u0301", "b", "ß", "ä", "\uffff", "\u{10000}"];
      await put(
        connection,
        "tags",
        tags.toReversed().map((tag, position) => ({ run: 1, tag, position })),
      );
      const ordered: Query = { kind: "select", table: "tags", where: [], order: [["tag", "asc"]], lock: "none" };
      assert.deepEqual(column(await readOne(connection, ordered), "tag"), tags);
      const looked: Query = {
        kind: "lookup",
        table: "tags",
        columns: ["run", "tag"],
        keys: tags.map((tag) => [1, tag]),
        lock: "none",
      };
      assert.deepEqual(column(await readOne(connection, looked), "tag"), tags);
      const after: Query = {
        kind: "select",
        table: "tags",
        where: [{ column: "tag", is: ">", value: "a" }],
        order: [["tag", "asc"]],
        limit: 2,
        lock: "none",
      };
      assert.deepEqual(column(await readOne(connection, after), "tag"), ["a ", "a\u0301"]);
      assert.deepEqual(
        column(await readOne(connection, { kind: "distinct", table: "tags", columns: ["tag"], where: [] }), "tag"),
        tags,
      );
    },
  },
  {
    name: "a lookup returns each existing row once, in key order",
    async run({ connect }) {
      const connection = await connect();
      await put(connection, "runs", [runRow(3), runRow(1), runRow(2, { definition: "mail" }), runRow(10)]);
      await put(connection, "queue", [itemRow(2, "b"), itemRow(1, "c"), itemRow(2, "a"), itemRow(1, "a")]);
      assert.deepEqual(column(await readOne(connection, runs([10, 2, 77, 2, 1], "none")), "run"), [1, 2, 10]);
      assert.deepEqual(await readOne(connection, runs([], "none")), []);
      const byDefinition: Query = {
        kind: "lookup",
        table: "runs",
        columns: ["definition"],
        keys: [["order"], ["order"]],
        lock: "none",
      };
      assert.deepEqual(column(await readOne(connection, byDefinition), "run"), [1, 3, 10]);
      const items: Query = {
        kind: "lookup",
        table: "queue",
        columns: ["run", "item"],
        keys: [
          [2, "b"],
          [1, "c"],
          [9, "a"],
          [2, "a"],
          [2, "b"],
        ],
        lock: "none",
      };
      assert.deepEqual(
        (await readOne(connection, items)).map((row) => [row["run"], row["item"]]),
        [
          [1, "c"],
          [2, "a"],
          [2, "b"],
        ],
      );
      const byRun: Query = { kind: "lookup", table: "queue", columns: ["run"], keys: [[2]], lock: "none" };
      assert.deepEqual(column(await readOne(connection, byRun), "item"), ["a", "b"]);
    },
  },
  {
    name: "rows are counted, by group, with the smallest and largest value, and up to a limit",
    async run({ connect }) {
      const connection = await connect();
      const none = { kind: "count", table: "queue", where: [] } as const;
      assert.deepEqual(await readOne(connection, none), [{ count: 0 }]);
      assert.deepEqual(await readOne(connection, { ...none, least: "available_at", most: "name" }), [
        { count: 0, least: null, most: null },
      ]);
      await put(connection, "queue", [
        itemRow(1, "a", { available_at: 5 }),
        itemRow(1, "b", { available_at: 3, name: "ship" }),
        itemRow(2, "a", { available_at: 4, state: 2, worker: 1 }),
      ]);
      assert.deepEqual(await readOne(connection, { ...none, where: [{ column: "state", is: "=", value: 1 }] }), [
        { count: 2 },
      ]);
      assert.deepEqual(await readOne(connection, { ...none, upTo: 2 }), [{ count: 2 }]);
      assert.deepEqual(await readOne(connection, { ...none, least: "available_at", most: "available_at" }), [
        { count: 3, least: 3, most: 5 },
      ]);
      assert.deepEqual(await readOne(connection, { ...none, by: ["name", "state"], least: "available_at" }), [
        { name: "charge", state: 1, count: 1, least: 5 },
        { name: "charge", state: 2, count: 1, least: 4 },
        { name: "ship", state: 1, count: 1, least: 3 },
      ]);
      assert.deepEqual(
        await readOne(connection, { ...none, by: ["name"], where: [{ column: "run", is: ">", value: 9 }] }),
        [],
      );
    },
  },
  {
    name: "every combination of values is found once",
    async run({ connect }) {
      const connection = await connect();
      const lined = (run: number, queue: string, name: string): WireRow => itemRow(run, "a", { queue, name });
      await put(connection, "queue", [
        lined(1, "mail", "send"),
        lined(2, "mail", "send"),
        lined(3, "mail", "archive"),
        lined(4, "disk", "send"),
        itemRow(5, "a", { name: "free" }),
        itemRow(6, "a", { name: "busy", state: 2, worker: 3 }),
      ]);
      assert.deepEqual(
        await readOne(connection, {
          kind: "distinct",
          table: "queue",
          columns: ["queue", "name"],
          where: [
            { column: "state", is: "=", value: 1, fixed: true },
            { column: "queue", is: "not null" },
            { column: "kind", is: "=", value: "task" },
          ],
        }),
        [
          { queue: "disk", name: "send" },
          { queue: "mail", name: "archive" },
          { queue: "mail", name: "send" },
        ],
      );
      assert.deepEqual(
        await readOne(connection, {
          kind: "distinct",
          table: "queue",
          columns: ["worker"],
          where: [{ column: "state", is: "=", value: 2, fixed: true }],
        }),
        [{ worker: 3 }],
      );
      const nothing: Query = { kind: "distinct", table: "runs", columns: ["definition"], where: [] };
      assert.deepEqual(await readOne(connection, nothing), []);
    },
  },
  {
    name: "several queries return their results in order, in a transaction and outside",
    async run({ connect }) {
      const connection = await connect();
      await put(connection, "runs", [runRow(1), runRow(2)]);
      const queries: readonly Query[] = [
        runs([2], "none"),
        { kind: "count", table: "runs", where: [] },
        runs([1], "none"),
      ];
      for (const answers of [await connection.read(queries), await connection.query(queries)]) {
        assert.equal(answers.length, 3);
        assert.deepEqual(
          [column(answers[0]!, "run"), answers[1], column(answers[2]!, "run")],
          [[2], [{ count: 2 }], [1]],
        );
      }
      await connection.rollback();
    },
  },
  {
    name: "the same query for many runs returns a result for each",
    async run({ connect }) {
      const connection = await connect();
      const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
      // Run 3 has three items, run 4 none.
      const names = (run: number): string[] => ["a", "b", "c"].slice(0, run % 4);
      const items = numbers.flatMap((run) =>
        names(run)
          .toReversed()
          .map((item) => itemRow(run, item)),
      );
      await put(connection, "queue", items);
      await put(
        connection,
        "inbox",
        numbers.map((run) => ({ run, arrival: run, type: "Signal", target: "t", data: `from ${run}` })),
      );
      const itemsOf = (run: number, lock: "none" | "update" | "skip", limit?: number): Query => ({
        kind: "select",
        table: "queue",
        where: [{ column: "run", is: "=", value: run }],
        order: [["item", "asc"]],
        ...(limit !== undefined && { limit }),
        lock,
      });
      const inboxOf = (run: number): Query => ({
        kind: "select",
        table: "inbox",
        where: [
          { column: "run", is: "=", value: run },
          { column: "arrival", is: ">", value: run > 6 ? run : 0 },
        ],
        lock: "none",
      });
      const countOf = (run: number): Query => ({
        kind: "count",
        table: "queue",
        where: [{ column: "run", is: "=", value: run }],
        most: "item",
      });
      const answers = await connection.query(
        numbers.flatMap((run) => [
          itemsOf(run, "update", 2),
          inboxOf(run),
          itemsOf(run, "none"),
          countOf(run),
          itemsOf(run, "skip", run),
        ]),
      );
      await connection.rollback();
      for (const [index, run] of numbers.entries()) {
        const [some = [], inbox = [], all = [], count = [], skipping = []] = answers.slice(index * 5, index * 5 + 5);
        assert.deepEqual(column(some, "item"), names(run).slice(0, 2));
        assert.deepEqual(column(inbox.map(readable), "data"), run > 6 ? [] : [`from ${run}`]);
        assert.deepEqual(column(all, "item"), names(run));
        assert.deepEqual(count, [{ count: run % 4, most: names(run).at(-1) ?? null }]);
        assert.deepEqual(column(skipping, "item"), names(run).slice(0, run));
      }
      const counts = await connection.read(numbers.map(countOf));
      assert.deepEqual(
        counts.map(([answer]) => answer?.["count"]),
        numbers.map((run) => run % 4),
      );
    },
  },
];

const WRITING: readonly BackendCase[] = [
  {
    name: "updates and deletes change only the given rows and columns",
    async run({ connect }) {
      const connection = await connect();
      await put(connection, "runs", [runRow(1), runRow(2), runRow(3)]);
      await written(connection, [
        {
          change: "update",
          table: "runs",
          columns: ["head", "turn_token"],
          rows: [
            { run: 3, head: 30, turn_token: "t3" },
            { run: 1, head: 10, turn_token: null },
          ],
        },
        { change: "delete", table: "runs", rows: [{ run: 2 }, { run: 99 }] },
      ]);
      assert.deepEqual(await readOne(connection, runs([1, 2, 3], "none")), [
        runRow(1, { head: 10 }),
        runRow(3, { head: 30, turn_token: "t3" }),
      ]);
    },
  },
  {
    name: "a commit with a row that differs from what is expected writes nothing",
    async run({ backend, connect }) {
      const connection = await connect();
      await put(connection, "runs", [runRow(1, { turn_token: "mine" }), runRow(2)]);
      await put(connection, "queue", [itemRow(1, "a")]);
      const before = lastBatch;
      const update = (old: readonly WireRow[]): Change => ({
        change: "update",
        table: "runs",
        columns: ["head"],
        rows: [
          { run: 1, head: 5 },
          { run: 2, head: 5 },
        ],
        expect: ["head", "turn_token"],
        old,
      });
      const asIs = [
        { head: 1, turn_token: "mine" },
        { head: 1, turn_token: null },
      ];
      const entry: Change = { change: "insert", table: "journal", rows: [entryRow(1, 2)] };
      const moved = async (...changes: readonly Change[]): Promise<void> => {
        assert.equal(await connection.commit((lastBatch += 1), 0, changes), "conflict");
        assert.deepEqual(column(await readOne(connection, allOf("runs")), "head"), [1, 1]);
        assert.deepEqual(await readOne(connection, allOf("journal")), []);
      };
      await moved(entry, update([asIs[0]!, { head: 2, turn_token: null }]));
      await moved(update([asIs[0]!, { head: 1, turn_token: "stolen" }]), entry);
      await moved(entry, update([{ head: 1, turn_token: null }, asIs[1]!]));
      await moved(entry, {
        change: "delete",
        table: "queue",
        rows: [{ run: 1, item: "a" }],
        expect: ["token"],
        old: [{ token: "t" }],
      });
      await moved(entry, {
        change: "update",
        table: "runs",
        columns: ["head"],
        rows: [{ run: 77, head: 5 }],
        expect: ["head"],
        old: [{ head: 1 }],
      });
      // In the order of the rows.
      await written(connection, [
        {
          change: "update",
          table: "runs",
          columns: ["head"],
          rows: [
            { run: 2, head: 20 },
            { run: 1, head: 10 },
          ],
          expect: ["head", "turn_token"],
          old: [asIs[1]!, asIs[0]!],
        },
        {
          change: "delete",
          table: "queue",
          rows: [{ run: 1, item: "a" }],
          expect: ["token", "state"],
          old: [{ token: null, state: 1 }],
        },
        entry,
      ]);
      assert.deepEqual(
        (await readOne(connection, runs([1, 2], "none"))).map((row) => row["head"]),
        [10, 20],
      );
      assert.deepEqual(await readOne(connection, allOf("queue")), []);
      const looker = await connect();
      assert.equal(await backend.lastBatch(looker, connection.writer), lastBatch);
      assert.ok(before < lastBatch);
    },
  },
  {
    name: "a commit that inserts an existing row writes nothing",
    async run({ connect }) {
      const connection = await connect();
      await put(connection, "runs", [runRow(1)]);
      const twice: readonly Change[][] = [
        [{ change: "insert", table: "runs", rows: [runRow(2), runRow(1, { id: "new" })] }],
        [
          { change: "insert", table: "journal", rows: [entryRow(1, 1)] },
          { change: "insert", table: "runs", rows: [runRow(5, { id: "run-1" })] },
        ],
        [{ change: "insert", table: "journal", rows: [entryRow(1, 1), entryRow(1, 1)] }],
      ];
      for (const changes of twice) {
        assert.equal(await connection.commit((lastBatch += 1), 0, changes), "conflict");
        assert.equal(connection.isUsable, true);
      }
      assert.deepEqual(column(await readOne(connection, allOf("runs")), "run"), [1]);
      assert.deepEqual(await readOne(connection, allOf("journal")), []);
      await put(connection, "runs", [runRow(5, { id: "run-1", generation: 1 })]);
    },
  },
  {
    name: "of two concurrent inserts of the same row one is a conflict",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      const changes: readonly Change[] = [{ change: "insert", table: "runs", rows: [runRow(1)] }];
      for (const connection of [one, two]) await connection.query([runs([1], "update")]);
      const outcomes = await Promise.all([
        one.commit((lastBatch += 1), 0, changes),
        two.commit((lastBatch += 1), 0, changes),
      ]);
      assert.deepEqual(outcomes.toSorted(), ["committed", "conflict"]);
    },
  },
  {
    name: "a commit without changes is stamped, too",
    async run({ backend, connect }) {
      const [connection, looker] = [await connect(), await connect()];
      assert.equal(await connection.commit(41, 7, []), "committed");
      assert.equal(await connection.commit(42, 7, [{ change: "insert", table: "runs", rows: [] }]), "committed");
      const [writer] = await readOne(looker, {
        kind: "lookup",
        table: "writers",
        columns: ["writer"],
        keys: [[connection.writer]],
        lock: "none",
      });
      assert.equal(writer?.["mark"], 7);
      assert.equal(await backend.lastBatch(looker, connection.writer), 42);
    },
  },
  {
    name: "a large batch is written and read completely",
    async run({ connect }) {
      const connection = await connect();
      const numbers = Array.from({ length: 5_000 }, (_, index) => index + 1);
      await put(
        connection,
        "runs",
        numbers.map((run) => runRow(run)),
      );
      await written(connection, [
        {
          change: "update",
          table: "runs",
          columns: ["head"],
          rows: numbers.map((run) => ({ run, head: run })),
          expect: ["head"],
          old: numbers.map(() => ({ head: 1 })),
        },
        { change: "insert", table: "journal", rows: numbers.map((run) => entryRow(run, 2, `{"run":${run}}`)) },
      ]);
      const [found = [], entries = []] = await connection.query([
        runs(numbers, "update"),
        {
          kind: "lookup",
          table: "journal",
          columns: ["run", "seq"],
          keys: numbers.map((run) => [run, 2]),
          lock: "none",
        },
      ]);
      await connection.rollback();
      assert.deepEqual(column(found, "head"), numbers);
      assert.deepEqual(
        entries.map(({ data }) => Buffer.from(data as Uint8Array).toString()),
        numbers.map((run) => `{"run":${run}}`),
      );
    },
  },
];

const LOCKING: readonly BackendCase[] = [
  {
    name: "a query that locks a locked row waits, then sees what was committed",
    async run({ connect, other }) {
      const [one, two, looker] = [await connect(), await connect(other), await connect()];
      await put(one, "runs", [runRow(1), runRow(2)]);
      await one.query([runs([1], "update")]);
      const waiting = two.query([runs([1, 2], "update"), allOf("journal")]);
      assert.equal(await isWaiting(waiting, looker), true);
      await written(one, [headTo(1, 9), { change: "insert", table: "journal", rows: [entryRow(1, 2)] }]);
      const [locked = [], entries = []] = await waiting;
      assert.deepEqual(column(locked, "head"), [9, 1]);
      assert.equal(entries.length, 1);
      await written(two, [headTo(2, 8)]);
    },
  },
  {
    name: "a row that no longer matches after the wait for its lock is omitted",
    async run({ connect, other }) {
      const [one, two, looker] = [await connect(), await connect(other), await connect()];
      await put(one, "queue", [itemRow(1, "a"), itemRow(2, "a")]);
      const ready: Query = {
        kind: "select",
        table: "queue",
        where: [{ column: "state", is: "=", value: 1, fixed: true }],
        order: [
          ["run", "asc"],
          ["item", "asc"],
        ],
        lock: "update",
      };
      await one.query([ready]);
      const waiting = two.query([ready]);
      assert.equal(await isWaiting(waiting, looker), true);
      await written(one, [
        {
          change: "update",
          table: "queue",
          columns: ["state", "token"],
          rows: [{ run: 1, item: "a", state: 2, token: "t" }],
        },
      ]);
      const [found = []] = await waiting;
      assert.deepEqual(column(found, "run"), [2]);
      await two.rollback();
    },
  },
  {
    name: "a query that skips locked rows never waits and returns the unlocked rows in order",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      await put(
        one,
        "queue",
        [1, 2, 3, 4, 5, 6].map((run) => itemRow(run, "a", { priority: run % 2 })),
      );
      const claim = (limit: number): Query => ({
        kind: "select",
        table: "queue",
        where: [
          { column: "state", is: "=", value: 1, fixed: true },
          { column: "queue", is: "null" },
          { column: "name", is: "=", value: "charge" },
        ],
        order: [
          ["priority", "desc"],
          ["available_at", "asc"],
          ["run", "asc"],
          ["item", "asc"],
        ],
        limit,
        lock: "skip",
      });
      const [mine = []] = await one.query([claim(2)]);
      const [theirs = []] = await two.query([claim(3)]);
      assert.deepEqual(
        [column(mine, "run"), column(theirs, "run")],
        [
          [1, 3],
          [5, 2, 4],
        ],
      );
      const [rest = []] = await one.query([claim(5)]);
      assert.deepEqual(new Set(column(rest, "run")), new Set([1, 3, 6]));
      await one.rollback();
      await two.rollback();
    },
  },
  {
    name: "a share lock allows other share locks and prevents changes",
    async run({ connect, other }) {
      const [one, two, three, looker] = [await connect(), await connect(other), await connect(), await connect()];
      await put(one, "runs", [runRow(1)]);
      await one.query([runs([1], "share")]);
      await two.query([runs([1], "share")]);
      const waiting = three.commit((lastBatch += 1), 0, [headTo(1, 4)]);
      assert.equal(await isWaiting(waiting, looker), true);
      await one.rollback();
      assert.equal(await isWaiting(waiting, looker), true);
      await two.rollback();
      assert.equal(await waiting, "committed");
    },
  },
  {
    name: "a rollback releases the locks, and the connection can begin another transaction",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      await put(one, "runs", [runRow(1)]);
      await one.query([runs([1], "update")]);
      await one.rollback();
      await one.rollback();
      const [locked = []] = await two.query([runs([1], "skip")]);
      assert.equal(locked.length, 1);
      await written(two, [headTo(1, 3)]);
      const [seen = []] = await one.query([runs([1], "update")]);
      assert.deepEqual(column(seen, "head"), [3]);
      await one.rollback();
    },
  },
  {
    name: "a commit that was not written releases its locks",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      await put(one, "runs", [runRow(1), runRow(2)]);
      await one.query([runs([1], "update")]);
      assert.equal(
        await one.commit((lastBatch += 1), 0, [{ change: "insert", table: "runs", rows: [runRow(2)] }]),
        "conflict",
      );
      const [locked = []] = await two.query([runs([1], "skip")]);
      assert.equal(locked.length, 1);
      await two.rollback();
    },
  },
  {
    name: "in a deadlock one transaction gets retry, and the other continues",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      await put(one, "runs", [runRow(1), runRow(2)]);
      await one.query([runs([1], "update")]);
      await two.query([runs([2], "update")]);
      const attempt = async (connection: Connection, run: number): Promise<string> => {
        try {
          await connection.query([runs([run], "update")]);
          return await connection.commit((lastBatch += 1), 0, [headTo(run, 5)]);
        } catch (error) {
          assert.ok(error instanceof ConnectionError);
          return error.reason;
        }
      };
      const outcomes = await Promise.all([attempt(one, 2), attempt(two, 1)]);
      assert.deepEqual(outcomes.toSorted(), ["committed", "retry"]);
      for (const connection of [one, two]) {
        assert.equal(connection.isUsable, true);
        await connection.query([runs([1, 2], "update")]);
        await connection.rollback();
      }
    },
  },
];

const LOSING: readonly BackendCase[] = [
  {
    name: "a destroyed connection returns no results, and its locks are released",
    async run({ connect, other }) {
      const [one, two] = [await connect(), await connect(other)];
      await put(one, "runs", [runRow(1)]);
      await one.query([runs([1], "update")]);
      assert.equal(one.isUsable, true);
      one.destroy();
      assert.equal(one.isUsable, false);
      await expectLost(one.query([runs([1], "none")]));
      await expectLost(one.read([runs([1], "none")]));
      await expectLost(one.commit((lastBatch += 1), 0, []));
      const [free = []] = await two.query([runs([1], "update")]);
      assert.equal(free.length, 1);
      await two.rollback();
    },
  },
  {
    name: "lastBatch returns the last committed batch, and no later batch of that writer is committed",
    async run({ backend, other, connect }) {
      const [one, looker, another] = [await connect(), await connect(), await connect(other)];
      assert.equal(await backend.lastBatch(looker, (await connect()).writer), 0);
      assert.equal(await one.commit(5, 0, [{ change: "insert", table: "runs", rows: [runRow(1)] }]), "committed");
      assert.equal(await one.commit(6, 0, [{ change: "insert", table: "runs", rows: [runRow(1)] }]), "conflict");
      assert.equal(await backend.lastBatch(looker, one.writer), 5);
      const late = one.commit(7, 0, [{ change: "insert", table: "runs", rows: [runRow(2)] }]);
      const outcome = await late.catch((error: unknown) => (error instanceof ConnectionError ? error.reason : error));
      assert.ok(outcome === "conflict" || outcome === "lost", String(outcome));
      assert.equal(await other.lastBatch(another, one.writer), 5);
      assert.deepEqual(column(await readOne(looker, allOf("runs")), "run"), [1]);
    },
  },
  {
    name: "the result of lastBatch for a batch in flight stays true",
    async run({ backend, connect, other }) {
      const [one, holder, looker] = [await connect(), await connect(other), await connect()];
      await put(one, "runs", [runRow(1)]);
      await holder.query([runs([1], "update")]);
      const commit = one.commit(1_000_000, 0, [headTo(1, 2)]);
      const settled = commit.catch((error: unknown) => (error instanceof ConnectionError ? error.reason : error));
      assert.equal(await isWaiting(commit, looker), true);
      const asked = backend.lastBatch(looker, one.writer);
      await isWaiting(asked, await connect());
      await holder.rollback();
      const isIn = (await asked) === 1_000_000;
      const outcome = await settled;
      assert.ok(outcome === "committed" ? isIn : outcome === "lost" || !isIn, String(outcome));
      const reader = await connect();
      assert.deepEqual(column(await readOne(reader, allOf("runs")), "head"), [isIn ? 2 : 1]);
    },
  },
];

function insertRuns(run: number): readonly Change[] {
  return [{ change: "insert", table: "runs", rows: [runRow(run)] }];
}

function line(of: Connection, batch: number): WireRow {
  return { writer: of.writer, batch, mark: 1 };
}

const SMALL: readonly BackendCase[] = [
  {
    name: "numbers of a counter are reserved once",
    async run({ backend, other, connect }) {
      const [one, two] = [await connect(), await connect(other)];
      assert.equal(await backend.reserve(one, "runs", 10, 0), 1);
      assert.equal(await other.reserve(two, "runs", 1, 0), 11);
      assert.equal(await backend.reserve(one, "checkpoints", 1, 0), 1);
      const firsts = await Promise.all(
        [backend, other].map(async (of, index) => {
          const taken: number[] = [];
          for (let round = 0; round < 20; round += 1)
            taken.push(await of.reserve(index === 0 ? one : two, "runs", 3, 0));
          return taken;
        }),
      );
      const all = firsts.flat().toSorted((a, b) => a - b);
      assert.deepEqual(
        all,
        Array.from({ length: 40 }, (_, index) => 12 + index * 3),
      );
    },
  },
  {
    name: "numbers of a counter that went back are not used again: time is their lower bound",
    async run({ backend, connect }) {
      const connection = await connect();
      assert.equal(await backend.reserve(connection, "runs", 3, 500), 501);
      assert.equal(await backend.reserve(connection, "runs", 2, 400), 504);
      assert.equal(await backend.reserve(connection, "runs", 1, 9_000_000_000_000), 9_000_000_000_001);
    },
  },
  {
    name: "a commit detects that its connection's last batch is lost, and writes nothing",
    async run({ connect }) {
      const [one, two] = [await connect(), await connect()];
      const check = { previous: 0, others: [], incarnation: undefined };
      assert.equal(await one.commit(1, 1, insertRuns(1), check), "committed");
      assert.equal(await one.commit(3, 1, insertRuns(2), { ...check, previous: 1 }), "committed");
      // As after a restore: the writer's row is as before.
      await two.commit(1, 1, [{ change: "update", table: "writers", columns: ["batch"], rows: [line(one, 1)] }]);
      assert.equal(await one.commit(4, 1, insertRuns(3), { ...check, previous: 3 }), "rolled_back");
      await two.commit(2, 1, [{ change: "delete", table: "writers", rows: [line(one, 1)] }]);
      const again = await connect();
      assert.deepEqual(column(await readOne(again, allOf("runs")), "run"), [1, 2]);
    },
  },
  {
    name: "a commit detects that a batch of another connection is lost, and writes nothing",
    async run({ connect }) {
      const [one, two, three] = [await connect(), await connect(), await connect()];
      await one.commit(5, 1, insertRuns(1));
      const others = [{ writer: one.writer, batch: 5 }];
      const check = { previous: 0, others, incarnation: undefined };
      assert.equal(await two.commit(1, 1, insertRuns(2), check), "committed");
      const more = { ...check, previous: 1, others: [...others, { writer: three.writer, batch: 0 }] };
      assert.equal(await two.commit(2, 1, insertRuns(3), more), "committed");
      const lost = { ...more, previous: 2, others: [...others, { writer: three.writer, batch: 1 }] };
      assert.equal(await two.commit(3, 1, insertRuns(4), lost), "rolled_back");
      const unknown = { previous: 0, others: [{ writer: "unknown", batch: 0 }], incarnation: undefined };
      assert.equal(await three.commit(1, 1, insertRuns(5), unknown), "rolled_back");
      assert.deepEqual(column(await readOne(await connect(), allOf("runs")), "run"), [1, 2, 3]);
    },
  },
  {
    name: "the batch of a fenced writer counts with its original number",
    async run({ backend, connect }) {
      const [one, two] = [await connect(), await connect()];
      await one.commit(5, 1, insertRuns(1));
      one.destroy();
      assert.equal(await backend.lastBatch(await connect(), one.writer), 5);
      const check = { previous: 0, others: [{ writer: one.writer, batch: 5 }], incarnation: undefined };
      assert.equal(await two.commit(1, 1, insertRuns(2), check), "committed");
    },
  },
  {
    name: "a commit detects another incarnation of the store, and writes nothing",
    async run({ connect }) {
      const connection = await connect();
      await connection.commit(1, 1, [{ change: "insert", table: "meta", rows: [{ key: "incarnation", value: "a" }] }]);
      const check = { previous: 1, others: [], incarnation: "a" };
      assert.equal(await connection.commit(2, 1, insertRuns(1), check), "committed");
      assert.equal(
        await connection.commit(3, 1, insertRuns(2), { ...check, previous: 2, incarnation: "b" }),
        "rolled_back",
      );
      assert.deepEqual(column(await readOne(await connect(), allOf("runs")), "run"), [1]);
    },
  },
  {
    name: "connections to one server report the same identity",
    async run({ connect, other }) {
      const [one, two, three] = [await connect(), await connect(), await connect(other)];
      assert.ok(one.server !== "" && one.server === two.server);
      assert.ok(three.server !== "");
    },
  },
  {
    name: "the server reports its time, location and size",
    async run({ backend, connect }) {
      const connection = await connect();
      assert.ok(Number.isSafeInteger(await backend.serverTime(connection)));
      const { location, server, bytes } = await backend.info(connection);
      assert.ok(location !== "" && server !== "" && bytes >= 0);
      assert.ok(!location.includes("secret"));
    },
  },
  {
    name: "other processes receive a notification, and the sender does not",
    async run({ backend, other, connect }) {
      if (backend.notify === undefined || backend.listen === undefined || other.listen === undefined) return;
      const connection = await connect();
      const heard: string[] = [];
      let tell: () => void = () => {};
      const once = new Promise<void>((resolve) => (tell = resolve));
      const own = await backend.listen((text) => heard.push(`own: ${text}`));
      const theirs = await other.listen((text) => {
        heard.push(`theirs: ${text}`);
        tell();
      });
      await backend.notify(connection, "turns 1,2");
      await once;
      await Promise.all([own.close(), theirs.close()]);
      assert.deepEqual(heard, ["theirs: turns 1,2"]);
    },
  },
];

export const BACKEND_CASES: readonly BackendCase[] = [...READING, ...WRITING, ...LOCKING, ...LOSING, ...SMALL];
