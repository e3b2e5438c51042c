// OpenAPI: the document of the HTTP API, made from the table of operations.

import { checkJson, problem, type JsonSchema, type Operation } from "../contract/index.ts";
import type { ImplementedOperation } from "./operations.ts";

export interface OpenApiOptions {
  readonly version: string;
  readonly basePath: string;
}

/** OpenAPI 3.1. */
export function openApiOf(operations: readonly ImplementedOperation[], { version, basePath }: OpenApiOptions): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { id, operation } of operations)
    (paths[operation.path] ??= {})[operation.method.toLowerCase()] = operationOf(id, operation);
  return {
    openapi: "3.1.0",
    info: {
      title: "Reprise",
      version,
      description:
        "Start, observe and control durable runs. Payloads are JSON; `?payloads=tagged` gives the exact form.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    tags: [...new Set(operations.map(({ operation }) => operation.group))].map((name) => ({ name })),
    paths,
    components: {
      schemas: { Problem: problem },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      parameters: {
        idempotencyKey: {
          name: "Idempotency-Key",
          in: "header",
          description: "The same key with the same request gives the same answer for a day.",
          schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e]+$" },
        },
      },
    },
  };
}

function operationOf(id: string, operation: Operation): object {
  const { summary, group, role, body, example, method } = operation;
  return {
    operationId: id,
    summary,
    tags: [group],
    ...(role === "public" ? { security: [] } : { security: [{ token: [] }] }),
    "x-role": role,
    parameters: [
      ...pathParameters(operation),
      ...queryParameters(operation),
      ...(method === "POST" ? [{ $ref: "#/components/parameters/idempotencyKey" }] : []),
    ],
    ...(body !== undefined && {
      requestBody: {
        // As the server does: a body whose fields are all optional may be left out.
        required: operation.raw === true || checkJson(body, {}).length > 0,
        content: {
          [bodyTypeOf(operation)]: {
            schema: body,
            ...(example.body !== undefined && { example: example.body as unknown }),
          },
        },
      },
    }),
    responses: responsesOf(operation),
  };
}

function bodyTypeOf({ form, raw }: Operation): string {
  if (raw === true) return "*/*";
  return form === true ? "application/x-www-form-urlencoded" : "application/json";
}

function pathParameters({ path, example }: Operation): readonly object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string", minLength: 1 },
    ...(example.path?.[name] !== undefined && { example: example.path[name] }),
  }));
}

function queryParameters({ query, example }: Operation): readonly object[] {
  const { properties = {}, required = [] } = (query ?? {}) as {
    properties?: Record<string, JsonSchema>;
    required?: readonly string[];
  };
  const examples = (example.query ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(schema.description !== undefined && { description: schema.description }),
    ...(schema.type === "array" && { style: "form", explode: true }),
    schema,
    ...(examples[name] !== undefined && { example: examples[name] }),
  }));
}

function responsesOf({ answer, status = 200, example, summary, waits, relays }: Operation): object {
  const content =
    answer === null
      ? undefined
      : typeof answer === "string"
        ? { [answer]: { schema: { type: "string" } } }
        : {
            "application/json": {
              schema: answer,
              ...(example.answer !== undefined && { example: example.answer as unknown }),
            },
          };
  return {
    [status]: { description: summary, ...(content && { content }) },
    ...(waits === true && status !== 202 && { 202: { description: "Not yet: ask again." } }),
    default: {
      description: "The request is refused; `code` says why, `hint` what helps.",
      content: {
        "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
        // A person reads the refusal, or the client of another protocol.
        ...((answer === "text/html" || relays === true) && content),
      },
    },
  };
}
