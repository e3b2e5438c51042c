// What becomes of writes that were made before the database went back to an earlier state.

import type { Outcome, Write } from "../../kernel/index.ts";

/**
 * The outcome of a write that rests on what its sender has read: the turn of a run takes in messages, and a message of the lost
 * history is none. It is void, as if its lease were lost. Undefined: its fence says enough, or it rests on nothing.
 */
export function lostOutcome(write: Write): Outcome | undefined {
  if (write.write === "turn" || write.write === "stop") return { status: "lease-lost" };
  if (write.write === "complete" && "turn" in write.fence) return { status: "stale" };
  return undefined;
}
