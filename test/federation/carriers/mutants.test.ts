// The carrier cases are able to fail: each fails on a broken carrier, and each broken carrier fails a case.

import { expect, test } from "vitest";
import { CARRIER_CASES, type CarrierCase } from "../carrier-cases.ts";
import { MemoryCarrier, MemoryPlace } from "./memory-carrier.ts";
import { CARRIER_MUTANTS, type CarrierMutant } from "./mutants.ts";

async function passes(one: CarrierCase, open: CarrierMutant["open"], waitMs: number): Promise<boolean> {
  const place = new MemoryPlace();
  try {
    await one.run({ open: async () => open(place), waitMs });
    return true;
  } catch {
    return false;
  }
}

test.each(CARRIER_CASES)("memory: $name", async (one) => {
  const place = new MemoryPlace();
  await one.run({ open: async () => new MemoryCarrier(place), waitMs: 20_000 });
});

test("each case fails on a broken carrier, and each broken carrier fails a case", async () => {
  const caught = new Map<string, string[]>(CARRIER_CASES.map(({ name }) => [name, []]));
  const survivors: string[] = [];
  for (const mutant of CARRIER_MUTANTS) {
    const failed: string[] = [];
    for (const one of CARRIER_CASES) if (!(await passes(one, mutant.open, 60))) failed.push(one.name);
    for (const name of failed) caught.get(name)!.push(mutant.name);
    if (failed.length === 0) survivors.push(mutant.name);
  }
  expect(survivors).toEqual([]);
  expect([...caught].filter(([, by]) => by.length === 0).map(([name]) => name)).toEqual([]);
});
