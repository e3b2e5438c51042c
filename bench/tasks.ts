// tasks: as `steps`, with tasks instead of operations.

import { tasks } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

export const tasksWorkload: Workload = {
  name: "tasks",
  variants: ["0ms"],
  warmUp: 1,
  run(rig, plan) {
    const size = scaled(200, plan);
    const input = { count: 10, waitMs: Number.parseFloat(plan.variant) };
    return measureBatches({ runs: size * 10, size, count: input.count }, () => rig.engine.start(tasks, input));
  },
};
