// Schema: Standard Schema (zod, valibot, arktype). The engine validates a value once and stores the parsed value.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { RepriseError } from "../base/index.ts";

/** A Standard Schema that parses `In` to `Out`. */
export type Schema<In, Out = In> = StandardSchemaV1<In, Out>;

/**
 * A schema that only declares a type and does not validate.
 *
 * @example
 * ```ts
 * import { typed, workflow } from "reprise";
 * const counting = workflow("counting", { state: typed<{ count: number }>() }, async (ctx) => {
 *   ctx.state.set("count", (ctx.state.get("count") ?? 0) + 1);
 * });
 * ```
 */
export function typed<T>(): Schema<T, T> {
  return { "~standard": { version: 1, vendor: "reprise", validate: (value) => ({ value: value as T }) } };
}

function issuesText(issues: readonly StandardSchemaV1.Issue[]): string {
  return issues
    .slice(0, 5)
    .map((issue) => {
      const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
      return path === "" ? issue.message : `${path}: ${issue.message}`;
    })
    .join("; ");
}

function resultOf(result: StandardSchemaV1.Result<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  throw new RepriseError("BAD_INPUT", `The input of ${what} does not match its schema: ${issuesText(result.issues)}.`, {
    details: { issues: result.issues.map(({ message, path }) => ({ message, path: path?.map(String) })) },
  });
}

/** Validates outside workflow code, where the schema may be asynchronous. */
export async function parse(
  schema: Schema<never, unknown> | undefined,
  value: unknown,
  what: string,
): Promise<unknown> {
  if (schema === undefined) return value;
  return resultOf(await schema["~standard"].validate(value), what);
}

/** Validates inside workflow code, where the schema must be synchronous. */
export function parseNow(schema: Schema<never, unknown> | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value;
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise)
    throw new RepriseError(
      "BAD_INPUT",
      `The schema of ${what} validates asynchronously, but inside a workflow it must be synchronous. Validate before the workflow starts, or inside the function.`,
    );
  return resultOf(result, what);
}
