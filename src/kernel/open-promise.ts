// Open promises: the promises that live runs wait for, listed for people.
//
// open-promise.P1. An open promise has a row from the commit that records it until the commit that settles it, ends the attempt
//   of the node that waits for it, or ends its run. A wait for signals has none.
// open-promise.P2. Code that waits twice for one promise has two rows.
// open-promise.P3. A call that waits for its budget has a row from the write that could not reserve until the one that could, was
//   declined, or ended the run. It has no entry: its `seq` is 0, and its name is `BUDGET_PROMISE`.

import type { EpochMs } from "../base/index.ts";
import type { Amounts } from "./budget.ts";
import type { RunNumber } from "./run.ts";
import type { BudgetState } from "./spending.ts";

/** open-promise.P3. No port has this name: names of ports have no brackets. */
export const BUDGET_PROMISE = "[budget]";

/** A promise that a turn opens. */
export interface NewPromise {
  readonly command: string;
  /** The name of its port. */
  readonly name: string;
  readonly key?: string | undefined;
  /** Its entry `PromiseCreated`. */
  readonly seq: number;
  readonly at: EpochMs;
}

/** open-promise.P1. The promises that a turn opens, and the commands of those that are no longer open. */
export interface PromiseChanges {
  readonly opened: readonly NewPromise[];
  readonly closed: readonly string[];
}

/** The position of a promise in a list, which is ordered by run, then by command. */
export interface PromisePosition {
  readonly run: RunNumber;
  readonly command: string;
}

export interface PromiseFilter {
  readonly name?: string;
  readonly definition?: string;
  readonly after?: PromisePosition;
  /** How many rows are read at most. */
  readonly limit: number;
}

export interface OpenPromise extends NewPromise, PromisePosition {
  readonly runId: string;
  readonly definition: string;
  /** The data of its entry; empty for a request of a budget. */
  readonly data: string;
  /** open-promise.P3. Set for a request of a budget. */
  readonly budget?: { readonly state: BudgetState; readonly reserve: Amounts };
}

export interface PromisePage {
  readonly promises: readonly OpenPromise[];
  /** Where the next page starts; undefined: this is the last one. */
  readonly next: PromisePosition | undefined;
}
