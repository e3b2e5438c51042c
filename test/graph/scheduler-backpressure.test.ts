// Backpressure (rules.G5): queue and concurrency are bounded, completion is not; a wait that is too long pauses the run.

import { expect, test } from "vitest";
import { append, createClient, createEngine, graph, last, promise, START, type Duration } from "reprise";
import { createTestEngine } from "reprise/testing";
import { StoreWithRuns } from "../cli/store-with-runs.ts";
import { createFolder, createGate, rejection, storeAround, until, watchEvents, type Gate } from "../engine/world.ts";

function narrow(gates: readonly Gate[], options: { backpressureTimeout?: Duration; depth?: number } = {}) {
  const { backpressureTimeout = "10 s", depth = 1 } = options;
  return graph("narrow", {
    state: { got: append<number>() },
    queueDepth: depth,
    maxConcurrentNodes: 1,
    backpressureTimeout,
  })
    .node("each", { timeout: "1 day" }, async (_ctx, _state, item: number) => {
      await gates[item]!.wait();
      return { got: [item] };
    })
    .spread(START, "each", () => gates.map((_, index) => index));
}

const gatesOf = (count: number): Gate[] => Array.from({ length: count }, () => createGate());

test("a run whose items wait for room longer than backpressureTimeout is paused with the reason, and continues after resume", async () => {
  const gates = gatesOf(4);
  const source = storeAround((_writes, apply) => apply());
  using watched = watchEvents();
  const g = narrow(gates);
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {}, { id: "r" });
  await engine.clock.advance("9 s");
  expect((await run.info()).status).toBe("running");
  // One ends: an item is admitted, and the wait of the next one starts again.
  gates[0]!.open();
  await engine.clock.advance("9 s");
  expect((await run.info()).status).toBe("running");
  const waiting = rejection(run.result());
  await engine.clock.advance("2 s");
  const info = await run.info();
  expect(info.status).toBe("paused");
  expect(info.error).toMatchObject({
    code: "BACKPRESSURE_TIMEOUT",
    message:
      "Run r is paused: Graph narrow: 1 items of step 1 found no room within the backpressureTimeout of 10 s: at most 1 execute and 1 are queued. Find out what its nodes wait for. To continue, run `reprise resume r`.",
    details: { run: "r", where: "step 1" },
  });
  expect(await waiting).toMatchObject({ code: "BACKPRESSURE_TIMEOUT" });
  expect(watched.events.filter(({ event }) => event === "run.paused")).toHaveLength(1);
  // Results of running items are stored, and no other item starts.
  gates[1]!.open();
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("paused");
  expect((await run.scheduler()).items.map(({ state }) => state)).toEqual([
    "completed",
    "completed",
    "queued",
    "queued",
  ]);
  expect(await source.store.check()).toEqual([]);
  for (const gate of gates) gate.open();
  await run.resume();
  expect(await run.result()).toEqual({ got: [0, 1, 2, 3] });
  expect((await run.info()).error).toBeUndefined();
  expect((await run.verify()).status).toBe("same");
});

test("a run that is resumed while its node still runs waits again, and is paused again", async () => {
  const gates = gatesOf(3);
  const g = narrow(gates);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("11 s");
  expect((await run.info()).status).toBe("paused");
  await run.resume();
  await engine.clock.advance("5 s");
  expect((await run.info()).status).toBe("running");
  await engine.clock.advance("6 s");
  expect((await run.info()).status).toBe("paused");
  for (const gate of gates) gate.open();
  await run.resume();
  expect(await run.result()).toEqual({ got: [0, 1, 2] });
});

test("a crash before the pause is durable leaves the run running; after it the run stays paused", async () => {
  const gates = gatesOf(3);
  const g = narrow(gates);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("9 s");
  await engine.crash();
  await engine.clock.advance("9 s");
  expect((await run.info()).status).toBe("running");
  await engine.clock.advance("2 s");
  expect((await run.info()).status).toBe("paused");
  await engine.crash();
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("paused");
  expect((await run.info()).error).toMatchObject({ code: "BACKPRESSURE_TIMEOUT" });
  for (const gate of gates) gate.open();
  await run.resume();
  expect(await run.result()).toEqual({ got: [0, 1, 2] });
});

