// Definitions: what can be started, figures of the last hour, and the start of a run.

import { definition, definitionStats } from "../definition.ts";
import { integer, json, list, object, optional, pageOf, record, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { runSummary } from "../run.ts";
import { budgetOptions, duration, paging, payloads } from "./parameters.ts";

export const definitionOperations = {
  listDefinitions: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/definitions",
    scope: "filtered",
    group: "Definitions",
    summary: "Lists the definitions that this process, a live worker or a live run has.",
    query: object(paging),
    answer: pageOf(definition),
    example: { query: { limit: 10 } },
  }),
  getDefinition: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/definitions/{name}",
    group: "Definitions",
    summary: "Reads a definition: versions, ports, the JSON Schema of its input, and its picture as nodes and edges.",
    query: object({ version: optional(integer({ minimum: 1 })) }),
    answer: definition,
    example: { path: { name: "checkout" } },
  }),
  startRun: operation({
    role: "operator",
    method: "POST",
    path: "/v1/definitions/{name}/runs",
    group: "Definitions",
    summary:
      "Starts a run and answers when the start is durable. `Prefer: wait=20` waits for its end, at most that many seconds.",
    query: object({ payloads }),
    body: object({
      input: optional(json()),
      id: optional(text({ minLength: 1, description: "The same id with the same input is the same run." })),
      tags: optional(list(text(), { maxItems: 100 })),
      delay: optional(duration),
      deadline: optional(duration),
      budget: optional(budgetOptions),
      priority: optional(integer()),
      singleton: optional(text({ minLength: 1 })),
      debounce: optional(object({ key: text({ minLength: 1 }), by: duration })),
      signals: optional(record(json(), "Signals that are sent together with the start, by name.")),
      version: optional(integer({ minimum: 1, description: "Default: the newest version of this process." })),
    }),
    maxBytes: 8 * 1024 * 1024,
    status: 201,
    answer: runSummary,
    waits: true,
    example: { path: { name: "checkout" }, body: { input: { order: 1043 }, id: "order-1043", tags: ["shop"] } },
  }),
  getStats: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/stats",
    scope: "filtered",
    group: "Definitions",
    summary: "Reads how many runs of each definition are live and how runs ended in the last hour.",
    query: object({ definition: optional(text()) }),
    answer: object({ items: list(definitionStats) }),
    example: {},
  }),
};
