// Runs a mutant seed by seed until it is found.

import type { SimMutant } from "./mutants.ts";
import { simulate } from "./simulate.ts";

export interface Found {
  readonly mutant: string;
  /** Undefined: it was not found. */
  readonly seed: number | undefined;
  readonly by: string;
}

export async function findMutant({ name, scenario, options }: SimMutant, seeds: number, first = 1): Promise<Found> {
  for (let seed = first; seed < first + seeds; seed += 1) {
    const { problems } = await simulate({ seed, scenario, ...options });
    if (problems.length > 0) return { mutant: name, seed, by: problems[0]! };
  }
  return { mutant: name, seed: undefined, by: "" };
}
