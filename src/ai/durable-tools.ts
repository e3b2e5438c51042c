// Durable tools: the tools of the AI SDK, whose calls are steps of a run (tool-calls.ts).

import { asSchema, type Tool, type ToolSet } from "ai";
import { RepriseError } from "../base/index.ts";
import { isTask } from "../kernel/index.ts";
import { signalOf } from "./model-call.ts";
import { callTool, checkToolHow, checkToolNames, type ToolCalls, type ToolHow } from "./tool-calls.ts";

type ToolOptions = Parameters<NonNullable<Tool<unknown, unknown>["execute"]>>[1];
interface AnyTool {
  readonly execute?: ((input: unknown, options: ToolOptions) => unknown) | undefined;
  readonly inputSchema?: unknown;
  readonly toModelOutput?: unknown;
}

export function durableTools<T extends ToolSet>(
  calls: ToolCalls,
  tools: T,
  how: { readonly [K in keyof T]?: ToolHow },
): T {
  checkToolNames(Object.keys(tools), how);
  const wrapped = Object.entries(tools).map(([name, tool]) => [
    name,
    durableTool(calls, name, tool as AnyTool, how[name] ?? {}),
  ]);
  return Object.fromEntries(wrapped) as T;
}

function durableTool(calls: ToolCalls, name: string, tool: AnyTool, how: ToolHow): AnyTool {
  checkToolHow(calls, name, how, tool.execute !== undefined);
  // A tool of the provider, or of the client: nothing is called here.
  if (tool.execute === undefined && !isTask(how.as)) return tool;
  const denied = new Set<string>();
  const execute = async (input: unknown, options: ToolOptions): Promise<unknown> => {
    const { toolCallId } = options;
    const { output, isDenied } = await callTool(calls, name, how, {
      input,
      toolCallId,
      execute: (given, op) =>
        tool.execute?.(given, op ? { ...options, abortSignal: signalOf(op, options.abortSignal) } : options),
      parse: (edited) => parseInput(name, tool, edited),
    });
    if (isDenied) denied.add(toolCallId);
    return output;
  };
  return { ...tool, execute, ...(tool.toModelOutput !== undefined && { toModelOutput: outputOf(tool, denied) }) };
}

type ModelOutput = (given: { readonly toolCallId: string; readonly output: unknown }) => unknown;

/** The function of the tool expects results of the tool, not a refusal. */
function outputOf({ toModelOutput }: AnyTool, denied: ReadonlySet<string>): ModelOutput {
  return (given) =>
    denied.has(given.toolCallId) ? { type: "text", value: given.output } : (toModelOutput as ModelOutput)(given);
}

/** The input that a person wrote, as the schema of the tool parses it. */
async function parseInput(name: string, { inputSchema }: AnyTool, input: unknown): Promise<unknown> {
  const { validate } = asSchema(inputSchema as Parameters<typeof asSchema>[0]);
  if (validate === undefined) return input;
  const result = await validate(input);
  if (result.success) return result.value;
  throw new RepriseError(
    "BAD_INPUT",
    `The edited input of tool ${name} does not match its schema: ${result.error.message}`,
  );
}
