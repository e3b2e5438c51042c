// SQLite store: tests that need the file, a second connection or damage, which the shared store cases do not have.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import {
  chainAfter,
  markOf,
  type Entry,
  type EntryType,
  type NewItem,
  type Problem,
  type ScheduleState,
  type StartWrite,
  type Store,
  type TurnWrite,
} from "../../kernel/index.ts";
import { RUN_TABLES, columnType } from "../rows/tables.ts";
import { storedColumns } from "./row-sql.ts";
import { openSqliteStore } from "./sqlite-store.ts";

let folder: string;
let path: string;
let store: Store;
let worker: number;

const open = (file: string): Promise<Store> =>
  openSqliteStore({ path: file, clock: systemClock, timers: systemTimers, random: systemRandom });

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-sqlite-"));
  path = join(folder, "store.db");
  store = await open(path);
  worker = await store.registerWorker("tester", 3_600_000);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

// ── helpers ──

function startWrite(id: string): StartWrite {
  const run = { id, definition: "checkout", kind: "workflow", version: 1, priority: 0, tags: [] } as const;
  return { write: "start", run: { ...run, started: "{}", runtime: "test" } };
}

interface HeldTurn {
  readonly run: number;
  readonly token: string;
  readonly head: number;
  readonly chain: string;
}

async function startHeld(id: string, on = store): Promise<HeldTurn> {
  const token = systemRandom.token();
  const [outcome] = await on.write([{ ...startWrite(id), claim: { worker, token } }]);
  expect(outcome.status).toBe("started");
  const { run, head, chain } = outcome.record;
  return { run, token, head, chain };
}

interface Parts {
  readonly entries: readonly (readonly [type: EntryType, command: string, data?: string])[];
  readonly items?: readonly NewItem[];
}

function turnWrite(held: HeldTurn, { entries: wanted, items = [] }: Parts, move: TurnWrite["then"]): TurnWrite {
  let { chain } = held;
  const entries = wanted.map(([type, command, data = "{}"], index): Entry => {
    chain = chainAfter(chain, type, command, data);
    return { seq: held.head + 1 + index, type, command, data, at: store.now(), mark: markOf(chain) };
  });
  const nothing = { read: 0, finished: [], dropped: [], children: [], messages: [], chunks: [], outgoing: [] };
  // oxlint-disable-next-line unicorn/no-thenable -- `then` is a field of the port, and a write is never awaited.
  return { ...held, previousChain: held.chain, ...nothing, write: "turn", entries, items, chain, then: move };
}

async function commit(held: HeldTurn, parts: Parts, move: TurnWrite["then"] = "hold", on = store): Promise<HeldTurn> {
  const write = turnWrite(held, parts, move);
  expect((await on.write([write]))[0].status).toBe("committed");
  return { ...held, head: held.head + parts.entries.length, chain: write.chain };
}

const END: Parts = { entries: [["RunCompleted", ""]] };

async function startEnded(id: string, on = store): Promise<void> {
  await commit(await startHeld(id, on), END, "completed", on);
}

function tasks(held: HeldTurn, count: number): Required<Parts> {
  const numbers = Array.from({ length: count }, (_, n) => n);
  return {
    entries: numbers.map((n) => ["TaskScheduled", `Task(${n})`] as const),
    items: numbers.map((n) => ({
      item: `Task(${n})`,
      kind: "task",
      name: "charge",
      priority: 0,
      seq: held.head + 1 + n,
    })),
  };
}

// ── writing ──

test("a poll that finds nothing writes nothing", async () => {
  await commit(await startHeld("order-1"), { entries: [["PromiseCreated", "Promise(0)"]] }, "release");
  const before = statSync(`${path}-wal`, { bigint: true });
  for (let polls = 0; polls < 10; polls++)
    await store.write([
      {
        write: "claim-turns",
        worker,
        tokens: ["t"],
        definitions: ["checkout", "other"].map((name) => ({ name, version: 1 })),
      },
      { write: "claim-items", worker, tokens: ["t"], names: ["charge"] },
      { write: "fire-due", limit: 10 },
    ]);
  await store.reap(worker);
  const after = statSync(`${path}-wal`, { bigint: true });
  expect([after.size, after.mtimeNs]).toEqual([before.size, before.mtimeNs]);
});

