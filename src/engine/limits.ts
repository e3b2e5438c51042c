// Limits: how much one payload may hold. Smaller than what a store could keep, for those who would rather hear of it early.

import { checkOptionNames, MAX_PAYLOAD_BYTES, RepriseError, toBytes, type Size } from "../base/index.ts";

export interface Limits {
  /** What one payload may take as encoded, 8 MiB at most and by default. Counts for runs started from now on. */
  payload?: Size;
}

/** Undefined: as much as there can be. */
export function checkLimits(limits: unknown = {}): number | undefined {
  if (typeof limits !== "object" || limits === null)
    throw new RepriseError("BAD_OPTIONS", `limits: expected an object, got ${String(limits)}.`);
  checkOptionNames(limits, ["payload"], "limits");
  const { payload } = limits as Limits;
  if (payload === undefined) return undefined;
  const bytes = toBytes(payload, "limits.payload");
  if (bytes <= MAX_PAYLOAD_BYTES) return bytes === MAX_PAYLOAD_BYTES ? undefined : bytes;
  throw new RepriseError(
    "BAD_OPTIONS",
    `limits.payload: expected ${MAX_PAYLOAD_BYTES} bytes (8 MiB) at most, got ${bytes}. Keep more elsewhere and pass a reference.`,
  );
}
