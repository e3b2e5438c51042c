// Scheduler: its state and its six metrics (seed 000), against independent counts.

import { expect, test } from "vitest";
import {
  append,
  createClient,
  createEngine,
  END,
  FatalError,
  graph,
  last,
  promise,
  START,
  workflow,
  type RepriseEvent,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, createGate, macrotask, rejection, until, watchEvents } from "../engine/world.ts";

type SchedulerEvent = Extract<RepriseEvent, { event: "scheduler" }>;

function schedulerEvents(events: readonly RepriseEvent[]): readonly SchedulerEvent[] {
  return events.filter((event): event is SchedulerEvent => event.event === "scheduler");
}

test("bounded concurrency metrics: in a run of 500 nodes no sample shows more executing nodes than allowed, and the six metrics match an independent count", async () => {
  const counted = { calls: 0, atWork: 0, most: 0, retries: 0 };
  const samples: number[] = [];
  const g = graph("wide", {
    state: { round: last(0), seen: append<number>() },
    maxConcurrentNodes: 5,
    queueDepth: 20,
  })
    .node("split", async (_ctx, state) => {
      counted.calls += 1;
      return { round: state.round + 1 };
    })
    .node("each", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx, _state, item: number) => {
      counted.calls += 1;
      counted.most = Math.max(counted.most, ++counted.atWork);
      try {
        if (item % 10 === 0) samples.push((await engine.get(g, ctx.runId).scheduler()).activeNodes);
        await macrotask();
        if (item % 25 === 0 && ctx.attempt === 1) {
          counted.retries += 1;
          throw new Error("once");
        }
        return { seen: [item] };
      } finally {
        counted.atWork -= 1;
      }
    })
    .edge(START, "split")
    .edge("split", END, (state) => state.round === 6)
    .spread("split", "each", () => Array.from({ length: 99 }, (_, index) => index))
    .join(["each"], "split");
  using watched = watchEvents();
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  expect((await run.result()).seen).toHaveLength(495);
  const { metrics, ...state } = await run.scheduler();
  const times: number[] = [];
  for await (const { type, at } of run.journal()) if (type === "StepCommitted") times.push(at.getTime());
  // Five rounds of one node and 99, and the sixth of one alone; 99 items, 20 of which find room at once.
  expect(metrics).toEqual({
    totalSteps: 11,
    totalNodesExecuted: counted.calls,
    avgStepLatencyMs: (times.at(-1)! - times[0]!) / 11,
    maxQueueDepth: 20,
    totalRetries: counted.retries,
    totalBackpressureBlocks: 5 * (99 - 20),
  });
  expect([counted.calls, counted.retries]).toEqual([6 + 5 * (99 + 4), 20]);
  expect(state).toMatchObject({ completedSteps: 11, activeNodes: 0, queueDepth: 0, items: [] });
  expect(counted.most).toBe(5);
  expect(samples).toHaveLength(50 + 10);
  for (const activeNodes of samples) expect(activeNodes).toBeLessThanOrEqual(5);
  const events = schedulerEvents(watched.events);
  for (const { activeNodes, queueDepth } of events) {
    expect(activeNodes).toBeLessThanOrEqual(5);
    expect(queueDepth).toBeLessThanOrEqual(20);
  }
  const count = (trigger: string): number => events.filter((event) => event.trigger === trigger).length;
  expect([count("step"), count("backpressure"), count("retry"), count("end")]).toEqual([11, 395, 20, 1]);
  const { avgStepLatencyMs: _live, ...live } = events.at(-1)!.metrics;
  const { avgStepLatencyMs: _kept, ...kept } = metrics;
  expect(live).toEqual(kept);
});

