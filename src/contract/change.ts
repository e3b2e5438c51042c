// Changes on the wire: the events of `GET /v1/events`, and the frames of a stream.

import { RUN_STATUSES } from "../kernel/index.ts";
import { anyOf, boolean, integer, json, object, oneOf, optional, text, time, type Static } from "./json-schema.ts";
import { runSummary } from "./run.ts";

/** `event: run`: the run as it is now, or that it was deleted. */
export const runChange = anyOf(runSummary, object({ id: text(), definition: text(), deleted: boolean() }));
export type RunChange = Static<typeof runChange>;

/** `event: promise`: a promise was opened, or is no longer open. */
export const promiseChange = object({
  run: text(),
  definition: text(),
  name: text(),
  key: optional(text()),
  state: oneOf(["opened", "closed"]),
  createdAt: time(),
  cursor: text(),
  open: integer({ description: "How many promises are open in all; counting stops at 500." }),
});
export type PromiseChange = Static<typeof promiseChange>;

/** `event: queue`. Counts stop at 10,000. */
export const queueChange = object({
  name: text(),
  paused: boolean(),
  ready: integer(),
  leased: integer(),
  delayed: integer(),
});
export type QueueChange = Static<typeof queueChange>;

/** `event: worker`: a worker registered, changed, or is gone. */
export const workerChange = object({
  worker: integer(),
  name: text(),
  alive: boolean(),
  draining: boolean(),
  running: optional(integer()),
  runsHeld: optional(integer()),
  gone: optional(boolean("Its row no longer exists.")),
});
export type WorkerChange = Static<typeof workerChange>;

/** `event: reset`: changes may be missing; load everything that is shown again. */
export const changeReset = object({ reason: text() });
export type ChangeReset = Static<typeof changeReset>;

/** The data of an event of a stream without a name: a value. `step` and `execution` are absent for a value of workflow code. */
export const streamValue = object({
  value: json(),
  step: optional(text()),
  execution: optional(integer()),
});
export type StreamValueBody = Static<typeof streamValue>;

/** `event: reset` of a stream: the values of the step before are void; `execution` repeats it. */
export const streamReset = object({ step: text(), execution: integer() });
export type StreamResetBody = Static<typeof streamReset>;

/** `event: end` of a stream: the run has ended and every frame was sent. */
export const streamEnd = object({ status: oneOf(RUN_STATUSES) });
export type StreamEndBody = Static<typeof streamEnd>;
