// Rig: injects one kind of fault into real processes and databases, and counts the results.
//
// A rig is written once for all stores. The tests run each one briefly, `npm run faults` for a given time;
// both get the same tally: what was done, what was acknowledged, and what of that was lost or done twice.

import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { randomSource, type RandomSource } from "../replay/random-source.ts";
import type { StoreKind } from "./subject.ts";

export interface Rig {
  /** As in `--only workers-killed`. */
  readonly name: string;
  /** The fault, for the report. */
  readonly title: string;
  /** The faults of the fault matrix and the acceptance tests that it covers. */
  readonly shows: string;
  readonly stores: readonly StoreKind[];
  /** The stores on which the test suite runs it. */
  readonly tested: readonly StoreKind[];
  /** The number of rounds of a test; also the minimum of a long run. */
  readonly rounds: number;
  /** Why this machine cannot run it. */
  obstacle?(): string | undefined;
  run(world: World): Promise<void>;
}

/** Reports a missing program. */
export function without(program: string, ...args: readonly string[]): string | undefined {
  return spawnSync(program, args).error === undefined ? undefined : `${program} is not installed`;
}

/** Counts by name, in the order they were first counted, and problems. */
export class Tally {
  readonly counts = new Map<string, number>();
  readonly notes = new Map<string, string>();
  readonly problems: string[] = [];

  add(what: string, count = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + count);
  }

  /** A figure that is not a count; the last one is kept. */
  note(what: string, figure: string): void {
    this.notes.set(what, figure);
  }

  /** Acknowledged work is lost or wrong. */
  lost(problem: string): void {
    this.add("lost");
    this.problems.push(`lost: ${problem}`);
  }

  /** Work was committed twice. */
  doubled(problem: string): void {
    this.add("doubled");
    this.problems.push(`doubled: ${problem}`);
  }

  /** An invariant is violated. */
  broken(problem: string): void {
    this.add("broken");
    this.problems.push(`broken: ${problem}`);
  }
}

export interface WorldOptions {
  readonly store: StoreKind;
  readonly rounds: number;
  /** The end of the rounds, by `performance.now()`. */
  readonly until?: number;
  readonly seed: number;
  onProgress?(tally: Tally): void;
}

/** The environment of a rig. */
export class World {
  readonly store: StoreKind;
  readonly chance: RandomSource;
  readonly tally = new Tally();
  readonly #options: WorldOptions;
  #rounds = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.store = options.store;
    this.chance = randomSource(options.seed);
    // The report shows them even if they are 0.
    this.tally.add("lost", 0);
    this.tally.add("doubled", 0);
  }

  /** Whether this is a test, not a long run. */
  get isShort(): boolean {
    return this.#options.until === undefined;
  }

  /** Called before each round. */
  more(): boolean {
    this.#options.onProgress?.(this.tally);
    this.#rounds += 1;
    return this.#rounds <= this.#options.rounds || performance.now() < (this.#options.until ?? 0);
  }

  /** Waits a random time. */
  async sometime(atLeast: number, atMost: number): Promise<void> {
    await sleep(atLeast + this.chance.below(atMost - atLeast));
  }
}

/** Runs one rig on one store. An error it throws is a problem. */
export async function runRig(rig: Rig, options: WorldOptions): Promise<Tally> {
  const world = new World(options);
  try {
    await rig.run(world);
  } catch (error) {
    world.tally.broken(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return world.tally;
}

/** Polls until the condition holds; throws after the limit, with the name of the condition. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, limitMs = 120_000): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${limitMs / 1_000} s for: ${what}`);
    await sleep(20);
  }
}
