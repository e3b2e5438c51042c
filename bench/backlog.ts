// backlog: many runs wait; a worker claims eight of them, returns them, and claims eight again.
// p50Ms and p99Ms of a claim must not grow with the number of waiting runs.

import { performance } from "node:perf_hooks";
import { steps } from "./definitions.ts";
import { storeOf, startsOf } from "./open-store.ts";
import { scaled, type Workload } from "./workload.ts";

const CLAIMS = 500;
const AT_ONCE = 8;
/** Runs started in one transaction. */
const STARTS = 1_000;

export const backlogWorkload: Workload = {
  name: "backlog",
  variants: ["1000", "100000", "1000000"],
  warmUp: 0,
  hasNoRate: true,
  withoutWorker: true,
  async run(rig, plan) {
    const runs = scaled(Number(plan.variant), plan);
    const store = storeOf(rig.engine);
    const fillingAt = performance.now();
    for (let done = 0; done < runs; done += STARTS)
      await store.write(startsOf(steps, Math.min(STARTS, runs - done), { count: 1, waitMs: 0 }));
    const fillMs = performance.now() - fillingAt;
    const worker = await store.registerWorker("bench", 3_600_000);
    const definitions = [{ name: "steps", version: 1 }];
    const latenciesMs: number[] = [];
    const startedAt = performance.now();
    for (let claim = 0; claim < CLAIMS; claim += 1) {
      const tokens = Array.from({ length: AT_ONCE }, (_, index) => `bench-${claim}-${index}`);
      const claimedAt = performance.now();
      const [turns] = await store.write([{ write: "claim-turns", worker, tokens, definitions }]);
      latenciesMs.push(performance.now() - claimedAt);
      if (turns.length !== AT_ONCE && turns.length !== runs)
        throw new Error(`Expected ${AT_ONCE} turns, claimed ${turns.length}.`);
      await store.write(turns.map(({ record, token }) => ({ write: "return-turn" as const, run: record.run, token })));
    }
    const elapsedMs = performance.now() - startedAt;
    await store.releaseWorker(worker);
    return { runs, steps: CLAIMS, elapsedMs, latenciesMs, extra: { fillPerSecond: (runs / fillMs) * 1_000 } };
  },
};
