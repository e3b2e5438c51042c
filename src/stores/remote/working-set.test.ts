import { describe, expect, test } from "vitest";
import { runRow as anyRunRow } from "../../../test/stores/rows.ts";
import type { QueryResult, WireRow } from "./backend.ts";
import { lookup, type Lock, type Query, type Select } from "./query.ts";
import { keyColumns, type RowOf, type TableName, type Value } from "../rows/tables.ts";
import { WorkingSet } from "./working-set.ts";

const runRow = (run: number, differently: Partial<RowOf<"runs">> = {}): RowOf<"runs"> =>
  anyRunRow(run, differently) as RowOf<"runs">;

function tag(run: number, name: string, position = 1): RowOf<"tags"> {
  return { run, tag: name, position };
}

/** A row that is loaded with this lock; undefined when it does not exist. */
function get<T extends TableName>(ws: WorkingSet, table: T, lock: Lock, ...key: Value[]): RowOf<T> | undefined {
  const found = ws.find(table, lock, key);
  expect(found).toBeDefined();
  return found === "none" ? undefined : (found as RowOf<T>);
}

/** The runs of a selection whose rows are loaded. */
function numbers(ws: WorkingSet, query: Select<"runs">): number[] | undefined {
  return ws.select(query)?.map(({ run }) => run);
}

/** The missing queries of a selection whose rows are not loaded. */
function missing(ws: WorkingSet, query: Select<"runs">): readonly Query[] {
  expect(ws.select(query)).toBeUndefined();
  return ws.takeMissing();
}

const rows = (...some: object[]): QueryResult => some as unknown as QueryResult;
const byNumber = (lock: Lock, ...runs: number[]): Query =>
  lookup(
    "runs",
    ["run"],
    runs.map((run) => [run]),
    lock,
  );
const RUN = ["run"];
const queued = (limit: number, lock: Lock = "update"): Select<"runs"> => ({
  kind: "select",
  table: "runs",
  where: [{ column: "status", is: "=", value: "queued" }],
  order: [
    ["priority", "desc"],
    ["run", "asc"],
  ],
  limit,
  lock,
});

/** The changes with only the columns they set. */
function changesOf(ws: WorkingSet): readonly unknown[] {
  const pick = (row: WireRow, columns: readonly string[]): WireRow =>
    Object.fromEntries(columns.map((column) => [column, row[column]!]));
  return ws.changes().map((change) => {
    if (change.change === "insert") return change;
    const columns = [...keyColumns(change.table), ...(change.change === "update" ? change.columns : [])];
    const rows = change.rows.map((row) => pick(row, columns));
    const { expect: expected, old } = change;
    if (expected === undefined) return { ...change, rows };
    return { ...change, rows, old: old!.map((row) => pick(row, expected)) };
  });
}

