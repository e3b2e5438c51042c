// MCP client: the official client of the Model Context Protocol, connected to a server of this process or to one that listens.

import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import type { Server } from "reprise/server";
import { ORIGIN, tokenFor } from "./auth-fixture.ts";

/** How a client finds the version of the protocol: the handshake until 2025, or 2026 without one. */
export type Era = "legacy" | "modern";
export const ERAS: readonly Era[] = ["legacy", "modern"];

export const TASKS = "io.modelcontextprotocol/tasks";

export interface ConnectOptions {
  readonly era?: Era;
  /** The name of the token. */
  readonly token?: string;
  /** With the extension for tasks, and forms. */
  readonly tasks?: boolean;
  readonly forms?: boolean;
}

export function newClient({ era = "modern", tasks = false, forms = tasks }: ConnectOptions): Client {
  return new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: {
        ...(forms && { elicitation: { form: {} } }),
        ...(tasks && { extensions: { [TASKS]: {} } }),
      },
      versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: "2026-07-28" } },
    },
  );
}

export async function connect(server: Server, options: ConnectOptions = {}): Promise<Client> {
  const { token = "operator" } = options;
  const transport = new StreamableHTTPClientTransport(new URL(`${ORIGIN}/mcp`), {
    fetch: (url, init) => server.fetch(new Request(url, init)),
    requestInit: { headers: { authorization: `Bearer ${tokenFor(token)}` } },
  });
  const client = newClient(options);
  await client.connect(options.tasks === true ? withTaskResults(transport) : transport);
  return client;
}

/**
 * The client refuses a result of the type `task`, which an extension defines: it becomes the structured content of a complete one, which the
 * client passes on.
 */
export function withTaskResults(transport: Transport): Transport {
  return new Proxy(transport, {
    set(target, key, value: unknown) {
      if (key !== "onmessage" || typeof value !== "function") return Reflect.set(target, key, value, target);
      const deliver = value as NonNullable<Transport["onmessage"]>;
      target.onmessage = (message, extra) => {
        const { result } = message as { readonly result?: Record<string, unknown> };
        if (result?.["resultType"] !== "task") return deliver(message, extra);
        const complete = { resultType: "complete", content: [], structuredContent: { task: result } };
        return deliver({ ...message, result: complete } as never, extra);
      };
      return true;
    },
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A schema that accepts everything. */
const ANY = { "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value }) } };

export interface Task {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number | null;
  readonly pollIntervalMs?: number;
  readonly inputRequests?: Readonly<
    Record<string, { method: string; params: { message: string; requestedSchema: any } }>
  >;
  readonly result?: { content: { text: string }[]; isError?: boolean; resultType: string };
  readonly error?: { code: number; message: string };
}

export async function askTask(client: Client, method: string, params: Record<string, unknown>): Promise<Task> {
  return (await client.request({ method, params }, ANY)) as Task;
}

/** The handle that a call of a tool answered. */
export async function startTask(client: Client, name: string, args: Record<string, unknown>): Promise<Task> {
  const { structuredContent } = await client.callTool({ name, arguments: args });
  return (structuredContent as { task: Task }).task;
}

/** The JSON of a tool's answer. */
export async function callTool(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<{ readonly value: any; readonly isError: boolean; readonly text: string }> {
  const { content, isError = false } = (await client.callTool({ name, arguments: args })) as {
    readonly content: readonly { readonly text: string }[];
    readonly isError?: boolean;
  };
  const text = content[0]?.text ?? "";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  return { value, isError, text };
}
