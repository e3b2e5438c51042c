// Ends the spans of a write that is durable (telemetry.T1).
//
// end-spans.S1. A span ends only if this write made its end durable. `already_committed` may be the write of another process,
// whose spans that process ends.

import type { NewRun, OutcomeOf, Outcome, RunRecord, Traced, Write } from "../kernel/index.ts";

type Answered = { readonly [W in Write["write"]]: OutcomeOf<Extract<Write, { write: W }>> };

export function endSpans(write: Write, outcome: Outcome): void {
  switch (write.write) {
    case "turn": {
      const made = outcome as Answered["turn"];
      if (made.status !== "committed") return;
      endEach(write.entries);
      endEach(write.items);
      endEach(write.outgoing);
      endStarted(
        write.children.map(({ run }) => run),
        made.children,
      );
      return write.span?.end();
    }
    case "complete": {
      const made = outcome as Answered["complete"];
      if (made.status !== "committed") return;
      for (const { ran } of write.entries) ran?.span?.end();
      endStarted(
        write.children.map(({ run }) => run),
        made.children,
      );
      return write.span?.end();
    }
    case "end-item":
      return isCommitted(outcome) ? write.arrival.ran?.span?.end() : undefined;
    case "return-item":
      return isCommitted(outcome) ? write.failed?.span?.end() : undefined;
    case "message-delivered":
    case "return-message":
    case "return-turn":
    case "stop":
      return isCommitted(outcome) ? write.span?.end() : undefined;
    case "start":
    case "fork":
      return isStarted((outcome as Answered["start" | "fork"]).status) ? write.run.span?.end() : undefined;
    case "put-schedule": {
      const made = outcome as Answered["put-schedule"];
      return made.status === "committed" ? endStarted(write.starts ?? [], made.started) : undefined;
    }
    default:
  }
}

function isCommitted(outcome: Outcome): boolean {
  return "status" in outcome && outcome.status === "committed";
}

/** A debounced start replaced the first entry of the run that waits. */
function isStarted(status: string): boolean {
  return status === "started" || status === "debounced";
}

function endEach(parts: readonly Traced[]): void {
  for (const { span } of parts) span?.end();
}

/** Of the runs that the write started: an id may be taken. */
function endStarted(asked: readonly NewRun[], started: readonly RunRecord[]): void {
  if (asked.length === 0) return;
  const ids = new Set(started.map(({ id }) => id));
  for (const { id, span } of asked) if (ids.has(id)) span?.end();
}
