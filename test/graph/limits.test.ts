// Limits of a graph (seed 000): how many nodes execute, how many items are queued, how long an attempt may take.

import { describe, expect, test } from "vitest";
import { append, graph, START, type Duration } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

interface Limits {
  maxConcurrentNodes?: number;
  queueDepth?: number;
}

/** How many items of a step of this width have which state while no node has ended, and how many nodes were called. */
async function countStates(width: number, limits: Limits) {
  const gate = createGate();
  let calls = 0;
  const wide = graph("wide", { state: { done: append<number>() }, ...limits })
    .node("each", async (_ctx, _state, item: number) => {
      calls += 1;
      await gate.wait();
      return { done: [item] };
    })
    .spread(START, "each", () => Array.from({ length: width }, (_, index) => index));
  await using engine = await createTestEngine({ definitions: [wide] });
  const run = await engine.start(wide, {});
  await engine.clock.advance(0);
  const { items, activeNodes, queueDepth, maxConcurrentNodes } = await run.scheduler();
  const count = (state: string): number => items.filter((item) => item.state === state).length;
  const counted = { executing: count("executing"), queued: count("queued"), created: count("created") };
  const called = calls;
  gate.open();
  const { done } = await run.result();
  expect(done).toHaveLength(width);
  return { ...counted, called, activeNodes, queueDepth, maxConcurrentNodes };
}

test("by default 8 nodes of a run execute at once", async () => {
  expect(await countStates(20, {})).toMatchObject({
    executing: 8,
    called: 8,
    activeNodes: 8,
    maxConcurrentNodes: 8,
    queued: 12,
  });
});

test("by default 1,024 items are queued behind the executing ones, and the others are not", async () => {
  expect(await countStates(1_100, {})).toMatchObject({ executing: 8, queued: 1_024, queueDepth: 1_024, created: 68 });
});

test("queueDepth bounds the queued items, and an item beyond it has not started", async () => {
  const counted = await countStates(500, { maxConcurrentNodes: 2, queueDepth: 3 });
  expect(counted).toMatchObject({ executing: 2, called: 2, queued: 3, queueDepth: 3, created: 495 });
});

/** Expects that an attempt of a node that never ends runs for this time, and no longer. */
async function expectTimeout(ms: number, options: { defaultNodeTimeout?: Duration }, node: { timeout?: Duration }) {
  const started = createGate();
  const slow = graph("slow", { state: { done: append<number>() }, ...options })
    .node("works", node, async () => {
      await started.wait();
      await new Promise(() => {});
    })
    .edge(START, "works");
  started.open();
  await using engine = await createTestEngine({ definitions: [slow] });
  const run = await engine.start(slow, {});
  const failure = rejection(run.result());
  await started.reached;
  await engine.clock.advance(ms - 1);
  expect((await run.scheduler()).activeNodes).toBe(1);
  await engine.clock.advance(1);
  expect(await failure).toMatchObject({
    cause: { code: "ATTEMPT_TIMEOUT", message: `Attempt 1 of works (Node(1.0)) took longer than ${ms} ms.` },
  });
}

describe("the timeout of a node", () => {
  test("is 30 s by default", async () => {
    await expectTimeout(30_000, {}, {});
  });
  test("is the defaultNodeTimeout of its graph", async () => {
    await expectTimeout(5_000, { defaultNodeTimeout: "5 s" }, {});
    await expectTimeout(3_600_000, { defaultNodeTimeout: "1 hour" }, {});
  });
  test("is its own, if it has one", async () => {
    await expectTimeout(60_000, { defaultNodeTimeout: "5 s" }, { timeout: "1 minute" });
    await expectTimeout(10_000, {}, { timeout: "10 s" });
  });
});
