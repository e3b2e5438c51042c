// steps: 200 concurrent runs of 10 sequential operations, ten times over.

import { steps } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

export const stepsWorkload: Workload = {
  name: "steps",
  variants: ["0ms"],
  warmUp: 1,
  run(rig, plan) {
    const size = scaled(200, plan);
    const input = { count: 10, waitMs: Number.parseFloat(plan.variant) };
    return measureBatches({ runs: size * 10, size, count: input.count }, () => rig.engine.start(steps, input));
  },
};
