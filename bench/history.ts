// history: sequential operations in one run, which then waits; after a restart it gets the value it waits for.
// resumeMs is the time from there to the result: claim, journal read, replay, one more step, the end.

import { setTimeout as wait } from "node:timers/promises";
import { performance } from "node:perf_hooks";
import { history } from "./definitions.ts";
import { scaled, type Workload } from "./workload.ts";

/** The poll interval for "waiting", and so the error of the measurement. */
const ASK_MS = 5;

export const historyWorkload: Workload = {
  name: "history",
  variants: ["2000", "10000", "50000"],
  warmUp: 0.1,
  isSequential: true,
  async run(rig, plan) {
    const count = scaled(Number(plan.variant), plan);
    const startedAt = performance.now();
    const { id } = await rig.engine.start(history, { count });
    // The first "waiting" with all entries is the end of the history.
    for (;;) {
      const info = await rig.engine.get(history, id).info();
      if (info.status === "waiting" && info.entries > count) break;
      await wait(ASK_MS);
    }
    const elapsedMs = performance.now() - startedAt;

    await rig.restart();
    const run = rig.engine.get(history, id);
    const resumedAt = performance.now();
    await run.resolve("go");
    const result = await run.result();
    const resumeMs = performance.now() - resumedAt;
    if (result !== count) throw new Error(`Expected ${count}, got ${result}.`);
    return { runs: 1, steps: count, elapsedMs, latenciesMs: [elapsedMs], extra: { resumeMs } };
  },
};
