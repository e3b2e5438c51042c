// The sequencer on SQLite: what is in the log after ends, sweeps, crashes and two sequencers at once.

import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, workflow, type Engine } from "reprise";
import { aesGcm, mediaType, systemClock, systemRandom, systemTimers, type Clock } from "../../../src/base/index.ts";
import type { Store, Write } from "../../../src/kernel/index.ts";
import { parseBundleLine, readRun, runRecordOf, signingKeyOf, writeBundle } from "../../../src/receipts/index.ts";
import { parseRecord, type LogRecord } from "../../../src/federation/log/record.ts";
import { Sequencer, type SequencerOptions } from "../../../src/federation/sync/sequencer.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { cli } from "../../cli/cli-process.ts";
import { createFolder } from "../../engine/world.ts";

const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const KEY = signingKeyOf(
  Uint8Array.from({ length: 32 }, (_, n) => n),
  "edge7",
);
const HOUR = 3_600_000;

const double = workflow("double", async (_ctx, n: number) => n * 2);
const fails = workflow("fails", async () => {
  throw new Error("no");
});
const parent = workflow("parent", async (ctx, n: number) => ctx.child(double, n));
const endless = workflow("endless", async (ctx, n: number) => (n === 0 ? "done" : ctx.continueAsNew(n - 1)));
const DEFINITIONS = [double, fails, parent, endless];

async function withSite(body: (site: { path: string; store: Store; engine: Engine }) => Promise<void>): Promise<void> {
  using folder = createFolder();
  const path = join(folder.path, "shop.db");
  const store = await openSqliteStore({ path, ...PORTS });
  await store.setFederated(true);
  const engine = await createEngine({ store: `sqlite:${path}`, definitions: DEFINITIONS, logger: SILENT });
  try {
    await body({ path, store, engine });
  } finally {
    await engine.close();
    await store.close();
  }
}

function sequencer(store: Store, options: Partial<SequencerOptions> = {}): Sequencer {
  return new Sequencer({ store, key: KEY, clock: systemClock, timers: systemTimers, ...options });
}

/** The records of the log, each checked as a reader of the log checks it. */
async function readRecords(store: Store): Promise<readonly LogRecord[]> {
  let after = 0;
  return (await store.readLog(0, 100_000)).map(({ n, rec }) => {
    const record = parseRecord(rec, { origin: KEY.origin, n, after });
    after = record.c;
    return record;
  });
}

/** `id#generation`, by the order of the log. */
async function loggedRuns(store: Store): Promise<readonly string[]> {
  const rows = await store.readLog(0, 100_000);
  const runs = await store.readRuns(rows.map(({ run }) => run ?? 0));
  return runs.map((run) => `${run?.id}#${run?.generation}`);
}

async function runSome(engine: Engine, prefix: string, count: number): Promise<void> {
  const runs = await Promise.all(
    Array.from({ length: count }, (_, n) => engine.start(double, n, { id: `${prefix}-${n}` })),
  );
  await Promise.all(runs.map((run) => run.result()));
}

/** A clock that a test moves. */
function movableClock(): Clock & { advance(ms: number): void } {
  let moved = 0;
  return {
    now: () => systemClock.now() + moved,
    monotonic: () => systemClock.monotonic() + moved,
    advance: (ms) => void (moved += ms),
  };
}

test("every end of a run is in the log once, as the run record that a bundle of the run has", async () => {
  await withSite(async ({ store, engine }) => {
    await runSome(engine, "order", 3);
    await (await engine.start(parent, 4, { id: "parent" })).result();
    await (await engine.start(endless, 2, { id: "endless" })).result();
    await (await engine.start(fails, undefined, { id: "failed" })).result().catch(() => undefined);
    expect(await sequencer(store).run()).toEqual({ sequenced: 9, found: 0 });
    expect((await loggedRuns(store)).slice(-4)).toEqual(["endless#0", "endless#1", "endless#2", "failed#0"]);
    const records = await readRecords(store);
    expect(new Set(records.map(({ k }) => k)).size).toBe(9);
    const rows = await store.readLog(0, 100);
    for (const record of await store.readRuns(rows.map(({ run }) => run!))) {
      const bundled: string[] = [];
      for await (const line of writeBundle(await readRun(store, record!), { form: "full", key: KEY, engine: "e" })) {
        const parsed = bundled.length < 4 ? parseBundleLine(line, bundled.length + 1) : undefined;
        bundled.push(parsed?.line === "artifact" && parsed.artifact.t === mediaType("run") ? parsed.artifact.k : "");
      }
      const { n } = rows.find(({ run }) => run === record!.run)!;
      expect(bundled).toContain(records[n - 1]!.k);
    }
    expect(await sequencer(store).run()).toEqual({ sequenced: 0, found: 0 });
    expect(await store.check()).toEqual([]);
  });
});

