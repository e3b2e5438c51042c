// Tool: what an agent can call over MCP. A tool is an operation of the HTTP API under a name of its own, or is made of several.
//
// tool.T1. The input schema of a tool is that of its operation: the names of the path, the query and the body in one object. Payloads have
//   no choice of form, and `by` is always the caller: a model that could write another name there could approve in the name of a person.
// tool.T2. A tool needs the role of its operations. A caller with a lower role sees it in no list, and the call is refused.

import { InvariantError, RepriseError } from "../../base/index.ts";
import {
  checkJson,
  controlOperations,
  definitionOperations,
  messageOperations,
  promiseOperations,
  queueOperations,
  ROLES,
  runOperations,
  runReadOperations,
  scheduleOperations,
  type JsonSchema,
  type Operation,
  type Role,
} from "../../contract/index.ts";
import { hasRole } from "../auth/role.ts";
import type { Caller } from "../host.ts";
import type { OperationInput, Operations } from "./call-operation.ts";
import type { Params } from "./rpc.ts";

/** What a tool gets besides its arguments. */
export interface ToolCall {
  readonly caller: Caller;
  readonly operations: Operations;
  readonly signal: AbortSignal;
}

export interface McpTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** What arguments are checked with, if parts of the input schema are not of the contract. */
  readonly argumentSchema?: JsonSchema;
  /** The least role of a caller. */
  readonly role: Role;
  /** It changes state: `allow` must name it. */
  readonly acts: boolean;
  /** The definition whose runs it starts. */
  readonly definition?: string;
  /** What is lost or repeated with it, for the client to ask a person. */
  readonly isDestructive?: boolean;
  /** The argument that bounds a page, so that an answer that is too long is asked for again in a smaller page. */
  readonly pages?: boolean;
  /** How the rest of an answer is reached that had to be cut. */
  readonly rest?: string;
  call(args: Params, call: ToolCall): Promise<unknown>;
}

/** The operations that tools are made of. */
const OF_TOOLS: Readonly<Record<string, Operation>> = {
  ...controlOperations,
  ...definitionOperations,
  ...messageOperations,
  ...promiseOperations,
  ...queueOperations,
  ...runOperations,
  ...runReadOperations,
  ...scheduleOperations,
};

/** How an operation becomes a tool. */
export interface OperationTool {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  /** The key of the operation. */
  readonly operation: string;
  /** Names of the tool for names in the path: `{ id: "run" }`. */
  readonly names?: Readonly<Record<string, string>>;
  /** Names of the operation that the tool leaves out. */
  readonly without?: readonly string[];
  readonly rest?: string;
  readonly isDestructive?: boolean;
}

const NEVER = ["payloads", "by", "error"];

interface Field {
  readonly part: "params" | "query" | "body";
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** tool.T1 */
export function operationTool(tool: OperationTool): McpTool {
  const operation = OF_TOOLS[tool.operation];
  if (operation === undefined) throw new InvariantError(`The tool ${tool.name} is of no operation.`);
  const fields = fieldsOf(operation, tool);
  const inputSchema: JsonSchema = {
    type: "object",
    properties: Object.fromEntries([...fields].map(([name, { schema }]) => [name, schema])),
    required: [...fields].filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    additionalProperties: false,
  };
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description ?? operation.summary,
    inputSchema,
    role: operation.role === "public" ? ROLES[0] : operation.role,
    acts: operation.method !== "GET",
    pages: fields.has("limit"),
    ...(tool.isDestructive === true && { isDestructive: true }),
    ...(tool.rest !== undefined && { rest: tool.rest }),
    call: (args, { caller, operations, signal }) =>
      operations.call(tool.operation, caller, inputOf(fields, args), signal),
  };
}

function fieldsOf(operation: Operation, { names = {}, without = [] }: OperationTool): ReadonlyMap<string, Field> {
  const fields = new Map<string, Field>();
  const add = (part: Field["part"], name: string, schema: JsonSchema, isRequired: boolean): void => {
    if (!NEVER.includes(name) && !without.includes(name))
      fields.set(part === "params" ? (names[name] ?? name) : name, { part, name, schema, isRequired });
  };
  for (const [, name] of operation.path.matchAll(/\{(\w+)\}/g))
    add("params", name!, { type: "string", minLength: 1, description: DESCRIBED[name!] ?? `The ${name}.` }, true);
  for (const part of ["query", "body"] as const) {
    const { properties = {}, required = [] } = (operation[part] ?? {}) as {
      readonly properties?: Readonly<Record<string, JsonSchema>>;
      readonly required?: readonly string[];
    };
    for (const [name, schema] of Object.entries(properties)) add(part, name, schema, required.includes(name));
  }
  return fields;
}

const DESCRIBED: Readonly<Record<string, string>> = {
  id: "The id of the run.",
  other: "The id of the run to compare with.",
  name: "The name.",
};

function inputOf(fields: ReadonlyMap<string, Field>, args: Params): OperationInput {
  const input = { params: {} as Record<string, string>, query: {} as Params, body: {} as Params };
  for (const [given, { part, name }] of fields)
    if (args[given] !== undefined) (input[part] as Record<string, unknown>)[name] = args[given];
  return input;
}

/** tool.T2 */
export function mayCall({ role }: McpTool, caller: Caller): boolean {
  return hasRole(caller, role);
}

/** Refuses arguments that the schema does not have. */
export function checkArguments({ name, inputSchema, argumentSchema = inputSchema }: McpTool, args: unknown): void {
  const issues = checkJson(argumentSchema, args);
  const [first] = issues;
  if (first === undefined) return;
  const more = issues.length > 1 ? `, and ${issues.length - 1} more` : "";
  throw new RepriseError(
    "BAD_FORMAT",
    `The arguments of ${name} do not match its input schema: ${first.path}: ${first.message}${more}. \`tools/list\` has the schema.`,
    { details: { status: 400, issues } },
  );
}
