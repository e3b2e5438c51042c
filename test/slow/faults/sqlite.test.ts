import { expect, test } from "vitest";
import { runRig } from "../../faults/rig.ts";
import { powerCutsRelaxed } from "../../faults/rigs/power-cuts.ts";
import { faultsOn } from "./faults-on.ts";

faultsOn("sqlite");

test(
  "the canary: where durability was given up by name, the same power cuts are seen to lose runs",
  { timeout: 300_000 },
  async () => {
    const { counts } = await runRig(powerCutsRelaxed, { store: "sqlite", rounds: 3, seed: 1 });
    expect(counts.get("lost")).toBeGreaterThan(0);
  },
);
