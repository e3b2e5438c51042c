// Evals: reports of evaluations that were made in this store, or saved to it.

import { evaluationBody, evaluationSummary } from "../evaluation.ts";
import { object, optional, pageOf, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { paging } from "./parameters.ts";

export const evalOperations = {
  listEvals: operation({
    role: "reader",
    method: "GET",
    path: "/v1/evals",
    group: "Evals",
    summary: "Lists the evaluations of the store, newest first, with their scores.",
    query: object({ ...paging, definition: optional(text({ minLength: 1 })) }),
    answer: pageOf(evaluationSummary),
    example: {},
  }),
  getEval: operation({
    role: "reader",
    method: "GET",
    path: "/v1/evals/{id}",
    group: "Evals",
    summary: "Reads the report of an evaluation: each run, its fork, their scores and the first difference.",
    answer: evaluationBody,
    example: { path: { id: "nightly" } },
  }),
};
