// Endpoint: answers messages of the Model Context Protocol for a caller, without knowing how they travel.
//
// endpoint.M1. A tool is listed and callable if the caller has its role and, of a tool that acts, `allow` names it. The check of the call is
//   the one of the list: a tool that is not listed does not exist.
// endpoint.M2. What a tool refuses is a result with `isError`, so that the model reads why; a protocol error is for messages that no client
//   of the protocol sends.
// endpoint.M3. The endpoint keeps nothing between messages (revision.V1), so every server of a store answers for every task.

import { RepriseError } from "../../base/index.ts";
import type { Client } from "../../engine/index.ts";
import type { Caller } from "../host.ts";
import { accessOf } from "../read/view.ts";
import type { Operations } from "./call-operation.ts";
import { searchTool } from "./search-tool.ts";
import { fits } from "./fit-answer.ts";
import { ResourceNotFound, Resources } from "./resources.ts";
import { hasExtension, LEGACY_VERSIONS, MODERN_VERSIONS, resultFor, revisionOf } from "./revision.ts";
import type { Revision } from "./revision.ts";
import {
  readMessage,
  RPC_ERROR,
  rpcFailure,
  RpcRefusal,
  rpcResult,
  shortText,
  type Params,
  type RpcAnswer,
  type RpcRequest,
} from "./rpc.ts";
import { startTools, startToolName } from "./start-tools.ts";
import { answerTask, startTask, type TaskContext } from "./task-requests.ts";
import { TASKS_EXTENSION } from "./tasks.ts";
import { checkArguments, mayCall, type McpTool, type ToolCall } from "./tool.ts";
import { refusedResult, toolResult } from "./tool-result.ts";
import { toolTable } from "./tool-table.ts";

/** Which tools that act there are: all that the caller's role allows, or those with these names, or of these definitions. */
export type Allow = "all" | readonly string[];

export interface EndpointOptions {
  readonly version: string;
  readonly operations: Operations;
  readonly allow: Allow;
  /** Tools besides those of the table. */
  readonly tools?: readonly McpTool[];
  readonly onError: (error: unknown) => void;
}

/** Who sends a message, and until when its answer is wanted. */
export interface MessageContext {
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

interface Context extends MessageContext {
  readonly revision: Revision;
}

const NOT_FOUND_UNTIL_2025 = -32_002;

export class McpEndpoint {
  readonly #options: EndpointOptions;
  readonly #resources = new Resources();
  readonly #table: readonly McpTool[];

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.#table = [...toolTable(), searchTool(this.#resources), ...(options.tools ?? [])];
  }

  /** Refuses names in `allow` that no tool and no definition has: an agent would not tell that a tool is missing. */
  checkAllow(client: Client): void {
    const { allow } = this.#options;
    if (allow === "all") return;
    const { registry } = accessOf({ client });
    const definitions = registry.definitionNames;
    const names = [
      ...this.#table.filter(({ acts }) => acts).map(({ name }) => name),
      ...definitions.map((name) => startToolName(name, definitions)),
    ];
    for (const name of allow)
      if (!names.includes(name) && !definitions.includes(name))
        throw new RepriseError(
          "BAD_OPTIONS",
          `allow: there is no tool ${JSON.stringify(name)} that acts, and no such definition. There are: ${names.join(", ")}.`,
        );
  }

