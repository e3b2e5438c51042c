// Definitions on the wire: what can be started, its ports and schemas, and its picture.

import { DefinitionKind, RUN_STATUSES } from "../kernel/index.ts";
import { boolean, integer, json, list, object, oneOf, optional, text, type Static } from "./json-schema.ts";
import { picture } from "./picture.ts";

export const port = object({
  name: text(),
  kind: oneOf(["signal", "promise", "query", "update", "stream"]),
  schema: optional(json("The JSON Schema of its value, if the definition's schema can be given as one.")),
});

export const definition = object({
  name: text(),
  kind: oneOf(Object.values(DefinitionKind)),
  versions: list(object({ version: integer(), live: integer(), registered: boolean() })),
  ports: list(port),
  input: optional(json("The JSON Schema of the input.")),
  queue: optional(text()),
  registered: boolean("This process can start it."),
  picture: optional(picture),
});
export type DefinitionBody = Static<typeof definition>;

/** Figures of a definition over the last hour. Series are per minute, oldest first. */
export const definitionStats = object({
  definition: text(),
  kind: oneOf(Object.values(DefinitionKind)),
  versions: list(object({ version: integer(), live: integer() })),
  live: object({ queued: integer(), running: integer(), waiting: integer(), paused: integer(), stopped: integer() }),
  /** Ended runs per minute. */
  ended: list(integer()),
  failed: list(integer()),
  /** Durations in ms per minute; null where no run ended. */
  p50: list(json()),
  p95: list(json()),
  total: object({ ended: integer(), failed: integer(), p50Ms: optional(integer()), p95Ms: optional(integer()) }),
  sampled: boolean("More runs ended than were read: rates are of the newest ones."),
});
export type DefinitionStats = Static<typeof definitionStats>;

/** Counts stop at `upTo`; of the statuses in `atLeast` there may be more than were counted. */
export const runCounts = object({
  counts: object({
    queued: integer(),
    running: integer(),
    waiting: integer(),
    paused: integer(),
    blocked: integer(),
    determinism_violation: integer(),
    expected: integer(),
    completed: integer(),
    failed: integer(),
    cancelled: integer(),
    continued: integer(),
  }),
  upTo: integer(),
  atLeast: list(oneOf(RUN_STATUSES)),
});
export type RunCounts = Static<typeof runCounts>;
