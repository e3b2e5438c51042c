// runs: 10,000 runs of one operation, a thousand at a time.

import { steps } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

export const runsWorkload: Workload = {
  name: "runs",
  variants: ["1 step"],
  warmUp: 0.3,
  run(rig, plan) {
    const input = { count: 1, waitMs: 0 };
    return measureBatches({ runs: scaled(10_000, plan), size: 1_000, count: 1 }, () => rig.engine.start(steps, input));
  },
};