test("a failed run that is retried has a record of each end", async () => {
  await withSite(async ({ store, engine }) => {
    const run = await engine.start(fails, undefined, { id: "failed" });
    await run.result().catch(() => undefined);
    await sequencer(store).run();
    const first = (await store.findRun("failed"))!.head;
    await run.retry();
    await run.result().catch(() => undefined);
    await sequencer(store).run();
    expect((await store.readLog(0, 10)).map(({ head }) => head)).toEqual([
      first,
      (await store.findRun("failed"))!.head,
    ]);
    await readRecords(store);
  });
});

test("two sequencers on one file append every end once while runs end", async () => {
  await withSite(async ({ path, store, engine }) => {
    const other = await openSqliteStore({ path, ...PORTS });
    let isOver = false;
    let sequenced = 0;
    const keepOn = async (on: Store): Promise<void> => {
      const one = sequencer(on, { batch: 7 });
      do {
        // Not `+= await`: the sum would be read before the wait, and the other sequencer's count lost.
        const { sequenced: count } = await one.run();
        sequenced += count;
        await new Promise((resolve) => setImmediate(resolve));
      } while (!isOver || (await on.listEnded(1)).length > 0);
    };
    const both = [keepOn(store), keepOn(other)];
    for (let round = 0; round < 5; round++) await runSome(engine, `round-${round}`, 40);
    isOver = true;
    await Promise.all(both);
    await other.close();
    const ids = await loggedRuns(store);
    expect([ids.length, new Set(ids).size, sequenced]).toEqual([200, 200, 200]);
    await readRecords(store);
    expect(await store.check()).toEqual([]);
  });
});

/** A process that dies at its n-th append: before the write, or after it and before it knows. */
function dyingStore(store: Store, at: number, when: "before" | "after"): Store {
  let writes = 0;
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== "write") return typeof value === "function" ? value.bind(target) : value;
      return async (given: readonly Write[]) => {
        const isLast = (writes += 1) === at;
        if (isLast && when === "before") throw new Error("killed");
        const outcomes = await target.write(given);
        if (isLast) throw new Error("killed");
        return outcomes;
      };
    },
  });
}

test.each([
  [1, "before"],
  [1, "after"],
  [2, "before"],
  [2, "after"],
] as const)("a sequencer that dies at append %i, %s the write, loses and doubles nothing", async (at, when) => {
  await withSite(async ({ store, engine }) => {
    await runSome(engine, "order", 40);
    await expect(sequencer(dyingStore(store, at, when), { batch: 20 }).run()).rejects.toThrow("killed");
    await runSome(engine, "later", 5);
    await sequencer(store).run();
    const ids = await loggedRuns(store);
    expect([ids.length, new Set(ids).size]).toEqual([45, 45]);
    await readRecords(store);
    expect(await store.listEnded(1)).toEqual([]);
  });
});

test("runs that ended before the store was federated are adopted; a switch off and on concerns no run", async () => {
  using folder = createFolder();
  const path = join(folder.path, "shop.db");
  const store = await openSqliteStore({ path, ...PORTS });
  const open = () => createEngine({ store: `sqlite:${path}`, definitions: DEFINITIONS, logger: SILENT });
  let engine = await open();
  await runSome(engine, "old", 5);
  const switchOn = async (): Promise<void> => {
    const since = store.now() + 1;
    await expect.poll(() => store.now(), { timeout: 20_000 }).toBeGreaterThanOrEqual(since);
    await store.setFederated(true);
  };
  await switchOn();
  await engine.close();
  engine = await open();
  await runSome(engine, "new", 5);
  expect(await sequencer(store).run()).toEqual({ sequenced: 10, found: 5 });
  await store.setFederated(false);
  await engine.close();
  engine = await open();
  await runSome(engine, "off", 3);
  await switchOn();
  expect(await sequencer(store).run()).toEqual({ sequenced: 3, found: 3 });
  const records = await readRecords(store);
  const runs = await store.readRuns((await store.readLog(0, 100)).map(({ run }) => run!));
  expect(runs.map((run, n) => records[n]!.k === runRecordOf(run!, { key: KEY, isAdopted: true }).key)).toEqual(
    runs.map((run) => !run!.id.startsWith("new")),
  );
  await engine.close();
  await store.close();
});

test("a sweep finds what no commit noted: at the first call, a minute later and every hour", async () => {
  await withSite(async ({ path, store, engine }) => {
    const clock = movableClock();
    const one = sequencer(store, { clock });
    const forget = (): void => {
      const db = new DatabaseSync(path);
      db.exec("delete from ended_runs");
      db.close();
    };
    const afterwards = async (id: string, ms: number): Promise<readonly number[]> => {
      await runSome(engine, id, 1);
      forget();
      const early = await one.run();
      clock.advance(ms);
      return [early.found, (await one.run()).found];
    };
    expect(await one.run()).toEqual({ sequenced: 0, found: 0 });
    expect(await afterwards("soon", 61_000)).toEqual([0, 1]);
    expect(await afterwards("later", HOUR - 60_000)).toEqual([0, 0]);
    clock.advance(61_000);
    expect(await one.run()).toEqual({ sequenced: 1, found: 1 });
    expect(await store.logSize()).toBe(2);
  });
});

