// Seeds that once failed: what they found is fixed, and they are the first to be run. A seed is what it was only as long as
// the workload and the engine draw the same; later it is a seed like any other, which does no harm.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SimOptions } from "./simulate.ts";

const FOLDER = join(import.meta.dirname, "../seeds");

export interface SavedSeed {
  readonly options: SimOptions;
  /** What it found, in words. */
  readonly found: string;
}

export function readSavedSeeds(): readonly SavedSeed[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((name) => {
      const { found, keep, ...options } = JSON.parse(readFileSync(join(FOLDER, name), "utf8"));
      return { found, options: { ...options, ...(keep !== undefined && { keep: new Set(keep as string[]) }) } };
    });
}

/** Answers the file's name. */
export function saveSeed(
  { wrap: _wrap, wrapBackend: _wrapBackend, expected: _expected, keep, ...options }: SimOptions,
  found: string,
): string {
  mkdirSync(FOLDER, { recursive: true });
  const name = `${options.store}-${options.seed}.json`;
  const saved = { ...options, ...(keep !== undefined && { keep: [...keep] }), found };
  writeFileSync(join(FOLDER, name), `${JSON.stringify(saved, null, 2)}\n`);
  return `test/seeds/${name}`;
}