  /** rpc.R1 */
  async answer(message: unknown, context: MessageContext): Promise<RpcAnswer | undefined> {
    const read = readMessage(message);
    if (read.kind === "invalid") return rpcFailure(read.id, read.refusal);
    if (read.kind !== "request") return undefined;
    const { id, method, params } = read.request;
    let isModern = false;
    try {
      const revision = revisionOf(params);
      ({ isModern } = revision);
      const result = await this.#call(read.request, { ...context, revision });
      return rpcResult(id, resultFor(revision, method, result, this.#serverInfo()));
    } catch (error) {
      if (!(error instanceof RpcRefusal)) this.#options.onError(error);
      if (!isModern && error instanceof ResourceNotFound)
        return rpcFailure(id, new RpcRefusal(NOT_FOUND_UNTIL_2025, error.message, error.data));
      return rpcFailure(id, error);
    }
  }

  async #call({ method, params }: RpcRequest, context: Context): Promise<object> {
    const { isModern } = context.revision;
    switch (method) {
      case "initialize":
        if (isModern) break;
        return this.#initialize(params);
      case "ping":
        if (isModern) break;
        return {};
      case "server/discover":
        if (!isModern) break;
        return { supportedVersions: [...MODERN_VERSIONS], ...this.#describe(true) };
      case "resources/list":
        return this.#resources.list(params);
      case "resources/templates/list":
        return this.#resources.templates();
      case "resources/read":
        return this.#resources.read(params, this.#toolCall(context));
      case "tools/list":
        return this.#listTools(context);
      case "tools/call":
        return this.#callTool(params, context);
      case "tasks/get":
      case "tasks/update":
      case "tasks/cancel":
        if (!isModern) break;
        return answerTask(method, params, this.#taskContext(context));
    }
    throw new RpcRefusal(RPC_ERROR.method, `There is no method ${shortText(method)}.`);
  }

  #serverInfo(): object {
    return { name: "reprise", title: "Reprise", version: this.#options.version };
  }

  #describe(isModern: boolean): object {
    return {
      capabilities: {
        resources: {},
        tools: {},
        ...(isModern && { extensions: { [TASKS_EXTENSION]: {} } }),
      },
      instructions:
        "Runs and documents of Reprise, a durable execution engine for TypeScript. `runs_list` and `run_why` say what runs do and why one does not move. Read reprise://docs/SKILL.md before you write code with Reprise, and reprise://docs/errors/<CODE>.md for an error code. Payloads are redacted; answers are cut to 32 KB and say how to get the rest.",
    };
  }

  #initialize({ protocolVersion }: Params): object {
    const version = LEGACY_VERSIONS.find((one) => one === protocolVersion) ?? LEGACY_VERSIONS[0];
    return { protocolVersion: version, serverInfo: this.#serverInfo(), ...this.#describe(false) };
  }

  #toolCall({ caller, signal }: MessageContext): ToolCall {
    return { caller, signal, operations: this.#options.operations };
  }

  #taskContext(context: Context): TaskContext {
    const mayUse = (name: string): boolean =>
      this.#table.some((tool) => tool.name === name && this.#isAllowed(tool, context.caller));
    return { ...this.#toolCall(context), revision: context.revision, mayUse };
  }

  // ── tools ──

  /** endpoint.M1 */
  async #toolsFor(caller: Caller): Promise<readonly McpTool[]> {
    return [...this.#table, ...(await this.#startTools(caller))].filter((tool) => this.#isAllowed(tool, caller));
  }

  async #findTool(name: unknown, caller: Caller): Promise<McpTool | undefined> {
    const isNamed = (tool: McpTool): boolean => tool.name === name;
    const tool = this.#table.find(isNamed) ?? (await this.#startTools(caller)).find(isNamed);
    return tool !== undefined && this.#isAllowed(tool, caller) ? tool : undefined;
  }

  /** A store that cannot be opened has no definitions; the other tools say why it cannot. */
  async #startTools(caller: Caller): Promise<readonly McpTool[]> {
    const host = await this.#options.operations.host().catch(() => undefined);
    return host === undefined ? [] : startTools(host, caller);
  }

  #isAllowed(tool: McpTool, caller: Caller): boolean {
    const { allow } = this.#options;
    const isNamed =
      allow === "all" ||
      allow.includes(tool.name) ||
      (tool.definition !== undefined && allow.includes(tool.definition));
    return mayCall(tool, caller) && (!tool.acts || isNamed);
  }

  async #listTools(context: Context): Promise<object> {
    const tools = await this.#toolsFor(context.caller);
    return {
      tools: tools.map(({ name, title, description, inputSchema, acts, isDestructive = false }) => ({
        name,
        title,
        description,
        inputSchema,
        annotations: {
          title,
          readOnlyHint: !acts,
          ...(acts ? { destructiveHint: isDestructive } : { idempotentHint: true }),
          openWorldHint: acts,
        },
      })),
    };
  }

  async #callTool({ name, arguments: args = {} }: Params, context: Context): Promise<object> {
    const tool = await this.#findTool(name, context.caller);
    if (tool === undefined) throw new RpcRefusal(RPC_ERROR.params, `There is no tool ${shortText(name)}.`);
    try {
      checkArguments(tool, args);
      const given = args as Params;
      if (tool.definition !== undefined && hasExtension(context.revision, TASKS_EXTENSION))
        return await startTask(tool.definition, given, this.#taskContext(context));
      return toolResult(await callInPages(tool, given, this.#toolCall(context)), tool.rest);
    } catch (error) {
      if (error instanceof RpcRefusal) throw error;
      context.signal.throwIfAborted();
      // endpoint.M2
      return refusedResult(error, this.#options.onError);
    }
  }
}

const DEFAULT_PAGE = 50;

/** fit-answer.F1 */
async function callInPages(tool: McpTool, args: Params, call: ToolCall): Promise<unknown> {
  let answer = await tool.call(args, call);
  if (tool.pages !== true) return answer;
  let limit = typeof args["limit"] === "number" ? args["limit"] : DEFAULT_PAGE;
  while (!fits(answer) && limit > 1) {
    limit = Math.ceil(limit / 2);
    answer = await tool.call({ ...args, limit }, call);
  }
  return answer;
}
