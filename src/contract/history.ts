// Time travel and proof on the wire: checkpoints, states, differences between runs, verdicts of replay and verify.

import {
  boolean,
  integer,
  json,
  list,
  object,
  oneOf,
  optional,
  record,
  text,
  time,
  type Static,
} from "./json-schema.ts";
import { journalEntry } from "./run.ts";

export const checkpointBody = object({
  run: text({ description: "The run that committed the step: of an inherited step, the origin of the fork." }),
  step: integer(),
  at: time(),
  label: optional(text()),
  /** The nodes that ran in the step, and the channels that they changed. */
  nodes: list(object({ name: text(), command: text(), tookMs: optional(integer()), attempts: integer() })),
  changed: list(text()),
  next: list(text(), { description: "The nodes that run next." }),
  key: text({ description: "The idempotency key of the step." }),
});
export type CheckpointBody = Static<typeof checkpointBody>;

export const stateBody = object({
  step: integer(),
  state: record(json()),
  /** The values of the changed channels before the step. */
  before: optional(record(json())),
  changed: list(text()),
});
export type StateBody = Static<typeof stateBody>;

export const difference = object({
  where: text(),
  message: text(),
  expected: optional(json()),
  actual: optional(json()),
  differs: optional(text()),
  step: optional(integer()),
  node: optional(text()),
  attempt: optional(integer()),
  /** The line of the user's code that asks, `src/checkout.ts:31:9`. */
  place: optional(text()),
});
export type DifferenceBody = Static<typeof difference>;

/** What replay and verify say. `same`: code and journal agree. */
export const verdictBody = object({
  run: text(),
  status: oneOf(["same", "different", "damaged"]),
  entries: integer(),
  /** Entries up to the first difference. */
  agreed: integer(),
  chain: object({ intact: boolean(), head: text() }),
  gapFree: boolean(),
  differences: list(difference),
  /** Entries around the first difference. */
  around: list(journalEntry),
  /** The source around `place`, if this process can read the file. */
  source: optional(object({ file: text(), first: integer(), lines: list(text()), line: integer() })),
  tookMs: integer(),
});
export type VerdictBody = Static<typeof verdictBody>;

export const diffItem = object({
  /** A step of a graph, a command of a workflow, a node of a flow. */
  at: text(),
  in: oneOf(["both", "here", "there"]),
  values: list(object({ name: text(), here: optional(json()), there: optional(json()) })),
});
export const diffBody = object({
  here: text(),
  there: text(),
  firstDivergence: optional(text()),
  items: list(diffItem),
  more: boolean(),
});
export type DiffBody = Static<typeof diffBody>;
