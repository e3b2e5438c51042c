// Runs random flows on an engine and compares what comes of them with the oracle.

import { expect } from "vitest";
import { createTestEngine } from "reprise/testing";
import { randomSource, type RandomSource } from "../replay/random-source.ts";
import { between, build, oracle, randomFlow } from "./random-flow.ts";

/** Work that ends in an order that has nothing to do with the order it began in. */
function shuffled(
  chance: RandomSource,
  called: Map<string, number>,
): { work: (name: string, attempt: number) => Promise<void> } {
  return {
    work: async (name, attempt) => {
      called.set(`${name}#${attempt}`, (called.get(`${name}#${attempt}`) ?? 0) + 1);
      for (let turns = between(chance, 0, 6); turns > 0; turns -= 1)
        await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

async function runOne(seed: number, crashes: boolean): Promise<void> {
  const chance = randomSource(seed);
  const spec = randomFlow(chance, chance.happens(0.3));
  const called = new Map<string, number>();
  const made = build(`random-${seed}`, spec, shuffled(chance, called));
  const input = between(chance, 0, 1_000);
  await using engine = await createTestEngine({
    definitions: [made.flow, ...made.others],
    worker: { concurrency: chance.pick([1, 2, 16]) },
  });
  const run = await engine.start(made.flow, input as never);
  if (crashes) for (let times = between(chance, 1, 3); times > 0; times -= 1) await engine.crash();
  await engine.clock.advance("1 minute");
  const expected = oracle(spec, input);
  const { status } = await run.info();
  const statuses = [...(expected.output === undefined ? [] : ["completed"]), ...(expected.mayFail ? ["failed"] : [])];
  expect(statuses).toContain(status);
  if (status === "completed") expect(await run.result()).toBe(expected.output);
  const ends = new Map<string, number>();
  for await (const { type, command } of run.journal())
    if (command !== undefined && type.startsWith("Node")) ends.set(command, (ends.get(command) ?? 0) + 1);
  expect([...ends].filter(([, count]) => count > 1)).toEqual([]);
  if (!crashes) expect([...called].filter(([name, count]) => count > 1 && !name.startsWith("inner"))).toEqual([]);
  expect(await run.verify()).toMatchObject({ status: "same" });
}

/** Each by its seed; the first that is wrong is named. */
export async function runRandomFlows(from: number, count: number, crashes: boolean): Promise<void> {
  for (let seed = from; seed < from + count; seed += 1)
    await runOne(seed, crashes).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
}
