// Hooks: webhooks of other systems, and the callback URLs that runs wait for.

import { object, oneOf, text, type JsonSchema } from "../json-schema.ts";
import { operation } from "../operation.ts";

/** What became of a webhook. All of them mean that it need not be sent again. */
export const hookAnswer = object({
  status: oneOf(
    ["done", "repeated", "late", "ignored"],
    "`done`: it has its effect, from this or an equal delivery. `repeated`: a delivery with this id and another content had its effect before. `late`: its run has ended, or its promise has an answer. `ignored`: the hook wants no such event.",
  ),
});

const bytes: JsonSchema<Uint8Array> = text({ format: "binary" }) as JsonSchema<any>;

export const hookOperations = {
  receiveWebhook: operation({
    role: "public",
    method: "POST",
    path: "/v1/hooks/{name}",
    group: "Webhooks",
    summary:
      "Takes a webhook of another system: its signature is checked over the bytes of the body, then it starts a run, sends a signal or settles a promise, once.",
    body: bytes,
    raw: true,
    answer: hookAnswer,
    example: { path: { name: "github" }, answer: { status: "done" } },
  }),
  receiveCallback: operation({
    role: "public",
    method: "POST",
    path: "/v1/hooks/wait/{token}",
    group: "Webhooks",
    summary: "Resolves the promise that a callback URL was made for with the body, once.",
    body: bytes,
    raw: true,
    answer: hookAnswer,
    example: { path: { token: "eyJydW4iOiJvcmRlci0xIn0.c2lnbmF0dXJl" }, answer: { status: "done" } },
  }),
};
