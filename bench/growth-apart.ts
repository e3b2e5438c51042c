// Growth over processes: from start to result, with a client here and the worker in another process, and with both here.

import { measureBatches } from "./batched-runs.ts";
import { steps } from "./definitions.ts";
import type { Rig } from "./rig.ts";
import { percentile } from "./statistics.ts";
import { scaled, type Measured, type Plan } from "./workload.ts";

const STEPS = 5;
const ROUNDS = 3;
const RUNS_PER_ROUND = 150;

/** In turns, on the same database: what else the machine does affects both. */
export async function measureTwoProcesses(rig: Rig, plan: Plan): Promise<Measured> {
  const measured: Record<"apart" | "here", Measured[]> = { apart: [], here: [] };
  let cpuMs = 0;
  for (let round = 0; round < ROUNDS; round += 1)
    for (const place of ["here", "apart"] as const) {
      await rig.restart({ isApart: place === "apart" });
      const runsOf = (runs: number) =>
        measureBatches({ runs: scaled(runs, plan), size: 1, count: STEPS }, () =>
          rig.engine.start(steps, { count: STEPS, waitMs: 0 }),
        );
      await runsOf(RUNS_PER_ROUND / 3);
      const before = await rig.usage();
      measured[place].push(await runsOf(RUNS_PER_ROUND));
      if (place === "apart") cpuMs += (await rig.usage()).cpuMs - before.cpuMs;
    }
  const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, value) => sum + value, 0);
  const runs = sumOf(measured.apart.map((each) => each.runs));
  const latenciesMs = measured.apart.flatMap((each) => each.latenciesMs);
  const hereMs = measured.here.flatMap((each) => each.latenciesMs);
  const [hereP50Ms, p50Ms] = [percentile(hereMs, 0.5)!, percentile(latenciesMs, 0.5)!];
  return {
    runs,
    steps: runs * STEPS,
    elapsedMs: sumOf(measured.apart.map((each) => each.elapsedMs)),
    latenciesMs,
    extra: {
      hereP50Ms,
      hereP99Ms: percentile(hereMs, 0.99)!,
      aboveHereMs: p50Ms - hereP50Ms,
      cpuUsPerStep: (cpuMs / (runs * STEPS)) * 1_000,
    },
  };
}
