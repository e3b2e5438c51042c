// Api: requests to a server in this process, as JSON, from any caller.

import type { Client } from "../../src/engine/index.ts";
import type { Caller } from "../../src/server/host.ts";
import { createServer, type ServerOptions } from "../../src/server/index.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed, if it is one JSON document. */
  readonly body: any;
}

export interface Api extends AsyncDisposable {
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** The same server for another caller. */
  as(caller: Partial<Caller>): Api;
}

const ADMIN: Caller = { name: "test", role: "admin" };
const CALLER = "x-caller";

export function openApi(engine: Client<any>, options: ServerOptions = {}): Api {
  const authenticate = (request: Request): Caller => JSON.parse(request.headers.get(CALLER) ?? "null") as Caller;
  const server = createServer(engine, { auth: { authenticate }, ...options });
  const as = (given: Partial<Caller>): Api => {
    const caller = { ...ADMIN, ...given };
    const send = async (method: string, path: string, body?: unknown, headers = {}): Promise<Answer> => {
      const response = await server.fetch(
        new Request(`http://127.0.0.1:7420${path}`, {
          method,
          headers: {
            [CALLER]: JSON.stringify(caller),
            "x-reprise": "1",
            ...(body !== undefined && { "content-type": "application/json" }),
            ...headers,
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      );
      const text = await response.text();
      const isJson = /application\/(?:problem\+)?json\b/.test(response.headers.get("content-type") ?? "");
      return {
        status: response.status,
        headers: response.headers,
        body: isJson && text !== "" ? JSON.parse(text) : text,
      };
    };
    return {
      get: (path, headers) => send("GET", path, undefined, headers),
      post: (path, body = {}, headers) => send("POST", path, body, headers),
      delete: (path) => send("DELETE", path),
      as,
      [Symbol.asyncDispose]: () => server.close(),
    };
  };
  return as({});
}
