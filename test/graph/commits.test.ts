// Commits: how many a graph needs. Virtual time, so that the result does not depend on the machine.

import { expect, test } from "vitest";
import { append, END, graph, last, START, type RepriseEvent } from "reprise";
import { createTestEngine } from "reprise/testing";
import { watchEvents } from "../engine/world.ts";

function commitsIn(events: readonly RepriseEvent[]): number {
  return events.filter(({ event }) => event === "commit").length;
}

test("a step and the node that follows it are one commit, although the node's function is async", async () => {
  const loop = graph("loop", { state: { n: last(0) } })
    .node("next", async (_ctx, { n }) => ({ n: n + 1 }))
    .edge(START, "next")
    .edge("next", END, ({ n }) => n === 20)
    .edge("next", "next");
  await using engine = await createTestEngine({ definitions: [loop] });
  using watched = watchEvents();
  await (await engine.start(loop, {})).result();
  // One for each step, one for the end, one for the start.
  expect(commitsIn(watched.events)).toBeLessThanOrEqual(22);
});

test("items of a wide step share commits, and no more of them execute than allowed", async () => {
  let atWork = 0;
  let most = 0;
  const wide = graph("wide", { state: { done: append<number>() }, maxConcurrentNodes: 3, queueDepth: 7 })
    .node("each", async (_ctx, _state, item: number) => {
      most = Math.max(most, ++atWork);
      await Promise.resolve();
      atWork -= 1;
      return { done: [item] };
    })
    .spread(START, "each", () => Array.from({ length: 500 }, (_, index) => index));
  await using engine = await createTestEngine({ definitions: [wide] });
  using watched = watchEvents();
  const { done } = await (await engine.start(wide, {})).result();
  expect(done).toEqual(Array.from({ length: 500 }, (_, index) => index));
  expect(most).toBe(3);
  expect(commitsIn(watched.events)).toBeLessThanOrEqual(10);
});
