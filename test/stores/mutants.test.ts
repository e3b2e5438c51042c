// Who tests the store cases? Stores that break one promise each: every one must be caught, and every case must have
// caught at least one, so that no case passes for the wrong reason.

import { expect, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { type Mutant, mutants } from "./mutants.ts";
import { createSqliteWorld } from "./sqlite-world.ts";

async function findBroken(mutant: Mutant): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const { name, run } of storeCases) {
    await using world = createSqliteWorld({ durability: "relaxed", wrap: mutant.wrap });
    try {
      await run(world);
    } catch {
      broken.push(name);
    }
  }
  return broken;
}

const alive = new Set(storeCases.map(({ name }) => name));

for (const mutant of mutants) {
  test(`the store cases notice when ${mutant.name}`, { timeout: 60_000 }, async () => {
    const broken = await findBroken(mutant);
    for (const name of broken) alive.delete(name);
    expect(broken).not.toEqual([]);
  });
}

test("every store case notices some broken store", () => {
  expect([...alive]).toEqual([]);
});