test("the latency of steps is measured from checkpoint to checkpoint, also over a crash", async () => {
  const g = graph("slow", { state: { n: last(0) }, ports: { one: promise(), two: promise(), three: promise() } })
    .node("a", (ctx) => ctx.promise("one"))
    .node("b", (ctx) => ctx.promise("two"))
    .node("c", (ctx) => ctx.promise("three"))
    .edge(START, "a")
    .edge("a", "b")
    .edge("b", "c");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  const begun = engine.clock.now().getTime();
  for (const [port, ms] of [
    ["one", 100],
    ["two", 2_000],
    ["three", 300],
  ] as const) {
    await engine.clock.advance(ms);
    if (port === "two") await engine.crash();
    await run.resolve(port);
    await engine.clock.advance(0);
  }
  await run.result();
  const took = engine.clock.now().getTime() - begun;
  // A crash takes its time too.
  expect(took).toBeGreaterThanOrEqual(2_400);
  const { metrics, held } = await run.scheduler();
  expect([metrics.totalSteps, metrics.avgStepLatencyMs, held]).toEqual([3, took / 3, false]);
});

test("items are created, queued, executing, completed; after a failed attempt they are queued for the next one", async () => {
  const gates = Array.from({ length: 4 }, () => createGate());
  const g = graph("states", { state: { n: last(0) }, maxConcurrentNodes: 2, queueDepth: 1 })
    .node(
      "each",
      { retry: { maxAttempts: 3, baseDelay: "1 hour", maxDelay: "1 hour" }, timeout: "1 day" },
      async (ctx, _state, item: number) => {
        await gates[item]!.wait();
        if (item === 0 && ctx.attempt === 1) throw new Error("once");
        if (item === 3) throw new FatalError("for good");
      },
    )
    .spread(START, "each", () => [0, 1, 2, 3]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  const now = async () => {
    await engine.clock.advance(0);
    const { items, activeNodes, queueDepth, held } = await run.scheduler();
    expect(held).toBe(true);
    return [...items.map(({ state, attempt }) => `${state} ${attempt}`), activeNodes, queueDepth];
  };
  expect(await now()).toEqual(["executing 1", "executing 1", "queued 1", "created 1", 2, 1]);
  gates[1]!.open();
  expect(await now()).toEqual(["executing 1", "completed 1", "executing 1", "queued 1", 2, 1]);
  gates[0]!.open();
  expect(await now()).toEqual(["queued 2", "completed 1", "executing 1", "queued 1", 1, 1]);
  await engine.clock.advance("1 hour");
  expect(await now()).toEqual(["completed 2", "completed 1", "executing 1", "executing 1", 2, 0]);
  gates[3]!.open();
  gates[2]!.open();
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "for good" } });
  const { items, metrics, held, step } = await run.scheduler();
  expect(items.map(({ state }) => state)).toEqual(["completed", "completed", "completed", "failed"]);
  expect(items.map(({ index, node }) => `${node}[${index}]`)).toEqual(["each[0]", "each[1]", "each[2]", "each[3]"]);
  expect(metrics).toMatchObject({ totalSteps: 0, totalNodesExecuted: 5, totalRetries: 1, totalBackpressureBlocks: 3 });
  expect([held, step]).toEqual([false, 1]);
});

test("a process that does not hold the run reads its state and metrics from the journal", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const gate = createGate();
  const g = graph("two", { state: { n: last(0) } })
    .node("first", async () => ({ n: 1 }))
    .node("second", () => gate.wait())
    .edge(START, "first")
    .edge("first", "second");
  await using worker = await createEngine({ store, definitions: [g] });
  await using client = await createClient({ store, definitions: [g] });
  const run = await worker.start(g, {}, { id: "r" });
  await gate.reached;
  await until(async () => (await client.get(g, "r").scheduler()).step === 2);
  expect(await client.get(g, "r").scheduler()).toMatchObject({
    completedSteps: 1,
    activeNodes: 0,
    held: false,
    items: [{ node: "second", state: "queued", attempt: 1 }],
    metrics: { totalSteps: 1, totalNodesExecuted: 1 },
  });
  expect(await run.scheduler()).toMatchObject({ held: true, activeNodes: 1, items: [{ state: "executing" }] });
  gate.open();
  await run.result();
  expect(await client.get(g, "r").scheduler()).toEqual(await run.scheduler());
});

test("a workflow has no scheduler", async () => {
  const w = workflow("plain", async () => 1);
  await using engine = await createTestEngine({ definitions: [w] });
  const run = await engine.start(w);
  expect(await rejection(run.scheduler())).toMatchObject({ code: "USAGE" });
});
