// Durable agent tool: a function tool of the OpenAI Agents SDK whose calls are steps of a run (tool-calls.ts).

import type { FunctionTool } from "@openai/agents";
import { plainData } from "../plain-data.ts";
import { signalOf } from "../model-call.ts";
import { callTool, checkToolHow, checkToolNames, type ToolCalls, type ToolHow } from "../tool-calls.ts";
import { argumentsText, parsedArguments } from "./tool-arguments.ts";

type AnyTool = FunctionTool<any, any, any>;

export interface AgentToolCalls extends ToolCalls {
  /** durable-agents.G2. By the id of the call. */
  readonly edited: Map<string, unknown>;
  /** The names of wrapped tools. */
  readonly wrapped: Set<string>;
}

export function durableAgentTool<T extends AnyTool>(
  calls: AgentToolCalls,
  all: readonly AnyTool[],
  tool: T,
  hows: Readonly<Record<string, ToolHow>>,
): T {
  checkToolNames(
    all.map(({ name }) => name),
    hows,
  );
  const how = hows[tool.name] ?? {};
  checkToolHow(calls, tool.name, how, true);
  calls.wrapped.add(tool.name);
  const invoke: AnyTool["invoke"] = async (context, text, details) => {
    const toolCallId = details?.toolCall?.callId ?? tool.name;
    const { output } = await callTool(calls, tool.name, how, {
      input: calls.edited.has(toolCallId) ? calls.edited.get(toolCallId) : parsedArguments(text),
      toolCallId,
      execute: async (input, op) => {
        const given = op === undefined ? details : { ...details, signal: signalOf(op, details?.signal) };
        return plainData(await tool.invoke(context, argumentsText(input), given));
      },
      // The function of the tool parses it, as it parses what the model wrote.
      parse: (edited) => Promise.resolve(edited),
    });
    return output;
  };
  return { ...tool, invoke };
}
