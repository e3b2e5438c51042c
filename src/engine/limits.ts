// Limits: how much one payload may hold, and how long a journal may get. Smaller than what a store could keep, for those
// who would rather hear of it early.

import { checkOptionNames, MAX_PAYLOAD_BYTES, RepriseError, toBytes, type Size } from "../base/index.ts";

/** How much a run may hold. */
export interface Limits {
  /** What one payload may take as encoded, 8 MiB at most and by default. Counts for runs started from now on. */
  payload?: Size;
  /** How many entries a run's journal may have; default 1,000,000. A run that asks for more is stopped and can be resumed. */
  entries?: number;
}

/** Undefined: as much as there can be, or the default. */
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
    `limits.payload: expected ${MAX_PAYLOAD_BYTES} bytes (8 MiB) at most, got ${bytes}. Keep more elsewhere and pass a reference.`,
  );
}
