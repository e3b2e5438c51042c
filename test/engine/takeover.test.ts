// How long a takeover takes, under virtual time and with real heartbeats.

import { afterEach, beforeEach, expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../src/base/index.ts";
import { EngineCore } from "../../src/engine/engine.ts";
import { DEFAULT_LEASE_MS, registryOf } from "../../src/engine/index.ts";
import { Labels, readWorkerProfile, readWorkerActivity, Redaction, type Store } from "../../src/kernel/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createVirtualTime, type VirtualTime } from "../../src/testing/virtual-clock.ts";
import { task, workflow, type Definition } from "reprise";
import { createFolder, macrotask } from "./world.ts";

const BOUND_MS = 15_000;
const BEAT_MS = Math.floor(DEFAULT_LEASE_MS / 3);

let time: VirtualTime;
let folder: ReturnType<typeof createFolder>;
let cores: { readonly core: EngineCore; readonly store: Store }[];

beforeEach(() => {
  time = createVirtualTime();
  folder = createFolder();
  cores = [];
});
afterEach(async () => {
  for (const { core, store } of cores) {
    core.crash();
    await store.close();
  }
  folder[Symbol.dispose]();
});

async function startWorker(name: string, definitions: readonly unknown[], leaseMs = DEFAULT_LEASE_MS) {
  const machine = { clock: time.clock, timers: systemTimers, random: systemRandom };
  const store = await openSqliteStore({ ...machine, path: folder.file("shared.db"), durability: "relaxed" });
  const quiet = { info: () => {}, warn: () => {}, error: () => {} };
  const core = new EngineCore({
    store,
    timers: time.timers,
    random: systemRandom,
    registry: registryOf(definitions),
    logger: quiet,
    redaction: new Redaction(),
    name,
    host: name,
    pid: 7,
    runtime: "{}",
    works: true,
    concurrency: 8,
    queues: undefined,
    labels: Labels.of(["gpu"]),
    leaseMs,
    guardMode: "off",
    heartbeats: true,
    polls: false,
    determinism: "strict",
  });
  cores.push({ core, store });
  await core.begin();
  return { core, store };
}

/** Advances from timer to timer, and lets everything settle in between. */
async function advance(ms: number, until: () => boolean = () => false): Promise<void> {
  const end = time.now() + ms;
  while (!until()) {
    for (let turn = 0; turn < 30; turn++) await macrotask();
    if (until()) return;
    const next = Math.min(time.nextAt() ?? end, end);
    if (time.now() >= end) return;
    time.advanceTo(Math.max(next, time.now()));
  }
}

function programOf(started: string[], where: string, waits: boolean) {
  const work = task("work", () => {
    started.push(where);
    return waits ? new Promise<string>(() => {}) : where;
  });
  return { both: workflow("both", async (ctx) => ctx.task(work)), work };
}

test.each([0, 0.1, 0.5, 0.9, 0.99])(
  "another worker takes over within 15 seconds from a worker that dies at %d of a heartbeat",
  async (part) => {
    const started: string[] = [];
    const dead = programOf(started, "dead", true);
    const alive = programOf(started, "alive", false);
    const first = await startWorker("first", [dead.both, dead.work]);
    await advance(1_234);
    await startWorker("second", [alive.both, alive.work]);
    await first.core.start(dead.both as Definition, undefined as never, { id: "run-1" });
    await advance(20_000 + Math.floor((part * DEFAULT_LEASE_MS) / 3));
    expect(started).toEqual(["dead"]);
    const diedAt = time.now();
    first.core.crash();
    await advance(60_000, () => started.length > 1);
    expect(started).toEqual(["dead", "alive"]);
    expect(time.now() - diedAt).toBeLessThanOrEqual(BOUND_MS);
  },
);

test("a worker with a long lease takes over from one with the default lease as soon as others do", async () => {
  const started: string[] = [];
  const dead = programOf(started, "dead", true);
  const alive = programOf(started, "alive", false);
  const first = await startWorker("first", [dead.both, dead.work]);
  await startWorker("second", [alive.both, alive.work], 600_000);
  await first.core.start(dead.both as Definition, undefined as never, { id: "run-1" });
  await advance(33_333);
  const diedAt = time.now();
  first.core.crash();
  await advance(300_000, () => started.length > 1);
  expect(time.now() - diedAt).toBeLessThanOrEqual(BOUND_MS);
});

test("a live worker keeps its work, however long that takes", async () => {
  const started: string[] = [];
  const slow = programOf(started, "slow", true);
  const other = programOf(started, "other", false);
  const first = await startWorker("first", [slow.both, slow.work]);
  await startWorker("second", [other.both, other.work]);
  await first.core.start(slow.both as Definition, undefined as never, { id: "run-1" });
  await advance(300_000);
  expect(started).toEqual(["slow"]);
});

test("the store lists what a worker claims, and after a heartbeat what it has committed and what it runs", async () => {
  const started: string[] = [];
  const quick = programOf(started, "quick", false);
  const slow = workflow("slow", async (ctx) => ctx.run("wait", () => new Promise<void>(() => {})));
  const { core, store } = await startWorker("first", [quick.both, quick.work, slow]);
  for (let n = 0; n < 5; n++) await core.start(quick.both as Definition, undefined as never);
  await core.start(slow as Definition, undefined as never);
  await advance(BEAT_MS + 1);
  const [worker] = await store.listWorkers();
  expect(readWorkerProfile(worker?.profile)).toEqual({
    host: "first",
    pid: 7,
    definitions: [
      { name: "both", version: 1 },
      { name: "slow", version: 1 },
    ],
    items: ["work"],
    destinations: [],
    labels: ["gpu"],
    unclaimed: [],
    concurrency: 8,
    leaseMs: DEFAULT_LEASE_MS,
  });
  const doing = readWorkerActivity(worker?.activity);
  expect(doing).toMatchObject({ runsEnded: 5, steps: 5, runsHeld: 1, running: 1, isDraining: false });
  expect(doing?.overMs).toBe(BEAT_MS);
  await advance(BEAT_MS + 1);
  expect(readWorkerActivity((await store.listWorkers())[0]?.activity)).toMatchObject({
    runsEnded: 0,
    steps: 0,
    runsHeld: 1,
  });
});
