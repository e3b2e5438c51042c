// The timeline of a run: its steps as rows of a Gantt chart, with waiting and work apart, and the workers that held it.

import { boolean, integer, list, object, oneOf, optional, text, time, type Static } from "./json-schema.ts";
import { progress } from "./picture.ts";
import { thrownError } from "./run.ts";

/**
 * A stretch of a row. `queue`: waits for a worker. `work`: runs and completes. `failed`, `lost`, `returned`: an execution that ended so.
 * `backoff`: waits for the next attempt. `open`: waits for a timer, a message or a person. `running`: runs now.
 */
export const span = object({
  kind: oneOf(["queue", "work", "failed", "lost", "returned", "backoff", "open", "running"]),
  from: time(),
  to: optional(time("Absent: it has not ended.")),
  until: optional(time("When an open wait ends at the latest.")),
  attempt: optional(integer()),
  execution: optional(integer()),
  worker: optional(text()),
  error: optional(thrownError),
});
export type TimelineSpan = Static<typeof span>;

export const timelineRow = object({
  command: text(),
  kind: oneOf([
    "task",
    "child",
    "sleep",
    "operation",
    "promise",
    "settle",
    "signal",
    "update",
    "node",
    "spread",
    "send",
  ]),
  name: text(),
  key: optional(text()),
  state: oneOf(["completed", "failed", "cancelled", "timed_out", "open", "running", "queued", "skipped"]),
  spans: list(span),
  parent: optional(text({ description: "The node whose code made it." })),
  child: optional(text({ description: "The id of the child run." })),
  step: optional(integer({ description: "The step of a graph." })),
  attempts: integer(),
  idempotencyKey: optional(
    text({ description: "The same in every attempt of the step; absent where it depends on more than its name." }),
  ),
  by: optional(text({ description: "Who settled a promise." })),
  reason: optional(text()),
  progress: optional(progress),
});
export type TimelineRow = Static<typeof timelineRow>;

/** A worker that held the run's turn. `lost`: its lease expired and another worker took over. */
export const holding = object({ worker: text(), from: time(), to: optional(time()), lost: boolean() });
export type TimelineHolding = Static<typeof holding>;

export const takeover = object({
  from: optional(text()),
  to: text(),
  lostAt: time("When the first worker last showed that it was alive, as far as the store knows."),
  takenAt: time("When the other worker's first commit or execution starts."),
  lostSteps: list(text(), { description: "Steps that were running and are repeated under the same key." }),
  replayedEntries: integer(),
});
export type TimelineTakeover = Static<typeof takeover>;

export const timeline = object({
  run: text(),
  startedAt: time(),
  endedAt: optional(time()),
  now: time(),
  rows: list(timelineRow),
  more: boolean("There are further rows: continue with `after`."),
  next: optional(text()),
  holdings: list(holding),
  takeovers: list(takeover),
  workedMs: integer({ description: "The time in which user code of the run executed, overlaps counted once." }),
});
export type Timeline = Static<typeof timeline>;
