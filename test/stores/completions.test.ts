// Completions on SQLite: the reads and writes of one commit, and damage that `check` must report.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { ClaimedItem, CompleteWrite, Problem, Store } from "../../src/kernel/index.ts";
import { readInputs } from "../../src/stores/rules/flow-reads.ts";
import { SqliteSession } from "../../src/stores/sqlite/sqlite-session.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import {
  arrival,
  claimNodes,
  commit,
  completed,
  done,
  endParts,
  completedItem,
  portionOf,
  RUN_COMPLETED,
  spreadOf,
  startFlow,
  startWithNodes,
  takeNodes,
} from "../../src/testing/store-cases/flow-actions.ts";

let folder: string;
let path: string;
let session: SqliteSession;
let store: Store;
let worker: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-completions-"));
  path = join(folder, "store.db");
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  session = await SqliteSession.open({ path, durability: "full", migrate: true, ...ports });
  store = new SqliteStore(session);
  worker = await store.registerWorker("tester", 3_600_000);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

const READS = ["get", "first", "select", "is"] as const;
const CHANGES = ["add", "change", "remove", "insert", "set", "drop", "clear"] as const;

/** The verbs that `act` uses, with their tables; reads are in brackets. */
async function traced(act: () => Promise<unknown>): Promise<readonly string[]> {
  const names: string[] = [];
  const rows = session.connection.rows as unknown as Record<string, (...args: unknown[]) => unknown>;
  // One verb may be implemented by another.
  let depth = 0;
  for (const verb of [...READS, ...CHANGES]) {
    const call = rows[verb]!.bind(rows);
    rows[verb] = (...args) => {
      const name = `${verb} ${String(args[0])}`;
      if (depth === 0) names.push((READS as readonly string[]).includes(verb) ? `(${name})` : name);
      depth += 1;
      try {
        return call(...args);
      } finally {
        depth -= 1;
      }
    };
  }
  try {
    await act();
  } finally {
    for (const verb of [...READS, ...CHANGES]) Reflect.deleteProperty(rows, verb);
  }
  return names;
}

test("a completion reads and writes in one order: run, fence, entries, arrivals, readiness, queue, run", async () => {
  await startWithNodes(store, worker, "import-1", "x", "y");
  const [x, y] = await takeNodes(store, worker, "x", "y");
  const first = completed(x, [arrival("j", "x", 2), arrival("k", "x", 1)]);
  expect(await traced(() => commit(store, first))).toEqual([
    "(get runs)",
    "(get readiness)",
    "(get readiness)",
    "remove queue",
    "insert journal",
    "add arrivals",
    "add arrivals",
    "insert readiness",
    "insert queue",
    "insert readiness",
    "set runs",
  ]);
  // The last arrival is counted before the node is queued.
  expect(await traced(() => commit(store, completed(y, [arrival("j", "y", 2)])))).toEqual([
    "(get runs)",
    "(get readiness)",
    "remove queue",
    "insert journal",
    "add arrivals",
    "set readiness",
    "insert queue",
    "set runs",
  ]);
  const [j] = (await takeNodes(store, worker, "j", "k")) as readonly [ClaimedItem, ClaimedItem];
  const end = completed(j, [], endParts("completed", [done("j"), RUN_COMPLETED]));
  expect(await traced(() => commit(store, end))).toEqual([
    "(get runs)",
    "remove queue",
    "insert journal",
    "insert journal",
    "set runs",
    "(select queue)",
    "drop queue",
  ]);
});

test("a stale completion writes nothing", async () => {
  await startWithNodes(store, worker, "import-1", "x");
  const [x] = await takeNodes(store, worker, "x");
  const stale = completed({ ...x, token: "old" }, [arrival("j", "x", 1)]);
  expect(await traced(() => store.write([stale]))).toEqual(["(get runs)", "(get readiness)", "remove queue"]);
  expect(await store.check()).toEqual([]);
});

test("completions of one run in one transaction write its row and its barrier's once", async () => {
  await startFlow(store, worker, "import-1", spreadOf(10, 5));
  const items = await claimNodes(store, worker);
  const names = await traced(() => store.write(items.map((item) => completedItem(item))));
  const times = (name: string): number => names.filter((one) => one === name).length;
  expect(["insert journal", "add arrivals", "insert queue"].map(times)).toEqual([5, 5, 5]);
  expect(["(get runs)", "(get readiness)", "set readiness", "set runs"].map(times)).toEqual([1, 1, 1, 1]);
});

test("the inputs of nodes are joined in one statement, with the result of the rule", async () => {
  const arrivals = ["x", "é y", "z"].map((name) => arrival(name, "input", 1, { cause: undefined }));
  const { run } = await startFlow(store, worker, "import-1", { ...spreadOf(6, 4), arrivals });
  const items = (await claimNodes(store, worker)).filter(({ item }) => item !== "z");
  await store.write(
    items.map((item) =>
      item.item.startsWith("saved") ? completedItem(item) : completed(item, [arrival("j", item.item, 2)]),
    ),
  );
  const requests = [["x"], ["saved"], ["j"], ["none"], ["saved", "é y", "j", "x", "j", "none"], []].map((targets) => ({
    run,
    targets,
  }));
  const expected = await session.read("Reading", (_, rows) => readInputs(rows, requests));
  expect(expected.map((inputs) => inputs.length)).toEqual([1, 4, 2, 0, 8, 0]);
  let joined: unknown;
  expect(await traced(async () => (joined = await store.readInputs(requests)))).toEqual([]);
  expect(joined).toEqual(expected);
});

