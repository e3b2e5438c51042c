// Approval links: a page for one answer to one promise, for a person without a token.

import { json, object, oneOf, optional, text, time } from "../json-schema.ts";
import { operation } from "../operation.ts";

export const approvalLinkOperations = {
  createApprovalLink: operation({
    role: "approver",
    method: "POST",
    path: "/v1/runs/{id}/links",
    group: "Promises",
    summary:
      "Makes a link to a page that answers an open promise, once. It is valid until the promise times out, for 7 days at most.",
    body: object({
      port: text({ minLength: 1, maxLength: 200, description: "The port of the promise." }),
      key: optional(text({ minLength: 1, maxLength: 150 })),
      name: optional(
        text({
          minLength: 1,
          maxLength: 100,
          description: "Whom the link is for: `by` of the answer. Default: the caller.",
        }),
      ),
      approve: optional(
        json("The value that Approve sends. Default: from the schema of the port, else `{ ok: true }`."),
      ),
      reject: optional(
        json("The value that Reject sends. Default: from the schema of the port, else `{ ok: false }`."),
      ),
    }),
    secret: true,
    status: 201,
    answer: object({ url: text(), expiresAt: time() }),
    example: { path: { id: "order-1042" }, body: { port: "approval", name: "finance" } },
  }),
  showApprovalLink: operation({
    role: "public",
    method: "GET",
    path: "/a/{token}",
    group: "Promises",
    summary:
      "The page of an approval link: what is to be decided, and two buttons. It changes nothing. 410 after an answer.",
    answer: "text/html",
    example: { path: { token: "eyJyIjoib3JkZXItMTA0MiJ9.0000000000000000000000000000000000000000000" } },
  }),
  answerApprovalLink: operation({
    role: "public",
    method: "POST",
    path: "/a/{token}",
    group: "Promises",
    summary: "Answers the promise of an approval link, once.",
    form: true,
    body: object({
      decision: oneOf(["approve", "reject"]),
      reason: optional(text({ maxLength: 1000 })),
    }),
    answer: "text/html",
    example: {
      path: { token: "eyJyIjoib3JkZXItMTA0MiJ9.0000000000000000000000000000000000000000000" },
      body: { decision: "approve", reason: "Policy R-4" },
    },
  }),
};
