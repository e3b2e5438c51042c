// Put file: how a push writes one file of a carrier.
//
// put-file.P1. A file is written if it is absent. If another one is there, its bytes are compared: the same bytes are a push that was
//   repeated; other bytes are replaced under the version that was read, so that two writers never mix.

import { RepriseError } from "../../base/index.ts";
import type { Carrier } from "../../carriers/index.ts";

/** How often a file is compared and replaced while others write it too. */
const ATTEMPTS = 8;

/** put-file.P1. Whether the file changed. */
export async function putFile(carrier: Carrier, path: string, bytes: Uint8Array): Promise<boolean> {
  const put = putOf(carrier);
  if ((await put(path, bytes, { absent: true })) !== "refused") return true;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const there = await carrier.get(path);
    if (there === "unchanged") continue;
    if (there !== undefined && Buffer.from(there.bytes).equals(bytes)) return false;
    // A server that keeps uploads apart until a checkpoint covers them refuses the second one, and shows neither.
    if (there === undefined && attempt > 0) return false;
    const condition = there === undefined ? ({ absent: true } as const) : { match: there.etag };
    if ((await put(path, bytes, condition)) !== "refused") return true;
  }
  throw new RepriseError("LIMIT_EXCEEDED", `${path} of ${carrier.url} changes all the time. Push again later.`, {
    details: { path, url: carrier.url },
  });
}

/** The `put` of a carrier; refuses one that can only be read. */
export function putOf(carrier: Carrier): NonNullable<Carrier["put"]> {
  if (carrier.put === undefined)
    throw new RepriseError("BAD_OPTIONS", `${carrier.url} can only be read, so nothing can be pushed to it.`, {
      details: { url: carrier.url },
    });
  return carrier.put.bind(carrier);
}
