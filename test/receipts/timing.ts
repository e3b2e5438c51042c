// Timing: how one execution of a program differs from another: which attempts fail, how long each takes, whether the run fails
// for good before it is retried, whether the process crashes, whether messages come early or late. One seed determines all of it.

import { FatalError } from "reprise";
import { randomSource, type RandomSource } from "../replay/random-source.ts";

const MAX_FAILURES = 2;

/** The retry policy of every step: more attempts than ever fail. */
export const RETRY = { maxAttempts: MAX_FAILURES + 2, baseDelay: "1s", maxDelay: "1s" } as const;

export class Timing {
  readonly chance: RandomSource;
  /** Attempts of each step that still have to fail. */
  readonly #failures = new Map<string, number>();
  /** The run fails for good once, and is retried. */
  readonly fails: boolean;
  readonly crashes: boolean;
  /** Messages arrive before the code waits for them. */
  readonly isEarly: boolean;
  #hasFailed = false;

  constructor(seed: number) {
    this.chance = randomSource(seed);
    this.fails = this.chance.happens(0.5);
    this.crashes = this.chance.happens(0.3);
    this.isEarly = this.chance.happens(0.5);
  }

  /** An attempt of a step: takes a while, and fails some times. */
  async attempt(step: string): Promise<void> {
    const left = this.#failures.get(step) ?? this.chance.below(MAX_FAILURES + 1);
    this.#failures.set(step, left - 1);
    for (let turns = this.chance.below(4); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
    if (left > 0) throw new Error(`${step} fails, ${left} left`);
  }

  /** A step that always fails, with one error from one of two places in the code. */
  refuse(): never {
    if (this.chance.happens(0.5)) return refuseHere();
    return refuseThere();
  }

  /** The step that makes the run fail for good, once. */
  breakOnce(): void {
    if (!this.fails || this.#hasFailed) return;
    this.#hasFailed = true;
    throw new FatalError("broken for good");
  }
}

function refuseHere(): never {
  throw new FatalError("refused");
}

function refuseThere(): never {
  throw new FatalError("refused");
}
