// Answer values: what Approve and Reject send to a promise (approval-link.L3).
//
// answer-values.V1. The values of the link come first. Then the schema of the port decides, by its JSON Schema (approval-answer.A1) or, of
//   a library that gives none, by which of the usual values it accepts. Without a schema it is `{ ok, by, reason }`.

import { RepriseError } from "../../base/index.ts";
import { approvalAnswer } from "../../contract/index.ts";
import { parse, type Ports, type Schema } from "../../kernel/index.ts";
import type { LinkGrant } from "./approval-link.ts";

export async function answerValue(
  ports: Ports | undefined,
  grant: LinkGrant,
  approves: boolean,
  reason: string,
): Promise<unknown> {
  const fixed = approves ? grant.a : grant.j;
  if (fixed !== undefined) return fixed[0];
  const { n: by, p: port } = grant;
  const usual = { ok: approves, by, ...(reason !== "" && { reason }) };
  const schema = (ports?.[port] as { readonly schema?: Schema<never, unknown> } | undefined)?.schema;
  if (schema === undefined) return usual;
  const derived = approvalAnswer(jsonSchemaOf(schema), approves, { by, reason });
  for (const value of [
    ...(derived === undefined ? [] : [derived.value]),
    usual,
    { ok: approves, by },
    { ok: approves },
    approves,
    { approved: approves },
  ])
    if (await accepts(schema, value)) return value;
  throw new RepriseError(
    "BAD_OPTIONS",
    `The schema of the promise ${port} does not tell what Approve and Reject send. Make the link with both values: { approve, reject }.`,
  );
}

async function accepts(schema: Schema<never, unknown>, value: unknown): Promise<boolean> {
  return parse(schema, value, "approval link").then(
    () => true,
    () => false,
  );
}

/** The JSON Schema that a library gives for its schema (Standard JSON Schema). */
function jsonSchemaOf(schema: Schema<never, unknown>): unknown {
  const { jsonSchema } = schema["~standard"] as {
    readonly jsonSchema?: { input(options: { readonly target: string }): unknown };
  };
  try {
    return jsonSchema?.input({ target: "draft-2020-12" });
  } catch {
    // Some types have no JSON Schema.
    return undefined;
  }
}
