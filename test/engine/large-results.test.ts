// Many large results at once: they are handled, written and read in parts, so that the event loop stays free for other work.

import { expect, test } from "vitest";
import { createEngine, promise, task, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { createFolder, storeAround, until, type AnyStore, type AnyWrite } from "./world.ts";

const large = "x".repeat(75 * 1024);
const megabyte = 1024 * 1024;

/** The size of what the turns of a batch append. */
const sizeOf = (batch: readonly AnyWrite[]): number =>
  batch
    .flatMap((write) => (write.write === "turn" ? write.entries : []))
    .reduce((sum, { data }) => sum + data.length, 0);

const load = task("load", async () => large);

const shapes = {
  "functions that return at once": workflow(
    "sync",
    async (ctx) => (await Promise.all(Array.from({ length: 200 }, () => ctx.run("load", () => large)))).join("").length,
  ),
  "functions that return promises": workflow(
    "async",
    async (ctx) =>
      (await Promise.all(Array.from({ length: 200 }, () => ctx.run("load", async () => large)))).join("").length,
  ),
  tasks: workflow(
    "tasks",
    async (ctx) => (await Promise.all(Array.from({ length: 200 }, () => ctx.task(load)))).join("").length,
  ),
};

test.each(Object.keys(shapes) as (keyof typeof shapes)[])(
  "no batch holds much more than four megabytes of the 200 results of one run: %s",
  async (shape) => {
    const sizes: number[] = [];
    const store = storeAround((batch, apply) => {
      sizes.push(sizeOf(batch));
      return apply();
    });
    await using engine = await createTestEngine({ store, definitions: [...Object.values(shapes), load] });
    expect(await (await engine.start(shapes[shape])).result()).toBe(200 * large.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4.6 * megabyte);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(14 * megabyte);
  },
);

test("small results of 200 runs still share their commits", async () => {
  const steps: number[] = [];
  const store = storeAround((batch, apply) => {
    steps.push(batch.filter(({ write }) => write === "turn").length);
    return apply();
  });
  const chain = workflow("chain", async (ctx) => {
    for (let step = 0; step < 5; step += 1) await ctx.run("step", () => step);
  });
  await using engine = await createTestEngine({ store, definitions: [chain] });
  const runs = await Promise.all(Array.from({ length: 200 }, () => engine.start(chain)));
  await Promise.all(runs.map((run) => run.result()));
  expect(steps.filter((count) => count > 0)).toEqual([200, 200, 200, 200, 200, 200]);
});

test("2,000 starts at once are written in batches of at most 500", async () => {
  const starts: number[] = [];
  const store = storeAround((batch, apply) => {
    starts.push(batch.filter(({ write }) => write === "start").length);
    return apply();
  });
  const empty = workflow("empty", async () => 1);
  await using engine = await createTestEngine({ store, definitions: [empty] });
  const runs = await Promise.all(Array.from({ length: 2_000 }, () => engine.start(empty)));
  expect((await Promise.all(runs.map((run) => run.result()))).length).toBe(2_000);
  expect(Math.max(...starts)).toBeLessThanOrEqual(500);
});

/** The same store; notes the size of each page of a journal. */
function notingPages(source: StoreSource, pages: number[]): StoreSource {
  return {
    async "~open"(options) {
      const store = await source["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (key !== "readJournal") return typeof value === "function" ? (value.bind(target) as unknown) : value;
          return async (...args: Parameters<AnyStore["readJournal"]>) => {
            const entries = await target.readJournal(...args);
            pages.push(entries.reduce((sum, { data }) => sum + data.length, 0));
            return entries;
          };
        },
      });
    },
  };
}

test("a run with 200 large results is loaded in pages of a few megabytes, and continues", async () => {
  using folder = createFolder();
  const path = folder.file("large.db");
  const waiting = workflow("waiting", { ports: { go: promise<number>() } }, async (ctx) => {
    const all = await Promise.all(Array.from({ length: 200 }, () => ctx.run("load", () => large)));
    return all.length + (await ctx.promise("go"));
  });
  const first = await createEngine({ store: sqlite(path), definitions: [waiting] });
  const run = await first.start(waiting);
  await until(async () => (await run.info()).status === "waiting");
  await first.close();
  const pages: number[] = [];
  await using engine = await createEngine({ store: notingPages(sqlite(path), pages), definitions: [waiting] });
  const again = engine.get(waiting, run.id);
  await again.resolve("go", 1);
  expect(await again.result()).toBe(201);
  expect(pages.reduce((sum, size) => sum + size, 0)).toBeGreaterThan(14 * megabyte);
  expect(Math.max(...pages)).toBeLessThanOrEqual(3 * megabyte);
});
