// Peer routes: requests with a JSON body and a JSON answer, such as offers of work, as routes of the server.

import type { PeerRoute } from "../work/offer-routes.ts";
import type { Route } from "./route.ts";

/** Every peer may call them; what it gets there is decided by who it is. */
export function peerRoutes(routes: readonly PeerRoute[]): readonly Route[] {
  return routes.map((route) => ({
    method: "POST",
    path: new RegExp(`^${RegExp.escape(route.path)}$`),
    access: "peer",
    body: { name: "artifactBytes", bytes: route.bodyBytes },
    waits: () => route.waits,
    handle: async ({ json, peer, signal }) =>
      Response.json(await route.answer(await json(), peer!.name, signal), { headers: { "cache-control": "no-store" } }),
  }));
}
