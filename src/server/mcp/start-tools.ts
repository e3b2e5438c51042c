// Start tools: one tool per definition that this process can start, `start_<definition>`.
//
// start-tools.S1. The input schema is `{ input, id, tags }`, where `input` has the JSON Schema of the definition. The definition's own schema
//   decides what is accepted, when the run is started.
// start-tools.S2. A caller sees a tool of a definition in its scope only.

import { hash } from "node:crypto";
import { list, optional, object, text, type JsonSchema } from "../../contract/index.ts";
import { maySeeDefinition } from "../auth/scope.ts";
import type { Caller, ServerHost } from "../host.ts";
import { jsonSchemaOf } from "../read/definition-body.ts";
import { accessOf } from "../read/view.ts";
import { isObject } from "./rpc.ts";
import type { McpTool } from "./tool.ts";
import { startAndWait } from "./started-run.ts";

/** What clients accept as the name of a tool. */
const MAX_NAME = 64;

/** start-tools.S2 */
export function startTools(host: ServerHost, caller: Caller): readonly McpTool[] {
  const { registry } = accessOf(host);
  const names = registry.definitionNames;
  return names
    .filter((name) => maySeeDefinition(caller, name))
    .map((name) => {
      const body = registry.findWorkflow(name);
      return startTool(name, startToolName(name, names), body?.kind ?? "workflow", jsonSchemaOf(body?.schema));
    });
}

/** `start_checkout`. A name with other characters, or one that is too long, gets a hash, so that no two are the same. */
export function startToolName(definition: string, all: readonly string[]): string {
  const plain = `start_${definition.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`;
  const isTaken = all.some((one) => one !== definition && `start_${one.replaceAll(/[^A-Za-z0-9_-]/g, "_")}` === plain);
  if (plain.length <= MAX_NAME && !isTaken) return plain;
  const mark = hash("sha256", definition).slice(0, 8);
  return `${plain.slice(0, MAX_NAME - mark.length - 1)}_${mark}`;
}

function startTool(definition: string, name: string, kind: string, schema: unknown): McpTool {
  return {
    name,
    title: `Start ${definition}`,
    description: `Starts a run of the ${kind} ${definition}. Answers its output if it ends within 20 seconds, otherwise the id of the run, which continues; \`run_show\` reads it.`,
    inputSchema: withInput(schema),
    argumentSchema: withInput(undefined),
    role: "operator",
    acts: true,
    definition,
    rest: "`run_show` and `run_journal` have the run.",
    call: (args, call) => startAndWait(definition, args, call),
  };
}

const ARGUMENTS = {
  id: optional(
    text({
      minLength: 1,
      description:
        "The id of the run. The same id with the same input is the same run, so a repeated call starts none.",
    }),
  ),
  tags: optional(list(text(), { maxItems: 100, description: "Tags of the run, for `runs_list`." })),
};

/** start-tools.S1. References inside the schema start at its root, so its definitions move to the root of the tool's. */
function withInput(schema: unknown): JsonSchema {
  const base = object(ARGUMENTS) as JsonSchema & { readonly properties: Readonly<Record<string, unknown>> };
  if (!isObject(schema))
    return { ...base, properties: { input: { description: "Any JSON value." }, ...base.properties } };
  const { $defs, definitions, $schema: _dialect, ...input } = schema;
  const isRecursive = JSON.stringify(input).includes('"$ref":"#"');
  return {
    ...base,
    properties: { input: isRecursive ? { description: "Any JSON value." } : input, ...base.properties },
    required: ["input"],
    ...($defs !== undefined && { $defs }),
    ...(definitions !== undefined && { definitions }),
  };
}
