// Run leases: what show, doctor and top report about running runs, expired leases and the store's history.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, task, workflow } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { workerTag, historyOf, historyRow, type WorkerInfo } from "../../src/kernel/index.ts";
import { findExpiredLeases, stalledLines, readStalledRuns } from "../../src/cli/doctor-leases.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { claimItems, startHeld, startWithTasks } from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import { command, jsonLines, TemporaryFolder } from "./cli-process.ts";

const NOW = 1_000_000;
const worker = (number: number, until: number, leaseMs = 10_000): WorkerInfo => ({
  worker: number,
  name: `shop-${number}`,
  startedAt: 0,
  until,
  profile: JSON.stringify({ definitions: [], items: [], leaseMs }),
  activity: undefined,
});

test("an expired lease is a problem only while a live worker could have taken over", () => {
  const gone = worker(3, NOW - 61_000);
  expect(findExpiredLeases([gone], NOW)).toEqual([]);
  expect(findExpiredLeases([worker(3, NOW - 60_000), worker(4, NOW + 1)], NOW)).toEqual([]);
  expect(findExpiredLeases([worker(3, NOW - 90_000, 30_000), worker(4, NOW + 1)], NOW)).toEqual([]);
  expect(findExpiredLeases([gone, worker(4, NOW + 1)], NOW)).toMatchObject([
    { invariant: "I14 leases have holders", message: expect.stringContaining("shop-3 (3) expired 1 m 1 s ago") },
  ]);
});

test("a run is stalled if its last commit is older than a minute and than its worker's lease; oldest first", async () => {
  const time = createVirtualTime();
  const store = await openSqliteStore({
    path: ":memory:",
    clock: time.clock,
    timers: time.timers,
    random: systemRandom,
  });
  const about = (leaseMs: number): string => JSON.stringify({ definitions: [], items: [], leaseMs });
  const short = await store.registerWorker("short", 600_000, about(10_000));
  const long = await store.registerWorker("long", 600_000, about(300_000));
  for (let n = 0; n < 7; n += 1) await startHeld(store, short, `short-${n}`);
  await startHeld(store, long, "long");
  time.advanceTo(time.now() + 30_000);
  await startHeld(store, short, "young");
  time.advanceTo(time.now() + 31_000);
  const quiet = await readStalledRuns(store, await store.listWorkers());
  expect([quiet.count, quiet.more, quiet.longest.length]).toEqual([7, false, 5]);
  expect(stalledLines(quiet)).toEqual([
    "7 running runs without a commit for over a minute",
    ...quiet.longest.map(
      ({ id }) =>
        `${id}: Worker short (${workerTag(short)}) has executed the run for 1 m 1 s, last commit 1 m 1 s ago; its lease is valid for 8 m 59 s.`,
    ),
    "and 2 more",
  ]);
  // Without any live worker, a run is stalled as soon as the lease of its worker has expired.
  const gone = (await store.listWorkers()).map((one) => ({ ...one, until: store.now() - 1 }));
  expect((await readStalledRuns(store, gone)).count).toBe(9);
  const paged = await readStalledRuns(store, await store.listWorkers(), { page: 2, max: 100 });
  expect([paged.count, paged.more]).toEqual([7, false]);
  expect(await readStalledRuns(store, await store.listWorkers(), { page: 2, max: 4 })).toMatchObject({
    count: 2,
    more: true,
  });
  await store.close();
});

test("show names the worker that executes a run and its tasks, and the time of the last commit", async () => {
  using folder = new TemporaryFolder();
  const url = `sqlite:${folder.file("shop.db")}`;
  const [inStep, inTask] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const done = Promise.withResolvers<void>();
  const print = task("print", async () => {
    inTask.resolve();
    await done.promise;
  });
  const slow = workflow("slow", async (ctx) => {
    await ctx.run("wait", async () => {
      inStep.resolve();
      await done.promise;
    });
  });
  const prints = workflow("prints", async (ctx) => ctx.task(print, undefined));
  await using engine = await createEngine({ store: url, definitions: [slow, prints, print] });
  await engine.start(slow, undefined, { id: "slow-1" });
  await engine.start(prints, undefined, { id: "prints-1" });
  await Promise.all([inStep.promise, inTask.promise]);
  const show = (...args: readonly string[]): ReturnType<typeof command> => command(["show", ...args, "--store", url]);
  expect((await show("slow-1")).stdout).toMatch(
    /^now\n {2}Worker \S+ \(\w+\) has executed the run for [\d.]+ m?s, last commit [\d.]+ m?s ago; its lease is/m,
  );
  const holder = { worker: expect.any(Number), name: expect.any(String), alive: true, until: expect.any(String) };
  expect(jsonLines((await show("slow-1", "--json")).stdout)[0]).toMatchObject({
    holder,
    lastCommitAt: expect.stringMatching(/Z$/),
    heldItems: [],
  });
  await expect
    .poll(async () => (await show("prints-1")).stdout)
    .toMatch(
      /Worker \S+ \(\w+\) has executed task print for [\d.]+ m?s; its lease is valid for [\d.]+ s\. {2}Task\(0\)/,
    );
  expect(jsonLines((await show("prints-1", "--json")).stdout)[0]).toMatchObject({
    heldItems: [{ ...holder, item: "Task(0)" }],
  });
  done.resolve();
});

