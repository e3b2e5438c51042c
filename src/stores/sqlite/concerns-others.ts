// Concerns others: whether another process may wait for what a write changed. Commits of a run's own steps concern only the worker
// that holds it.

import type { FireDueOutcome, Outcome, StartOutcome, TurnOutcome, TurnWrite, Write } from "../../kernel/index.ts";

export function concernsOthers(write: Write, outcome: Outcome): boolean {
  switch (write.write) {
    case "turn":
      return (outcome as TurnOutcome).status === "committed" && turnConcernsOthers(write);
    case "start":
      return write.claim === undefined && STARTED.has((outcome as StartOutcome).status);
    case "fire-due": {
      const { runs, ready } = outcome as FireDueOutcome;
      return runs.length > 0 || ready > 0;
    }
    // Other workers may wait for the slots.
    case "claim-items":
      return write.returnedSlots !== undefined;
    // The worker that admits runs claims them; the others change nothing that a process waits for.
    case "admit":
    case "claim-turns":
    case "claim-messages":
    case "message-delivered":
    case "declare-queue":
    case "reserve":
      return false;
    default:
      return true;
  }
}

const STARTED: ReadonlySet<StartOutcome["status"]> = new Set<StartOutcome["status"]>(["started", "debounced"]);

export function turnConcernsOthers(write: TurnWrite): boolean {
  return (
    write.then !== "hold" ||
    write.messages.length > 0 ||
    write.chunks.length > 0 ||
    write.outgoing.length > 0 ||
    (write.settlements?.length ?? 0) > 0 ||
    write.items.some(({ claim, kind }) => claim === undefined && kind !== "timer") ||
    write.children.some(({ claim }) => claim === undefined) ||
    // Other workers may wait for the slot.
    write.finished.some(({ slot }) => slot !== undefined) ||
    write.entries.some(({ type }) => type === "UpdateCompleted" || type === "UpdateFailed")
  );
}
