// Site server: answers other sites over HTTP, and hands out and executes work.
//
// site-server.V1. A peer with a token may read every log here and push logs that are admitted here: logs tell nothing, and are signed.
//   What it gets of contents is a matter of rules (docs/decisions/0177).
// site-server.V2. Beyond loopback the server needs TLS, or the operator's word that a proxy in front of it has TLS (F-52).

import { RepriseError, systemClock, systemTimers } from "../base/index.ts";
import { bearerTokenOf, findByToken, isLoopback, listen, tokenDigest, type HttpRoute } from "../http/index.ts";
import type { SiteServer, ServeOptions } from "./api.ts";
import type { Peer } from "./check-settings.ts";
import { createFederationHandler, type FederationHandler } from "./serve/federation-handler.ts";
import type { PeerAccess } from "./serve/peer-access.ts";
import type { Route } from "./serve/route.ts";
import type { SiteParts } from "./site.ts";

const DEFAULT_PORT = 7420;

/** Starts the server. `routes`: those of work. */
const MAX_PORT = 65_535;

export async function serveSite(
  parts: SiteParts,
  options: ServeOptions,
  routes: readonly Route[],
): Promise<SiteServer & { changed(): void }> {
  const { host = "127.0.0.1", port = DEFAULT_PORT, tls, insecure = false } = options;
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT)
    throw new RepriseError("BAD_OPTIONS", `serve: port: expected 0 (any free port) to ${MAX_PORT}, got ${port}.`);
  // site-server.V2
  if (!isLoopback(host) && tls === undefined && !insecure)
    throw new RepriseError(
      "BAD_OPTIONS",
      `serve: other machines reach ${host}, and without TLS they see tokens and contents. Pass tls, { cert, key } (--tls-cert, --tls-key), or insecure (--insecure) behind a proxy that has TLS.`,
    );
  const handler = createHandler(parts, routes);
  const listener = await listen(handler, { host, port, timers: systemTimers, ...(tls && { tls }) }).catch(
    async (error: unknown) => {
      await handler.close();
      throw error;
    },
  );
  return {
    url: listener.url,
    changed: () => handler.changed(),
    close: () => listener.close(),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

/** The routes for other sites, for a server that answers other requests as well. */
export interface SiteRoutes {
  readonly routes: readonly HttpRoute[];
  /** Wakes long polls. */
  changed(): void;
  /** The name of the peer whose token the request has; undefined: it has none, or another one. */
  peerOf(request: Request): string | undefined;
  /** After the server that has the routes was closed. */
  close(): Promise<void>;
}

export function siteRoutes(parts: SiteParts, routes: readonly Route[]): SiteRoutes {
  const handler = createHandler(parts, routes);
  const peers = parts.settings.peers.flatMap(accessOf);
  return {
    routes: handler.routes,
    changed: () => handler.changed(),
    peerOf: (request) => nameOf(request, peers),
    close: () => handler.close(),
  };
}

function createHandler(parts: SiteParts, extraRoutes: readonly Route[]): FederationHandler {
  const { home, settings, own, store, logger } = parts;
  const peers = settings.peers.flatMap(accessOf);
  return createFederationHandler(home, {
    peers: () => peers,
    rules: () => settings.publish,
    own: own.key.origin,
    key: own.key,
    ...(store && { store }),
    labels: () => [...settings.work.keys()],
    extraRoutes,
    onError: (error) => logger.error(`federation: a request failed: ${String(error)}`, { error }),
    clock: systemClock,
    timers: systemTimers,
  });
}

function nameOf(request: Request, peers: readonly PeerAccess[]): string | undefined {
  const token = bearerTokenOf(request);
  return typeof token === "string" ? findByToken(token, peers, ({ tokenSha256 }) => tokenSha256)?.name : undefined;
}

/** site-server.V1. Without a token, a peer looks like any stranger. */
function accessOf({ name, token, grants }: Peer): readonly PeerAccess[] {
  return token === undefined ? [] : [{ name, tokenSha256: tokenDigest(token), pull: ["*"], push: true, grants }];
}