test("doctor reports stalled runs as information, and an expired lease that no worker took over as a problem", async () => {
  using folder = new TemporaryFolder();
  const path = folder.file("shop.db");
  const url = `sqlite:${path}`;
  const ago = { now: () => systemClock.now() - 100_000, monotonic: systemClock.monotonic };
  const store = await openSqliteStore({ path, clock: ago, timers: systemTimers, random: systemRandom });
  const dead = await store.registerWorker("dead", 10_000);
  await startHeld(store, dead, "order-1");
  await startWithTasks(store, dead, "order-2", 1);
  await claimItems(store, dead);
  await store.close();
  const alone = await command(["doctor", "--store", url]);
  expect([alone.code, alone.stdout]).toEqual([
    0,
    expect.stringMatching(
      /^stalled +1 running run without a commit for over a minute, or without a live\s+worker\n +order-1: The lease of worker dead \(\w+\), which held the run, expired 1 m \d+ s ago; no live worker can\s+take it over\.$/m,
    ),
  ]);
  const again = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
  await again.registerWorker("lazy", 60_000);
  await again.close();
  const { code, stdout, stderr } = await command(["doctor", "--store", url]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /I14 leases have holders\n +The lease of worker dead \(\w+\) expired 1 m \d+ s ago, and the live worker has not taken over/,
  );
  expect(stderr).not.toContain("copy the database");
  const [report] = jsonLines((await command(["doctor", "--json", "--store", url])).stdout);
  expect(report).toMatchObject({
    healthy: false,
    stalled: { count: 1, longest: [{ id: "order-1", holder: { name: "dead", alive: false } }] },
    problems: [{ invariant: "I14 leases have holders" }],
  });
});

const EVENTS = [
  { at: Date.UTC(2026, 6, 1), kind: "rolled_back", detail: "batch 7 of writer a is gone" },
  { at: Date.UTC(2026, 6, 9), kind: "restored", detail: "from monday.db" },
] as const;

test("unreadable events are omitted from a store's history, the others are newest first", () => {
  const rows = EVENTS.map(historyRow);
  const strange = ["", "null", "7", '{"at":1,"kind":"other","detail":""}'].map((value) => ({
    key: "history:1",
    value,
  }));
  expect(historyOf([...strange, ...rows])).toEqual(EVENTS.toReversed());
});

test("doctor and top list the store's history, newest first", async () => {
  using folder = new TemporaryFolder();
  const path = folder.file("shop.db");
  const url = `sqlite:${path}`;
  await (await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom })).close();
  const db = new DatabaseSync(path);
  const put = db.prepare("insert into meta (key, value) values (?, ?)");
  const recent = { at: systemClock.now() - 5_000, kind: "rolled_back", detail: "just now" } as const;
  for (const { key, value } of [...EVENTS, recent].map(historyRow)) put.run(key, value);
  db.close();
  const { code, stdout } = await command(["doctor", "--store", url]);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^history +\S+Z rolled back: just now\n +2026-07-09T\S+ restored from monday\.db\n +2026-07-01T\S+ rolled back: batch 7 of writer a is gone$/m,
    ),
  ]);
  const [report] = jsonLines((await command(["doctor", "--json", "--store", url])).stdout);
  expect(report?.["history"]).toEqual(
    [recent, ...EVENTS.toReversed()].map(({ at, ...rest }) => ({ at: new Date(at).toISOString(), ...rest })),
  );
  expect((await command(["top", "--once", "--store", url])).stdout).toMatch(
    /^history {2}[\d.]+ s ago: rolled back: just now$/m,
  );
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `the history of a store on ${kind}`, () => {
    test("is read newest first", async () => {
      await using database = await freshDatabase(kind);
      expect((await command(["migrate", "--store", database.url])).code).toBe(0);
      const [table, key] = kind === "postgres" ? ["reprise.meta", "key"] : ["reprise_meta", "`key`"];
      for (const row of EVENTS.map(historyRow))
        await database.run(`insert into ${table} (${key}, value) values ('${row.key}', '${row.value}')`);
      const [report] = jsonLines((await command(["doctor", "--json", "--store", database.url])).stdout);
      expect(report?.["history"]).toMatchObject([{ kind: "restored" }, { kind: "rolled_back" }]);
    });
  });
