// A server of Durable Streams for its conformance suite: the read side is that of Reprise, the write side exists only here. A stream is a
// run; PUT starts it, POST sends it an update that emits chunks, DELETE forgets it.

import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createEngine, signal, stream, update, workflow } from "reprise";
import { createServer } from "reprise/server";

interface Append {
  readonly values: readonly unknown[];
}

const writer = workflow(
  "writer",
  { ports: { append: update<Append, boolean>(), close: signal<boolean>(), chunks: stream<unknown>() } },
  async (ctx) => {
    ctx.onUpdate("append", ({ values }) => {
      for (const value of values) ctx.emit("chunks", value);
      return true;
    });
    await ctx.receive("close");
  },
);

interface Written {
  readonly id: string;
  readonly type: string;
  isClosed: boolean;
}

const base = (type: string): string => type.split(";")[0]!.trim().toLowerCase();

function formatOf(type: string): "json" | "text" | "bytes" {
  if (base(type) === "application/json") return "json";
  return base(type).startsWith("text/") ? "text" : "bytes";
}

/** JSON: a list is its elements. Others: one chunk. */
function valuesOf(type: string, body: Buffer): readonly unknown[] {
  if (body.length === 0) return [];
  if (formatOf(type) !== "json") return [new Uint8Array(body)];
  const value = JSON.parse(body.toString("utf8")) as unknown;
  return Array.isArray(value) ? value : [value];
}

function isAccepted(type: string, body: Buffer): boolean {
  try {
    return body.length === 0 || valuesOf(type, body).length > 0;
  } catch {
    return false;
  }
}

export interface DurableServer extends AsyncDisposable {
  readonly url: string;
}

export async function openDurableServer(): Promise<DurableServer> {
  const engine = await createEngine({ store: "sqlite::memory:", definitions: [writer], logger: false });
  const server = createServer(engine, {
    cors: ["https://example.com"],
    limits: { requestsPerSecond: 100_000, requests: 1_000 },
  });
  const streams = new Map<string, Written>();
  let count = 0;

  const tailOf = async (found: Written): Promise<string> => {
    const response = await read(found, new URL("http://127.0.0.1/"), "HEAD", {});
    return response.headers.get("stream-next-offset")!;
  };

  const read = (found: Written, url: URL, method: string, headers: Record<string, string>): Promise<Response> => {
    const query = new URLSearchParams(url.searchParams);
    query.append("as", formatOf(found.type));
    const at = `http://127.0.0.1:7420/v1/runs/${found.id}/streams/chunks?${query.toString()}`;
    return server.fetch(new Request(at, { method, headers: { ...headers, prefer: "wait=1" } }));
  };

  const append = async (found: Written, body: Buffer, close: boolean): Promise<void> => {
    found.isClosed ||= close;
    const run = engine.get(writer, found.id);
    if (body.length > 0) await run.update("append", { values: valuesOf(found.type, body) });
    if (!close) return;
    await run.signal("close", true);
    await run.result();
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    const found = streams.get(url.pathname);
    const type = request.headers["content-type"];
    const close = request.headers["stream-closed"] === "true";
    const reply = (status: number, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { "x-content-type-options": "nosniff", ...headers }).end();
    };
    if (request.method === "PUT") {
      const isSame = found !== undefined && base(found.type) === base(type ?? "application/octet-stream");
      if (found !== undefined && !isSame) return reply(409);
      const made = found ?? { id: `stream-${(count += 1)}`, type: type ?? "application/octet-stream", isClosed: false };
      if (found === undefined) {
        streams.set(url.pathname, made);
        await engine.start(writer, undefined, { id: made.id });
        if (body.length > 0 || close) await append(made, body, close);
      }
      return reply(found === undefined ? 201 : 200, {
        location: url.href,
        "content-type": made.type,
        "stream-next-offset": await tailOf(made),
        ...(made.isClosed && { "stream-closed": "true" }),
      });
    }
    if (request.method === "OPTIONS") {
      const headers = Object.entries(request.headers).filter(
        (one): one is [string, string] => typeof one[1] === "string",
      );
      const result = await server.fetch(new Request("http://127.0.0.1:7420/", { method: "OPTIONS", headers }));
      return reply(result.status, Object.fromEntries(result.headers));
    }
    if (found === undefined) return reply(404);
    if (request.method === "DELETE") {
      streams.delete(url.pathname);
      return reply(204);
    }
    if (request.method === "POST") {
      if (found.isClosed && body.length > 0) return reply(409, { "stream-closed": "true" });
      if (!found.isClosed) {
        if (!isAccepted(found.type, body)) return reply(400);
        if (body.length > 4_000_000) return reply(413);
        await append(found, body, close);
      }
      return reply(204, {
        "stream-next-offset": await tailOf(found),
        ...(found.isClosed && { "stream-closed": "true" }),
      });
    }
    const sent = Object.entries(request.headers).flatMap(([name, value]) =>
      typeof value === "string" && /^(?:accept|if-none-match|last-event-id)$/.test(name) ? [[name, value]] : [],
    );
    const result = await read(found, url, request.method ?? "GET", Object.fromEntries(sent) as Record<string, string>);
    const headers = Object.fromEntries(result.headers);
    // The suite may name any media type; a stream of Reprise has three.
    if (/^(?:text\/plain|application\/octet-stream)/.test(headers["content-type"] ?? ""))
      headers["content-type"] = found.type;
    response.writeHead(result.status, headers);
    response.flushHeaders();
    if (result.body !== null && request.method !== "HEAD") {
      const reader = result.body.getReader();
      response.once("close", () => void reader.cancel().catch(() => undefined));
      for (let next = await reader.read(); !next.done; next = await reader.read()) response.write(next.value);
    }
    response.end();
  };

  const http = createHttp((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      http.close();
      await server.close();
      await engine.close();
    },
  };
}
