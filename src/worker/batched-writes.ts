// Batched writes: what the pump has to know of a write to plan its batches.

import type { RunNumber, TurnWrite, Write } from "../kernel/index.ts";

/** The size of the payloads of a submitted write, in characters. */
export function sizeOf(write: Write): number {
  switch (write.write) {
    case "start":
      return write.run.started.length;
    case "message":
    case "end-item":
      return write.arrival.data.length;
    case "complete":
      return write.entries.reduce((sum, { data }) => sum + data.length, 0);
    default:
      return 0;
  }
}

export function countEntries(turns: readonly TurnWrite[]): number {
  return turns.reduce((sum, { entries }) => sum + entries.length, 0);
}

/** pump.P3. The run a write changes, by number or id. Writes that change no run share the subject `""`, so they stay in order. */
export function subjectOf(write: Write): RunNumber | string {
  if ("to" in write) return write.to;
  if ("id" in write) return write.id;
  if (!("run" in write)) return "";
  return typeof write.run === "number" ? write.run : write.run.id;
}
