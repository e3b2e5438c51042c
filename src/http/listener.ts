// Listener: puts a web-standard handler on a node:http or node:https server.
//
// listener.L1. Loopback unless the options name another host. TLS if they name a certificate and its key.
// listener.L2. The Host header must be one of the names of the server: a page in a browser on this machine that has another name resolve
//   to 127.0.0.1 (DNS rebinding) is refused before anything runs.
// listener.L3. `close` ends the long polls, lets running requests finish, and then cuts every connection that remains.
// listener.L4. A response may be sent before the upload has ended. The connection then closes, after a bounded part of the rest was read
//   and dropped: a client that is still sending would otherwise lose the response, and an endless body is not read to its end.
// listener.L5. A method that web-standard requests cannot have, such as TRACE, reaches the handler under its name, which refuses it as
//   every other method that a path does not allow.

import { readFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { RepriseError, type Timers } from "../base/index.ts";

export interface ListenOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Default 0: a free port. */
  readonly port?: number;
  /** Files in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** More names that clients call this server by, with port: `hub.example.com:7070`. */
  readonly names?: readonly string[];
  /** The response to a request whose Host is not of this server. Default: a code and a message in JSON. */
  readonly refuseHost?: () => Response;
  /** Another process listens at `host` and `port` and passes its connections here: this function gets the one that takes them. */
  readonly sockets?: (accept: (socket: Socket) => void) => void;
  /** Ends the server as `close` does. */
  readonly signal?: AbortSignal;
  readonly timers: Timers;
}

export interface Listener {
  readonly url: string;
  close(): Promise<void>;
}

/** A handler of web requests that holds resources. */
export interface ClosableHandler {
  (request: Request): Promise<Response>;
  close(): Promise<void>;
}

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|localhost|::1)$/;

/** Whether only this machine reaches the host. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

const MAX_HEADER_BYTES = 16_384;
const MAX_CONNECTIONS = 1_024;
/** How much of a refused upload is dropped, and for how long (listener.L4). */
const [LINGER_BYTES, LINGER_MS] = [1_048_576, 2_000];
/** How long a client may take nothing of an answer. */
const STALLED_MS = 30_000;
/** How long `close` waits for requests that run. */
const CLOSE_MS = 5_000;

/** Starts the server. Closing it closes the handler. */
export async function listen(handler: ClosableHandler, options: ListenOptions): Promise<Listener> {
  const { host = "127.0.0.1", port = 0, tls, signal, timers, refuseHost = wrongHost } = options;
  const server = tls === undefined ? createHttp(settings) : createHttps({ ...settings, ...readTls(tls) });
  server.maxConnections = MAX_CONNECTIONS;
  if (options.sockets === undefined)
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) => reject(cannotListen(host, port, cause)));
      server.listen(port, host, resolve);
    });
  const bound = (server.address() as AddressInfo | null)?.port ?? port;
  const scheme = tls === undefined ? "http" : "https";
  const names = namesOf(host, bound, options.names);
  const sockets = new OpenSockets(server, tls === undefined ? "connection" : "secureConnection");
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    sockets.count(request, response);
    void answer({ request, response, handler, scheme, names, timers, refuseHost });
  };
  server.on("request", onRequest);
  // Node would tell every client to send its body; the handler does so when it reads it.
  server.on("checkContinue", onRequest);
  options.sockets?.((socket) => {
    server.emit("connection", socket);
    // It was paused, so that no bytes are lost on the way.
    socket.resume();
  });
  const close = closerOf(server, sockets, handler, timers);
  signal?.addEventListener("abort", () => void close(), { once: true });
  if (signal?.aborted === true) await close();
  return { url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${bound}`, close };
}

const settings = {
  maxHeaderSize: MAX_HEADER_BYTES,
  headersTimeout: 10_000,
  // Uploads have limits of their own (read-body.B3).
  requestTimeout: 0,
  keepAliveTimeout: 60_000,
};

function readTls({ cert, key }: { readonly cert: string; readonly key: string }): { cert: Buffer; key: Buffer } {
  const read = (what: string, path: string): Buffer => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new RepriseError("BAD_OPTIONS", `tls.${what}: cannot read ${path}. Name a file in PEM.`, { cause });
    }
  };
  return { cert: read("cert", cert), key: read("key", key) };
}

function cannotListen(host: string, port: number, cause: Error): RepriseError {
  return new RepriseError(
    "BAD_OPTIONS",
    `Cannot listen on ${host}:${port}: ${cause.message}. Choose another port or host.`,
    { cause },
  );
}

/** listener.L2. Undefined: a server that other machines reach has names that it cannot know, so without `names` it takes any. */
function namesOf(host: string, port: number, names: readonly string[] = []): ReadonlySet<string> | undefined {
  const isLocal = isLoopback(host);
  if (!isLocal && names.length === 0) return undefined;
  const own = [host, ...(isLocal ? ["127.0.0.1", "localhost", "::1"] : [])];
  const hosts = own.map((name) => `${name.includes(":") ? `[${name}]` : name}:${port}`);
  return new Set([...hosts, ...names].map((name) => name.toLowerCase()));
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly handler: ClosableHandler;
  readonly scheme: string;
  readonly names: ReadonlySet<string> | undefined;
  readonly timers: Timers;
  readonly refuseHost: () => Response;
}

async function answer(exchange: Exchange): Promise<void> {
  const { request, response, handler, timers, refuseHost } = exchange;
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  try {
    const made = webRequest(exchange, gone.signal);
    const result = made === undefined ? refuseHost() : await handler(made);
    await send(result, request, response, timers);
  } catch {
    // The handler never throws; the client has gone, or its response cannot be written.
    response.destroy();
  }
  if (!request.complete) linger(request, timers);
}

/** The request as web-standard code sees it; undefined: its target or Host is not of this server (listener.L2). */
function webRequest({ request, response, scheme, names }: Exchange, signal: AbortSignal): Request | undefined {
  const host = request.headers.host?.toLowerCase();
  if (host === undefined || request.url?.startsWith("/") !== true) return undefined;
  if (names !== undefined && !names.has(host)) return undefined;
  const url = URL.parse(`${scheme}://${host}${request.url}`);
  if (url === null) return undefined;
  const headers = new Headers();
  for (let at = 0; at < request.rawHeaders.length; at += 2)
    headers.append(request.rawHeaders[at]!, request.rawHeaders[at + 1]!);
  const { method = "GET" } = request;
  if (UNUSABLE.has(method)) return named(new Request(url, { headers, signal }), method);
  if (!hasUpload(request) || method === "GET" || method === "HEAD")
    return new Request(url, { method, headers, signal });
  return new Request(url, { method, headers, signal, body: bodyOf(request, response), duplex: "half" });
}

