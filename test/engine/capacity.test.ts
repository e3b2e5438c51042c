// Capacity: how many functions run at once, and how many runs stay in memory.

import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { createClient, createEngine, promise, queue, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { TemporaryFolder } from "../cli/cli-process.ts";
import { collect, macrotask, watchEvents } from "./world.ts";

test.each([1, 3, 16])("at most %i functions run at once, tasks and operations together", async (concurrency) => {
  let running = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 3; turn += 1) await macrotask();
    running -= 1;
  };
  const job = task("job", work);
  const busy = workflow("busy", async (ctx) => {
    await Promise.all(Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? ctx.task(job) : ctx.run("job", work))));
    await ctx.task(job);
    await ctx.run("job", work);
  });
  await using engine = await createTestEngine({ definitions: [busy, job], worker: { concurrency } });
  const runs = await Promise.all(Array.from({ length: 12 }, () => engine.start(busy)));
  await Promise.all(runs.map((run) => run.result()));
  expect(most).toBeLessThanOrEqual(concurrency);
  expect(most).toBeGreaterThan(concurrency === 1 ? 0 : 1);
});

const waiting = workflow("waiting", { ports: { go: promise<number>() } }, async (ctx, n: number) => {
  const first = await ctx.run("first", () => n);
  return first + (await ctx.promise("go"));
});

test("a cached run continues without a replay; an evicted run is replayed", async () => {
  using watched = watchEvents();
  const resumed = (): number => watched.events.filter(({ event }) => event === "run.resumed").length;
  await using engine = await createTestEngine({ definitions: [waiting], worker: { memory: "1 MiB" } });
  const hot = await engine.start(waiting, 1);
  await engine.clock.advance(0);
  await hot.resolve("go", 1);
  expect(await hot.result()).toBe(2);
  expect(resumed()).toBe(0);
  const cold = await engine.start(waiting, 2, { id: "cold" });
  await engine.clock.advance(0);
  // More runs than the cache holds.
  await Promise.all(Array.from({ length: 1_100 }, (_, n) => engine.start(waiting, n)));
  await engine.clock.advance(0);
  expect(resumed()).toBe(0);
  await cold.resolve("go", 3);
  expect(await cold.result()).toBe(5);
  expect(watched.events.filter(({ event }) => event === "run.resumed")).toMatchObject([{ run: "cold", entries: 3 }]);
});

test(
  "10,000 waiting runs use no more memory than the cache, and all of them continue",
  { timeout: 60_000 },
  async () => {
    const held: WeakRef<object>[] = [];
    const many = workflow("many", { ports: { go: promise<number>() } }, async (ctx, n: number) => {
      const witness = { ctx, n };
      held.push(new WeakRef(witness));
      const got = await ctx.promise("go");
      return witness.n + got;
    });
    // The guard does not allow a WeakRef in workflow code.
    await using engine = await createEngine({
      store: "sqlite::memory:",
      definitions: [many],
      guard: "off",
      worker: { memory: "8 MiB" },
    });
    const ids = Array.from({ length: 10_000 }, (_, n) => `run-${n}`);
    for (let from = 0; from < ids.length; from += 500)
      await Promise.all(ids.slice(from, from + 500).map((id, index) => engine.start(many, from + index, { id })));
    for (;;) {
      const waitingNow = (await collect(engine.list({ status: ["queued", "running"], limit: 1 }))).length;
      if (waitingNow === 0) break;
      await macrotask();
    }
    expect(held.length).toBe(10_000);
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    await macrotask();
    collectGarbage();
    // 1,024 or fewer in the cache, plus those that the last turns still hold.
    expect(held.filter((ref) => ref.deref() !== undefined).length).toBeLessThanOrEqual(1_600);
    await Promise.all(ids.map((id) => engine.get(many, id).resolve("go", 1)));
    const results = await Promise.all(ids.map((id) => engine.get(many, id).result()));
    expect(results.every((result, n) => result === n + 1)).toBe(true);
  },
);

