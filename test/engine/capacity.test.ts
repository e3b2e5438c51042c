// Capacity: how many functions run at once, and how many runs stay in memory.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { createEngine, promise, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
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
  await using engine = await createTestEngine({ definitions: [waiting] });
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
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [many], guard: "off" });
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
    // 1,000 in the cache, plus those that the last turns still hold.
    expect(held.filter((ref) => ref.deref() !== undefined).length).toBeLessThanOrEqual(1_600);
    await Promise.all(ids.map((id) => engine.get(many, id).resolve("go", 1)));
    const results = await Promise.all(ids.map((id) => engine.get(many, id).result()));
    expect(results.every((result, n) => result === n + 1)).toBe(true);
  },
);
