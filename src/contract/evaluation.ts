// Reports of evaluations on the wire. Outputs are in the runs that they name.

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

const cost = object({ usd: optional(number()), tokens: optional(number()), calls: optional(number()) });
const outcomeError = object({ name: text(), message: text(), code: optional(text()) });
const outcome = object({ status: text(), error: optional(outcomeError) });

const scoreSummary = object({
  mean: number(),
  min: number(),
  max: number(),
  count: integer({ description: "How many runs were scored." }),
  failed: integer({ description: "How often the scorer failed." }),
  worst: list(text(), { description: "The runs with the lowest scores." }),
});

const summary = {
  id: text(),
  definition: text(),
  startedAt: time(),
  endedAt: time(),
  effects: oneOf(["live", "recorded"]),
  at: optional(json("Where the forks began; absent: at the input.")),
  models: optional(record(text(), "Models that the forks replaced, by their name in the code.")),
  scores: record(scoreSummary),
  counts: object({
    total: integer(),
    same: integer(),
    changed: integer(),
    stopped: integer(),
    skipped: integer(),
  }),
  cost: optional(cost),
};

export const evaluationSummary = object(summary);
export type EvaluationSummary = Static<typeof evaluationSummary>;

export const evaluatedRun = object({
  run: text(),
  fork: optional(text({ description: "Absent: the run was skipped, or its fork is in another store." })),
  was: outcome,
  is: optional(outcome),
  scores: record(number()),
  scoreErrors: optional(record(text())),
  firstDifference: optional(text({ description: "The first step, command or node that differs." })),
  same: boolean(),
  cost: optional(cost),
  skipped: optional(outcomeError),
});
export type EvaluatedRunBody = Static<typeof evaluatedRun>;

export const evaluationBody = object({ ...summary, runs: list(evaluatedRun) });
export type EvaluationBody = Static<typeof evaluationBody>;
