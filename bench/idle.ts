// idle: 1,000 waiting runs and no work. cpuPercent of one core, over five seconds.

import { setTimeout as wait } from "node:timers/promises";
import { performance } from "node:perf_hooks";
import { history } from "./definitions.ts";
import { scaled, type Workload } from "./workload.ts";

export const idleWorkload: Workload = {
  name: "idle",
  variants: ["1000 waiting"],
  warmUp: 0,
  hasNoRate: true,
  async run(rig, plan) {
    const runs = scaled(1_000, plan);
    await Promise.all(Array.from({ length: runs }, () => rig.engine.start(history, { count: 0 })));
    for (let waiting = 0; waiting < runs;) {
      await wait(100);
      waiting = (await Array.fromAsync(rig.engine.list({ status: "waiting", limit: runs }))).length;
    }
    // The engine polls often for a while after work has arrived.
    await wait(2_000 * plan.scale);
    const before = await rig.usage();
    const startedAt = performance.now();
    await wait(5_000 * plan.scale);
    const elapsedMs = performance.now() - startedAt;
    const cpuMs = (await rig.usage()).cpuMs - before.cpuMs;
    return { runs, steps: runs, elapsedMs, latenciesMs: [], extra: { cpuPercent: (cpuMs / elapsedMs) * 100 } };
  },
};
