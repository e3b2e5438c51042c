// A carrier that stops after a number of operations, as a process that is killed does, and counts what it was asked for.

import type { Carrier, GetOptions, PutOptions } from "../../../src/carriers/carrier.ts";

export class Killed extends Error {}

export interface CountedCarrier extends Carrier {
  /** What it was asked for, in order: `get edge/…/checkpoint`. */
  readonly operations: string[];
}

/** `after`: the operation that begins when this many are done never happens. */
export function interrupted(carrier: Carrier, after = Number.POSITIVE_INFINITY): CountedCarrier {
  const operations: string[] = [];
  const step = (what: string): void => {
    if (operations.length >= after) throw new Killed(what);
    operations.push(what);
  };
  return {
    url: carrier.url,
    operations,
    get: async (path: string, options?: GetOptions) => {
      step(`get ${path}`);
      return carrier.get(path, options);
    },
    put: async (path: string, bytes: Uint8Array, options: PutOptions) => {
      step(`put ${path}`);
      return carrier.put!(path, bytes, options);
    },
    list: (prefix, options) => carrier.list!(prefix, options),
    remove: async (path) => {
      step(`remove ${path}`);
      await carrier.remove!(path);
    },
    close: async () => {},
  };
}
