// Promises of all runs: the open ones, and how recent ones were settled.

import { boolean, integer, list, object, oneOf, optional, pageOf, text, time } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { openPromise, settledPromise } from "../run.ts";
import { paging, payloads } from "./parameters.ts";

export const promiseOperations = {
  listPromises: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/promises",
    scope: "filtered",
    group: "Promises",
    summary: "Lists the promises that live runs wait for. Sorted by deadline, the list ends after 1,000 promises.",
    query: object({
      ...paging,
      payloads,
      name: optional(text()),
      definition: optional(text()),
      sort: optional(oneOf(["run", "deadline"], "`run` (default): of the oldest runs first.")),
    }),
    answer: pageOf(openPromise),
    example: { query: { limit: 20 } },
  }),
  listSettledPromises: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/promises/history",
    scope: "filtered",
    group: "Promises",
    summary: "Lists how promises of recent runs were settled: by whom, why, and after which wait. Newest first.",
    query: object({
      since: optional(time("Default: 24 hours ago.")),
      limit: optional(integer({ minimum: 1, maximum: 500, default: 100 })),
      definition: optional(text()),
      name: optional(text()),
      payloads,
    }),
    answer: object({
      items: list(settledPromise),
      covers: object({
        since: time("Promises that were settled at this time or later are in the list, as far as `complete` says."),
        runs: integer({ description: "How many runs were read, newest first." }),
        complete: boolean("False: there are more runs, or more entries, than were read."),
        text: text(),
      }),
    }),
    example: { query: { limit: 20 } },
  }),
};
