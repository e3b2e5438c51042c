// Saved seeds: seeds that once failed; they run first. A seed reproduces its old failure only as long as the workload and the
// engine make the same draws; later it is an ordinary seed.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SimOptions } from "./simulate.ts";

const FOLDER = join(import.meta.dirname, "../seeds");

export interface SavedSeed {
  readonly options: SimOptions;
  /** The problem it found. */
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

/** Returns the file's name. */
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
