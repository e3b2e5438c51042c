// payload: runs of sequential operations with large results. The raw limit writes the same bytes; a ratio
// far from that of `steps` means that size costs Reprise more than SQLite.

import { payloads } from "./definitions.ts";
import { measureBatches } from "./batched-runs.ts";
import { scaled, type Workload } from "./workload.ts";

const BYTES: Readonly<Record<string, number>> = { "1 KB": 1_000, "100 KB": 100_000, "1 MB": 1_000_000 };
/** Bytes per measurement: enough to take a while, few enough to be read back for the raw limit. */
const TOTAL_BYTES = 100_000_000;
const MOST_STEPS = 20_000;

export const payloadWorkload: Workload = {
  name: "payload",
  variants: Object.keys(BYTES),
  warmUp: 0.2,
  async run(rig, plan) {
    const bytes = BYTES[plan.variant];
    if (bytes === undefined) throw new Error(`Expected one of ${Object.keys(BYTES).join(", ")}, got ${plan.variant}.`);
    const count = 10;
    const runs = scaled(Math.min(TOTAL_BYTES / bytes, MOST_STEPS) / count, plan);
    const measured = await measureBatches({ runs, size: Math.min(runs, 50), count }, () =>
      rig.engine.start(payloads, { count, bytes }),
    );
    const mbPerSecond = (measured.steps * bytes) / 1_000 / measured.elapsedMs;
    return { ...measured, extra: { mbPerSecond } };
  },
};