test("a run is not paused if all items have room, if they get room in time, or without the option", async () => {
  const roomy = gatesOf(2);
  const endless = gatesOf(3);
  const wide = narrow(roomy, { depth: 1 });
  await using engine = await createTestEngine({ definitions: [wide] });
  const run = await engine.start(wide, {});
  await engine.clock.advance("1 hour");
  expect((await run.info()).status).toBe("running");
  for (const gate of roomy) gate.open();
  expect(await run.result()).toEqual({ got: [0, 1] });
  const unsaid = graph("unsaid", { state: { n: last(0) }, queueDepth: 1, maxConcurrentNodes: 1 })
    .node("each", { timeout: "1 day" }, (_ctx, _state, item: number) => endless[item]!.wait())
    .spread(START, "each", () => [0, 1, 2]);
  await using other = await createTestEngine({ definitions: [unsaid] });
  const long = await other.start(unsaid, {});
  await other.clock.advance("1 hour");
  expect((await long.info()).status).toBe("running");
  for (const gate of endless) gate.open();
  await long.result();
});

test("a failure ends the wait: the run fails with its error and is not paused", async () => {
  const gate = createGate();
  const g = graph("fails", { state: {}, queueDepth: 1, maxConcurrentNodes: 1, backpressureTimeout: "10 s" })
    .node("each", { timeout: "1 day" }, async (_ctx, _state, _item: number) => {
      await gate.wait();
      throw new Error("no");
    })
    .spread(START, "each", () => [0, 1, 2, 3]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("9 s");
  gate.open();
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { message: "no" } });
  await engine.clock.advance("1 hour");
  expect((await run.info()).status).toBe("failed");
});

test("a released run whose nodes wait for a person is paused, too", async () => {
  const g = graph("asks", {
    state: { got: append<number>() },
    ports: { go: promise<number>() },
    queueDepth: 1,
    maxConcurrentNodes: 1,
    backpressureTimeout: "1 hour",
  })
    .node("ask", async (ctx, _state, item: number) => ({ got: [item + (await ctx.promise("go"))] }))
    .spread(START, "ask", () => [0, 1, 2]);
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance("30 minutes");
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("31 minutes");
  expect((await run.info()).status).toBe("paused");
  await run.resolve("go", 10);
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("paused");
  expect(await source.store.check()).toEqual([]);
  await run.resume();
  expect(await run.result()).toEqual({ got: [10, 11, 12] });
});

test("a person's pause has no reason, and result() waits for the resume", async () => {
  const gates = gatesOf(3);
  const g = narrow(gates);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance(0);
  await run.pause();
  await engine.clock.advance("1 hour");
  expect((await run.info()).error).toBeUndefined();
  for (const gate of gates) gate.open();
  const result = run.result();
  await run.resume();
  expect(await result).toEqual({ got: [0, 1, 2] });
});

test("another process sees the pause and its reason, and can resume the run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const gates = gatesOf(3);
  const g = narrow(gates, { backpressureTimeout: "20 ms" });
  await using worker = await createEngine({ store, definitions: [g] });
  await using client = await createClient({ store, definitions: [g] });
  const run = await worker.start(g, {}, { id: "r" });
  const seen = client.get(g, "r");
  await until(async () => (await seen.info()).status === "paused");
  expect((await seen.info()).error).toMatchObject({ code: "BACKPRESSURE_TIMEOUT" });
  for (const gate of gates) gate.open();
  await until(async () => (await seen.scheduler()).items.some(({ state }) => state === "completed"));
  await seen.resume();
  expect(await run.result()).toEqual({ got: [0, 1, 2] });
});

test("reprise show says why the run is paused and what to do; doctor finds nothing wrong", async () => {
  const asks = graph("asks", {
    state: { n: last(0) },
    ports: { go: promise<number>() },
    queueDepth: 1,
    maxConcurrentNodes: 1,
    backpressureTimeout: "5 ms",
  })
    .node("ask", async (ctx, _state, _item: number) => ({ n: await ctx.promise("go") }))
    .spread(START, "ask", () => [0, 1, 2]);
  using store = new StoreWithRuns([asks]);
  await store.start({ id: "r", what: asks, input: {}, until: "paused" });
  const { stdout } = await store.cli("show", "r");
  expect(stdout).toContain("paused BACKPRESSURE_TIMEOUT: Graph asks: 1 items of step 1 found no room");
  expect(stdout).toContain("where: step 1");
  expect(stdout).toMatch(/then `reprise resume r --store sqlite:\S+`/);
  expect((await store.cli("doctor")).code).toBe(0);
  expect((await store.cli("resume", "r")).code).toBe(0);
  expect(await store.statusOf("r")).toBe("queued");
});