test("a write that fails does not affect the others, and is named", async () => {
  const held = await startHeld("order-1");
  const { entries, items } = tasks(held, 1);
  const poison = turnWrite(held, { entries, items: [...items, ...items] }, "hold");
  const writing = store.write([startWrite("before"), poison, startWrite("after")]);
  await expect(writing).rejects.toMatchObject({
    code: "INVARIANT",
    details: { failed: [1], outcomes: [{ status: "started" }, undefined, { status: "started" }] },
  });
  expect(await store.findRun("order-1")).toMatchObject({ head: 1, status: "running" });
  await commit(held, { entries, items });
  expect(await store.check()).toEqual([]);
});

test("a run's number is not used again after everything was pruned", async () => {
  const held = await startHeld("order-1");
  await commit(held, END, "completed");
  expect(await store.prune(store.now() + 1_000)).toEqual({ runs: 1 });
  expect((await startHeld("order-2")).run).toBeGreaterThan(held.run);
});

test("the rows of a run with very many items are swept in several transactions", async () => {
  const held = await startHeld("wide");
  const wide = await commit(held, tasks(held, 2_500));
  await commit(wide, END, "completed");
  expect((await store.info()).items.ready).toBe(1_500);
  expect(await store.check()).toEqual([]);
  // None of them can be claimed in the meantime.
  expect(await store.write([{ write: "claim-items", worker, tokens: ["a", "b"], names: ["charge"] }])).toEqual([
    { items: [], nextAt: undefined, held: false },
  ]);
  for (let reaps = 0; reaps < 3; reaps++) await store.reap(worker);
  expect((await store.info()).items.ready).toBe(0);
  expect(await store.check()).toEqual([]);
});

// ── checking ──

/** Changes the file by hand. */
async function afterDoing(sql: string): Promise<readonly Problem[]> {
  expect(await store.check()).toEqual([]);
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  return store.check();
}

test("check reports the run and the entry of a payload with one damaged byte", async () => {
  await startEnded("healthy");
  const held = await startHeld("damaged");
  await commit(
    held,
    {
      entries: [
        ["StateSet", "State(0)", '{"value":"needle in the haystack"}'],
        ["RunCompleted", "", "{}"],
      ],
    },
    "completed",
  );
  await store.close();
  const bytes = readFileSync(path);
  const at = bytes.indexOf("needle in the haystack");
  expect(at).toBeGreaterThan(0);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);

  store = await open(path);
  expect(await store.check()).toMatchObject([{ invariant: "I8 journal hash chain", run: "damaged", seq: 2 }]);
  expect((await store.readJournal(held.run, 0)).length).toBe(3);
});

test.each([
  [
    "a missing entry",
    "delete from journal where run = (select min(run) from runs) and seq = 2",
    ["I7 journal gap-free", 2],
  ],
  [
    "a journal cut short",
    "delete from journal where run = (select min(run) from runs) and seq = 3",
    ["I7 journal gap-free", 3],
  ],
  [
    "a changed type",
    "update journal set type = 'StateCleared' where run = (select min(run) from runs) and seq = 2",
    ["I8 journal hash chain", 2],
  ],
  [
    "a changed chain",
    "update runs set chain = replace(chain, substr(chain, 9, 1), 'x') where run = (select min(run) from runs)",
    ["I8 journal hash chain", 3],
  ],
  [
    "a run without its end",
    "update runs set status = 'failed' where run = (select min(run) from runs)",
    ["I18 one end", 3],
  ],
  [
    "a turn due after the end",
    "update runs set turn_due = 1 where run = (select min(run) from runs)",
    ["I17 no rows after the end", undefined],
  ],
] as const)("check reports %s", async (_, sql, [invariant, seq]) => {
  const held = await startHeld("order-1");
  await commit(
    held,
    {
      entries: [
        ["StateSet", "State(0)"],
        ["RunCompleted", ""],
      ],
    },
    "completed",
  );
  expect(await afterDoing(sql)).toEqual(
    expect.arrayContaining([expect.objectContaining({ invariant, run: "order-1", seq })]),
  );
});

