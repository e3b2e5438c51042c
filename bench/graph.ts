// graph: chains of ten nodes, a wide step with a join, and many steps that each change a little of a large state.

import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import { chain, CHAIN_LENGTH, cpuAtStep, facts, remembering, spreading } from "./graph-definitions.ts";
import type { Rig } from "./rig.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

/** The poll interval for "waiting", and so the error of the measurement. */
const ASK_MS = 20;

export const graphWorkload: Workload = {
  name: "graph",
  variants: ["chain", "1000", "10000", "state"],
  warmUp: 1,
  isSequential: true,
  run(rig, plan) {
    if (plan.variant === "chain") return measureChains(rig, plan);
    if (plan.variant === "state") return measureState(rig, plan);
    return measureFanOut(rig, plan);
  },
};

function measureChains(rig: Rig, plan: Plan): Promise<Measured> {
  const size = scaled(200, plan);
  return measureBatches({ runs: size * 10, size, count: CHAIN_LENGTH }, () => rig.engine.start(chain, {}));
}

async function measureFanOut(rig: Rig, plan: Plan): Promise<Measured> {
  const width = Number(plan.variant);
  if (!(width >= 1))
    throw new Error(`Expected one of ${graphWorkload.variants.join(", ")}, or a width; got ${plan.variant}.`);
  const count = scaled(width, plan);
  // The same number of nodes for every width, so that only the width differs.
  const runs = Math.max(1, Math.round(20_000 / width));
  const measured = await measureBatches({ runs, size: 1, count }, () => rig.engine.start(spreading, { width: count }));
  return { ...measured, extra: { usPerNode: (measured.elapsedMs / measured.steps) * 1_000 } };
}

async function measureState(rig: Rig, plan: Plan): Promise<Measured> {
  const length = scaled(1_000, plan);
  const part = Math.max(1, Math.floor(length / 10));
  const marks = [1, part + 1, length - part, length];
  cpuAtStep.clear();
  for (const step of marks) cpuAtStep.set(step, undefined);
  const startedAt = performance.now();
  const { id } = await rig.engine.start(remembering, { facts, length });
  for (;;) {
    const info = await rig.engine.get(remembering, id).info();
    // One entry per node and per step, and the wait.
    if (info.status === "waiting" && info.entries > 2 * length) break;
    await wait(ASK_MS);
  }
  const elapsedMs = performance.now() - startedAt;
  const [a = Number.NaN, b = Number.NaN, c = Number.NaN, d = Number.NaN] = marks.map((step) => cpuAtStep.get(step));

  await rig.restart();
  const run = rig.engine.get(remembering, id);
  const resumedAt = performance.now();
  await run.resolve("go");
  const result = await run.result();
  const resumeMs = performance.now() - resumedAt;
  if (result !== length) throw new Error(`Expected ${length}, got ${result}.`);
  const extra = { resumeMs, firstStepsCpuUs: (b - a) / part, lastStepsCpuUs: (d - c) / part };
  return { runs: 1, steps: length, elapsedMs, latenciesMs: [elapsedMs], extra };
}
