// Deferred starts: queue limits, delays, debounce and singletons.

import { expect, test } from "vitest";
import { createEngine, promise, queue, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection } from "./world.ts";

const approval = { ports: { done: promise() } } as const;

test("runs in a queue with concurrency 2 start two at a time; waiting runs count", async () => {
  const started: string[] = [];
  const build = workflow(
    "build",
    { ...approval, queue: queue("builds", { concurrency: 2 }) },
    async (ctx, id: string) => {
      started.push(id);
      await ctx.promise("done");
      return id;
    },
  );
  await using engine = await createTestEngine({ definitions: [build] });
  const runs = [];
  for (const id of ["a", "b", "c", "d"]) runs.push(await engine.start(build, id, { id }));
  await engine.clock.advance("1 hour");
  expect(started).toEqual(["a", "b"]);
  expect(await engine.find("c")).toMatchObject({ status: "queued" });
  expect(await engine.findQueue("builds")).toMatchObject({ name: "builds", leased: 2, ready: 2 });
  await engine.crash();
  await engine.get(build, "a").resolve("done");
  await engine.clock.advance(0);
  expect(new Set(started)).toEqual(new Set(["a", "b", "c"]));
  for (const id of ["b", "c", "d"]) await engine.get(build, id).resolve("done");
  for (const run of runs) {
    expect(await run.result()).toBe(run.id);
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  expect(await engine.findQueue("builds")).toMatchObject({ leased: 0, ready: 0 });
});

test("a run with a higher priority starts before older ones, and a blocked key does not block others", async () => {
  const started: string[] = [];
  const perTeam = queue("per-team", { perKey: { concurrency: 1 } });
  const build = workflow(
    "build",
    { ...approval, queue: perTeam, key: (id: string) => id[0] ?? "" },
    async (ctx, id: string) => {
      started.push(id);
      await ctx.promise("done");
    },
  );
  await using engine = await createTestEngine({ definitions: [build] });
  for (const id of ["a1", "a2", "a3", "b1"]) await engine.start(build, id, { id, priority: id === "a3" ? 1 : 0 });
  await engine.clock.advance(0);
  expect(started).toEqual(["a1", "b1"]);
  await engine.get(build, "a1").resolve("done");
  await engine.clock.advance(0);
  expect(started).toEqual(["a1", "b1", "a3"]);
  await engine.get(build, "a3").cancel();
  await engine.clock.advance(0);
  expect(started).toEqual(["a1", "b1", "a3", "a2"]);
});

test("children wait for their definition's queue", async () => {
  let atOnce = 0;
  let most = 0;
  const child = workflow("child", { queue: queue("children", { concurrency: 2 }) }, async (ctx) => {
    most = Math.max(most, ++atOnce);
    await ctx.sleep("1 minute");
    atOnce -= 1;
  });
  const parent = workflow("parent", async (ctx) => {
    await Promise.all(Array.from({ length: 5 }, () => ctx.child(child)));
    return ctx.now().getTime();
  });
  await using engine = await createTestEngine({ definitions: [parent, child], now: new Date(0) });
  const run = await engine.start(parent);
  await engine.clock.advance("10 minutes");
  expect(await run.result()).toBe(180_000);
  expect(most).toBe(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("runs of a schedule wait for their definition's queue", async () => {
  const started: number[] = [];
  const build = workflow("build", { ...approval, queue: queue("builds", { concurrency: 1 }) }, async (ctx) => {
    started.push(ctx.now().getTime());
    await ctx.promise("done");
  });
  await using engine = await createTestEngine({ definitions: [build], now: new Date(0) });
  await engine.schedule("often", build, undefined, { every: "1 minute", overlap: "allow" });
  await engine.clock.advance("5 minutes");
  expect(started).toHaveLength(1);
  expect(await engine.findQueue("builds")).toMatchObject({ leased: 1, ready: 4 });
});

test("a delayed start survives a crash", async () => {
  const remind = workflow("remind", async (ctx, to: string) => `${to} at ${ctx.now().toISOString()}`);
  await using engine = await createTestEngine({ definitions: [remind], now: new Date("2030-01-01T00:00:00Z") });
  const run = await engine.start(remind, "ann", { delay: "1 day", id: "r" });
  expect(await run.info()).toMatchObject({ status: "queued", entries: 1 });
  await engine.clock.advance("23 hours");
  await engine.crash();
  expect(await run.info()).toMatchObject({ status: "queued" });
  expect(await engine.start(remind, "ann", { id: "r" })).toMatchObject({ id: "r" });
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("ann at 2030-01-02T00:00:00.000Z");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a message does not start a delayed run early", async () => {
  const wait = workflow("wait", approval, async (ctx) => {
    await ctx.promise("done");
    return ctx.now().getTime();
  });
  await using engine = await createTestEngine({ definitions: [wait], now: new Date(0) });
  const run = await engine.start(wait, undefined, { delay: 5_000 });
  await run.resolve("done");
  await engine.clock.advance(4_999);
  expect(await run.info()).toMatchObject({ status: "queued", entries: 1 });
  await engine.clock.advance(1);
  expect(await run.result()).toBe(5_000);
});

test.each([
  ["delayed", { delay: "1 day" } as const, undefined],
  ["debounced", { debounce: { key: "k", by: "1 day" } } as const, undefined],
  ["queued", {}, queue("full", { concurrency: 1, perKey: { concurrency: 1 } })],
])("a run that is cancelled before it starts (%s) ends without running its code", async (_, options, full) => {
  const ran: string[] = [];
  const limits = full === undefined ? {} : { queue: full, key: () => "k" };
  const job = workflow("job", { ...approval, ...limits }, async (ctx, name: string) => {
    ran.push(name);
    await ctx.promise("done");
  });
  await using engine = await createTestEngine({ definitions: [job] });
  if (full !== undefined) await engine.start(job, "first", { id: "first" });
  await engine.clock.advance(0);
  const run = await engine.start(job, "second", options);
  await engine.clock.advance(0);
  await run.cancel("not needed");
  expect((await rejection(run.result())).message).toContain("not needed");
  expect(await run.info()).toMatchObject({ status: "cancelled", entries: 3 });
  expect(await run.verify()).toMatchObject({ status: "same" });
  await engine.clock.advance("2 days");
  expect(ran).not.toContain("second");
  if (full !== undefined) {
    await engine.start(job, "third");
    await engine.get(job, "first").resolve("done");
    await engine.clock.advance(0);
    expect(ran).toEqual(["first", "third"]);
  }
});

test("a run that was paused before its start keeps its start time when it is resumed", async () => {
  const late = workflow("late", async (ctx) => ctx.now().getTime());
  await using engine = await createTestEngine({ definitions: [late], now: new Date(0) });
  const [early, passed] = [
    await engine.start(late, undefined, { delay: 5_000 }),
    await engine.start(late, undefined, { delay: 5_000 }),
  ];
  for (const run of [early, passed]) await run.pause();
  await engine.clock.advance(1_000);
  await early.resume();
  await engine.clock.advance(3_999);
  expect(await early.info()).toMatchObject({ status: "queued", entries: 1 });
  await engine.clock.advance(1);
  expect(await early.result()).toBe(5_000);
  expect(await passed.info()).toMatchObject({ status: "paused", entries: 1 });
  await passed.resume();
  expect(await passed.result()).toBe(5_000);
});

test("a terminated run frees its queue slot, whether it has started or not", async () => {
  const started: string[] = [];
  const one = queue("one", { concurrency: 1, perKey: { concurrency: 1 } });
  const job = workflow("job", { ...approval, queue: one, key: () => "k" }, async (ctx, id: string) => {
    started.push(id);
    await ctx.promise("done");
  });
  await using engine = await createTestEngine({ definitions: [job] });
  const runs = [];
  for (const id of ["a", "b", "c"]) runs.push(await engine.start(job, id));
  await engine.clock.advance(0);
  await runs[1]?.terminate();
  await engine.clock.advance(0);
  expect(started).toEqual(["a"]);
  await runs[0]?.terminate();
  await engine.clock.advance(0);
  expect(started).toEqual(["a", "c"]);
  expect(await runs[1]?.verify()).toMatchObject({ status: "same" });
});

test("a run that continues as new keeps its queue slot and its singleton key", async () => {
  const started: string[] = [];
  const loop = workflow("loop", { queue: queue("one", { concurrency: 1 }) }, async (ctx, name: string) => {
    started.push(name);
    await ctx.sleep("1 minute");
    return name.length < 3 ? ctx.continueAsNew(`${name}+`) : name;
  });
  await using engine = await createTestEngine({ definitions: [loop] });
  const first = await engine.start(loop, "a", { singleton: "s" });
  const second = await engine.start(loop, "bbb");
  await engine.clock.advance("90 s");
  expect(started).toEqual(["a", "a+"]);
  expect((await engine.start(loop, "c", { singleton: "s" })).id).toBe(first.id);
  await engine.crash();
  await engine.clock.advance("10 minutes");
  expect([await first.result(), await second.result()]).toEqual(["a++", "bbb"]);
  expect(started.at(-1)).toBe("bbb");
});

test("queued work has the same result after a crash at every commit", async () => {
  const narrow = queue("narrow", {
    concurrency: 2,
    rate: { limit: 3, per: "1 minute" },
    perKey: { concurrency: 1, rate: { limit: 2, per: "1 minute" } },
  });
  const job = task("job", { queue: narrow, key: (name: string) => name[0] ?? "" }, (_ctx, name: string) => `${name}!`);
  const child = workflow("child", { queue: narrow, key: () => "k" }, async (ctx, name: string) => {
    await ctx.sleep("1 s");
    return ctx.task(job, name);
  });
  const parent = workflow("parent", { queue: queue("parents", { concurrency: 1 }) }, async (ctx) => {
    const tasks = ["a1", "a2"].map((name) => ctx.task(job, name));
    return Promise.all([...tasks, ctx.child(child, "a3")]);
  });
  const { output, crashes } = await crashEverywhere(parent, undefined, { definitions: [child, job] });
  expect(output).toEqual(["a1!", "a2!", "a3!"]);
  expect(crashes).toBeGreaterThan(20);
});

test("a child that is cancelled before it starts replies to its parent", async () => {
  const child = workflow("child", { queue: queue("one", { concurrency: 1 }) }, async (ctx) => ctx.sleep("1 day"));
  const parent = workflow("parent", async (ctx) => {
    const children = [ctx.child(child), ctx.child(child)];
    const ends = await Promise.allSettled(children);
    return ends.map(({ status }) => status);
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent);
  await engine.clock.advance(0);
  await run.cancel();
  await engine.clock.advance(0);
  const infos = await collect(engine.list({ definition: "child" }));
  expect(infos.map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
});

test("a singleton start returns the live run", async () => {
  const sync = workflow("sync", approval, async (ctx, n: number) => {
    await ctx.promise("done");
    return n;
  });
  const other = workflow("other", approval, async (ctx) => ctx.promise("done"));
  await using engine = await createTestEngine({ definitions: [sync, other] });
  const first = await engine.start(sync, 1, { singleton: "acme" });
  const second = await engine.start(sync, 2, { singleton: "acme" });
  expect(second.id).toBe(first.id);
  expect((await engine.start(sync, 3, { singleton: "umbrella" })).id).not.toBe(first.id);
  expect((await engine.start(other, undefined, { singleton: "acme" })).id).not.toBe(first.id);
  await engine.crash();
  expect((await engine.start(sync, 4, { singleton: "acme", id: "mine" })).id).toBe(first.id);
  await second.resolve("done");
  expect(await first.result()).toBe(1);
  const next = await engine.start(sync, 5, { singleton: "acme", id: "mine" });
  expect(next.id).toBe("mine");
  expect((await engine.start(sync, 5, { singleton: "acme", id: "mine" })).id).toBe("mine");
  expect(await rejection(engine.start(sync, 6, { singleton: "acme", id: "mine" }))).toMatchObject({
    code: "START_CONFLICT",
  });
});

test("concurrent singleton starts from two processes become one run", async () => {
  using folder = createFolder();
  const sync = workflow("sync", approval, async (ctx) => ctx.promise("done"));
  const options = { definitions: [sync], store: `sqlite:${folder.file("shared.db")}` } as const;
  await using one = await createEngine(options);
  await using two = await createEngine(options);
  const starts = Array.from({ length: 20 }, (_, n) =>
    (n % 2 === 0 ? one : two).start(sync, undefined, { singleton: "acme" }),
  );
  const ids = new Set((await Promise.all(starts)).map(({ id }) => id));
  expect(ids.size).toBe(1);
});

test("debounced starts become one run with the last input", async () => {
  const index = workflow("index", async (ctx, text: string) => `${text} at ${ctx.now().getTime()}`);
  await using engine = await createTestEngine({ definitions: [index], now: new Date(0) });
  const debounce = { key: "doc-1", by: "10 s" } as const;
  const first = await engine.start(index, "a", { debounce, tags: ["old"] });
  await engine.clock.advance("9 s");
  const second = await engine.start(index, "b", { debounce, tags: ["new"] });
  await engine.clock.advance("8 s");
  await engine.crash();
  const third = await engine.start(index, "c", { debounce, tags: ["new"] });
  const other = await engine.start(index, "x", { debounce: { key: "doc-2", by: "10 s" } });
  expect([second.id, third.id]).toEqual([first.id, first.id]);
  expect(other.id).not.toBe(first.id);
  expect(await first.info()).toMatchObject({ status: "queued", tags: ["new"] });
  expect(await first.verify()).toMatchObject({ status: "same" });
  await engine.clock.advance("9 s");
  expect(await first.info()).toMatchObject({ status: "queued" });
  await engine.clock.advance("1 s");
  expect(await first.result()).toBe("c at 28000");
  expect(await first.verify()).toMatchObject({ status: "same" });
  const fourth = await engine.start(index, "d", { debounce });
  expect(fourth.id).not.toBe(first.id);
  await engine.clock.advance("10 s");
  expect(await fourth.result()).toBe("d at 38000");
});

test("invalid start options are refused, and nothing is written", async () => {
  const one = workflow("one", async () => 1);
  await using engine = await createTestEngine({ definitions: [one] });
  const debounce = { key: "k", by: "1 s" } as const;
  for (const [options, message] of [
    [{ debounce, id: "x" }, "cannot be combined with id"],
    [{ debounce, delay: "1 s" }, "cannot be combined with delay"],
    [{ debounce, singleton: "x" }, "cannot be combined with singleton"],
    [{ debounce: { key: "", by: "1 s" } }, "debounce.key"],
    [{ debounce: { key: "k", by: "soon" } }, "debounce.by"],
    [{ debounce: "k" }, "expected { key, by }"],
    [{ singleton: 7 }, "singleton"],
    [{ delay: -1 }, "delay"],
  ] as const)
    expect((await rejection(engine.start(one, undefined, options as object))).message).toContain(message);
  expect(await collect(engine.list())).toEqual([]);
});