test("a batch of completions whose COMMIT failed without happening is repeated once", async () => {
  const { run } = await startFlow(store, worker, "import-1", spreadOf(4, 2));
  const items = await claimNodes(store, worker);
  const { commit: statement } = session.connection.sql;
  const commits = statement.run.bind(statement);
  statement.run = () => {
    statement.run = commits;
    throw Object.assign(new Error("disk I/O error"), { errcode: 1034 });
  };
  const outcomes = await store.write(items.map((item) => completedItem(item)));
  expect(outcomes.map(({ status }) => status)).toEqual(["committed", "committed"]);
  expect(await store.readReadiness(run)).toEqual([{ node: "saved", required: 4, completed: 2, queued: 4 }]);
  expect(await store.check()).toEqual([]);
});

// ── damage ──

async function afterDoing(sql: string): Promise<readonly Problem[]> {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  return store.check();
}

/** A run whose join requires one more arrival, and whose spread has one ended, one queued and one future item. */
async function startHalf(): Promise<void> {
  const arrivals = ["x", "y"].map((name) => arrival(name, "input", 1, { cause: undefined }));
  await startFlow(store, worker, "import-1", { ...spreadOf(3, 1), arrivals });
  const items = await claimNodes(store, worker);
  const byName = (name: string): ClaimedItem => items.find(({ item }) => item === name) as ClaimedItem;
  const writes: readonly CompleteWrite[] = [
    completed(byName("x"), [arrival("j", "x", 2)]),
    completedItem(byName("saved[0]")),
  ];
  for (const write of writes) await commit(store, write);
  expect(await store.check()).toEqual([]);
}

test.each([
  ["a counter that is too low", "update readiness set completed = 0 where node = 'j'", "I2", "j"],
  ["a counter that is too high", "update readiness set completed = 3 where node = 'j'", "I2", "j"],
  ["an arrival that vanished", "delete from arrivals where target = 'saved'", "I2", "saved"],
  [
    "an arrival without a counter",
    "insert into arrivals values ((select run from runs), 'unknown', 'x', -1, 0, 1)",
    "I2",
    "unknown",
  ],
  ["a cursor beyond its items", "update readiness set queued = 4 where node = 'saved'", "I2", "saved"],
  ["an arrival without a cause", "update arrivals set seq = 99 where target = 'j'", "I5", "j"],
  ["a ready node that is not queued", "delete from queue where item = 'y'", "I3", "y"],
  ["an item of a spread that is lost", "delete from queue where item = 'saved[1]'", "I3", "saved[1]"],
  [
    "a node that is queued too early",
    "insert into queue (run, item, kind, name, priority, available_at, seq, state) values ((select run from runs), 'j', 'task', 'n', 0, 0, 1, 1)",
    "I3",
    "j",
  ],
  [
    "a node that is queued and was never waited for",
    "insert into queue (run, item, kind, name, priority, available_at, seq, state) values ((select run from runs), 'q', 'task', 'n', 0, 0, 1, 1)",
    "I3",
    "q",
  ],
  [
    "an item that is queued before its turn",
    "insert into queue (run, item, kind, name, priority, available_at, seq, state) values ((select run from runs), 'saved[2]', 'task', 'n', 0, 0, 1, 1)",
    "I3",
    "saved[2]",
  ],
  ["a node that ended and is queued again", "update queue set item = 'x' where item = 'y'", "I1", "x"],
])("check reports %s with its run", async (_, sql, invariant, node) => {
  await startHalf();
  const problems = await afterDoing(sql);
  const named = problems.find((problem) => problem.invariant.startsWith(`${invariant} `));
  expect(named).toMatchObject({ run: "import-1" });
  expect(named?.message).toContain(node);
});

test("check reports a spread with keys whose items are no longer queued, and a node that would queue too many", async () => {
  const { entries, spread } = spreadOf(4, 1, 2);
  await startFlow(store, worker, "import-1", { entries, spread: { ...spread, portion: portionOf("ab") } });
  expect(await store.check()).toEqual([]);
  const lost = await afterDoing("delete from queue where item = 'saved[more]'");
  expect(lost).toMatchObject([{ invariant: "I3 ready means queued", run: "import-1" }]);
  expect(lost[0]?.message).toContain("saved[more] is not in the queue");
  const doubled = await afterDoing(
    "update readiness set queued = 4; update queue set item = 'saved[more]' where item = 'saved[1]'",
  );
  expect(doubled.map(({ message }) => message)).toContain("Node saved[more] is queued although it is not ready.");
});

test("a node that a retry derives again may be queued", async () => {
  await startWithNodes(store, worker, "import-1", "x");
  expect(await afterDoing("update queue set item = 'input[again]'")).toMatchObject([
    { message: expect.stringMatching(/^Node x is ready but not in the queue/) as string },
  ]);
});

test("check reports a flow that nothing will wake", async () => {
  await startHalf();
  const problems = await afterDoing("delete from queue; delete from arrivals; delete from readiness");
  expect(problems.map(({ invariant }) => invariant)).toContain("I16 no stuck run");
});

test("check reports counters and arrivals of a run that does not exist", async () => {
  await startHalf();
  const problems = await afterDoing("update arrivals set run = 77; update readiness set run = 78");
  const orphans = problems.filter(({ run }) => run === undefined).map(({ message }) => message);
  expect(orphans.some((message) => message.includes("number 77"))).toBe(true);
  expect(orphans.some((message) => message.includes("number 78"))).toBe(true);
});
