// AtOnce: functions in memory give values. A promise is not one: as a test it would always hold, as a value it cannot be kept.

import { isThenable, RepriseError } from "../base/index.ts";

/** `node`: whose function it was. */
export function requireSynchronous<T>(node: string, value: T): T {
  if (!isThenable(value)) return value;
  // Nobody waits for it, and a failure nobody hears would end the process.
  Promise.resolve(value).catch(() => undefined);
  throw new RepriseError(
    "BAD_FLOW",
    `Node ${node}: its function gave a promise; expected the value at once. What waits for the outside is an action.`,
  );
}
