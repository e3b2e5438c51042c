// Miss: thrown when a transaction needs rows that are not loaded and must not guess (transaction-rows.R1). Not a failure: the runner
// loads the rows and applies the rules again.

export class Miss extends Error {
  constructor() {
    super("not loaded");
  }
}

/** One instance for all misses: capturing a stack trace would cost more than the rest of a miss. */
export const MISS = new Miss();
