// Route: one line of the table of a site for other sites: method, path, who may, limits, handler. peer-routes.ts makes it a route of an
// HTTP server.

import { RepriseError } from "../../base/index.ts";
import type { BodyLimit, HttpCall } from "../../http/index.ts";
import type { PeerAccess } from "./peer-access.ts";

export type Method = "GET" | "PUT" | "POST";

/**
 * Who may use a route. `anyone`: no token needed. `visitor`: every peer, and without a token if the site is public. `reader`: a visitor who
 * may read the origin in the path. `pusher`: a peer that may push. `peer`: every peer. `grant:…`: a peer with that grant.
 */
export type Access = "anyone" | "visitor" | "reader" | "pusher" | "peer" | `grant:${string}`;

/** What a handler gets. */
export interface Call extends Omit<HttpCall, "caller"> {
  /** Undefined: the request has no token. */
  readonly peer: PeerAccess | undefined;
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

/** The error for what does not exist and for what the peer may not have: a client cannot tell them apart. */
export function notPublished(what: string): RepriseError {
  return new RepriseError(
    "NOT_PUBLISHED",
    `${what} It does not exist, or this site does not publish it to this peer; its operator publishes with \`publish\` in the federation settings.`,
  );
}
