// Random flows, forked at each of their nodes: a fork that changes nothing has the output of its origin.

import { expect, test } from "vitest";
import type { FlowDiff, RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { randomSource } from "../replay/random-source.ts";
import { storeAround } from "../engine/world.ts";
import { between, build, randomFlow } from "./random-flow.ts";

async function forkEverywhere(seed: number, crashes: boolean): Promise<number> {
  const chance = randomSource(seed);
  let calls: string[] = [];
  const made = build(`random-${seed}`, randomFlow(chance, false), { work: (name) => void calls.push(name) });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [made.flow, ...made.others], store: source });
  const run = await engine.start(made.flow, between(chance, 0, 1_000) as never, { id: "o" });
  await engine.clock.advance("1 minute");
  if ((await run.info()).status !== "completed") return 0;
  const output = await run.result();
  const nodes = new Set<string>();
  for await (const { type, command = "" } of run.journal())
    if (type === "NodeCompleted" && command !== "input") nodes.add(command.replace("[]", ""));
  let compared = 0;
  for (const at of nodes)
    for (const effects of ["live", "recorded"] as const) {
      const fork = await run.fork({ at, effects } as never).catch((error: { code?: string }) => {
        // Derived nodes, and nodes that the output does not need.
        expect(error.code, at).toBe("BAD_OPTIONS");
        return undefined;
      });
      if (fork === undefined) continue;
      calls = [];
      if (crashes) await engine.crash();
      await engine.clock.advance("1 minute");
      const result = await fork.result().catch((error: RepriseError) => {
        // The origin had its output before this node ended.
        expect([effects, error.details?.["code"]]).toEqual(["recorded", "EFFECT_NOT_RECORDED"]);
        expect(nodes).not.toContain(error.details?.["where"]);
        return undefined;
      });
      if (effects === "recorded") expect(calls).toEqual([]);
      if (result === undefined) continue;
      expect([at, effects, result]).toEqual([at, effects, output]);
      compared += 1;
      expect(await fork.verify()).toMatchObject({ status: "same" });
      // A node that the output does not need may have ended in one of them only.
      const { nodes: differing } = (await run.diff(fork, { limit: 1_000 })) as FlowDiff;
      expect(differing.filter(({ in: where }) => where === "both")).toEqual([]);
    }
  expect(await source.store.check()).toEqual([]);
  return compared;
}

test.each([
  ["", 1, 30, false],
  [", also if a process dies", 1_001, 10, true],
] as const)(
  "a fork that changes nothing has the output of its origin, at every node%s",
  { timeout: 120_000 },
  async (_also, from, count, crashes) => {
    let forks = 0;
    for (let seed = from; seed < from + count; seed += 1)
      forks += await forkEverywhere(seed, crashes).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
    expect(forks).toBeGreaterThan(count);
  },
);
