// Queues, workers and schedules on the wire.

import { boolean, integer, list, number, object, oneOf, optional, text, time, type Static } from "./json-schema.ts";
import { waitReason } from "./run.ts";

const limit = object({
  concurrency: optional(integer({ minimum: 1 })),
  rate: optional(
    object({ limit: integer({ minimum: 1 }), per: integer({ minimum: 1, description: "Milliseconds." }) }),
  ),
});
export const queueLimits = object({
  concurrency: optional(integer({ minimum: 1 })),
  rate: optional(
    object({ limit: integer({ minimum: 1 }), per: integer({ minimum: 1, description: "Milliseconds." }) }),
  ),
  perKey: optional(limit),
});
export type QueueLimitsBody = Static<typeof queueLimits>;

export const queueBody = object({
  name: text(),
  limits: queueLimits,
  paused: boolean(),
  pausedAt: optional(time()),
  ready: integer(),
  leased: integer(),
  delayed: integer(),
  oldestReadyAt: optional(time()),
  /** Keys whose limit is reached, the first ones. */
  fullKeys: optional(list(object({ key: text(), held: integer(), limit: integer(), holders: list(text()) }))),
});
export type QueueBody = Static<typeof queueBody>;

/** Work that waits, grouped by what claims it. */
export const pendingWork = object({
  kind: oneOf(["start", "run", "task", "node", "message"]),
  name: text(),
  version: optional(integer()),
  queue: optional(text()),
  label: optional(text()),
  count: integer(),
  oldestAt: optional(time()),
  reasons: list(waitReason),
});
export type PendingWork = Static<typeof pendingWork>;

export const workerBody = object({
  worker: integer(),
  name: text(),
  host: optional(text()),
  pid: optional(integer()),
  startedAt: time(),
  alive: boolean(),
  draining: boolean(),
  heartbeatAt: optional(time()),
  leaseUntil: time(),
  leaseMs: optional(integer()),
  concurrency: optional(integer()),
  running: optional(integer()),
  runsHeld: optional(integer()),
  stepsPerSecond: optional(number()),
  runsStartedPerSecond: optional(number()),
  runsEndedPerSecond: optional(number()),
  definitions: list(object({ name: text(), version: integer() })),
  queues: optional(list(text())),
  labels: optional(list(text())),
});
export type WorkerBody = Static<typeof workerBody>;

export const scheduleBody = object({
  name: text(),
  definition: text(),
  cron: optional(text()),
  timeZone: optional(text()),
  everyMs: optional(integer()),
  overlap: text(),
  catchUp: text(),
  jitterMs: integer(),
  paused: boolean(),
  nextAt: optional(time()),
  lastAt: optional(time()),
  lastRun: optional(text()),
  lastStatus: optional(text()),
  waiting: list(time()),
  createdAt: time(),
  lagMs: optional(integer({ description: "How long the next planned time is overdue." })),
  reasons: optional(list(waitReason)),
});
export type ScheduleBody = Static<typeof scheduleBody>;
