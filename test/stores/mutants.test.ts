// Who tests the store cases? Stores that break one promise each. Every one must be caught by the cases named for it, and
// every case must have caught one, so that none passes for the wrong reason.

import { expect, test } from "vitest";
import { type StoreCase, storeCases } from "../../src/testing/store-cases.ts";
import { CAUGHT_BY } from "./mutants/caught-by.ts";
import { type Mutant, mutants } from "./mutants/index.ts";
import { createSqliteWorld } from "./sqlite-world.ts";

const casesByName: ReadonlyMap<string, StoreCase> = new Map(storeCases.map((storeCase) => [storeCase.name, storeCase]));

async function isCaught(mutant: Mutant, name: string): Promise<boolean> {
  await using world = createSqliteWorld({ durability: "relaxed", wrap: mutant.wrap });
  try {
    await casesByName.get(name)?.run(world);
    return false;
  } catch {
    return true;
  }
}

for (const mutant of mutants) {
  test(`the store cases notice when ${mutant.name}`, async () => {
    const names = CAUGHT_BY[mutant.name] ?? [];
    expect(names).not.toEqual([]);
    const missed = [];
    for (const name of names) if (!(await isCaught(mutant, name))) missed.push(name);
    expect(missed).toEqual([]);
  });
}

test("every store case is known to catch a broken store", () => {
  const seen = new Set(Object.values(CAUGHT_BY).flat());
  expect([...casesByName.keys()].filter((name) => !seen.has(name))).toEqual([]);
  expect([...seen].filter((name) => !casesByName.has(name))).toEqual([]);
});

test("every broken store that is said to be caught exists", () => {
  const names = mutants.map((mutant) => mutant.name);
  expect(Object.keys(CAUGHT_BY)).toEqual(names);
  expect(new Set(names).size).toBe(names.length);
});
