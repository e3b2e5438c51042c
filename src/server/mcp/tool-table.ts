// Tool table: every tool but those that start runs of a definition (start-tools.ts).
//
// tool-table.L1. Tools that read need no permission beyond the role. Tools that act are listed only where `allow` names them.

import { json, object, optional, text, type JsonSchema } from "../../contract/index.ts";
import { readStreamPage, STREAM_ARGUMENTS } from "./stream-page.ts";
import { operationTool, type McpTool, type OperationTool } from "./tool.ts";

const RUN = { id: "run" };
const NEXT_PAGE = "Ask for the next page with `after`, or for less with a filter.";

/** Tools that are one operation each. */
const OPERATION_TOOLS: readonly OperationTool[] = [
  {
    name: "runs_list",
    title: "List runs",
    operation: "listRuns",
    rest: NEXT_PAGE,
  },
  {
    name: "run_show",
    title: "Show a run",
    operation: "getRun",
    names: RUN,
    rest: "`run_journal` has the run entry by entry, in pages.",
  },
  {
    name: "run_journal",
    title: "Read the journal of a run",
    operation: "listJournal",
    names: RUN,
    rest: NEXT_PAGE,
  },
  {
    name: "run_diff",
    title: "Compare two runs",
    operation: "diffRuns",
    names: RUN,
    rest: "`limit` asks for fewer differences; `run_journal` has the values.",
  },
  {
    name: "promises_list",
    title: "List open promises",
    description:
      "Lists the promises that live runs wait for, such as approvals. `promise_resolve` answers one, where it is allowed.",
    operation: "listPromises",
    rest: NEXT_PAGE,
  },
  { name: "queues", title: "List queues", operation: "listQueues" },
  { name: "schedules", title: "List schedules", operation: "listSchedules", rest: NEXT_PAGE },
  {
    name: "run_signal",
    title: "Send a signal to a run",
    operation: "sendSignal",
    names: { ...RUN, name: "signal" },
  },
  { name: "run_cancel", title: "Cancel a run", operation: "cancelRun", names: RUN, isDestructive: true },
  { name: "run_retry", title: "Retry a failed run", operation: "retryRun", names: RUN },
  { name: "run_fork", title: "Fork a run", operation: "forkRun", names: RUN },
];

const RUN_ARGUMENT = text({ minLength: 1, description: "The id of the run." });

const runWhy: McpTool = {
  name: "run_why",
  title: "Explain why a run does not move",
  description:
    "Says what a run does now or how it ended, why it does not move, and the commands that help, the best one first.",
  inputSchema: object({ run: RUN_ARGUMENT }),
  role: "viewer",
  acts: false,
  async call({ run }, { caller, operations, signal }) {
    const id = String(run);
    const detail = (await operations.call("getRun", caller, { params: { id } }, signal)) as {
      readonly status: string;
      readonly waitsFor: readonly unknown[];
      readonly error?: unknown;
    };
    const reasons = (await operations.call("listReasons", caller, { query: { run: [id] } }, signal)) as {
      readonly items: readonly { readonly text: string; readonly command?: string }[];
    };
    const { text: now, command } = reasons.items[0] ?? {};
    return {
      run: id,
      status: detail.status,
      ...(now !== undefined && { now }),
      ...(command !== undefined && { command }),
      ...(detail.error !== undefined && { error: detail.error }),
      waitsFor: detail.waitsFor,
    };
  },
};

const runStream: McpTool = {
  name: "run_stream",
  title: "Read a stream of a run",
  description:
    "Reads the values that a run has put into a stream, oldest first. `next` continues behind the last one; a frame with `reset` voids the values of its step before it.",
  inputSchema: STREAM_ARGUMENTS,
  role: "reader",
  acts: false,
  pages: true,
  rest: "Ask for the next frames with `after`.",
  call: (args, call) => readStreamPage(args, call),
};

function definitionsTool(): McpTool {
  const list = operationTool({ name: "definitions", title: "List definitions", operation: "listDefinitions" });
  const { properties } = list.inputSchema as { readonly properties: Readonly<Record<string, JsonSchema>> };
  return {
    ...list,
    title: "List definitions, or read one",
    description:
      "Lists the workflows, graphs and flows that can be started or have runs, with versions, ports and the JSON Schema of the input. With `name`: that one, with its picture.",
    inputSchema: {
      ...list.inputSchema,
      properties: { name: text({ minLength: 1, description: "Only this definition." }), ...properties },
    },
    rest: NEXT_PAGE,
    call: ({ name, ...args }, call) =>
      typeof name === "string"
        ? call.operations.call("getDefinition", call.caller, { params: { name } }, call.signal)
        : list.call(args, call),
  };
}

const promiseResolve: McpTool = {
  name: "promise_resolve",
  title: "Answer a promise",
  description:
    "Resolves a promise that a run waits for with `value`, or rejects it with the message `reject`. `promises_list` has the open ones. The answer carries the name of this caller.",
  inputSchema: object({
    run: RUN_ARGUMENT,
    port: text({ minLength: 1, description: "The name of the promise." }),
    key: optional(text({ minLength: 1, description: "The key, of a promise that has one." })),
    value: optional(json("The value; leave it out for a promise without one.")),
    reject: optional(text({ maxLength: 4000, description: "Rejects the promise with this message instead." })),
    reason: optional(text({ maxLength: 1000, description: "Why, for the history of the run." })),
  }),
  role: "approver",
  acts: true,
  isDestructive: true,
  call({ run, port, key, reject, ...rest }, { caller, operations, signal }) {
    const params = { id: String(run), port: String(port) };
    const { value, reason } = rest;
    const body = {
      ...(reject === undefined ? "value" in rest && { value } : { reject }),
      ...(reason !== undefined && { reason }),
    };
    return typeof key === "string"
      ? operations.call("settleKeyedPromise", caller, { params: { ...params, key }, body }, signal)
      : operations.call("settlePromise", caller, { params, body }, signal);
  },
};

export function toolTable(): readonly McpTool[] {
  return [...OPERATION_TOOLS.map(operationTool), runWhy, runStream, definitionsTool(), promiseResolve];
}
