// Require synchronous: rejects a promise as the result of a function that runs in memory. As a test it would always be
// true, and as a value it cannot be stored.

import { isThenable, RepriseError } from "../base/index.ts";

/** `node`: the node whose function returned the value. */
export function requireSynchronous<T>(node: string, value: T): T {
  if (!isThenable(value)) return value;
  // An unhandled rejection would end the process.
  Promise.resolve(value).catch(() => undefined);
  throw new RepriseError(
    "BAD_FLOW",
    `Node ${node}: its function returned a promise, but it must be synchronous. Use .action() for asynchronous code.`,
  );
}
