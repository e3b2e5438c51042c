// Static server: the server side of the conventions in carriers/http.ts, over files in memory. `withoutWaiting` is a plain web server,
// which ignores `?wait`.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { MemoryCarrier, MemoryPlace } from "./memory-carrier.ts";

export interface StaticServerOptions {
  readonly token?: string;
  readonly withoutWaiting?: boolean;
  readonly withoutEtags?: boolean;
  /** Sees each request before it is handled; true: it has answered. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Sees each answer before it is sent; true: it is not sent, and the connection is cut. */
  readonly loses?: (request: IncomingMessage) => boolean;
}

export class StaticServer implements AsyncDisposable {
  readonly place = new MemoryPlace();
  readonly requests: string[] = [];
  readonly #server = createServer((request, response) => {
    void this.#answer(request, response).catch(() => response.destroy());
  });
  readonly #options: StaticServerOptions;

  constructor(options: StaticServerOptions = {}) {
    this.#options = options;
  }

  static async start(options?: StaticServerOptions): Promise<StaticServer> {
    const server = new StaticServer(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/files`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    this.requests.push(`${method} ${request.url}`);
    if (this.#options.intercept?.(request, response)) return;
    const { token, loses } = this.#options;
    const send = (status: number, body?: Uint8Array | string, more: Record<string, string> = {}): void => {
      if (loses?.(request)) return void response.destroy();
      response.writeHead(status, more).end(body);
    };
    if (token !== undefined && headers.authorization !== `Bearer ${token}`)
      return send(
        headers.authorization === undefined ? 401 : 403,
        JSON.stringify({ code: "NOT_ADMITTED", message: "who are you?" }),
      );
    const url = new URL(request.url ?? "", this.url);
    const carrier = new MemoryCarrier(this.place);
    const prefix = url.searchParams.get("list");
    if (prefix !== null) return send(200, await this.#list(carrier, prefix, url.searchParams.has("shallow")));
    const path = url.pathname.replace("/files/", "");
    if (method === "DELETE") return (await carrier.remove(path), send(204));
    if (method === "PUT") {
      const match = headers["if-match"];
      if (match === undefined && headers["if-none-match"] !== "*") return send(428);
      const options = match === undefined ? ({ absent: true } as const) : { match: match.slice(1, -1) };
      const etag = await carrier.put(path, await buffer(request), options);
      return etag === "refused" ? send(412) : send(201, "", { etag: `"${etag}"` });
    }
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const after = headers["if-none-match"]?.slice(1, -1);
    const found = await carrier.get(path, {
      ...(after === undefined ? {} : { after }),
      waitMs: this.#options.withoutWaiting ? 0 : Number(url.searchParams.get("wait") ?? 0) * 1_000,
      signal: gone.signal,
    });
    if (found === "unchanged") return send(304);
    if (found === undefined) return send(404, JSON.stringify({ code: "NOT_PUBLISHED", message: "nothing there" }));
    send(200, found.bytes, this.#options.withoutEtags ? {} : { etag: `"${found.etag}"` });
  }

  async #list(carrier: MemoryCarrier, prefix: string, shallow: boolean): Promise<string> {
    let text = "";
    for await (const path of carrier.list(prefix, { shallow })) text += `${path}\n`;
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
