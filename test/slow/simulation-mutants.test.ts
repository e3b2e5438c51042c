// Who tests the simulation? Worlds with one bug each. `npm run sim -- --mutants 2000` looks for them from the first seed on;
// here each is looked for where it was last found, and a little beyond.

import { expect, test } from "vitest";
import { findMutant } from "../simulation/find-mutants.ts";
import { MUTANTS } from "../simulation/mutants.ts";

/** How many seeds are tried, from the one that is said to find it. */
const TRIES = 100;

for (const mutant of MUTANTS) {
  test(`the simulation notices when ${mutant.name}`, { timeout: 600_000 }, async () => {
    const found = await findMutant(mutant, TRIES, mutant.foundBy);
    expect(found.seed).toBeDefined();
  });
}
