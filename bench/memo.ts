// memo: as `steps`, with an input. First the steps are executed, then the same steps are pure and known.

import { measureBatches } from "./batched-runs.ts";
import { inputSteps } from "./definitions.ts";
import type { Rig } from "./rig.ts";
import { scaled, type Measured, type Workload } from "./workload.ts";

const COUNT = 10;

export const memoWorkload: Workload = {
  name: "memo",
  variants: ["hit"],
  warmUp: 1,
  async run(rig, plan) {
    const size = scaled(200, plan);
    const batches = (isPure: boolean): Promise<Measured> =>
      measureBatches({ runs: size * 10, size, count: COUNT }, () =>
        rig.engine.start(inputSteps, { count: COUNT, isPure }),
      );
    // Remembers the results.
    await (await rig.engine.start(inputSteps, { count: COUNT, isPure: true })).result();
    const executed = await cpuOf(rig, () => batches(false));
    const reused = await cpuOf(rig, () => batches(true));
    const { measured } = reused;
    const [executedCpuUs, reusedCpuUs] = [executed.cpuUs, reused.cpuUs].map((us) => us / measured.steps) as [
      number,
      number,
    ];
    // What a hit costs beside the commit of its entry, which every step costs.
    return { ...measured, extra: { executedCpuUs, reusedCpuUs, hitCpuUs: reusedCpuUs - executedCpuUs } };
  },
};

async function cpuOf(
  rig: Rig,
  work: () => Promise<Measured>,
): Promise<{ readonly measured: Measured; readonly cpuUs: number }> {
  const before = await rig.usage();
  const measured = await work();
  return { measured, cpuUs: ((await rig.usage()).cpuMs - before.cpuMs) * 1_000 };
}