/** Methods that a web-standard request refuses to have. */
const UNUSABLE: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** listener.L5 */
function named(request: Request, method: string): Request {
  return Object.defineProperty(request, "method", { value: method });
}

/** A stream that reads from the socket only when it is read itself. */
function bodyOf(request: IncomingMessage, response: ServerResponse): ReadableStream<Uint8Array> {
  const chunks = request.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let isStarted = false;
  return new ReadableStream(
    {
      async pull(controller) {
        if (!isStarted && request.headers.expect !== undefined) response.writeContinue();
        isStarted = true;
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function wrongHost(): Response {
  const message = "The Host header or the request target is not of this server. Add the name to `names` of the server.";
  return Response.json({ code: "NOT_ADMITTED", message }, { status: 421 });
}

async function send(
  result: Response,
  request: IncomingMessage,
  response: ServerResponse,
  timers: Timers,
): Promise<void> {
  response.statusCode = result.status;
  for (const [name, value] of result.headers) response.setHeader(name, value);
  if (!request.complete && hasUpload(request)) response.setHeader("connection", "close");
  if (result.body === null || request.method === "HEAD") {
    await result.body?.cancel();
    await new Promise<void>((done) => response.end(done));
    return;
  }
  // The reader of events learns that it is connected before the first event.
  if (result.headers.get("content-type") === "text/event-stream") response.flushHeaders();
  for await (const chunk of result.body) {
    if (response.destroyed) return;
    if (!response.write(chunk)) await drained(response, timers);
  }
  await new Promise<void>((done) => (response.destroyed ? done() : response.end(done)));
}

/** Resolves when the socket has taken what was written, or is gone. One that takes nothing for too long is cut. */
function drained(response: ServerResponse, timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.set(STALLED_MS, () => response.destroy(), { ref: false });
    const resume = (): void => {
      cancel();
      response.off("drain", resume).off("close", resume);
      resolve();
    };
    response.once("drain", resume).once("close", resume);
  });
}

/** Some clients send the length 0 with every request without a body. */
function hasUpload({ headers }: IncomingMessage): boolean {
  return (headers["content-length"] ?? "0") !== "0" || headers["transfer-encoding"] !== undefined;
}

/** listener.L4 */
function linger(request: IncomingMessage, timers: Timers): void {
  let dropped = 0;
  const cut = (): void => {
    stop();
    request.destroy();
  };
  const stop = timers.set(LINGER_MS, cut, { ref: false });
  request.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > LINGER_BYTES) cut();
  });
  request.once("close", stop);
  request.once("error", () => undefined);
}

/** The connections of a server. Node does not count one that never sent a request as idle, nor one that is still in its handshake. */
class OpenSockets {
  readonly #all = new Set<Socket>();
  readonly #requests = new Map<Socket, number>();
  #isClosing = false;

  constructor(server: Server, ready: "connection" | "secureConnection") {
    server.on("connection", (socket: Socket) => {
      this.#all.add(socket);
      socket.once("close", () => this.#all.delete(socket));
    });
    server.on(ready, (socket: Socket) => {
      this.#requests.set(socket, 0);
      socket.once("close", () => this.#requests.delete(socket));
    });
  }

  count({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const open = this.#requests.get(socket);
      if (open === undefined) return;
      this.#requests.set(socket, open - 1);
      if (this.#isClosing && open === 1) socket.destroySoon();
    });
  }

  close(): void {
    this.#isClosing = true;
    for (const [socket, open] of this.#requests) if (open === 0) socket.destroySoon();
  }

  destroy(): void {
    for (const socket of this.#all) socket.destroy();
  }
}

/** listener.L3 */
function closerOf(server: Server, sockets: OpenSockets, handler: ClosableHandler, timers: Timers): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () =>
    (closing ??= (async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      sockets.close();
      await handler.close();
      const stop = timers.set(CLOSE_MS, () => sockets.destroy(), { ref: false });
      await closed;
      stop();
    })());
}