describe("a row that is not loaded", () => {
  test("is unknown until the result of its query is added", () => {
    const ws = new WorkingSet();
    expect(ws.find("runs", "update", [7])).toBeUndefined();
    ws.addResult(byNumber("update", 7), rows(runRow(7)));
    expect(get(ws, "runs", "update", 7)?.id).toBe("run-7");
  });

  test("is known to be absent once the database returned no row", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 7), []);
    expect(get(ws, "runs", "update", 7)).toBeUndefined();
  });

  test("missing rows are loaded together", () => {
    const ws = new WorkingSet();
    ws.recordMissing(byNumber("update", 2));
    ws.recordMissing(lookup("tags", RUN, [[1]], "none"));
    ws.recordMissing(byNumber("update", 3, 2));
    expect(ws.takeMissing()).toEqual([byNumber("update", 2, 3), lookup("tags", RUN, [[1]], "none")]);
    expect(ws.hasMissing).toBe(false);
  });

  test("missing rows are loaded in lock order: runs, queues, other locks, then reads without a lock", () => {
    const ws = new WorkingSet();
    ws.recordMissing(lookup("journal", ["run", "seq"], [[1, 1]], "none"));
    ws.recordMissing(lookup("queue", ["run", "item"], [[1, "Start"]], "update"));
    ws.recordMissing(lookup("queues", ["name"], [["mail"]], "update"));
    ws.recordMissing(byNumber("update", 1));
    expect(ws.takeMissing().map(({ table }) => table)).toEqual(["runs", "queues", "queue", "journal"]);
  });

  test("a row read without a lock is loaded again when a lock is needed", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("none", 1), rows(runRow(1, { status: "queued" })));
    expect(get(ws, "runs", "none", 1)?.status).toBe("queued");
    expect(ws.find("runs", "update", [1])).toBeUndefined();
    ws.addResult(byNumber("update", 1), rows(runRow(1, { status: "paused" })));
    expect(get(ws, "runs", "none", 1)?.status).toBe("paused");
  });

  test("a row that was deleted before it was locked is absent", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("none", 1), rows(runRow(1)));
    ws.addResult(byNumber("update", 1), []);
    expect(get(ws, "runs", "none", 1)).toBeUndefined();
  });

  test("a row that another transaction has locked is not absent", () => {
    const ws = new WorkingSet();
    const mail = rows({ name: "mail", declared: "{}", limits: "{}", paused: 0, paused_at: null });
    ws.addResult(lookup("queues", ["name"], [["mail"]], "none"), mail);
    ws.addResult(lookup("queues", ["name"], [["mail"]], "skip"), []);
    expect(ws.isLockedByOther("queues", "mail")).toBe(true);
    expect(get(ws, "queues", "none", "mail")?.name).toBe("mail");
  });

  test("a run created in this transaction needs no query", () => {
    const ws = new WorkingSet();
    ws.markNewRun(9);
    expect(ws.isLoadedBy("tags", RUN, [9], "none")).toBe(true);
    expect(ws.loadedBy("tags", RUN, [9])).toEqual([]);
    expect(get(ws, "once", "none", 9, "signal")).toBeUndefined();
    ws.insert("tags", tag(9, "blue"));
    expect(ws.loadedBy("tags", RUN, [9])).toEqual([tag(9, "blue")]);
  });
});

describe("a selection", () => {
  const loaded = (limit: number, ...some: RowOf<"runs">[]): WorkingSet => {
    const ws = new WorkingSet();
    ws.addResult(queued(limit), rows(...some));
    return ws;
  };

  test("contains the changes of this transaction, in order", () => {
    const ws = loaded(3, runRow(1), runRow(2));
    ws.insert("runs", runRow(3, { priority: 5 }));
    ws.update("runs", get(ws, "runs", "update", 1)!, { status: "running" });
    expect(numbers(ws, queued(3))).toEqual([3, 2]);
  });

  test("loads more when rows that no longer match may hide others", () => {
    const ws = loaded(2, runRow(1), runRow(2));
    expect(ws.select(queued(2))).toHaveLength(2);
    ws.update("runs", get(ws, "runs", "update", 1)!, { status: "running" });
    expect(numbers(ws, queued(1))).toEqual([2]);
    expect(missing(ws, queued(2))).toEqual([queued(6)]);
  });

  test("loads more when a row has moved in the order", () => {
    const ws = loaded(1, runRow(1, { priority: 9 }));
    ws.update("runs", get(ws, "runs", "update", 1)!, { priority: 0 });
    expect(missing(ws, queued(1))).toEqual([queued(3)]);
  });

  test("loads nothing more when fewer rows than the limit were returned", () => {
    const ws = loaded(5, runRow(1));
    ws.remove("runs", get(ws, "runs", "update", 1)!);
    expect(ws.select(queued(5))).toEqual([]);
  });

  test("omits rows without a lock when it needs locks", () => {
    const ws = loaded(5, runRow(1));
    ws.addResult(byNumber("none", 2), rows(runRow(2)));
    expect(numbers(ws, queued(5))).toEqual([1]);
  });

  test("loads ahead, and merges queries into the longest one", () => {
    const ws = new WorkingSet();
    ws.select(queued(1), 10);
    ws.select(queued(4));
    expect(ws.takeMissing()).toEqual([queued(10)]);
  });

  test("of a run all of whose rows are loaded needs no query", () => {
    const ws = new WorkingSet();
    ws.addResult(lookup("tags", RUN, [[1]], "none"), rows(tag(1, "a")));
    const where = [{ column: "run", is: "=", value: 1 }] as const;
    expect(ws.select({ kind: "select", table: "tags", where, lock: "none" })).toEqual([tag(1, "a")]);
  });
});

