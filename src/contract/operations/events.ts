// Operations that follow changes as they happen.

import { RUN_STATUSES } from "../../kernel/index.ts";
import { list, object, oneOf, optional, text } from "../json-schema.ts";
import { operation } from "../operation.ts";

export const eventOperations = {
  followEvents: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/events",
    group: "Events",
    summary:
      "Follows changes as server-sent events: `run`, `promise`, `queue`, `worker`; `ready` once at the start, `reset` when changes may be missing and the reader must load everything again. `Last-Event-ID` or `after` continues behind an event.",
    query: object({
      run: optional(list(text(), { maxItems: 50, description: "Only changes of these runs." })),
      definition: optional(list(text(), { description: "Only changes of runs of these definitions." })),
      status: optional(list(oneOf(RUN_STATUSES), { description: "Only runs that have, or had before, one of these." })),
      after: optional(text({ description: "As `Last-Event-ID`, for clients that cannot set headers." })),
    }),
    answer: "text/event-stream",
    scope: "filtered",
    waits: true,
    example: { query: { definition: ["checkout"] } },
  }),
};
