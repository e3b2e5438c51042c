// What a run has recorded: journal, timeline, picture, executions, checkpoints, states, logs, differences.

import { checkpointBody, diffBody, stateBody } from "../history.ts";
import { integer, list, object, oneOf, optional, pageOf, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { runPicture } from "../picture.ts";
import { journalEntry, logLine, runAttempt } from "../run.ts";
import { timeline } from "../timeline.ts";
import { paging, payloads } from "./parameters.ts";

const generation = optional(
  integer({ minimum: 0, description: "Of a run that called continueAsNew; default: the latest." }),
);

const order = optional(oneOf(["first", "last"]));

export const runReadOperations = {
  listJournal: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/journal",
    group: "Runs",
    summary: "Lists the entries of a run's journal with the sentence of each. `order=last` starts with the newest.",
    query: object({ ...paging, payloads, generation, order }),
    answer: pageOf(journalEntry),
    example: { path: { id: "order-1042" }, query: { limit: 20 } },
  }),
  downloadJournal: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/journal.jsonl",
    group: "Runs",
    summary: "Downloads the journal as it is stored, one entry per line, in the form of `reprise journal save`.",
    query: object({ generation }),
    answer: "application/jsonl",
    waits: true,
    example: { path: { id: "order-1042" } },
  }),
  getTimeline: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/timeline",
    group: "Runs",
    summary:
      "Reads the steps of a run as rows of a Gantt chart: wait and work apart, failed and lost executions, holders, takeovers.",
    query: object({
      limit: optional(integer({ minimum: 1, maximum: 1000, default: 200 })),
      after: optional(text({ description: "`next` of the page before." })),
      generation,
    }),
    answer: timeline,
    example: { path: { id: "order-1042" } },
  }),
  getPicture: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/picture",
    group: "Runs",
    summary: "Reads a graph or flow as nodes and edges, with the state of each node and the edges that the run took.",
    query: object({
      generation,
      step: optional(integer({ minimum: 0, description: "Of a graph: as it was after this step. Default: now." })),
    }),
    answer: runPicture,
    example: { path: { id: "answer-7" }, query: { step: 1 } },
  }),
  listAttempts: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/attempts",
    group: "Runs",
    summary: "Lists the executions of a run's steps in the order in which they ended.",
    query: object({ ...paging, generation, step: optional(text({ description: "Only of this command or node." })) }),
    answer: pageOf(runAttempt),
    example: { path: { id: "order-1042" } },
  }),
  listLogs: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/logs",
    group: "Runs",
    summary:
      "Lists the lines that the code of a run logged in the process of this server, oldest first. `order=last` starts with the newest.",
    query: object({ ...paging, command: optional(text()), order }),
    answer: object({
      items: list(logLine),
      next: optional(text({ description: "The cursor of the next page; absent on the last." })),
      covers: text({ description: "Which lines there are: only those of this process since it started." }),
    }),
    example: { path: { id: "order-1042" } },
  }),
  listCheckpoints: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/checkpoints",
    group: "Time travel",
    summary: "Lists the committed steps of a graph; those before a fork belong to its origin.",
    query: object(paging),
    answer: pageOf(checkpointBody),
    example: { path: { id: "answer-7" } },
  }),
  getCheckpoint: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/checkpoints/{step}",
    group: "Time travel",
    summary: "Reads one committed step of a graph.",
    answer: checkpointBody,
    example: { path: { id: "answer-7", step: "1" } },
  }),
  getState: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/state",
    group: "Time travel",
    summary: "Reads the state of a graph after a step, and what the step changed. Default: the newest step.",
    query: object({
      step: optional(integer({ minimum: 0 })),
      label: optional(text({ description: "The newest step with this label." })),
      payloads,
    }),
    answer: stateBody,
    example: { path: { id: "answer-7" }, query: { step: 1 } },
  }),
  diffRuns: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/diff/{other}",
    group: "Time travel",
    summary: "Compares two runs of the same definition: a graph step by step, a workflow by command, a flow by node.",
    query: object({ limit: optional(integer({ minimum: 1, maximum: 500, default: 100 })), payloads }),
    answer: diffBody,
    example: { path: { id: "answer-7", other: "answer-7-fork" } },
  }),
};
