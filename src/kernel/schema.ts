// Schemas at the door: Standard Schema (zod, valibot, arktype), validated once, the parsed value is what is stored.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { RepriseError } from "../base/index.ts";

/** A Standard Schema: takes `In`, gives `Out`. */
export type Schema<In, Out = In> = StandardSchemaV1<In, Out>;

/**
 * A schema that checks nothing and only carries a type.
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
  throw new RepriseError("BAD_INPUT", `The input of ${what} does not fit its schema: ${issuesText(result.issues)}.`, {
    details: { issues: result.issues.map(({ message, path }) => ({ message, path: path?.map(String) })) },
  });
}

/** Validates where waiting is possible. */
export async function parse(
  schema: Schema<never, unknown> | undefined,
  value: unknown,
  what: string,
): Promise<unknown> {
  if (schema === undefined) return value;
  return resultOf(await schema["~standard"].validate(value), what);
}

/** Validates inside workflow code, where nothing may be awaited. */
export function parseNow(schema: Schema<never, unknown> | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value;
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise)
    throw new RepriseError(
      "BAD_INPUT",
      `The schema of ${what} validates asynchronously; inside a workflow it must be synchronous. Validate before the workflow starts, or inside the function.`,
    );
  return resultOf(result, what);
}
