// What the crash test of idempotency keys executes.

import { signal, workflow } from "reprise";

/** How long a killed process holds a key; the acts of the test take much less. */
export const HOLD_MS = 2_000;

/** Collects notes until one says `end`. */
export const inbox = workflow("inbox", { ports: { note: signal<string>() } }, async (ctx) => {
  const notes: string[] = [];
  for (let note = ""; note !== "end"; notes.push(note)) note = await ctx.receive("note");
  return notes;
});
