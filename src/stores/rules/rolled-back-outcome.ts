// Rolled-back outcome: the outcome of writes that were made before the store was rolled back to an earlier state.

import type { Outcome, Write } from "../../kernel/index.ts";

/**
 * A write that depends on what its sender read from the lost history is void, as if its lease were lost: a turn holds messages
 * that no longer exist. Undefined: the fence of the write is enough, or the write depends on nothing.
 */
export function rolledBackOutcome(write: Write): Outcome | undefined {
  if (write.write === "turn" || write.write === "stop") return { status: "lease_lost" };
  if (write.write === "complete" && "turn" in write.fence) return { status: "stale" };
  return undefined;
}
