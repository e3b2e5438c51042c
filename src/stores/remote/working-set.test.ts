import { describe, expect, test } from "vitest";
import { runRow as anyRunRow } from "../../../test/stores/rows.ts";
import type { QueryResult, WireRow } from "./backend.ts";
import type { Lock, Query, Select } from "./query.ts";
import { keyColumns, type RowOf } from "./tables.ts";
import { Miss, WorkingSet } from "./working-set.ts";

const runRow = (run: number, differently: Partial<RowOf<"runs">> = {}): RowOf<"runs"> =>
  anyRunRow(run, differently) as RowOf<"runs">;

function tag(run: number, name: string, position = 1): RowOf<"tags"> {
  return { run, tag: name, position };
}

/** What is missing, instead of an answer. */
function missed(ws: WorkingSet, ask: () => unknown): readonly Query[] {
  expect(ask).toThrow(Miss);
  return ws.takeMissing();
}

const rows = (...some: object[]): QueryResult => some as unknown as QueryResult;
const byNumber = (lock: Lock, ...runs: number[]): Query => ({
  kind: "lookup",
  table: "runs",
  columns: ["run"],
  keys: runs.map((run) => [run]),
  lock,
});
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

/** What is said of each row; a row may have more columns than a change is about. */
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
  test("is missed, with the query that would load it", () => {
    const ws = new WorkingSet();
    expect(missed(ws, () => ws.get("runs", "update", 7))).toEqual([byNumber("update", 7)]);
    ws.addResult(byNumber("update", 7), rows(runRow(7)));
    expect(ws.get("runs", "update", 7)?.id).toBe("run-7");
  });

  test("is known to be absent once the database has said so", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 7), []);
    expect(ws.get("runs", "update", 7)).toBeUndefined();
  });

  test("is asked for together, and only what is missing", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    const wanting = (): void =>
      ws.require(() => {
        ws.prefetchRows("runs", "update", [[1], [2]]);
        ws.prefetchRows("runs", "update", [[3]]);
        ws.prefetchBy("tags", ["run"], [[1]], "none");
      });
    expect(missed(ws, wanting)).toEqual([
      byNumber("update", 2, 3),
      { kind: "lookup", table: "tags", columns: ["run"], keys: [[1]], lock: "none" },
    ]);
  });

  test("is asked for in the order of locks: runs, queues, others, and then what is only looked at", () => {
    const ws = new WorkingSet();
    ws.prefetchRows("journal", "none", [[1, 1]]);
    ws.prefetchRows("queue", "update", [[1, "Start"]]);
    ws.prefetchRows("queues", "update", [["mail"]]);
    ws.prefetchRows("runs", "update", [[1]]);
    expect(ws.takeMissing().map(({ table }) => table)).toEqual(["runs", "queues", "queue", "journal"]);
  });

  test("is not guessed from a weaker look: a lock asks again, and its answer counts", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("none", 1), rows(runRow(1, { status: "queued" })));
    expect(ws.get("runs", "none", 1)?.status).toBe("queued");
    expect(missed(ws, () => ws.get("runs", "update", 1))).toEqual([byNumber("update", 1)]);
    ws.addResult(byNumber("update", 1), rows(runRow(1, { status: "paused" })));
    expect(ws.get("runs", "none", 1)?.status).toBe("paused");
  });

  test("a row that was seen and is gone when it is locked is gone", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("none", 1), rows(runRow(1)));
    ws.addResult(byNumber("update", 1), []);
    expect(ws.get("runs", "none", 1)).toBeUndefined();
  });

  test("a row that another transaction has locked is taken, not absent", () => {
    const ws = new WorkingSet();
    const asked: Query = { kind: "lookup", table: "queues", columns: ["name"], keys: [["mail"]], lock: "skip" };
    ws.addResult({ ...asked, lock: "none" }, rows({ name: "mail", declared: "{}", limits: "{}", paused: 0 }));
    ws.addResult(asked, []);
    expect(ws.isLockedByOther("queues", "mail")).toBe(true);
    expect(ws.get("queues", "none", "mail")?.name).toBe("mail");
  });

  test("of a run that is made here there is nothing, without asking", () => {
    const ws = new WorkingSet();
    ws.markNewRun(9);
    expect(ws.findBy("tags", ["run"], [9], "none")).toEqual([]);
    expect(ws.get("once", "none", 9, "signal")).toBeUndefined();
    ws.insert("tags", tag(9, "blue"));
    expect(ws.findBy("tags", ["run"], [9], "none")).toEqual([tag(9, "blue")]);
  });
});

