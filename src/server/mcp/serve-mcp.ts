// serveMcp: the Model Context Protocol over two streams of this process, one message per line, until the input ends.
//
// serve-mcp.S1. Standard output holds messages only. Messages are answered as they are ready, so a call that waits holds up no other.
// serve-mcp.S2. The user who starts the process can read the store anyway, so the caller is a reader. What may change state is named by `allow`;
//   then the caller is an operator.

import { systemTimers } from "../../base/index.ts";
import { silentLogger, type Definition, type Logger } from "../../kernel/index.ts";
import type { Client } from "../../engine/index.ts";
import { HTTP_LIMITS, parseJson } from "../../http/index.ts";
import { createServer, operationsOf } from "../create-server.ts";
import type { Caller } from "../host.ts";
import { lazyOperations } from "./call-operation.ts";
import type { McpEndpoint } from "./endpoint.ts";
import { mcpEndpoint } from "./endpoint-of.ts";
import { linesOf } from "./message-lines.ts";
import { readMessage, RPC_ERROR, rpcFailure, RpcRefusal } from "./rpc.ts";
import type { McpTool } from "./tool.ts";

/** A tool besides those of Reprise. It must only read. */
export interface ExtraTool {
  readonly name: string;
  readonly title: string;
  /** What it answers, for the model that chooses it. */
  readonly description: string;
  /** Answers JSON. */
  readonly call: () => Promise<unknown>;
}

/** Options of `serveMcp`. */
export interface McpOptions {
  /** Tools that act, by their names or by the definitions that they start; `"all"`: all of them. Default: none. */
  readonly allow?: "all" | readonly string[];
  /** More tools that read. */
  readonly tools?: readonly ExtraTool[];
  /** The name of the caller, in the history of runs. Default: `mcp`. */
  readonly name?: string;
  /** Default: standard input and output. */
  readonly input?: AsyncIterable<Uint8Array | string>;
  readonly output?: { write(text: string, done: (error?: Error | null) => void): unknown };
  /** Gets what failed for a reason that is not the client's. Default: none. */
  readonly logger?: Logger;
}

/**
 * Serves the Model Context Protocol over standard input and output, and returns when the input ends: for a program of your own that an
 * agent starts. It must print nothing else. A function instead of an engine or client is called when a tool first needs it.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { serveMcp } from "reprise/server";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello], logger: false });
 * const input = ['{"jsonrpc":"2.0","id":1,"method":"ping"}\n'];
 * await serveMcp(engine, { allow: ["hello"], input: (async function* () { yield* input; })() });
 * ```
 */
export async function serveMcp<Defs extends Definition>(
  engine: Client<Defs> | (() => Promise<Client<Defs>>),
  options: McpOptions = {},
): Promise<void> {
  const { allow = [], tools = [], name = "mcp", logger = silentLogger } = options;
  const { input = process.stdin, output = process.stdout } = options;
  const open = typeof engine === "function" ? engine : (): Promise<Client<Defs>> => Promise.resolve(engine);
  await using servers = new AsyncDisposableStack();
  const operations = lazyOperations(async () => {
    const server = servers.use(createServer(await open(), { dashboard: false, metrics: false, mcp: false, logger }));
    return operationsOf.get(server)!;
  });
  const onError = (error: unknown): void => logger.error(`mcp: a request failed: ${String(error)}`, { error });
  // serve-mcp.S2
  const caller: Caller = { name, role: allow.length === 0 ? "reader" : "operator" };
  const endpoint = mcpEndpoint(operations, allow, onError, tools.map(extraTool));
  if (typeof engine !== "function") endpoint.checkAllow((await operations.host()).client);
  const connection = new Connection(endpoint, caller, (text) => written(output, text));
  for await (const line of linesOf(input)) connection.take(line);
  await connection.end();
}

function extraTool({ name, title, description, call }: ExtraTool): McpTool {
  const inputSchema = { type: "object", properties: {}, additionalProperties: false };
  return { name, title, description, inputSchema, role: "reader", acts: false, call: () => call() };
}

function written(output: NonNullable<McpOptions["output"]>, text: string): Promise<void> {
  return new Promise((resolve, reject) =>
    output.write(`${text}\n`, (error) => (error === undefined || error === null ? resolve() : reject(error))),
  );
}

/** Requests that are answered at the same time. */
const MAX_OPEN = 64;
/** How long answers may take after the input has ended. */
const GRACE_MS = 2_000;

class Connection {
  readonly #endpoint: McpEndpoint;
  readonly #caller: Caller;
  readonly #write: (text: string) => Promise<void>;
  readonly #open = new Map<unknown, AbortController>();
  readonly #answers = new Set<Promise<void>>();

  constructor(endpoint: McpEndpoint, caller: Caller, write: (text: string) => Promise<void>) {
    this.#endpoint = endpoint;
    this.#caller = caller;
    this.#write = write;
  }

  take(line: string | undefined): void {
    const answer = this.#answer(line)
      // The client is gone: the input ends as well.
      .catch(() => undefined)
      .finally(() => this.#answers.delete(answer));
    this.#answers.add(answer);
  }

  /** A client that is gone needs no answer; one that only closed its side gets those that come soon. */
  async end(): Promise<void> {
    const cancel = systemTimers.set(GRACE_MS, () => {
      for (const one of this.#open.values()) one.abort();
    });
    await Promise.allSettled(this.#answers);
    cancel();
  }

  async #answer(line: string | undefined): Promise<void> {
    const parsed = parse(line);
    if (parsed instanceof RpcRefusal) return this.#write(JSON.stringify(rpcFailure(null, parsed)));
    if (!Array.isArray(parsed)) return this.#send(await this.#one(parsed));
    // A batch: version 2025-03-26 has them.
    if (parsed.length === 0 || parsed.length > MAX_OPEN)
      return this.#send(rpcFailure(null, new RpcRefusal(RPC_ERROR.request, `A batch has 1 to ${MAX_OPEN} messages.`)));
    const answers = (await Promise.all(parsed.map((one) => this.#one(one)))).filter((one) => one !== undefined);
    if (answers.length > 0) await this.#send(answers);
  }

  async #send(answer: object | undefined): Promise<void> {
    if (answer !== undefined) await this.#write(JSON.stringify(answer));
  }

  async #one(message: unknown): Promise<object | undefined> {
    const read = readMessage(message);
    if (read.kind === "notification" && read.method === "notifications/cancelled")
      this.#open.get(read.params["requestId"])?.abort();
    const id = read.kind === "request" ? read.request.id : undefined;
    if (id === undefined) return this.#endpoint.answer(message, this.#context(new AbortController()));
    if (this.#open.size >= MAX_OPEN || this.#open.has(id))
      return rpcFailure(id, new RpcRefusal(RPC_ERROR.request, "Too many requests are open, or one with this id."));
    const controller = new AbortController();
    this.#open.set(id, controller);
    try {
      const answer = await this.#endpoint.answer(message, this.#context(controller));
      // A request that was canceled gets no answer.
      return controller.signal.aborted ? undefined : answer;
    } finally {
      this.#open.delete(id);
    }
  }

  #context({ signal }: AbortController): { readonly caller: Caller; readonly signal: AbortSignal } {
    return { caller: this.#caller, signal };
  }
}

function parse(line: string | undefined): unknown {
  if (line === undefined) return new RpcRefusal(RPC_ERROR.parse, "The message is too long.");
  try {
    return parseJson(Buffer.from(line), HTTP_LIMITS.depth);
  } catch {
    return new RpcRefusal(RPC_ERROR.parse, "The message is not JSON, or it is nested too deeply.");
  }
}
