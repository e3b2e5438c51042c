// Runs a mutant seed by seed until it is found.

import type { SimMutant } from "./mutants.ts";
import { simulate } from "./simulate.ts";

export interface Found {
  readonly mutant: string;
  /** Undefined: it was not found. */
  readonly seed: number | undefined;
  readonly by: string;
}

export async function findMutant(mutant: SimMutant, seeds: number, first = 1): Promise<Found> {
  const { name, scenario, options, foundAs = /./ } = mutant;
  for (let seed = first; seed < first + seeds; seed += 1) {
    const { problems } = await simulate({ seed, scenario, ...options });
    const problem = problems.find((each) => foundAs.test(each));
    if (problem !== undefined) return { mutant: name, seed, by: problem };
  }
  return { mutant: name, seed: undefined, by: "" };
}
