// Elicitation form: the request that asks a person for the value of a promise, and the value of the answer.
//
// elicitation-form.E1. A form of MCP is flat: an object of texts, numbers, booleans and choices. A port whose schema is such an object is asked
//   for by it; a single value by a field `value`; anything else by a field `value` that takes JSON. The schema of the port has the last word
//   when the promise is resolved.

import type { OpenPromiseBody, RunDetail } from "../../contract/index.ts";
import { isObject, type Params } from "./rpc.ts";

export interface ElicitationForm {
  /** `elicitation/create` with its form. */
  readonly request: object;
  valueOf(content: Params): { readonly value: unknown } | { readonly problem: string };
}

const MAX_SHOWN = 2_000;

export function formOf({ id, definition }: RunDetail, promise: OpenPromiseBody, schema: unknown): ElicitationForm {
  const what = promise.key === undefined ? promise.name : `${promise.name} (${promise.key})`;
  const shown = promise.show === undefined ? "" : `\n${shownText(promise.show)}`;
  const { requestedSchema, valueOf } = fieldsOf(schema);
  return {
    request: {
      method: "elicitation/create",
      params: { mode: "form", message: `Run ${id} (${definition}) waits for ${what}.${shown}`, requestedSchema },
    },
    valueOf,
  };
}

function shownText(show: unknown): string {
  const text = typeof show === "string" ? show : JSON.stringify(show, null, 2);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

interface FormFields {
  readonly requestedSchema: object;
  readonly valueOf: ElicitationForm["valueOf"];
}

/** elicitation-form.E1 */
function fieldsOf(schema: unknown): FormFields {
  const { type, properties, required } = isObject(schema) ? schema : {};
  if (type === "object" && isObject(properties)) {
    const fields = Object.entries(properties).map(([name, one]) => [name, fieldOf(one)] as const);
    if (fields.length > 0 && fields.every(([, field]) => field !== undefined))
      return {
        requestedSchema: {
          type: "object",
          properties: Object.fromEntries(fields),
          ...(Array.isArray(required) && { required: required as readonly unknown[] }),
        },
        valueOf: (content) => ({ value: content }),
      };
  }
  const single = fieldOf(schema);
  if (single !== undefined)
    return {
      requestedSchema: { type: "object", properties: { value: single }, required: ["value"] },
      valueOf: ({ value }) => (value === undefined ? { problem: "expected content.value" } : { value }),
    };
  return {
    requestedSchema: {
      type: "object",
      properties: {
        value: { type: "string", title: "Value", description: 'A JSON value, such as true or {"ok":true}.' },
      },
      required: ["value"],
    },
    valueOf: ({ value }) => parsed(value),
  };
}

function parsed(value: unknown): { readonly value: unknown } | { readonly problem: string } {
  if (typeof value !== "string") return { problem: "expected content.value, JSON as a text" };
  try {
    return { value: JSON.parse(value) as unknown };
  } catch {
    return { problem: `content.value is not JSON: ${value.slice(0, 100)}` };
  }
}

/** Keywords that a form has, by type. */
const KEYWORDS: Readonly<Record<string, readonly string[]>> = {
  string: ["type", "title", "description", "minLength", "maxLength", "enum", "default"],
  number: ["type", "title", "description", "minimum", "maximum", "default"],
  integer: ["type", "title", "description", "minimum", "maximum", "default"],
  boolean: ["type", "title", "description", "default"],
};
const FORMATS = ["email", "uri", "date", "date-time"];

/** Undefined: a form has no such field. */
function fieldOf(schema: unknown): Params | undefined {
  if (!isObject(schema) || typeof schema["type"] !== "string") return undefined;
  const { type, format, enum: choices } = schema;
  const keywords = KEYWORDS[type as string];
  if (keywords === undefined) return undefined;
  if (choices !== undefined && !(Array.isArray(choices) && choices.every((one) => typeof one === "string")))
    return undefined;
  const kept = Object.fromEntries(Object.entries(schema).filter(([name]) => keywords.includes(name)));
  return typeof format === "string" && FORMATS.includes(format) ? { ...kept, format } : kept;
}