describe("a count", () => {
  const where = [{ column: "status", is: "=", value: "queued" }] as const;
  const counting = { kind: "count", table: "runs", where } as const;

  test("is the database's, and the rows that this transaction changed are known", () => {
    const ws = new WorkingSet();
    expect(ws.counts(counting)).toBeUndefined();
    expect(ws.takeMissing()).toEqual([counting]);
    ws.addResult(counting, [{ count: 10 }]);
    ws.addResult(byNumber("update", 1, 2, 4), rows(runRow(1), runRow(2, { status: "paused" }), runRow(4)));
    ws.update("runs", get(ws, "runs", "update", 1)!, { status: "running" });
    ws.update("runs", get(ws, "runs", "update", 2)!, { status: "queued" });
    ws.insert("runs", runRow(3));
    expect(ws.counts(counting)).toEqual([{ count: 10 }]);
    const { was, is } = ws.changed("runs", where);
    expect([was.map(({ run }) => run), is.map(({ run }) => run)]).toEqual([[1], [2, 3]]);
  });

  test("loads rows that were deleted without loading them", () => {
    const ws = new WorkingSet();
    expect(ws.recordBlind("runs", where)).toBe(false);
    ws.deleteBlind("runs", [4]);
    expect(ws.recordBlind("runs", where)).toBe(true);
    expect(ws.takeMissing()).toEqual([byNumber("update", 4)]);
  });
});

