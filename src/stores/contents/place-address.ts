// Place address: where the large contents of a store are, as an option names it.

import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RepriseError } from "../../base/index.ts";

const EXAMPLES = 'Write "file:./contents" for a folder, or "s3://bucket/prefix?region=eu-central-1".';

/** The address as the store records it: relative folders become absolute. Refuses what is neither a folder nor a bucket. */
export function placeAddress(given: unknown): string {
  if (typeof given !== "string" || given === "")
    throw new RepriseError("BAD_OPTIONS", `contents: expected an address, got ${String(given)}. ${EXAMPLES}`);
  if (given.startsWith("s3://")) return given;
  if (!given.startsWith("file:"))
    throw new RepriseError("BAD_OPTIONS", `contents: ${JSON.stringify(given)} is no place for contents. ${EXAMPLES}`);
  const path = given.startsWith("file://") ? fileURLToPath(given) : given.slice("file:".length);
  return pathToFileURL(resolve(path)).href;
}
