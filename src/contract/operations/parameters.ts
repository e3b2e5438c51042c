// Parameters that several operations share: paging, the form of payloads, and the reason of a change.

import { integer, number, object, oneOf, optional, text } from "../json-schema.ts";

/** The parameters of a list. */
export const paging = {
  limit: optional(integer({ minimum: 1, maximum: 500, default: 50 })),
  after: optional(text({ description: "`next` of the page before." })),
};

/** How payloads are written in a request and in its answer. */
export const payloads = optional(
  oneOf(
    ["plain", "tagged"],
    "`plain` (default): JSON; a date is a text, a bigint its digits. `tagged`: the exact form of the codec, which a client of Reprise decodes.",
  ),
);
export const payloadQuery = object({ payloads });
export type PayloadQuery = { readonly payloads?: "plain" | "tagged" };

/** The body of a change that needs nothing but the person's reason. */
export const reason = optional(text({ maxLength: 1000, description: "Why, for the history of the run or the log." }));
export const reasonBody = object({ reason });

/** A duration: milliseconds, or a text such as `5 minutes`. */
export const duration = text({
  pattern: "^\\d",
  maxLength: 40,
  description: "A number and a unit, such as `90 s`, `5 minutes` or `250 ms`.",
});

/** The budget of a new run. */
export const budgetOptions = object({
  usd: optional(number({ minimum: 0 })),
  tokens: optional(integer({ minimum: 0 })),
  calls: optional(integer({ minimum: 0 })),
  onReached: optional(oneOf(["ask", "fail"])),
});
