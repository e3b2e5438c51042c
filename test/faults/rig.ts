// Rig: one kind of fault, done to real processes and real databases, and what came of it.
//
// A rig is written once for all stores. The tests run each with small numbers, `npm run faults` for as long as it is told;
// both get the same tally: what was done, what had been acknowledged, and what of that was lost or done twice.

import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { randomSource, type RandomSource } from "../replay/random-source.ts";
import type { StoreKind } from "./subject.ts";

export interface Rig {
  /** As in `--only workers-killed`. */
  readonly name: string;
  /** What is done, for the report. */
  readonly title: string;
  /** Of the fault matrix, and acceptance tests shown by it. */
  readonly shows: string;
  readonly stores: readonly StoreKind[];
  /** Those of them that a test is worth its time; the others have tests elsewhere, or take long. */
  readonly tested: readonly StoreKind[];
  /** How many rounds a test does; also the least that a long run does. */
  readonly rounds: number;
  /** Why this machine cannot do it. */
  obstacle?(): string | undefined;
  run(world: World): Promise<void>;
}

/** Says so when a program is not there. */
export function without(program: string, ...args: readonly string[]): string | undefined {
  return spawnSync(program, args).error === undefined ? undefined : `${program} is not installed`;
}

/** Counts by name, in the order they were first counted, and everything that must not be. */
export class Tally {
  readonly counts = new Map<string, number>();
  readonly notes = new Map<string, string>();
  readonly problems: string[] = [];

  add(what: string, count = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + count);
  }

  /** A figure that is no count; the last one is kept. */
  note(what: string, figure: string): void {
    this.notes.set(what, figure);
  }

  /** Something acknowledged is gone, or not as it must be. */
  lost(problem: string): void {
    this.add("lost");
    this.problems.push(`lost: ${problem}`);
  }

  /** Something was committed twice. */
  doubled(problem: string): void {
    this.add("doubled");
    this.problems.push(`doubled: ${problem}`);
  }

  /** An invariant does not hold. */
  broken(problem: string): void {
    this.add("broken");
    this.problems.push(`broken: ${problem}`);
  }
}

export interface WorldOptions {
  readonly store: StoreKind;
  readonly rounds: number;
  /** Rounds go on until then, by `performance.now()`. */
  readonly until?: number;
  readonly seed: number;
  onProgress?(tally: Tally): void;
}

/** What a rig is given. */
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
    // A report names them even where nothing happened.
    this.tally.add("lost", 0);
    this.tally.add("doubled", 0);
  }

  /** A test among others; not a run that is there to try for long. */
  get isShort(): boolean {
    return this.#options.until === undefined;
  }

  /** Asked before each round. */
  more(): boolean {
    this.#options.onProgress?.(this.tally);
    this.#rounds += 1;
    return this.#rounds <= this.#options.rounds || performance.now() < (this.#options.until ?? 0);
  }

  /** A moment that nobody chose: faults come when they come. */
  async sometime(atLeast: number, atMost: number): Promise<void> {
    await sleep(atLeast + this.chance.below(atMost - atLeast));
  }
}

/** One rig on one store. What it throws is a problem like any other. */
export async function runRig(rig: Rig, options: WorldOptions): Promise<Tally> {
  const world = new World(options);
  try {
    await rig.run(world);
  } catch (error) {
    world.tally.broken(error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
  return world.tally;
}

/** Asks until the answer is yes. Whoever waits for ever is ended by the limit, with what was waited for. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, limitMs = 120_000): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${limitMs / 1_000} s for: ${what}`);
    await sleep(20);
  }
}
