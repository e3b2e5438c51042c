// Messages to a run that does not exist yet, and signals sent with the start.

import { createEngine, graph, last, promise, query, signal, START, workflow, type Run } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, rejection } from "./world.ts";

const order = workflow(
  "order",
  { ports: { approval: promise<string>(), note: signal<number>() } },
  async (ctx, id: string) => {
    await ctx.run("look up", () => id);
    const approval = await ctx.promise("approval");
    const notes = [await ctx.receive("note"), await ctx.receive("note"), await ctx.receive("note")];
    return { id, approval, notes };
  },
);
const refund = workflow("refund", async () => "refunded");
const early = { beforeStart: true } as const;

test("ACCEPTANCE 35: messages sent before the run starts, and before the code waits, are delivered once and in order", async () => {
  await using engine = await createTestEngine({ definitions: [order] });
  const ahead = engine.get(order, "order-7");
  await ahead.resolve("approval", "Eve", early);
  expect((await rejection(ahead.resolve("approval", "Mallory", early))).code).toBe("PROMISE_ALREADY_RESOLVED");
  await ahead.signal("note", 1, early);
  await ahead.signal("note", 2, { ...early, dedupId: "two" });
  await ahead.signal("note", 2, { ...early, dedupId: "two" });
  expect(await ahead.info()).toMatchObject({ status: "expected", definition: "order", entries: 0 });
  const waiting = ahead.result();
  const run = await engine.start(order, "7", { id: "order-7" });
  await run.signal("note", 3);
  expect((await rejection(run.resolve("approval", "Mallory"))).code).toMatch(/PROMISE_ALREADY_RESOLVED|RUN_ENDED/);
  expect(await waiting).toEqual({ id: "7", approval: "Eve", notes: [1, 2, 3] });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("ACCEPTANCE 35: without beforeStart an unknown run is refused and nothing is written", async () => {
  await using engine = await createTestEngine({ definitions: [order] });
  const unknown = engine.get(order, "order-7");
  expect((await rejection(unknown.signal("note", 1))).code).toBe("RUN_NOT_FOUND");
  expect((await rejection(unknown.resolve("approval", "x"))).code).toBe("RUN_NOT_FOUND");
  expect((await rejection(unknown.reject("approval", new Error("no")))).code).toBe("RUN_NOT_FOUND");
  expect(await collect(engine.list())).toEqual([]);
  const wrong = unknown.signal as (name: string, value: unknown, options: object) => Promise<void>;
  expect((await rejection(wrong("note", 1, { beforestart: true }))).code).toBe("BAD_OPTIONS");
  expect((await rejection(wrong("notes", 1, early))).code).toBe("UNKNOWN_PORT");
  expect(await engine.find("order-7")).toBeUndefined();
});

test("a graph that got a message before its start is stored as a graph", async () => {
  const review = graph("review", { state: { verdict: last("") }, ports: { verdict: promise<string>() } })
    .node("ask", async (ctx) => ({ verdict: await ctx.promise("verdict") }))
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [review] });
  const ahead = engine.get(review, "review-1");
  await ahead.resolve("verdict", "good", early);
  expect(await ahead.info()).toMatchObject({ status: "expected", kind: "graph" });
  const run = await engine.start(review, {}, { id: "review-1" });
  expect(await run.result()).toEqual({ verdict: "good" });
  expect(await run.info()).toMatchObject({ kind: "graph", definition: "review" });
  expect([await run.stateAt(0), await run.stateAt(1)]).toEqual([{ verdict: "" }, { verdict: "good" }]);
});

test("an early rejection is delivered as a rejection", async () => {
  await using engine = await createTestEngine({ definitions: [order] });
  await engine.get(order, "order-7").reject("approval", new RangeError("too much"), early);
  const run = await engine.start(order, "7", { id: "order-7" });
  expect((await rejection(run.result())).message).toContain("too much");
});

test("an expected run can be cancelled, and is gone", async () => {
  await using engine = await createTestEngine({ definitions: [order] });
  const ahead = engine.get(order, "order-7");
  await ahead.signal("note", 1, early);
  expect((await collect(engine.list({ status: "expected" }))).map(({ id }) => id)).toEqual(["order-7"]);
  const waiting = rejection(ahead.result());
  await ahead.cancel();
  expect((await waiting).name).toBe("CancelledError");
  expect(await engine.find("order-7")).toBeUndefined();
  const run = await engine.start(order, "7", { id: "order-7", signals: { note: 5 } });
  for (const note of [6, 7]) await run.signal("note", note);
  await run.resolve("approval", "Eve");
  expect((await run.result()).notes).toEqual([5, 6, 7]);
});

test("an id that is expected for one definition cannot be started with another, nor spoken to as another", async () => {
  await using engine = await createTestEngine({ definitions: [order, refund] });
  await engine.get(order, "order-7").signal("note", 1, early);
  expect((await rejection(engine.start(refund, undefined, { id: "order-7" }))).code).toBe("START_CONFLICT");
  await engine.start(refund, undefined, { id: "refund-1" });
  expect((await rejection(engine.get(order, "refund-1").signal("note", 1, early))).code).toBe("UNKNOWN_DEFINITION");
  expect((await engine.find("order-7"))?.status).toBe("expected");
});

