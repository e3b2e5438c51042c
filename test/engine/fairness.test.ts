// Fairness (ACC 46): a run that always has a next step does not keep other runs of its worker waiting. Counted in steps, not in
// time: the rig `hot-run` of `npm run faults` measures the latency on real processes.

import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";

const ORDINARY = 200;
const STEPS = 3;
/** pump.P1. A run makes one step per commit, so ordinary runs need as many steps of the hot run as commits, and a few more. */
const MOST_STEPS = 20;

test("200 ordinary runs end while a run that never waits makes a few steps", async () => {
  let hotSteps = 0;
  let isOver = false;
  const hot = workflow("hot", async (ctx) => {
    while (!isOver && hotSteps < 1_000) hotSteps = await ctx.run("step", () => hotSteps + 1);
    return hotSteps;
  });
  const ordinary = workflow("ordinary", async (ctx) => {
    let sum = 0;
    for (let n = 1; n <= STEPS; n += 1) sum += await ctx.run("step", () => n);
    return sum;
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hot, ordinary] });
  const running = await engine.start(hot);
  while (hotSteps < 10) await new Promise((resolve) => setImmediate(resolve));
  const before = hotSteps;
  const runs = await Promise.all(Array.from({ length: ORDINARY }, () => engine.start(ordinary)));
  const sums = await Promise.all(runs.map((run) => run.result()));
  const meanwhile = hotSteps - before;
  isOver = true;
  expect(await running.result()).toBe(hotSteps);
  expect(sums).toEqual(Array.from({ length: ORDINARY }, () => 6));
  expect(meanwhile).toBeGreaterThanOrEqual(STEPS);
  expect(meanwhile).toBeLessThanOrEqual(MOST_STEPS);
});
