// Runs on the wire: rows of lists, the detail of one run, why it does not move, its journal and its executions.
//
// run.R1. Fields that hold payloads are absent for a caller without the role `reader`, and `hidden` names them.

import { DefinitionKind, RUN_STATUSES } from "../kernel/index.ts";
import {
  boolean,
  integer,
  json,
  list,
  number,
  object,
  oneOf,
  optional,
  record,
  text,
  time,
  type Static,
} from "./json-schema.ts";

const status = oneOf(RUN_STATUSES, "The status of the run.");
const kind = oneOf(Object.values(DefinitionKind), "The kind of its definition.");

/** A value that code threw. `frames` are lines of the user's code first; `hiddenFrames` counts those of Node and Reprise. */
export const thrownError = object({
  name: text(),
  message: text(),
  code: optional(text()),
  frames: optional(list(text())),
  hiddenFrames: optional(integer()),
});
export type ThrownError = Static<typeof thrownError>;

/** A row of the list of runs. */
export const runSummary = object({
  id: text(),
  definition: text(),
  kind,
  version: integer(),
  generation: integer(),
  status,
  createdAt: time(),
  endedAt: optional(time()),
  tags: list(text()),
  entries: integer({ description: "The number of entries in its journal." }),
  digest: text({ description: "The hash of its journal." }),
  errorCode: optional(text()),
});
export type RunSummary = Static<typeof runSummary>;

/** Why a run does not move. `reason` decides which facts `facts` has (docs of `WaitReason`); `next` are commands that help. */
export const waitReason = object({
  reason: text(),
  text: text({ description: "One sentence, with the values." }),
  next: list(text(), { description: "Commands that help, the best one first." }),
  facts: record(json()),
});
export type WaitReasonBody = Static<typeof waitReason>;

export const cost = object({
  usd: optional(number({ minimum: 0, description: "US dollars." })),
  tokens: optional(integer({ minimum: 0 })),
  calls: optional(integer({ minimum: 0 })),
});
export type CostBody = Static<typeof cost>;

/** The sentence of a run for a list: what happens now, or how it ended. */
export const runNow = object({
  run: text(),
  status,
  text: text(),
  command: optional(text({ description: "The command of the command line that helps." })),
  reason: optional(text()),
  /** The outcomes of the executions of the current or last step, oldest first, at most 8. */
  attempts: list(oneOf(["failed", "lost", "returned", "running", "completed"])),
  progress: optional(object({ done: integer(), total: integer(), failed: integer(), running: integer() })),
  /** Of a run with a budget of its own: what its answers cost so far, and the limit. */
  budget: optional(object({ spent: cost, cap: cost })),
});
export type RunNow = Static<typeof runNow>;

export const holdingWorker = object({
  worker: integer(),
  name: optional(text()),
  alive: boolean(),
  leaseUntil: optional(time()),
});

/** A promise that a live run waits for. */
export const openPromise = object({
  run: text(),
  definition: text(),
  kind: oneOf(
    ["promise", "budget"],
    "`budget`: a call waits for the budget of its run. `show` says what it would reserve; raise the budget, or decline.",
  ),
  name: text(),
  key: optional(text({ description: "Of a budget: the command that waits." })),
  show: optional(json("What the code shows to the person who decides.")),
  createdAt: time(),
  deadline: optional(time()),
  cursor: text(),
  hidden: optional(list(text())),
});
export type OpenPromiseBody = Static<typeof openPromise>;

/** A promise that was settled, or timed out. */
export const settledPromise = object({
  run: text(),
  definition: text(),
  name: text(),
  key: optional(text()),
  outcome: oneOf(["resolved", "rejected", "timed_out"]),
  show: optional(json()),
  value: optional(json()),
  error: optional(thrownError),
  by: optional(text()),
  reason: optional(text()),
  createdAt: optional(time()),
  settledAt: time(),
  hidden: optional(list(text())),
});
export type SettledPromiseBody = Static<typeof settledPromise>;

/** The budget that a run pays from. */
export const budget = object({
  owner: text({ description: "The run that it belongs to; its children share it." }),
  onReached: oneOf(["ask", "fail"]),
  cap: cost,
  spent: cost,
  reserved: cost,
  lost: cost,
  waiting: list(object({ run: text(), command: text(), reserve: cost, since: time() }), {
    description: "The calls that wait for it, oldest first; at most 100.",
  }),
});
export type BudgetBody = Static<typeof budget>;

/** Everything about one run but its journal. */
export const runDetail = object({
  id: text(),
  definition: text(),
  kind,
  version: integer(),
  generation: integer(),
  status,
  createdAt: time(),
  endedAt: optional(time()),
  tags: list(text()),
  entries: integer(),
  digest: text(),
  errorCode: optional(text()),
  input: optional(json()),
  output: optional(json()),
  error: optional(thrownError),
  parent: optional(text()),
  children: integer(),
  forkOf: optional(object({ run: text(), at: text({ description: "The step or command that it starts from." }) })),
  worker: optional(holdingWorker),
  waitsFor: list(waitReason),
  openPromises: list(openPromise),
  budget: optional(budget),
  attempts: object({ failed: integer(), lost: integer(), returned: integer() }),
  runtimes: list(record(json())),
  streams: list(text(), {
    description: "The names of the streams that the definition declares, as far as this process knows it.",
  }),
  registered: boolean("This process has the code of the run: it can replay, verify and query it."),
  hidden: optional(list(text(), { description: "Fields that are left out: they need the role reader." })),
});
export type RunDetail = Static<typeof runDetail>;

/** An entry of a journal. */
export const journalEntry = object({
  seq: integer(),
  run: optional(text({ description: "The run that wrote it, if a fork shares the entry with its origin." })),
  type: text(),
  command: optional(text()),
  at: time(),
  data: optional(json()),
  worker: optional(text()),
  execution: optional(integer()),
  startedAt: optional(time()),
  tookMs: optional(number()),
  line: object({
    tone: oneOf(["good", "bad", "quiet", "open"]),
    name: text(),
    text: text({
      description: "What the entry says in one line; without the role reader, payloads in it are `(hidden)`.",
    }),
  }),
  hidden: optional(list(text())),
});
export type JournalEntryBody = Static<typeof journalEntry>;

/** One execution of user code. */
export const runAttempt = object({
  step: optional(text()),
  name: optional(text()),
  execution: optional(integer()),
  attempt: optional(integer()),
  outcome: oneOf(["completed", "failed", "lost", "returned"]),
  endedAt: time(),
  startedAt: optional(time()),
  tookMs: optional(number()),
  worker: optional(text()),
  error: optional(thrownError),
});
export type RunAttemptBody = Static<typeof runAttempt>;

/** A line of a log, kept in the memory of the process that serves. */
export const logLine = object({
  cursor: text({ description: "For `after`: the lines behind this one." }),
  at: time(),
  level: oneOf(["debug", "info", "warn", "error"]),
  message: text(),
  command: optional(text()),
  attempt: optional(integer()),
  data: optional(json()),
});
export type LogLineBody = Static<typeof logLine>;
