// Limits: the size of one payload and the length of a journal. They can be set lower than what a store can keep, so that
// a program finds out early.

import { checkOptionNames, MAX_PAYLOAD_BYTES, RepriseError, toBytes, type Size } from "../base/index.ts";

/** Limits of `createEngine` and `createClient`. */
export interface Limits {
  /** The maximum size of one encoded payload; at most and by default 8 MiB. Applies to runs started from now on. */
  payload?: Size;
  /** The maximum length of a journal; default 1,000,000 entries. A run that exceeds it is stopped and can be resumed. */
  entries?: number;
}

/** Undefined: the maximum. */
export interface CheckedLimits {
  readonly payloadLimit: number | undefined;
  readonly entryLimit: number | undefined;
}

export function checkLimits(limits: unknown = {}): CheckedLimits {
  if (typeof limits !== "object" || limits === null)
    throw new RepriseError("BAD_OPTIONS", `limits: expected an object, got ${String(limits)}.`);
  checkOptionNames(limits, ["entries", "payload"], "limits");
  const { payload, entries } = limits as Limits;
  if (entries !== undefined && !(Number.isSafeInteger(entries) && entries >= 1))
    throw new RepriseError(
      "BAD_OPTIONS",
      `limits.entries: expected a whole number of 1 or more, got ${String(entries)}.`,
    );
  return { payloadLimit: checkPayload(payload), entryLimit: entries };
}

function checkPayload(payload: Size | undefined): number | undefined {
  if (payload === undefined) return undefined;
  const bytes = toBytes(payload, "limits.payload");
  if (bytes <= MAX_PAYLOAD_BYTES) return bytes === MAX_PAYLOAD_BYTES ? undefined : bytes;
  throw new RepriseError(
    "BAD_OPTIONS",
    `limits.payload: expected ${MAX_PAYLOAD_BYTES} bytes (8 MiB) at most, got ${bytes}. Store larger data elsewhere and pass a reference.`,
  );
}