describe("a selection", () => {
  const loaded = (limit: number, ...some: RowOf<"runs">[]): WorkingSet => {
    const ws = new WorkingSet();
    ws.addResult(queued(limit), rows(...some));
    return ws;
  };

  test("has what was changed here, in its order", () => {
    const ws = loaded(3, runRow(1), runRow(2));
    ws.insert("runs", runRow(3, { priority: 5 }));
    ws.update("runs", ws.get("runs", "update", 1)!, { status: "running" });
    expect(ws.select(queued(3)).map(({ run }) => run)).toEqual([3, 2]);
  });

  test("asks for more when rows that match no more may hide others", () => {
    const ws = loaded(2, runRow(1), runRow(2));
    expect(ws.select(queued(2))).toHaveLength(2);
    ws.update("runs", ws.get("runs", "update", 1)!, { status: "running" });
    expect(ws.select(queued(1)).map(({ run }) => run)).toEqual([2]);
    expect(missed(ws, () => ws.select(queued(2)))).toEqual([queued(6)]);
  });

  test("asks for more when a row has moved to another place in its order", () => {
    const ws = loaded(1, runRow(1, { priority: 9 }));
    ws.update("runs", ws.get("runs", "update", 1)!, { priority: 0 });
    expect(missed(ws, () => ws.select(queued(1)))).toEqual([queued(3)]);
  });

  test("asks for nothing more when fewer came than were asked for", () => {
    const ws = loaded(5, runRow(1));
    ws.remove("runs", ws.get("runs", "update", 1)!);
    expect(ws.select(queued(5))).toEqual([]);
  });

  test("leaves out what was only seen where it asks for locks", () => {
    const ws = loaded(5, runRow(1));
    ws.addResult(byNumber("none", 2), rows(runRow(2)));
    expect(ws.select(queued(5)).map(({ run }) => run)).toEqual([1]);
  });

  test("loads ahead where more will be wanted, and asks once for the longest", () => {
    const ws = new WorkingSet();
    ws.trySelect(queued(1), 10);
    ws.trySelect(queued(4));
    expect(ws.takeMissing()).toEqual([queued(10)]);
  });

  test("of a run all of whose rows are here needs no query", () => {
    const ws = new WorkingSet();
    ws.addResult({ kind: "lookup", table: "tags", columns: ["run"], keys: [[1]], lock: "none" }, rows(tag(1, "a")));
    const where = [{ column: "run", is: "=", value: 1 }] as const;
    expect(ws.select({ kind: "select", table: "tags", where, lock: "none" })).toEqual([tag(1, "a")]);
  });
});

describe("a count", () => {
  const counting = { kind: "count", table: "runs", where: [{ column: "status", is: "=", value: "queued" }] } as const;

  test("is the database's, with what was changed here", () => {
    const ws = new WorkingSet();
    ws.addResult(counting, [{ count: 10 }]);
    ws.addResult(byNumber("update", 1, 2), rows(runRow(1), runRow(2, { status: "paused" })));
    ws.update("runs", ws.get("runs", "update", 1)!, { status: "running" });
    ws.update("runs", ws.get("runs", "update", 2)!, { status: "queued" });
    ws.insert("runs", runRow(3));
    expect(ws.count(counting)).toBe(11);
  });

  test("asks what was removed without having been seen", () => {
    const ws = new WorkingSet();
    ws.addResult(counting, [{ count: 10 }]);
    ws.deleteBlind("runs", [4]);
    expect(missed(ws, () => ws.count(counting))).toEqual([byNumber("update", 4)]);
  });

  test("by groups loses a group that has become empty and gains one that has not been", () => {
    const ws = new WorkingSet();
    const grouped = { ...counting, by: ["definition"] } as const;
    ws.addResult(grouped, [{ definition: "order", count: 1 }]);
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    ws.remove("runs", ws.get("runs", "update", 1)!);
    ws.insert("runs", runRow(2, { definition: "pay" }));
    expect(ws.groups(grouped)).toEqual([{ definition: "pay", count: 1 }]);
  });
});