test.each([
  ["an item that vanished", "delete from queue", "I16 no stuck run"],
  [
    "an unread message without a due turn",
    "update runs set arrivals = 1; insert into inbox (run, arrival, type, target, data) select min(run), 1, 'TimerFired', 'x', x'7b7d' from runs",
    "I16 no stuck run",
  ],
  ["a message that vanished", "update runs set arrivals = 1, turn_due = 1", "I23 inbound messages"],
  [
    "a lease of a worker that does not exist",
    "update queue set state = 2, token = 't', worker = 99",
    "I14 leases have holders",
  ],
  ["a token on a free item", "update queue set token = 't'", "I14 leases have holders"],
  [
    "rows of a run that does not exist",
    "update queue set run = 77; update runs set turn_due = 1",
    "I17 no rows after the end",
  ],
  [
    "a result recorded for a queued item",
    "update queue set item = 'Task(9)'; update journal set type = 'TaskCompleted', command = 'Task(9)' where seq = 2",
    "I1 no duplicate enqueue",
  ],
  ["an end entry of a live run", "update journal set type = 'RunFailed' where seq = 2", "I18 one end"],
])("check reports %s", async (_, sql, invariant) => {
  const held = await startHeld("order-1");
  await commit(held, tasks(held, 1), "release");
  expect((await afterDoing(sql)).map((problem) => problem.invariant)).toContain(invariant);
});

test.each([
  ["a schedule with two timings", "update schedules set every = 5", "I41 schedules valid"],
  ["a schedule without timing", "update schedules set cron = null", "I41 schedules valid"],
  ["an unknown overlap policy", "update schedules set overlap = 'maybe'", "I41 schedules valid"],
  ["an unknown catch-up policy", "update schedules set catch_up = 'some'", "I41 schedules valid"],
  ["queued times that do not ascend", "update schedules set line = '[5, 3]'", "I41 schedules valid"],
  ["a schedule without a due time", "update schedules set due_at = null", "I41 schedules valid"],
  ["a paused schedule that is due", "update schedules set paused = 1", "I41 schedules valid"],
  ["a due time before the planned one", "update schedules set next_at = next_at + 1", "I41 schedules valid"],
  [
    "a schedule whose definition no live worker has",
    "update schedules set next_at = next_at - 600000, due_at = due_at - 600000",
    "I42 schedules fired",
  ],
])("check reports %s", async (_, sql, invariant) => {
  const at = store.now();
  const schedule: ScheduleState = {
    name: "daily",
    definition: "checkout",
    version: 1,
    input: undefined,
    timing: { cron: "@daily", timeZone: "UTC" },
    overlap: "skip",
    catchUp: "last",
    jitterMs: 0,
    paused: false,
    nextAt: at,
    dueAt: at,
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
  };
  await store.write([{ write: "put-schedule", fence: undefined, token: "t", schedule, starts: [] }]);
  const problems = await afterDoing(sql);
  expect(problems).toEqual([expect.objectContaining({ invariant, message: expect.stringContaining("daily") })]);
});

test("check reports a command that ends twice or before it was opened", async () => {
  const held = await startHeld("order-1");
  await commit(held, {
    entries: [
      ["TaskCompleted", "Task(0)"],
      ["OperationCompleted", "Operation(0)"],
      ["OperationFailed", "Operation(0)"],
    ],
  });
  expect(await store.check()).toMatchObject([
    { invariant: "I10 completions follow commands", run: "order-1", seq: 2 },
    { invariant: "I10 completions follow commands", run: "order-1", seq: 4 },
  ]);
});

