// fanout: parallel tasks in one run, joined with Promise.all.

import { fanout } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

export const fanoutWorkload: Workload = {
  name: "fanout",
  variants: ["1000", "10000", "100000"],
  warmUp: 0.1,
  async run(rig, plan) {
    const count = scaled(Number(plan.variant), plan);
    // A run of a thousand tasks takes some milliseconds: too short for one measurement.
    const runs = Math.max(1, Math.round(10_000 / Number(plan.variant)));
    const measured = await measureBatches({ runs, size: 1, count }, () => rig.engine.start(fanout, { count }));
    return { ...measured, extra: { usPerTask: (measured.elapsedMs / measured.steps) * 1_000 } };
  },
};
