// Runtime: the versions on which the value of an expression can depend, as a run's row and a statement record them.

import type { Runtime } from "../kernel/index.ts";

/** What can change a value that pure code computes: V8, ICU, the time zone data and the processor. */
const DECISIVE = ["v8", "icu", "tz", "arch"] as const;

/** How this process differs from the recorded process that is most like it. */
export interface RuntimeDifference {
  readonly recorded: Runtime;
  readonly here: Runtime;
  /** The names of the versions that differ: `v8`. */
  readonly differs: readonly (typeof DECISIVE)[number][];
}

/** Undefined if a recorded process had the same V8, ICU, time zone data and processor, or if nothing is recorded. */
export function findRuntimeDifference(recorded: readonly Runtime[], here: Runtime): RuntimeDifference | undefined {
  const differences = recorded.map((one) => ({ recorded: one, here, differs: differingVersions(one, here) }));
  const [nearest] = differences.toSorted((a, b) => a.differs.length - b.differs.length);
  return nearest === undefined || nearest.differs.length === 0 ? undefined : nearest;
}

/** A version that was not recorded cannot differ. */
function differingVersions(recorded: Runtime, here: Runtime): RuntimeDifference["differs"] {
  return DECISIVE.filter((name) => recorded[name] !== undefined && recorded[name] !== here[name]);
}

/** `v8 13.6 instead of 14.6, arch arm64 instead of x64`: this process, then the recorded one. */
export function runtimeDifferenceText({ recorded, here, differs }: RuntimeDifference): string {
  return differs.map((name) => `${name} ${here[name] ?? "unknown"} instead of ${recorded[name]}`).join(", ");
}
