// Messages to a run: signals, updates, queries, and answers of promises.

import { anyOf, json, object, optional, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { runSummary } from "../run.ts";
import { payloadQuery, reason } from "./parameters.ts";

const MAX_BYTES = 8 * 1024 * 1024;

const by = optional(
  text({ minLength: 1, maxLength: 200, description: "Who decided; default: the name of the caller." }),
);
/** `value`: resolves it, with `null` or nothing for a promise without a value. `reject`: the code that awaits it throws this error. */
const settlement = anyOf(
  object({ value: optional(json()), by, reason }),
  object({
    reject: text({ maxLength: 4000, description: "The message of the error." }),
    error: optional(json("With `payloads=tagged`: the error itself, which replaces one of the message alone.")),
    by,
    reason,
  }),
);

const answered = object({
  result: optional(json("What the code answered.")),
});

export const messageOperations = {
  sendSignal: operation({
    role: "operator",
    method: "POST",
    path: "/v1/runs/{id}/signals/{name}",
    group: "Messages",
    summary: "Sends a signal. The run receives signals in the order they were sent.",
    query: payloadQuery,
    body: object({
      value: optional(json()),
      dedupId: optional(text({ minLength: 1, description: "A repeated one is ignored for at least 24 hours." })),
      reason,
    }),
    maxBytes: MAX_BYTES,
    answer: runSummary,
    example: { path: { id: "order-1042", name: "note" }, body: { value: "call the customer first" } },
  }),
  sendUpdate: operation({
    role: "operator",
    method: "POST",
    path: "/v1/runs/{id}/updates/{name}",
    group: "Messages",
    summary: "Sends a message and waits until the run's code has answered it.",
    query: payloadQuery,
    body: object({ args: optional(json()), dedupId: optional(text({ minLength: 1 })), reason }),
    maxBytes: MAX_BYTES,
    answer: answered,
    waits: true,
    example: { path: { id: "order-1042", name: "address" }, body: { args: "2 New Street" } },
  }),
  askQuery: operation({
    role: "reader",
    method: "POST",
    path: "/v1/runs/{id}/queries/{name}",
    group: "Messages",
    summary: "Asks the run's code, also after its end. Needs the code of the run in this process; writes nothing.",
    query: payloadQuery,
    body: object({ args: optional(json()) }),
    maxBytes: MAX_BYTES,
    answer: answered,
    example: { path: { id: "order-1042", name: "progress" }, body: {} },
  }),
  settlePromise: operation({
    role: "approver",
    method: "POST",
    path: "/v1/runs/{id}/promises/{port}",
    group: "Messages",
    summary:
      "Resolves or rejects a promise that a run waits for. The same value again changes nothing; another one is refused.",
    query: payloadQuery,
    body: settlement,
    maxBytes: MAX_BYTES,
    answer: runSummary,
    example: {
      path: { id: "order-1042", port: "approval" },
      body: { value: { approved: true }, by: "ann", reason: "checked the address" },
    },
  }),
  settleKeyedPromise: operation({
    role: "approver",
    method: "POST",
    path: "/v1/runs/{id}/promises/{port}/{key}",
    group: "Messages",
    summary: "Resolves or rejects the promise with this key.",
    query: payloadQuery,
    body: settlement,
    maxBytes: MAX_BYTES,
    answer: runSummary,
    example: {
      path: { id: "release-3", port: "sign-off", key: "legal" },
      body: { value: true, reason: "no open questions" },
    },
  }),
};
