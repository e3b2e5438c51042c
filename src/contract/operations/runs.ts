// Runs: lists, one run, what happens now, counts, actions on many.

import { runCounts } from "../definition.ts";
import { DefinitionKind, RUN_STATUSES } from "../../kernel/index.ts";
import { boolean, integer, json, list, object, oneOf, optional, pageOf, text, time } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { runDetail, runNow, runSummary } from "../run.ts";
import { paging, payloads, reason } from "./parameters.ts";

const status = oneOf(RUN_STATUSES);

/** Which runs: conditions that all hold. */
const selection = {
  definition: optional(text()),
  status: optional(list(status, { description: "One of these." })),
  kind: optional(oneOf(Object.values(DefinitionKind))),
  tag: optional(list(text(), { description: "All of these." })),
  from: optional(time("Created at this time or later.")),
  to: optional(time("Created before this time.")),
  endedFrom: optional(time("Ended at this time or later.")),
  endedTo: optional(time("Ended before this time.")),
  errorCode: optional(text()),
  parent: optional(text({ description: "The id of the run that started them as children." })),
  q: optional(text({ minLength: 1, description: "A part of the id, with the same case." })),
};

export const runOperations = {
  listRuns: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs",
    scope: "filtered",
    group: "Runs",
    summary: "Lists the runs that match a filter, newest first.",
    query: object({ ...paging, ...selection }),
    answer: pageOf(runSummary),
    example: { query: { status: ["waiting"], limit: 5 } },
  }),
  getRun: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}",
    group: "Runs",
    summary: "Reads a run: status, input and output, why it does not move, open promises, attempts, worker.",
    query: object({ payloads, generation: optional(integer({ minimum: 0 })) }),
    answer: runDetail,
    example: { path: { id: "order-1042" } },
  }),
  getResult: operation({
    role: "reader",
    method: "GET",
    path: "/v1/runs/{id}/result",
    group: "Runs",
    summary:
      "Answers the output of a run, 202 while it has not ended, and a problem if it failed, was canceled or was stopped. Waits up to `wait` seconds.",
    query: object({ wait: optional(integer({ minimum: 0, maximum: 60, default: 0 })), payloads }),
    answer: object({
      run: text(),
      status,
      output: optional(json("Absent: the run has not ended, or it returned nothing.")),
    }),
    waits: true,
    example: { path: { id: "order-1041" }, query: { wait: 20 } },
  }),
  listChildren: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/runs/{id}/children",
    group: "Runs",
    summary: "Lists the runs that a run started as children, newest first.",
    query: object(paging),
    answer: pageOf(runSummary),
    example: { path: { id: "order-1042" } },
  }),
  bulkRuns: operation({
    role: "admin",
    method: "POST",
    path: "/v1/runs/bulk",
    scope: "filtered",
    group: "Runs",
    summary: "Applies an action to every run that matches a filter; `dryRun` only counts them.",
    body: object({
      action: oneOf(["cancel", "pause", "resume", "retry", "terminate"]),
      filter: object({
        ...selection,
        ids: optional(list(text(), { maxItems: 500, description: "Only these runs." })),
      }),
      dryRun: optional(boolean()),
      reason,
    }),
    answer: object({
      count: integer({
        description: "Runs that the action was applied to; with `dryRun`, that it would be applied to.",
      }),
      skipped: integer({ description: "Runs that the action does not apply to." }),
      more: boolean("The dry run stopped counting: more runs match."),
      dryRun: boolean(),
    }),
    waits: true,
    example: { body: { action: "retry", filter: { status: ["failed"], definition: "checkout" }, dryRun: true } },
  }),
  listReasons: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/reasons",
    scope: "filtered",
    group: "Runs",
    summary:
      "Says in one sentence what each of these runs does now, and the command that helps. Unknown ids are left out.",
    query: object({ run: list(text(), { minItems: 1, maxItems: 100 }) }),
    answer: object({ items: list(runNow) }),
    example: { query: { run: ["order-1042", "order-1041"] } },
  }),
  countRuns: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/counts",
    scope: "filtered",
    group: "Runs",
    summary: "Counts runs by status, with bounded cost: counts stop at `upTo`.",
    query: object({ definition: optional(text()), tag: optional(list(text())) }),
    answer: runCounts,
    example: {},
  }),
};
