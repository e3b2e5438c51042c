// Mutants: tests of the store cases. Each mutant is a store that breaks one guarantee. The cases named for it must fail on it, and
// every case must fail on a mutant, so that none passes for the wrong reason.

import { expect, test } from "vitest";
import { type StoreCase, storeCases } from "../../src/testing/store-cases.ts";
import { CAUGHT_BY } from "./mutants/caught-by.ts";
import { type Mutant, mutants } from "./mutants/index.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";

const casesByName: ReadonlyMap<string, StoreCase> = new Map(storeCases.map((storeCase) => [storeCase.name, storeCase]));

async function isCaught(mutant: Mutant, name: string): Promise<boolean> {
  await using fixture = createSqliteFixture({ durability: "relaxed", wrap: mutant.wrap });
  try {
    await casesByName.get(name)?.run(fixture);
    return false;
  } catch {
    return true;
  }
}

for (const mutant of mutants) {
  test(`the store cases fail when ${mutant.name}`, async () => {
    const names = CAUGHT_BY[mutant.name] ?? [];
    expect(names).not.toEqual([]);
    const missed = [];
    for (const name of names) if (!(await isCaught(mutant, name))) missed.push(name);
    expect(missed).toEqual([]);
  });
}

test("every store case catches a mutant", () => {
  const seen = new Set(Object.values(CAUGHT_BY).flat());
  expect([...casesByName.keys()].filter((name) => !seen.has(name))).toEqual([]);
  expect([...seen].filter((name) => !casesByName.has(name))).toEqual([]);
});

test("every mutant in CAUGHT_BY exists", () => {
  const names = mutants.map((mutant) => mutant.name);
  expect(Object.keys(CAUGHT_BY)).toEqual(names);
  expect(new Set(names).size).toBe(names.length);
});
