// Peer routes: the routes of a site for other sites, as routes of an HTTP server.
//
// peer-routes.P1. Nothing is answered without a token but `GET /`, which then says no more than that a site is here, unless the site is
//   public.
// peer-routes.P2. A refusal is JSON with a code of the error catalogue (error-response.E1).

import { RepriseError } from "../../base/index.ts";
import type { HttpCaller, HttpRoute, RequestHandlerOptions } from "../../http/index.ts";
import { errorResponse } from "./error-response.ts";
import { findPeer, mayRead, tokenMissing, type PeerAccess } from "./peer-access.ts";
import { notPublished, type Access, type Route } from "./route.ts";
import type { ServeLimits } from "./serve-limits.ts";

export interface PeerRouteOptions {
  /** Read with each request: a peer that is added or removed is so at once. */
  readonly peers: () => readonly PeerAccess[];
  /** Whether requests without a token may read logs. */
  readonly isPublic: boolean;
  readonly limits: ServeLimits;
  /** Gets errors that are not refusals. */
  readonly onError: (error: unknown) => void;
}

interface PeerCaller extends HttpCaller {
  readonly peer: PeerAccess | undefined;
}

/** The caller of requests without a token, for counts and limits. No peer has this name. */
const ANONYMOUS = "*";
const NO_BODY = { name: "artifactBytes", bytes: 0 } as const;

/** The routes with the checks of their access. */
export function peerRoutes(routes: readonly Route[], options: PeerRouteOptions): readonly HttpRoute<PeerCaller>[] {
  const { peers, isPublic, limits, onError } = options;
  return routes.map((route) => ({
    body: NO_BODY,
    ...route,
    limits,
    admit: (request, params): PeerCaller => {
      const peer = findPeer(request, peers());
      checkAccess(route.access, peer, params["origin"], isPublic);
      return { name: `peer ${peer?.name ?? ANONYMOUS}`, peer };
    },
    handle: (call) => route.handle({ ...call, peer: call.caller.peer }),
    refuse: (error) => errorResponse(error, onError),
  }));
}

/** What a handler of nothing but peer routes answers where it has no route. */
export function peerHandlerOptions(options: PeerRouteOptions): Omit<RequestHandlerOptions, "routes"> {
  return {
    limits: options.limits,
    notFound: () => notPublished("The server has nothing under this path."),
    closing: () =>
      new RepriseError("NOT_PUBLISHED", "The server is closing. Repeat the request later.", {
        details: { status: 503 },
      }),
    refuse: (error) => errorResponse(error, options.onError),
  };
}

/** peer-routes.P1 */
function checkAccess(
  access: Access,
  peer: PeerAccess | undefined,
  origin: string | undefined,
  isPublic: boolean,
): void {
  if (access === "anyone" || (access === "visitor" && isPublic)) return;
  if (access === "reader") {
    if (mayRead(peer, origin ?? "", isPublic)) return;
    if (peer === undefined) throw tokenMissing();
    throw notPublished(`There is no log ${origin ?? ""} here.`);
  }
  if (peer === undefined) throw tokenMissing();
  if (access === "peer" || access === "visitor" || (access === "pusher" && peer.push)) return;
  if (access.startsWith("grant:") && peer.grants.includes(access.slice("grant:".length))) return;
  const what = access === "pusher" ? "push to this site" : `do this: it needs the grant ${access.slice(6)}`;
  throw new RepriseError(
    "NOT_ADMITTED",
    `The peer ${peer.name} may not ${what}. The operator of this site changes that in the federation settings.`,
  );
}