describe("changes", () => {
  test("are net: one that came and went is not among them, one that was changed twice once", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    ws.update("runs", ws.get("runs", "update", 1)!, { head: 2 });
    ws.update("runs", ws.get("runs", "update", 1)!, { head: 3 });
    ws.insert("tags", tag(1, "a"));
    ws.remove("tags", ws.get("tags", "none", 1, "a")!);
    expect(changesOf(ws)).toEqual([
      { change: "update", table: "runs", columns: ["head"], rows: [{ run: 1, head: 3 }] },
    ]);
  });

  test("of one table are one update, in the order of keys", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1, 2), rows(runRow(1), runRow(2)));
    ws.update("runs", ws.get("runs", "update", 2)!, { status: "paused" });
    ws.update("runs", ws.get("runs", "update", 1)!, { head: 2 });
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

  test("carry a payload only for rows that have a new one", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1, 2), rows(runRow(1), runRow(2, { evidence: "long" })));
    ws.update("runs", ws.get("runs", "update", 1)!, { evidence: "{}" });
    ws.update("runs", ws.get("runs", "update", 2)!, { head: 2 });
    expect(ws.changes().map((change) => change.change === "update" && change.columns)).toEqual([
      ["evidence"],
      ["head"],
    ]);
  });

  test("a row in the place of one that was removed is an update of all its columns", () => {
    const ws = new WorkingSet();
    const asked: Query = { kind: "lookup", table: "tags", columns: ["run"], keys: [[1]], lock: "none" };
    ws.addResult(asked, rows(tag(1, "a", 1)));
    ws.remove("tags", ws.get("tags", "none", 1, "a")!);
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
    expect(ws.get("tags", "none", 1, "a")).toBeUndefined();
    expect(missed(ws, () => ws.get("journal", "none", 1, 1))).toHaveLength(1);
  });

  test("are forgotten by a reset, and what was loaded is not", () => {
    const ws = new WorkingSet();
    ws.addResult(byNumber("update", 1), rows(runRow(1)));
    ws.update("runs", ws.get("runs", "update", 1)!, { head: 2 });
    ws.insert("tags", tag(1, "a"));
    ws.deleteBlind("tags", [1, "b"]);
    ws.reset();
    expect(changesOf(ws)).toEqual([]);
    expect(ws.get("runs", "update", 1)?.head).toBe(1);
    expect(missed(ws, () => ws.get("tags", "none", 1, "a"))).toHaveLength(1);
  });
});

describe("what is assumed", () => {
  test("the commit expects an assumed row that was changed or read, and no other", () => {
    const ws = new WorkingSet();
    for (const run of [1, 2, 3]) ws.assume("runs", runRow(run, { turn_token: "t" }));
    ws.update("runs", ws.get("runs", "update", 1)!, { head: 2 });
    ws.get("runs", "update", 2);
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

  test("is expected where it is removed", () => {
    const ws = new WorkingSet();
    ws.assume("runs", runRow(1));
    ws.remove("runs", ws.get("runs", "update", 1)!);
    expect(changesOf(ws)).toMatchObject([{ change: "delete", rows: [{ run: 1 }], old: [{ chain: "c0" }] }]);
  });

  test("gives way to what the database says under a lock", () => {
    const ws = new WorkingSet();
    ws.assume("runs", runRow(1, { head: 4 }));
    ws.addResult(byNumber("update", 1), rows(runRow(1, { head: 5 })));
    expect(ws.get("runs", "update", 1)?.head).toBe(5);
    expect(changesOf(ws)).toEqual([]);
  });

  test("to be absent needs no query", () => {
    const ws = new WorkingSet();
    ws.assumeAbsent("runs", ["id", "generation"], ["new", 0]);
    ws.assumeAbsent("once", ["run", "target"], [1, "signal"]);
    expect(ws.findBy("runs", ["id", "generation"], ["new", 0], "update")).toEqual([]);
    expect(ws.get("once", "none", 1, "signal")).toBeUndefined();
  });
});
