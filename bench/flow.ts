// flow: 200 concurrent flows of ten actions, diamonds, and spreads of any width with their sum.

import { diamond, DIAMOND_NODES, FLOW_LENGTH, pipeline, wide } from "./flow-definitions.ts";
import type { Rig } from "./rig.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

export const flowWorkload: Workload = {
  name: "flow",
  variants: ["chain", "diamond", "1000", "10000", "100000"],
  warmUp: 0.1,
  run(rig, plan) {
    if (plan.variant === "chain") return measureChains(rig, plan);
    if (plan.variant === "diamond") return measureDiamonds(rig, plan);
    return measureSpread(rig, plan);
  },
};

function measureChains(rig: Rig, plan: Plan): Promise<Measured> {
  const size = scaled(200, plan);
  return measureBatches({ runs: size * 10, size, count: FLOW_LENGTH }, () => rig.engine.start(pipeline, 0));
}

function measureDiamonds(rig: Rig, plan: Plan): Promise<Measured> {
  const size = scaled(200, plan);
  return measureBatches({ runs: size * 10, size, count: DIAMOND_NODES }, () => rig.engine.start(diamond, 0));
}

async function measureSpread(rig: Rig, plan: Plan): Promise<Measured> {
  const width = Number(plan.variant);
  if (!(width >= 1))
    throw new Error(`Expected one of ${flowWorkload.variants.join(", ")}, or a width; got ${plan.variant}.`);
  const count = scaled(width, plan);
  // The same number of items for every width, so that only the width differs.
  const runs = Math.max(1, Math.round(20_000 / width));
  const measured = await measureBatches({ runs, size: 1, count }, () => rig.engine.start(wide, count));
  return { ...measured, extra: { usPerCompletion: (measured.elapsedMs / measured.steps) * 1_000 } };
}
