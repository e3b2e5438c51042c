// Retention: ended runs are deleted by policy, by `prune` and one by one.

import { expect, test } from "vitest";
import {
  createClient,
  createEngine,
  END,
  flow,
  graph,
  last,
  promise,
  START,
  typed,
  workflow,
  type Client,
  type Retention,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection, watchEvents } from "./world.ts";

async function ids(client: Client): Promise<readonly string[]> {
  return (await collect(client.list())).map(({ id }) => id).toSorted();
}

/** Ends as its input says; `waits` does not end. */
function ending(name: string, retention?: Retention) {
  return workflow(name, { ports: { go: promise() }, ...(retention && { retention }) }, async (ctx, how: string) => {
    if (how === "fails") throw new TypeError("no");
    if (how === "waits") await ctx.promise("go");
    return how;
  });
}

test("a run is deleted when its retention is over, and not a minute before", async () => {
  const order = ending("order", "30 days");
  const other = ending("other");
  await using engine = await createTestEngine({ definitions: [order, other] });
  await (await engine.start(order, "ends", { id: "a" })).result();
  await (await engine.start(other, "ends", { id: "kept" })).result();
  await engine.start(order, "waits", { id: "live" });
  await engine.clock.advance("1 day");
  await (await engine.start(order, "ends", { id: "b" })).result();
  await engine.clock.advance("29 days");
  expect(await ids(engine)).toEqual(["a", "b", "kept", "live"]);
  await engine.clock.advance("1 minute");
  await engine.clock.advance("1 s");
  expect(await ids(engine)).toEqual(["b", "kept", "live"]);
  await engine.clock.advance("1 day");
  expect(await ids(engine)).toEqual(["kept", "live"]);
});

test("a policy can differ by status, and a status without a time is kept", async () => {
  const order = ending("order", { completed: "1 day", failed: "3 days" });
  await using engine = await createTestEngine({ definitions: [order] });
  await engine.start(order, "ends", { id: "completed" });
  await engine.start(order, "fails", { id: "failed" });
  await (await engine.start(order, "waits", { id: "cancelled" })).cancel();
  await engine.clock.advance("2 days");
  expect(await ids(engine)).toEqual(["cancelled", "failed"]);
  await engine.clock.advance("2 days");
  expect(await ids(engine)).toEqual(["cancelled"]);
  await engine.clock.advance("30 days");
  expect(await ids(engine)).toEqual(["cancelled"]);
});

test("graphs and flows have the same option, and the engine has a default for definitions without it", async () => {
  const agent = graph("agent", { state: { n: last(0) }, retention: "1 day" })
    .node("add", async (_ctx, { n }) => ({ n: n + 1 }))
    .edge(START, "add")
    .edge("add", END);
  const total = flow("total", { input: typed<number>(), retention: "1 day" }).output(["input"], ({ input }) => input);
  const byDefault = ending("default");
  const forever = ending("forever", {});
  await using engine = await createTestEngine({ definitions: [agent, total, byDefault, forever], retention: "2 days" });
  await (await engine.start(agent, {}, { id: "graph" })).result();
  await (await engine.start(total, 1, { id: "flow" })).result();
  await (await engine.start(byDefault, "ends", { id: "default" })).result();
  await (await engine.start(forever, "ends", { id: "forever" })).result();
  await engine.clock.advance("25 hours");
  expect(await ids(engine)).toEqual(["default", "forever"]);
  await engine.clock.advance("25 hours");
  expect(await ids(engine)).toEqual(["forever"]);
});