test("a run is not evicted while a task or a child of it is in progress on this worker", async () => {
  using watched = watchEvents();
  const gate = Promise.withResolvers<void>();
  const slow = task("slow", () => gate.promise);
  const child = workflow("child", (ctx) => ctx.run("wait", () => gate.promise));
  const parent = workflow("parent", async (ctx, kind: string) => {
    await ctx.run("first", () => kind);
    await (kind === "task" ? ctx.task(slow) : ctx.child(child));
    return kind;
  });
  // These runs only fill the memory.
  const end = Promise.withResolvers<void>();
  const single = task("single", { queue: queue("single", { concurrency: 1 }) }, () => end.promise);
  const queued = workflow("queued", (ctx) => ctx.task(single));
  const definitions = [parent, child, slow, queued, single];
  await using engine = await createTestEngine({ definitions, worker: { memory: "1 MiB" } });
  const runs = await Promise.all(["task", "child"].map((id) => engine.start(parent, id, { id })));
  await engine.clock.advance(0);
  await Promise.all(Array.from({ length: 1_100 }, () => engine.start(queued)));
  await engine.clock.advance(0);
  gate.resolve();
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(["task", "child"]);
  const resumed = watched.events
    .filter(({ event }) => event === "run.resumed")
    .map((event) => event as { run: string });
  expect(resumed.filter(({ run }) => runs.some(({ id }) => id === run))).toEqual([]);
  end.resolve();
});

test("5,000 starts at once, more than are written at once, keep the inputs of their calls", async () => {
  const echo = workflow("echo", async (_ctx, input: { n: number }) => input.n);
  await using engine = await createTestEngine({ definitions: [echo] });
  const input = { n: 0 };
  const starts = Array.from({ length: 5_000 }, (_, n) => engine.start(echo, { n }));
  // A start takes its input when it is called, also if it waits.
  const late = engine.start(echo, input);
  await macrotask();
  input.n = 1;
  const runs = await Promise.all(starts);
  expect(await (await late).result()).toBe(0);
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
});

test("an engine that closes writes every start that was called before", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${join(folder.path, "closed.db")}`;
  const idle = workflow("idle", { ports: { go: promise<number>() } }, (ctx) => ctx.promise("go"));
  const engine = await createEngine({ store, definitions: [idle] });
  const starts = Array.from({ length: 5_000 }, () => engine.start(idle));
  // All inputs are checked: the starts wait to be written.
  await macrotask();
  const closed = engine.close();
  await Promise.all(starts);
  await closed;
  await using client = await createClient({ store, definitions: [idle] });
  expect((await collect(client.list({ limit: 10_000 }))).length).toBe(5_000);
});

test("a start that is aborted while it waits creates no run", async () => {
  const echo = workflow("echo", async (_ctx, n: number) => n);
  await using engine = await createTestEngine({ definitions: [echo] });
  const starts = Array.from({ length: 3_000 }, (_, n) => engine.start(echo, n));
  const aborter = new AbortController();
  const late = engine.start(echo, 0, { id: "late", signal: aborter.signal });
  aborter.abort();
  await expect(late).rejects.toThrow(/abort/);
  await Promise.all(starts.map(async (start) => (await start).result()));
  expect(await engine.find("late")).toBeUndefined();
});

test("a worker leaves runs that it cannot execute yet to a worker that joins", { timeout: 60_000 }, async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${join(folder.path, "shared.db")}`;
  const gate = Promise.withResolvers<void>();
  const byWorker = (onStarted: () => void) =>
    workflow("job", (ctx) =>
      ctx.run("wait", () => {
        onStarted();
        return gate.promise;
      }),
    );
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const backlog = byWorker(() => {});
  await using client = await createClient({ store, definitions: [backlog] });
  const runs = await Promise.all(Array.from({ length: 3_000 }, () => client.start(backlog)));
  const worker = { concurrency: 4 };
  await using _busy = await createEngine({ store, definitions: [byWorker(first.resolve)], worker });
  await first.promise;
  // It has claimed all that it will.
  await expect.poll(async () => (await collect(client.list({ status: "running", limit: 3_000 }))).length).toBe(1_000);
  await using _idle = await createEngine({ store, definitions: [byWorker(second.resolve)], worker });
  await second.promise;
  gate.resolve();
  await Promise.all(runs.map((run) => run.result()));
});