test("a child that was spoken to before it was started hears it", async () => {
  const child = workflow("child", { ports: { word: signal<string>() } }, (ctx) => ctx.receive("word"));
  const parent = workflow("parent", (ctx) => ctx.child(child, undefined, { id: "child-1" }));
  await using engine = await createTestEngine({ definitions: [parent, child] });
  await engine.get(child, "child-1").signal("word", "hi", early);
  expect(await (await engine.start(parent)).result()).toBe("hi");
});

test("signals that come with the start are delivered in the order written", async () => {
  const records = workflow(
    "records",
    { ports: { b: signal<number>(), a: signal<number>(), end: signal() } },
    async (ctx) => {
      const heard: unknown[] = [];
      for (;;) {
        const message = await ctx.receive(["a", "b", "end"]);
        if (message.name === "end") return heard;
        heard.push([message.name, message.value]);
      }
    },
  );
  await using engine = await createTestEngine({ definitions: [records] });
  const run = await engine.start(records, undefined, { id: "records-1", signals: { b: 1, a: 2 } });
  const again = await engine.start(records, undefined, { id: "records-1", signals: { a: 3 } });
  await again.signal("end");
  expect(await run.result()).toEqual([
    ["b", 1],
    ["a", 2],
    ["a", 3],
  ]);
  const late = engine.start(records, undefined, { id: "records-1", signals: { a: 4 } });
  expect((await rejection(late)).code).toBe("RUN_ENDED");
  expect((await engine.start(records, undefined, { id: "records-1" })).id).toBe("records-1");
  const wrong = engine.start as (what: unknown, input: unknown, options: object) => Promise<unknown>;
  expect((await rejection(wrong(records, undefined, { signals: { c: 1 } }))).code).toBe("UNKNOWN_PORT");
  expect((await rejection(wrong(records, undefined, { signals: 5 }))).code).toBe("BAD_OPTIONS");
});

test("a run that is busy from its first step on hears what came with its start, and before it", async () => {
  const gate = createGate<number>();
  const busy = workflow("busy", { ports: { word: signal<string>() } }, async (ctx) => {
    const held = ctx.run("hold", () => gate.wait());
    const words = [await ctx.receive("word"), await ctx.receive("word")];
    gate.open(1);
    await held;
    return words;
  });
  await using engine = await createTestEngine({ definitions: [busy] });
  await engine.get(busy, "busy-1").signal("word", "before", early);
  const run = await engine.start(busy, undefined, { id: "busy-1", signals: { word: "with" } });
  expect(await run.result()).toEqual(["before", "with"]);
});

test("a run that is started with another input than it has gets none of the signals", async () => {
  await using engine = await createTestEngine({ definitions: [order] });
  await engine.start(order, "7", { id: "order-7" });
  const other = engine.start(order, "8", { id: "order-7", signals: { note: 1 } });
  expect((await rejection(other)).code).toBe("START_CONFLICT");
  await engine.clock.advance(0);
  const types = (await collect(engine.get(order, "order-7").journal())).map(({ type }) => type);
  expect(types).not.toContain("SignalReceived");
});

test("early messages are heard wherever the process is killed", async () => {
  const hear = workflow("hear", { ports: { word: signal<string>(), go: promise<string>() } }, async (ctx) => {
    const child = ctx.child(listener, undefined, { id: "listener" });
    return [await ctx.receive("word"), await ctx.promise("go"), await child];
  });
  const listener = workflow("listener", { ports: { word: signal<string>() } }, (ctx) => ctx.receive("word"));
  const { output, crashes } = await crashEverywhere(hear, undefined, {
    definitions: [listener],
    drive: async (engine, id) => {
      const child = engine.get("listener" as never, "listener") as Run<typeof listener>;
      const run = engine.get(hear, id) as Run<typeof hear>;
      await child.signal("word", "early", { ...early, dedupId: "1" });
      await run.signal("word", "soon", { ...early, dedupId: "1" });
      await run.resolve("go", "went", early);
    },
  });
  expect(output).toEqual(["soon", "went", "early"]);
  expect(crashes).toBeGreaterThan(8);
});

test("of a start and a message from two engines on one file neither misses the other", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("early.db")}`;
  const word = workflow("word", { ports: { word: signal<number>() } }, (ctx) => ctx.receive("word"));
  await using one = await createEngine({ store, definitions: [word] });
  await using two = await createEngine({ store, definitions: [word] });
  const ids = Array.from({ length: 20 }, (_, n) => `word-${n}`);
  const results = await Promise.all(
    ids.map(async (id, n) => {
      const [run] = await Promise.all([one.start(word, undefined, { id }), two.get(word, id).signal("word", n, early)]);
      return run.result({ timeout: "20s" });
    }),
  );
  expect(results).toEqual(ids.map((_, n) => n));
});

test("a run that is started with a signal has read it while its first step runs, and answers queries", async () => {
  const gate = createGate();
  const both = workflow("both", { ports: { go: signal<string>(), step: query<number>() } }, async (ctx) => {
    ctx.onQuery("step", () => 1);
    await ctx.run("hold", () => gate.wait());
    return ctx.receive("go");
  });
  await using engine = await createTestEngine({ definitions: [both] });
  const run = await engine.start(both, undefined, { signals: { go: "at once" } });
  await gate.reached;
  expect(await run.query("step")).toBe(1);
  gate.open();
  expect(await run.result()).toBe("at once");
  expect(await run.verify()).toMatchObject({ status: "same" });
});
