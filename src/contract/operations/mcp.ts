// The Model Context Protocol over HTTP: one request that carries messages of the protocol.

import { anyOf, json, number, object, oneOf, optional, record, text } from "../json-schema.ts";
import { operation } from "../operation.ts";

export const mcpOperations = {
  handleMcp: operation({
    role: "viewer",
    method: "POST",
    path: "/mcp",
    scope: "filtered",
    group: "Agents",
    summary:
      "Takes one message of the Model Context Protocol (streamable HTTP, without sessions). Tools are operations of this API: the role and the scopes of the token decide which of them there are.",
    body: object({
      jsonrpc: oneOf(["2.0"]),
      id: optional(anyOf(text(), number())),
      method: text({ minLength: 1, maxLength: 200 }),
      params: optional(record(json())),
    }),
    maxBytes: 8 * 1024 * 1024,
    answer: record(json(), "The answer of JSON-RPC 2.0; 202 without a body for a notification."),
    waits: true,
    relays: true,
    example: {
      body: { jsonrpc: "2.0", id: 1, method: "ping" },
      answer: { jsonrpc: "2.0", id: 1, result: {} },
    },
  }),
};
