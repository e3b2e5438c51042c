// Promise ids: a promise of a run is identified by the name of its port and a key.
//
// promise-id.I1. The id of a promise without a key is the name of its port: `approve`. With a key it is `approve[ann]`, and the
//   entries of the promise also have the key. The id is what entries, waits and stores compare.

import { checkKey, RepriseError } from "../base/index.ts";
import type { Ports } from "./ports.ts";

/** promise-id.I1. Refuses a key that is not text, and one whose id would be the name of another port. */
export function promiseIdOf(ports: Ports, name: string, key: unknown, what: string): string {
  if (key === undefined) return name;
  const id = `${name}[${checkKey(key, `${what}: key`)}]`;
  if (name.includes("[") || Object.hasOwn(ports, id))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: port \`${name}\` cannot have the key ${JSON.stringify(key)}: \`${id}\` would be ambiguous. Rename the port whose name contains \`[\`.`,
    );
  return id;
}

/** The name of the port. */
export function promiseNameOf({ promiseId, key }: { readonly promiseId: string; readonly key?: string }): string {
  return key === undefined ? promiseId : promiseId.slice(0, -key.length - 2);
}
