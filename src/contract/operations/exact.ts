// The reads of a run's handle as its methods return them, for clients of Reprise.

import { integer, json, list, object, oneOf, optional } from "../json-schema.ts";
import { operation } from "../operation.ts";

/** Methods of a handle that read and return data. */
export const EXACT_READS = [
  "attempts",
  "budget",
  "checkpoint",
  "checkpoints",
  "diff",
  "info",
  "journal",
  "replay",
  "scheduler",
  "stateAt",
  "verify",
] as const;

export const exactOperations = {
  readExact: operation({
    role: "reader",
    method: "POST",
    path: "/v1/runs/{id}/exact",
    group: "Clients",
    summary:
      "Calls a method of the run's handle that reads, and answers what it returns in the tagged form of the codec: for clients of Reprise, which decode it. A list is answered in pages.",
    query: object({ payloads: optional(oneOf(["tagged"])) }),
    body: object({
      method: oneOf(EXACT_READS),
      args: optional(
        list(json(), { maxItems: 2, description: "The arguments, in the tagged form; of `diff`: an id." }),
      ),
      skip: optional(integer({ minimum: 0, description: "Of a list: items that the client has." })),
    }),
    maxBytes: 8 * 1024 * 1024,
    answer: object({
      result: optional(json("Absent: it returned nothing.")),
      next: optional(integer({ description: "Of a list: `skip` of the next page; absent on the last." })),
    }),
    waits: true,
    example: { path: { id: "order-1042" }, body: { method: "info" } },
  }),
};
