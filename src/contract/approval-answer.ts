// Approval answer: which value the buttons Approve and Reject send to a promise. One rule for the dashboard and for approval links; it
// follows from the JSON Schema of the port alone, never from a payload.
//
// approval-answer.A1. A schema of a boolean: Approve sends true, Reject sends false.
// approval-answer.A2. A schema of an object with a boolean property `ok` or `approved`: Approve sends it as true, Reject as false. A
//   required text `by` is the caller's name; a text `reason`, `comment` or `note` is the reason.
// approval-answer.A3. Otherwise, and where another property is required, no button guesses: the person writes the value, and Reject
//   rejects the promise with the reason.

type Schema = Readonly<Record<string, unknown>>;

/** The properties that mean yes or no. */
const DECISIONS = ["ok", "approved"];
const REASONS = ["reason", "comment", "note"];
/** A schema refers to itself or nests too deeply. */
const MAX_DEPTH = 8;

export interface AnswerFacts {
  readonly by?: string;
  readonly reason?: string;
}

/** The value that a button sends; undefined: the schema does not tell. */
export function approvalAnswer(
  schema: unknown,
  approves: boolean,
  { by = "", reason = "" }: AnswerFacts = {},
): { readonly value: unknown } | undefined {
  for (const one of alternativesOf(schema)) {
    if (isBoolean(one, approves)) return { value: approves };
    const value = objectAnswer(one, approves, by, reason);
    if (value !== undefined) return { value };
  }
  return undefined;
}

function objectAnswer(
  schema: Schema,
  approves: boolean,
  by: string,
  reason: string,
): Readonly<Record<string, unknown>> | undefined {
  const properties = schema["properties"];
  if (!isSchema(properties)) return undefined;
  const decision = DECISIONS.find((name) => isBoolean(properties[name], approves));
  if (decision === undefined) return undefined;
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly unknown[]) : [];
  const value: Record<string, unknown> = { [decision]: approves };
  if (by !== "" && isText(properties["by"])) value["by"] = by;
  const note = REASONS.find((name) => isText(properties[name]));
  if (note !== undefined && (reason !== "" || required.includes(note))) value[note] = reason;
  return required.every((name) => typeof name === "string" && Object.hasOwn(value, name)) ? value : undefined;
}

/** A value to start editing from: what is required, with empty values. */
export function templateOf(schema: unknown, depth = 0): unknown {
  const [one] = alternativesOf(schema);
  if (one === undefined || depth > MAX_DEPTH) return null;
  if ("default" in one) return one["default"];
  if ("const" in one) return one["const"];
  if (Array.isArray(one["enum"])) return (one["enum"] as readonly unknown[])[0];
  switch (one["type"]) {
    case "object": {
      const properties = isSchema(one["properties"]) ? one["properties"] : {};
      const required = Array.isArray(one["required"]) ? (one["required"] as readonly string[]) : [];
      const shown = required.length > 0 ? required : Object.keys(properties);
      return Object.fromEntries(shown.map((name) => [name, templateOf(properties[name], depth + 1)]));
    }
    case "array":
      return [];
    case "boolean":
      return true;
    case "string":
      return "";
    case "integer":
    case "number":
      return typeof one["minimum"] === "number" ? one["minimum"] : 0;
    default:
      return null;
  }
}

function alternativesOf(schema: unknown): readonly Schema[] {
  if (!isSchema(schema)) return [];
  const either = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(either) ? either.filter(isSchema) : [schema];
}

function isBoolean(schema: unknown, value: boolean): boolean {
  if (!isSchema(schema)) return false;
  if ("const" in schema) return schema["const"] === value;
  return schema["type"] === "boolean";
}

function isText(schema: unknown): boolean {
  return isSchema(schema) && schema["type"] === "string" && !("enum" in schema) && !("format" in schema);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
