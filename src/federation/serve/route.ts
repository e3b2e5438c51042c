// Route: one line of the server's table: method, path, who may, limits, handler.
//
// The table is the only place that says who may do what. The handler of a route runs after its access was checked.

import { RepriseError } from "../../base/index.ts";
import type { PeerAccess } from "./peer-access.ts";
import type { BodyLimit } from "./read-body.ts";

export type Method = "GET" | "PUT" | "POST";

/**
 * Who may use a route. `anyone`: no token needed. `visitor`: every peer, and without a token if the site is public. `reader`: a visitor who
 * may read the origin in the path. `pusher`: a peer that may push. `peer`: every peer. `grant:…`: a peer with that grant.
 */
export type Access = "anyone" | "visitor" | "reader" | "pusher" | "peer" | `grant:${string}`;

/** What a handler gets. */
export interface Call {
  readonly request: Request;
  readonly url: URL;
  /** The named groups of the path. */
  readonly params: Readonly<Record<string, string>>;
  /** Undefined: the request has no token. */
  readonly peer: PeerAccess | undefined;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
  /** Reads the body under the limit of the route. */
  body<T>(use: (bytes: Uint8Array) => T | Promise<T>): Promise<T>;
  /** The body as JSON, of bounded depth. */
  json(): Promise<unknown>;
}

export interface Route {
  readonly method: Method;
  /** Matches the whole path. A group `origin` is the origin that `reader` is checked against. */
  readonly path: RegExp;
  readonly access: Access;
  /** The limit of the body; a route without one takes no body. */
  readonly body?: BodyLimit;
  /** Whether this request waits for a change: counted as a long poll. */
  waits?(url: URL): boolean;
  handle(call: Call): Response | Promise<Response>;
}

export interface RouteMatch {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** The route of a request. Refuses a path that no route has with 404, and another method with 405. HEAD is a GET without its body. */
export function findRoute(routes: readonly Route[], method: string, path: string): RouteMatch {
  const wanted = method === "HEAD" ? "GET" : method;
  const allowed = new Set<string>();
  for (const route of routes) {
    const match = route.path.exec(path);
    if (match === null) continue;
    if (route.method === wanted) return { route, params: { ...match.groups } };
    allowed.add(route.method);
  }
  if (allowed.size === 0) throw notPublished("The server has nothing under this path.");
  throw new RepriseError("USAGE", `This path allows ${[...allowed].join(", ")}, not ${method.slice(0, 20)}.`, {
    details: { status: 405 },
  });
}

/** The error for what does not exist and for what the peer may not have: a client cannot tell them apart. */
export function notPublished(what: string): RepriseError {
  return new RepriseError(
    "NOT_PUBLISHED",
    `${what} It does not exist, or this site does not publish it to this peer; its operator publishes with \`publish\` in the federation settings.`,
  );
}
