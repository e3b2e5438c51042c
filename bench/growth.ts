// growth: what a unit of work costs as the work grows. Each variant is a point of a curve; the first word of its name is the curve.
//
// `tasks`: concurrent runs of ten tasks each. `limited`: a queue with a concurrency limit, with a constant number of waiting runs.
// `queued`: the memory for 8,000 runs in such a queue. `apart`: from start to result in another process. `graph`: a node beside a step.
// `block`: how long large results block the event loop.

import { measureTwoProcesses } from "./growth-apart.ts";
import { measureBlock } from "./growth-block.ts";
import { measureLimited, measureQueued } from "./growth-queues.ts";
import { measureBatches } from "./batched-runs.ts";
import { steps, tasks } from "./definitions.ts";
import { chain, CHAIN_LENGTH } from "./graph-definitions.ts";
import type { Rig } from "./rig.ts";
import { percentile } from "./statistics.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

type Point = (rig: Rig, plan: Plan) => Promise<Measured>;

const POINTS: Readonly<Record<string, Point>> = {
  "tasks 200": tasksAt(200),
  "tasks 1000": tasksAt(1_000),
  "tasks 5000": tasksAt(5_000),
  "tasks 20000": tasksAt(20_000),
  "limited 4 of 200": (rig, plan) => measureLimited(rig, plan, 4, 200),
  "limited 4 of 20000": (rig, plan) => measureLimited(rig, plan, 4, 20_000),
  "limited 64 of 200": (rig, plan) => measureLimited(rig, plan, 64, 200),
  "limited 64 of 20000": (rig, plan) => measureLimited(rig, plan, 64, 20_000),
  "queued 8000": measureQueued,
  "apart 5 steps": measureTwoProcesses,
  "graph chain": measureGraph,
  "block 10 runs": (rig, plan) => measureBlock(rig, plan, { runs: 10, count: 20 }),
  "block 1 run": (rig, plan) => measureBlock(rig, plan, { runs: 1, count: 200 }),
};

export const growthWorkload: Workload = {
  name: "growth",
  variants: Object.keys(POINTS),
  warmUp: 0,
  hasNoRawLimit: true,
  run(rig, plan) {
    const point = POINTS[plan.variant];
    if (point === undefined) throw new Error(`Expected one of ${Object.keys(POINTS).join(", ")}; got ${plan.variant}.`);
    return point(rig, plan);
  },
};

const TASKS_PER_RUN = 10;
/** Few runs are repeated, so that every point has about as many steps as compiled code and caches need. */
const LEAST_RUNS = 4_000;

function tasksAt(concurrent: number): Point {
  return async (rig, plan) => {
    const size = scaled(concurrent, plan);
    const start = () => rig.engine.start(tasks, { count: TASKS_PER_RUN, waitMs: 0 });
    // The same for every point.
    await measureBatches({ runs: scaled(1_000, plan), size: scaled(200, plan), count: TASKS_PER_RUN }, start);
    const runs = Math.max(size, scaled(LEAST_RUNS, plan));
    return withCpu(rig, () => measureBatches({ runs, size, count: TASKS_PER_RUN }, start));
  };
}

/** The CPU time of what is measured only, without the warm-up and the preparation. */
async function withCpu(rig: Rig, measureIt: () => Promise<Measured>): Promise<Measured> {
  const before = await rig.usage();
  const measured = await measureIt();
  const cpuMs = (await rig.usage()).cpuMs - before.cpuMs;
  return { ...measured, extra: { ...measured.extra, cpuUsPerStep: (cpuMs / measured.steps) * 1_000 } };
}

const GRAPH_ROUNDS = 12;

/** Rounds of a chain of ten nodes and of ten steps, in turns: what else the machine does affects both. */
async function measureGraph(rig: Rig, plan: Plan): Promise<Measured> {
  const size = scaled(400, plan);
  const batch = { runs: size, size, count: CHAIN_LENGTH };
  const ofSteps = () => measureBatches(batch, () => rig.engine.start(steps, { count: CHAIN_LENGTH, waitMs: 0 }));
  const ofNodes = () => measureBatches(batch, () => rig.engine.start(chain, {}));
  for (let round = 0; round < 3; round += 1) {
    await ofSteps();
    await ofNodes();
  }
  const [stepUs, nodeUs]: [number[], number[]] = [[], []];
  let elapsedMs = 0;
  const latenciesMs: number[] = [];
  for (let round = 0; round < GRAPH_ROUNDS; round += 1) {
    stepUs.push((await withCpu(rig, ofSteps)).extra!["cpuUsPerStep"]!);
    const nodes = await withCpu(rig, ofNodes);
    nodeUs.push(nodes.extra!["cpuUsPerStep"]!);
    elapsedMs += nodes.elapsedMs;
    latenciesMs.push(...nodes.latenciesMs);
  }
  const [stepCpuUs, cpuUsPerStep] = [percentile(stepUs, 0.5)!, percentile(nodeUs, 0.5)!];
  return {
    runs: size * GRAPH_ROUNDS,
    steps: size * GRAPH_ROUNDS * CHAIN_LENGTH,
    elapsedMs,
    latenciesMs,
    extra: {
      cpuUsPerStep,
      stepCpuUs,
      ofStep: cpuUsPerStep / stepCpuUs,
      lowestOfStep: Math.min(...nodeUs) / Math.min(...stepUs),
    },
  };
}