test("heads of other logs ride on the next record once, and raise its clock", async () => {
  await withSite(async ({ store, engine }) => {
    let seen: Record<string, { n: number; c: number }> = {};
    const one = sequencer(store, { seen: () => seen });
    await runSome(engine, "a", 2);
    await one.run();
    seen = { "hub/0123456789abcdef": { n: 7, c: 40 } };
    expect(await one.run()).toEqual({ sequenced: 0, found: 0 });
    await runSome(engine, "b", 2);
    await one.run();
    await runSome(engine, "c", 1);
    await one.run();
    const records = (await store.readLog(0, 10)).map(({ rec }) => JSON.parse(rec) as LogRecord);
    expect(records.map(({ c }) => c)).toEqual([1, 2, 41, 42, 43]);
    expect(records.map(({ y }) => y)).toEqual([
      undefined,
      undefined,
      { "hub/0123456789abcdef": 7 },
      undefined,
      undefined,
    ]);
  });
});

test("a run that is kept is pinned until it is released", async () => {
  await withSite(async ({ store, engine }) => {
    await runSome(engine, "order", 2);
    await sequencer(store, { keeps: ({ id }) => id === "order-1" }).run();
    expect(await store.deleteRun("order-0")).toMatchObject({ status: "deleted" });
    await expect(engine.get(double, "order-1").delete()).rejects.toMatchObject({
      code: "RUN_IN_USE",
      message: expect.stringContaining("run order-1 is kept until it is published or archived"),
    });
    const { run } = (await store.findRun("order-1"))!;
    await store.write([{ write: "release", runs: [run] }]);
    expect(await store.deleteRun("order-1")).toMatchObject({ status: "deleted" });
    expect(await store.logSize()).toBe(2);
  });
});

test("a sequencer with a share of the time pauses after each batch, as long as the batch and the share say", async () => {
  await withSite(async ({ store, engine }) => {
    await runSome(engine, "order", 5);
    let now = 0;
    const pauses: number[] = [];
    const clock = { now: () => systemClock.now(), monotonic: () => now };
    const timers = {
      soon: (fn: () => void) => systemTimers.soon(fn),
      set(ms: number, fn: () => void) {
        pauses.push(ms);
        systemTimers.soon(fn);
        return () => {};
      },
    };
    const slow = new Proxy(store, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        // Each list takes ten milliseconds.
        if (name === "listEnded") now += 10;
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    await sequencer(slow, { clock, timers, batch: 2, share: 0.25 }).run();
    expect(pauses).toEqual([30, 30, 30]);
    expect(await store.logSize()).toBe(5);
  });
});

test("a key of another site appends nothing to the log", async () => {
  await withSite(async ({ store, engine }) => {
    await runSome(engine, "order", 1);
    await sequencer(store).run();
    await runSome(engine, "later", 1);
    const other = signingKeyOf(new Uint8Array(32), "edge8");
    await expect(sequencer(store, { key: other }).run()).rejects.toMatchObject({ code: "NOT_ADMITTED" });
    expect(await store.logSize()).toBe(1);
  });
});

test("in a store with a codec the record of a run has no chain that a guess could be tested with", async () => {
  using folder = createFolder();
  const codec = aesGcm({ keys: { one: `${"k".repeat(43)}=` }, current: "one" } as never) as never;
  const path = join(folder.path, "shop.db");
  const store = await openSqliteStore({ path, ...PORTS, codec });
  await store.setFederated(true);
  const engine = await createEngine({ store: `sqlite:${path}`, definitions: DEFINITIONS, logger: SILENT, codec });
  await runSome(engine, "order", 1);
  await sequencer(store).run();
  const record = (await store.findRun("order-0"))!;
  const [{ k }] = (await readRecords(store)) as [LogRecord];
  expect(k).not.toBe(runRecordOf(record, { key: KEY }).key);
  const texts: string[] = [];
  for await (const line of writeBundle(await readRun(store, record), { form: "blind", key: KEY, engine: "e" }))
    texts.push(line);
  expect(texts.join("\n")).toContain(k);
  await engine.close();
  await store.close();
});

test("doctor finds a gap in the log", async () => {
  await withSite(async ({ path, store, engine }) => {
    await runSome(engine, "order", 4);
    await sequencer(store, { keeps: () => true }).run();
    const db = new DatabaseSync(path);
    db.exec("delete from run_log where n = 2");
    db.close();
    const { code, stdout } = await cli(["doctor", "--store", `sqlite:${path}`]);
    expect(code).toBe(1);
    expect(stdout).toContain("I48 log without gaps");
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("Record 2 of the log is missing, and record 4 exists");
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("is pinned by record 2, which the log does not have");
  });
});