describe("changes", () => {
  test("are net: a row that was inserted and deleted is omitted, a row changed twice is one change", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    ws.update("runs", get(ws, "runs", "update", 1)!, { head: 2 });
    ws.update("runs", get(ws, "runs", "update", 1)!, { head: 3 });
    ws.insert("tags", tag(1, "a"));
    ws.remove("tags", get(ws, "tags", "none", 1, "a")!);
    expect(changesOf(ws)).toEqual([
      { change: "update", table: "runs", columns: ["head"], rows: [{ run: 1, head: 3 }] },
    ]);
  });

  test("of one table are one update, in key order", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1, 2), rows(runRow(1), runRow(2)));
    ws.update("runs", get(ws, "runs", "update", 2)!, { status: "paused" });
    ws.update("runs", get(ws, "runs", "update", 1)!, { head: 2 });
    expect(changesOf(ws)).toEqual([
      {
        change: "update",
        table: "runs",
        columns: ["status", "head"],
        rows: [
          { run: 1, head: 2, status: "queued" },
          { run: 2, head: 1, status: "paused" },
        ],
      },
    ]);
  });

  test("contain a payload only for rows with a new one", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1, 2), rows(runRow(1), runRow(2, { evidence: "long" })));
    ws.update("runs", get(ws, "runs", "update", 1)!, { evidence: "{}" });
    ws.update("runs", get(ws, "runs", "update", 2)!, { head: 2 });
    expect(ws.changes().map((change) => change.change === "update" && change.columns)).toEqual([
      ["evidence"],
      ["head"],
    ]);
  });

  test("an insert after a delete of the same key is an update of all columns", () => {
    const ws = new WorkingSet();
    ws.addResult(lookup("tags", RUN, [[1]], "none"), rows(tag(1, "a", 1)));
    ws.remove("tags", get(ws, "tags", "none", 1, "a")!);
    ws.insert("tags", tag(1, "a", 2));
    expect(changesOf(ws)).toEqual([
      { change: "update", table: "tags", columns: ["position"], rows: [{ run: 1, tag: "a", position: 2 }] },
    ]);
  });

  test("rows that were never read are removed by key, set by column, and inserted again after that", () => {
    const ws = new WorkingSet();
    ws.deleteBlind("tags", [1, "a"]);
    ws.deleteBlind("tags", [1, "b"]);
    ws.insert("tags", tag(1, "b"));
    ws.updateBlind("journal", [1, 1], { at: 5 });
    expect(changesOf(ws)).toEqual([
      {
        change: "delete",
        table: "tags",
        rows: [
          { run: 1, tag: "a" },
          { run: 1, tag: "b" },
        ],
      },
      { change: "insert", table: "tags", rows: [tag(1, "b")] },
      { change: "update", table: "journal", columns: ["at"], rows: [{ run: 1, seq: 1, at: 5 }] },
    ]);
    expect(get(ws, "tags", "none", 1, "a")).toBeUndefined();
    expect(ws.find("journal", "none", [1, 1])).toBeUndefined();
  });

  test("are discarded by a reset, and loaded rows are kept", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    ws.update("runs", get(ws, "runs", "update", 1)!, { head: 2 });
    ws.insert("tags", tag(1, "a"));
    ws.deleteBlind("tags", [1, "b"]);
    ws.reset();
    expect(changesOf(ws)).toEqual([]);
    expect(get(ws, "runs", "update", 1)?.head).toBe(1);
    expect(ws.find("tags", "none", [1, "a"])).toBeUndefined();
  });
});

describe("assumed rows", () => {
  test("the commit expects an assumed row that was changed or read, and no other", () => {
    const ws = new WorkingSet();
    for (const run of [1, 2, 3]) ws.assume("runs", runRow(run, { turn_token: "t" }));
    ws.update("runs", get(ws, "runs", "update", 1)!, { head: 2 });
    get(ws, "runs", "update", 2);
    const expected = { chain: "c0", turn_token: "t", arrivals: 0, status: "queued" };
    expect(changesOf(ws)).toEqual([
      {
        change: "update",
        table: "runs",
        columns: ["head", "chain"],
        rows: [
          { run: 1, head: 2, chain: "c0" },
          { run: 2, head: 1, chain: "c0" },
        ],
        expect: ["chain", "turn_token", "arrivals", "status"],
        old: [expected, expected],
      },
    ]);
  });

  test("are verified when they are deleted", () => {
    const ws = new WorkingSet();
    ws.assume("runs", runRow(1));
    ws.remove("runs", get(ws, "runs", "update", 1)!);
    expect(changesOf(ws)).toMatchObject([{ change: "delete", rows: [{ run: 1 }], old: [{ chain: "c0" }] }]);
  });

  test("are replaced by rows read with a lock", () => {
    const ws = new WorkingSet();
    ws.assume("runs", runRow(1, { head: 4 }));
    ws.addResult(byNumber("update", 1), rows(runRow(1, { head: 5 })));
    expect(get(ws, "runs", "update", 1)?.head).toBe(5);
    expect(changesOf(ws)).toEqual([]);
  });

  test("assumed to be absent need no query", () => {
    const ws = new WorkingSet();
    ws.assumeAbsent("runs", ["id", "generation"], ["new", 0]);
    ws.assumeAbsent("once", ["run", "target"], [1, "signal"]);
    expect(ws.isLoadedBy("runs", ["id", "generation"], ["new", 0], "update")).toBe(true);
    expect(ws.loadedBy("runs", ["id", "generation"], ["new", 0])).toEqual([]);
    expect(get(ws, "once", "none", 1, "signal")).toBeUndefined();
  });
});
