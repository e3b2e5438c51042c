// MCP server: answers messages of the Model Context Protocol (JSON-RPC 2.0), without knowing how they travel.
//
// mcp-server.M1. Everything here reads: resources are the documents of the package, and the one tool searches them. Runs are not reachable.
// mcp-server.M2. A request gets exactly one answer, with its id; a notification gets none, and neither does an answer.

import { listDocuments, readDocument, searchDocuments, type McpDocument } from "./mcp-documents.ts";

/** The newest first: a client that asks for another one gets this. */
export const PROTOCOL_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

const ERROR = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  resource: -32_002,
} as const;
const PAGE = 100;
const MAX_RESULTS = 5;
const MAX_PASSAGE = 4_000;

class Refusal extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

type Params = Readonly<Record<string, unknown>>;

export class McpServer {
  readonly #version: string;
  #documents: readonly McpDocument[] | undefined;

  constructor(version: string) {
    this.#version = version;
  }

  /** The answer to one line of the input; undefined: it needs none. */
  answer(line: string): string | undefined {
    let message: unknown;
    try {
      message = JSON.parse(line) as unknown;
    } catch {
      return JSON.stringify(failure(null, new Refusal(ERROR.parse, "The message is not JSON.")));
    }
    if (!Array.isArray(message)) return textOf(this.#handle(message));
    // A batch: version 2025-03-26 has them.
    if (message.length === 0) return JSON.stringify(failure(null, new Refusal(ERROR.request, "The batch is empty.")));
    const answers = message.map((one) => this.#handle(one)).filter((one) => one !== undefined);
    return answers.length === 0 ? undefined : JSON.stringify(answers);
  }

  /** mcp-server.M2 */
  #handle(message: unknown): object | undefined {
    const { jsonrpc, id, method, params, result, error } = (
      typeof message === "object" && message !== null ? message : {}
    ) as Params;
    if (method === undefined && (result !== undefined || error !== undefined)) return undefined;
    const isRequest = typeof id === "string" || typeof id === "number";
    if (jsonrpc !== "2.0" || typeof method !== "string" || (id !== undefined && !isRequest))
      return failure(
        isRequest ? id : null,
        new Refusal(ERROR.request, "The message is not a request of JSON-RPC 2.0."),
      );
    if (!isRequest) return undefined;
    try {
      if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params)))
        throw new Refusal(ERROR.params, "params: expected an object.");
      return { jsonrpc: "2.0", id, result: this.#call(method, (params ?? {}) as Params) };
    } catch (thrown) {
      return failure(id, thrown);
    }
  }

  #call(method: string, params: Params): object {
    switch (method) {
      case "initialize":
        return this.#initialize(params);
      case "ping":
        return {};
      case "resources/list":
        return this.#listResources(params);
      case "resources/templates/list":
        return { resourceTemplates: TEMPLATES };
      case "resources/read":
        return this.#readResource(params);
      case "tools/list":
        return { tools: [SEARCH_TOOL] };
      case "tools/call":
        return this.#callTool(params);
      default:
        throw new Refusal(ERROR.method, `There is no method ${method.slice(0, 100)}.`);
    }
  }

  #initialize({ protocolVersion }: Params): object {
    const version = PROTOCOL_VERSIONS.find((one) => one === protocolVersion) ?? PROTOCOL_VERSIONS[0];
    return {
      protocolVersion: version,
      capabilities: { resources: {}, tools: {} },
      serverInfo: { name: "reprise", title: "Reprise", version: this.#version },
      instructions:
        "Documents of Reprise, a durable execution engine for TypeScript. Read reprise://docs/SKILL.md before you write code with it, and reprise://docs/errors/<CODE>.md for an error code.",
    };
  }

  #all(): readonly McpDocument[] {
    return (this.#documents ??= listDocuments());
  }

  #listResources({ cursor }: Params): object {
    const from = cursor === undefined ? 0 : Number(cursor);
    if (!Number.isSafeInteger(from) || from < 0 || (cursor !== undefined && typeof cursor !== "string"))
      throw new Refusal(ERROR.params, "cursor: expected the nextCursor of the page before.");
    const page = this.#all().slice(from, from + PAGE);
    const next = from + PAGE;
    return {
      resources: page.map(({ uri, path, title, description }) => ({
        uri,
        name: path,
        title,
        description,
        mimeType: mimeOf(path),
      })),
      ...(next < this.#all().length && { nextCursor: String(next) }),
    };
  }

  #readResource({ uri }: Params): object {
    if (typeof uri !== "string") throw new Refusal(ERROR.params, "uri: expected a text.");
    // mcp-documents.D1
    const document = this.#all().find((one) => one.uri === uri);
    if (document === undefined)
      throw new Refusal(ERROR.resource, `There is no resource ${uri.slice(0, 200)}.`, { uri });
    return { contents: [{ uri, mimeType: mimeOf(document.path), text: readDocument(document) }] };
  }

  #callTool({ name, arguments: given }: Params): object {
    if (name !== SEARCH_TOOL.name) throw new Refusal(ERROR.params, `There is no tool ${String(name).slice(0, 100)}.`);
    const { query } = (typeof given === "object" && given !== null ? given : {}) as Params;
    if (typeof query !== "string" || query.trim() === "")
      return { content: [{ type: "text", text: "query: expected some words." }], isError: true };
    const found = searchDocuments(this.#all(), query, MAX_RESULTS);
    const text = found.map(({ document, passage }) => `${document.uri}\n${passage.slice(0, MAX_PASSAGE)}`);
    return { content: [{ type: "text", text: text.length === 0 ? "Nothing was found." : text.join("\n\n---\n\n") }] };
  }
}

const TEMPLATES = [
  {
    uriTemplate: "reprise://docs/errors/{code}.md",
    name: "error",
    title: "Error code",
    description: "What an error code means, why it is thrown and what to do next.",
    mimeType: "text/markdown",
  },
  {
    uriTemplate: "reprise://docs/guides/{name}.md",
    name: "guide",
    title: "Guide",
    description: "A guide by topic; reprise://docs/llms.txt lists them.",
    mimeType: "text/markdown",
  },
];

const SEARCH_TOOL = {
  name: "search_docs",
  title: "Search the documents",
  description: "Finds passages of the documents of Reprise by words.",
  inputSchema: {
    type: "object",
    properties: { query: { type: "string", description: "Words that the passage has." } },
    required: ["query"],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
};

function mimeOf(path: string): string {
  return path.endsWith(".md") ? "text/markdown" : "text/plain";
}

function failure(id: unknown, error: unknown): object {
  const { code, message, data } =
    error instanceof Refusal ? error : { code: ERROR.internal, message: "The server failed.", data: undefined };
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}

function textOf(answer: object | undefined): string | undefined {
  return answer === undefined ? undefined : JSON.stringify(answer);
}
