// The rigs as tests: small numbers, the same checks. `npm run faults` does the same for longer.

import { afterAll, expect, test } from "vitest";
import { isCi } from "../../../scripts/servers.mjs";
import { runRig } from "../../faults/rig.ts";
import { RIGS } from "../../faults/rigs/index.ts";
import { endSharedServers, type StoreKind } from "../../faults/subject.ts";

const SEED = Number(process.env["REPRISE_SEED"] ?? "1");

export function faultsOn(store: StoreKind): void {
  afterAll(endSharedServers);
  for (const rig of RIGS.filter(({ tested }) => tested.includes(store))) {
    // In CI nothing is skipped.
    const obstacle = isCi() ? undefined : rig.obstacle?.();
    const title = `${rig.name} (${rig.shows}): ${obstacle ?? rig.title}`;
    test.skipIf(obstacle !== undefined)(title, { timeout: 600_000 }, async () => {
      const { problems, counts } = await runRig(rig, { store, rounds: rig.rounds, seed: SEED });
      expect(problems).toEqual([]);
      expect(counts.get("lost")).toBe(0);
      expect(counts.get("doubled")).toBe(0);
      // Besides the two: something was done.
      expect(counts.size).toBeGreaterThan(2);
    });
  }
}