test("a run is kept while its child lives, and deleted with it within an hour after the child is old enough", async () => {
  const child = ending("child");
  const parent = workflow("parent", { retention: "1 day" }, async (ctx) => {
    // oxlint-disable-next-line typescript/no-floating-promises -- the child outlives its parent
    ctx.child(child, "waits", { id: "child" });
    await ctx.sleep("1 s");
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  await engine.start(parent, undefined, { id: "parent" });
  await engine.clock.advance("3 days");
  expect(await ids(engine)).toEqual(["child", "parent"]);
  expect((await engine.get(parent, "parent").info()).status).toBe("completed");
  await engine.get(child, "child").resolve("go");
  await engine.clock.advance("23 hours");
  expect(await ids(engine)).toEqual(["child", "parent"]);
  await engine.clock.advance("2 hours");
  expect(await ids(engine)).toEqual([]);
});

test("a run is kept while a fork of it exists", async () => {
  const agent = graph("agent", { state: { n: last(0) }, ports: { go: promise() }, retention: "1 day" })
    .node("add", async (ctx, { n }) => {
      if (n === 7) await ctx.promise("go");
      return { n: n + 1 };
    })
    .edge(START, "add")
    .edge("add", END, ({ n }) => n !== 1 && n !== 7)
    .edge("add", "add");
  await using engine = await createTestEngine({ definitions: [agent] });
  const origin = await engine.start(agent, {}, { id: "origin" });
  await origin.result();
  const fork = await origin.fork({ step: 1, patch: { n: 7 }, id: "fork" });
  await engine.clock.advance("3 days");
  expect(await ids(engine)).toEqual(["fork", "origin"]);
  await fork.resolve("go");
  await engine.clock.advance("27 hours");
  expect(await ids(engine)).toEqual([]);
});

test("a policy deletes runs of earlier processes, in batches, also after a crash", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const count = 250;
  const start = new Date("2026-03-01T00:00:00Z");
  {
    await using before = await createTestEngine({ definitions: [ending("order")], store, now: start });
    for (let n = 0; n < count; n += 1) await before.start(ending("order"), "ends", { id: `run-${n}` });
    await before.clock.advance("1 s");
  }
  using watched = watchEvents();
  const now = new Date("2026-05-01T00:00:00Z");
  await using engine = await createTestEngine({ definitions: [ending("order", "7 days")], store, now });
  await engine.crash();
  expect(await collect(engine.list())).toHaveLength(count);
  await engine.clock.advance("1 minute");
  expect(await collect(engine.list())).toEqual([]);
  const batches = watched.events.filter((event) => event.event === "runs.expired").map(({ runs }) => runs);
  expect(batches).toEqual([100, 100, 50]);
});

test("an id is free again after the retention of its run", async () => {
  const order = ending("order", "1 hour");
  await using engine = await createTestEngine({ definitions: [order] });
  await (await engine.start(order, "ends", { id: "order-1", singleton: "one" })).result();
  await engine.clock.advance("2 hours");
  expect(await engine.find("order-1")).toBeUndefined();
  const again = await engine.start(order, "other", { id: "order-1", singleton: "one" });
  expect(await again.result()).toBe("other");
});

test("a retention that cannot be kept is refused", async () => {
  for (const [retention, code, text] of [
    ["soon", "BAD_DURATION", "Workflow order: retention"],
    ["30 s", "BAD_OPTIONS", "at least 1 minute"],
    [{ completed: 0 }, "BAD_OPTIONS", "retention.completed"],
    [{ finished: "1 day" }, "BAD_OPTIONS", "there is no option"],
    [null, "BAD_DURATION", "retention"],
  ] as const) {
    const make = () => ending("order", (retention ?? null) as never);
    if (retention === null)
      expect(() => workflow("order", { retention: null as never }, async () => 1)).toThrow(
        expect.objectContaining({ code }),
      );
    else expect(make).toThrow(expect.objectContaining({ code, message: expect.stringContaining(text) }));
    expect(() => graph("g", { state: {}, retention: retention as never })).toThrow(expect.objectContaining({ code }));
    expect(() => flow("f", { input: typed<number>(), retention: retention as never })).toThrow(
      expect.objectContaining({ code }),
    );
    const bad = { store: "sqlite::memory:", definitions: [], retention: retention as never };
    expect(await rejection(createEngine(bad))).toMatchObject({ code });
  }
});

test("prune deletes runs that ended long ago, with a dry run and progress, also from a client", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const order = ending("order");
  await using engine = await createEngine({ store, definitions: [order] });
  for (const id of ["a", "b", "c"]) await (await engine.start(order, "ends", { id })).result();
  await engine.start(order, "waits", { id: "live" });
  await using client = await createClient({ store, definitions: [order] });
  expect(await client.prune({ olderThan: "1 day" })).toEqual({ runs: 0 });
  const steps: (readonly [number, number])[] = [];
  const onProgress = (done: number, total: number): void => void steps.push([done, total]);
  // The store's clock is the machine's: runs that ended in this millisecond are not older than 0.
  await expect.poll(() => client.prune({ olderThan: 0, dryRun: true, onProgress })).toEqual({ runs: 3 });
  expect(steps.at(-1)).toEqual([expect.any(Number), expect.any(Number)]);
  expect(await ids(client)).toEqual(["a", "b", "c", "live"]);
  const aborted = AbortSignal.abort(new Error("stopped"));
  expect(await rejection(client.prune({ olderThan: 0, signal: aborted }))).toMatchObject({ message: "stopped" });
  expect(await ids(client)).toEqual(["a", "b", "c", "live"]);
  expect(await client.prune({ olderThan: 0 })).toEqual({ runs: 3 });
  expect(await ids(engine)).toEqual(["live"]);
  for (const options of [undefined, {}, { olderThan: "x" }, { olderThan: 1, age: 2 }, { olderThan: 1, dryRun: "no" }])
    expect((await rejection(client.prune(options as never))).code).toMatch(/BAD_OPTIONS|BAD_DURATION/);
});

