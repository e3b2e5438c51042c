// latency: 500 runs of 5 operations, one at a time. See p50Ms and p99Ms.

import { steps } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

export const latencyWorkload: Workload = {
  name: "latency",
  variants: ["5 steps"],
  warmUp: 1,
  isSequential: true,
  run(rig, plan) {
    const input = { count: 5, waitMs: 0 };
    return measureBatches({ runs: scaled(500, plan), size: 1, count: 5 }, () => rig.engine.start(steps, input));
  },
};