test("a check reads one snapshot while other connections write", async () => {
  for (let n = 0; n < 450; n++) await startEnded(`before-${n}`);
  let more = 0;
  let written: Promise<unknown> = Promise.resolve();
  const problems = await store.check((_, total) => {
    expect(total).toBe(450);
    written = written.then(() => startEnded(`during-${more++}`));
  });
  await written;
  expect(problems).toEqual([]);
  expect(more).toBeGreaterThan(1);
});

// ── maintenance ──

test("a backup made while two connections write ends, and is one snapshot", async () => {
  const other = await open(path);
  const held = await startHeld("bulk");
  const megabyte = JSON.stringify("x".repeat(1e6));
  await commit(held, { entries: Array.from({ length: 12 }, (_, n) => ["StateSet", `State(${n})`, megabyte] as const) });

  let done = false;
  let written = 0;
  const keepWriting = async (on: Store): Promise<void> => {
    while (!done) {
      await startEnded(`run-${written++}`, on);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const writers = [keepWriting(store), keepWriting(other)];
  const target = join(folder, "backup.db");
  await store.backup(target);
  expect(written).toBeGreaterThan(2);
  done = true;
  await Promise.all(writers);
  await other.close();

  const copy = await open(target);
  expect(await copy.check()).toEqual([]);
  expect((await copy.readJournal(held.run, 0)).length).toBe(13);
  await copy.close();
});

test("pruning deletes long journals and many runs in several transactions, and leaves no rows", async () => {
  const held = await startHeld("long");
  await commit(await commit(held, tasks(held, 3_500)), END, "completed");
  for (let n = 0; n < 150; n++) await startEnded(`short-${n}`);
  expect(await store.prune(store.now() + 1_000)).toEqual({ runs: 151 });
  expect(await store.check()).toEqual([]);
  expect(await store.readJournal(held.run, 0)).toEqual([]);
  expect((await store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
});

// ── leases with different clocks ──

test("a lease counts from the highest time of all writers", async () => {
  const ahead = await openSqliteStore({
    path,
    clock: { now: () => systemClock.now() + 3_600_000, monotonic: systemClock.monotonic },
    timers: systemTimers,
    random: systemRandom,
  });
  const other = await ahead.registerWorker("ahead", 7_200_000);
  expect(await store.renewLease(worker, 60_000)).toBe(true);
  await store.registerWorker("behind", 60_000);
  expect(await ahead.reap(other)).toEqual({ workers: 0, turns: 0, items: 0 });
  await ahead.close();
});

test("a run whose turn is due as a suspect is not stuck", async () => {
  await store.write([startWrite("suspect")]);
  const db = new DatabaseSync(path);
  db.exec("update runs set turn_due = 2, takeovers = 2 where id = 'suspect'");
  db.close();
  expect(await store.check()).toEqual([]);
});

test("check reports rows of a missing run in every table of runs, and a prune deletes those of a pruned run", async () => {
  const gone = 4711;
  const own = RUN_TABLES.filter((table) => !["runs", "leftovers"].includes(table));
  const db = new DatabaseSync(path);
  for (const table of own) {
    const columns = storedColumns(table);
    const values = columns.map((column) => (column === "run" ? gone : columnType(table, column) === "int" ? 1 : "x"));
    const texts = columns.map((column) => (columnType(table, column) === "payload" ? "cast(? as blob)" : "?"));
    db.prepare(`insert into ${table} (${columns.join(", ")}) values (${texts.join(", ")})`).run(...values);
  }
  const messages = (await store.check()).map(({ message }) => message);
  expect(messages.filter((message) => message.includes(`run number ${gone},`))).toHaveLength(own.length);
  db.exec(`insert into leftovers values (${gone})`);
  await store.prune(0);
  const left = own.filter((table) => db.prepare(`select 1 from ${table} where run = ?`).get(gone) !== undefined);
  // Their rows are deleted together with the row of the run.
  expect(left).toEqual(["tags", "ended_runs", "forks"]);
  db.close();
});
