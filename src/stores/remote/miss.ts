// Miss: thrown when a transaction reads a row that is not loaded (working-set.W1). Not a failure: the runner loads the row.

export class Miss extends Error {
  constructor() {
    super("not loaded");
  }
}

/** One instance for all misses: capturing a stack trace would cost more than the rest of a miss. */
export const MISS = new Miss();