test("an abort during a prune stops it before the next batch", async () => {
  const order = ending("order");
  await using engine = await createTestEngine({ definitions: [order] });
  for (let n = 0; n < 600; n += 1) await engine.start(order, "ends", { id: `run-${n}` });
  await engine.clock.advance("1 s");
  const abort = new AbortController();
  const pruning = engine.prune({ olderThan: 0, signal: abort.signal, onProgress: () => abort.abort() });
  expect(await rejection(pruning)).toMatchObject({ name: "AbortError" });
  const left = (await collect(engine.list())).length;
  expect(left).toBe(100);
});

test("delete removes an ended run with its children, and says what keeps a run", async () => {
  const child = ending("child");
  const parent = workflow("parent", { ports: { go: promise() } }, async (ctx) => {
    await ctx.child(child, "ends", { id: "child" });
    await ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, undefined, { id: "parent" });
  await engine.clock.advance("1 s");
  const live = await rejection(run.delete());
  expect(live).toMatchObject({ code: "RUN_IN_USE", message: expect.stringContaining("it is waiting") });
  expect(live.message).toContain("reprise terminate parent");
  await run.resolve("go");
  await run.result();
  expect((await rejection(engine.get(child, "child").delete())).message).toContain("it belongs to run parent");
  expect(await run.delete()).toEqual({ runs: 2 });
  expect(await ids(engine)).toEqual([]);
  expect(await rejection(run.delete())).toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("delete names the fork that reads the steps of a run", async () => {
  const agent = graph("agent", { state: { n: last(0) } })
    .node("add", async (_ctx, { n }) => ({ n: n + 1 }))
    .edge(START, "add")
    .edge("add", END, ({ n }) => n > 2)
    .edge("add", "add");
  await using engine = await createTestEngine({ definitions: [agent] });
  const origin = await engine.start(agent, {}, { id: "origin" });
  await origin.result();
  const fork = await origin.fork({ step: 1, id: "fork" });
  await fork.result();
  const refused = await rejection(origin.delete());
  expect(refused).toMatchObject({ code: "RUN_IN_USE", message: expect.stringContaining("run fork is a fork of it") });
  expect(await fork.delete()).toEqual({ runs: 1 });
  expect(await origin.delete()).toEqual({ runs: 1 });
});

test("prune refuses an onProgress that is not a function, and deletes nothing", async () => {
  const order = ending("order");
  await using engine = await createTestEngine({ definitions: [order] });
  await (await engine.start(order, "ends", { id: "a" })).result();
  await engine.clock.advance("1 day");
  const refused = await rejection(engine.prune({ olderThan: "1 hour", onProgress: 5 as never }));
  expect(refused.code).toBe("BAD_OPTIONS");
  expect(await ids(engine)).toEqual(["a"]);
});
