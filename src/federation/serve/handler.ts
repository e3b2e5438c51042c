// Handler: what a site answers to other sites, as a function from web-standard requests to responses.
//
// handler.H1. A request passes, in this order: its route, its token, the access of the route, the counts of its peer. Only then does the
//   handler of the route run, and only there is a body read.
// handler.H2. Nothing is answered without a token but `GET /`, which then says no more than that a site is here, unless the site is public.
// handler.H3. Every outcome is a response: a refusal is JSON with a code of the error catalogue (error-response.E1).
// handler.H4. `close` ends every long poll with what it has; a request that comes later is refused with 503.

import { RepriseError, systemClock, systemTimers, type Clock, type Timers } from "../../base/index.ts";
import { CallerGate } from "./caller-gate.ts";
import { errorResponse } from "./error-response.ts";
import { parseJson } from "./json-depth.ts";
import { findPeer, mayRead, tokenMissing, type PeerAccess } from "./peer-access.ts";
import { withBody } from "./read-body.ts";
import { findRoute, notPublished, type Access, type Call, type Route } from "./route.ts";
import type { ServeLimits } from "./serve-limits.ts";

export interface RequestHandlerOptions {
  readonly routes: readonly Route[];
  readonly limits: ServeLimits;
  /** Read with each request: a peer that is added or removed is so at once. */
  readonly peers: () => readonly PeerAccess[];
  /** Whether requests without a token may read logs. */
  readonly isPublic: boolean;
  /** Gets errors that are not refusals. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock;
  readonly timers?: Timers;
}

/** The caller of requests without a token, for counts and limits. No peer has this name. */
const ANONYMOUS = "*";

export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #gate: CallerGate;
  readonly #closing = new AbortController();
  readonly #open = new Set<Promise<Response>>();

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timers = options.timers ?? systemTimers;
    this.#gate = new CallerGate(options.limits, this.#clock);
  }

  /** handler.H3 */
  async handle(request: Request): Promise<Response> {
    const response = this.#answer(request).catch((error: unknown) => errorResponse(error, this.#options.onError));
    this.#open.add(response);
    try {
      return await response;
    } finally {
      this.#open.delete(response);
    }
  }

  /** handler.H1 */
  async #answer(request: Request): Promise<Response> {
    if (this.#closing.signal.aborted)
      throw new RepriseError("NOT_PUBLISHED", "The server is closing. Repeat the request later.", {
        details: { status: 503 },
      });
    const { limits, routes, peers } = this.#options;
    const url = new URL(request.url);
    const { route, params } = findRoute(routes, request.method, url.pathname);
    const peer = findPeer(request, peers());
    this.#checkAccess(route.access, peer, params["origin"]);
    const caller = peer?.name ?? ANONYMOUS;
    const leave = this.#gate.enter(caller, route.waits?.(url) === true ? "waits" : "requests");
    try {
      const bodyOptions = { caller, gate: this.#gate, limits, clock: this.#clock, timers: this.#timers };
      const body: Call["body"] = (use) => withBody(request, route.body ?? NO_BODY, bodyOptions, use);
      const json = (): Promise<unknown> => body((bytes) => parseJson(bytes, limits.depth));
      const signal = AbortSignal.any([request.signal, this.#closing.signal]);
      return await route.handle({ request, url, params, peer, signal, body, json });
    } finally {
      leave();
    }
  }

  /** handler.H2 */
  #checkAccess(access: Access, peer: PeerAccess | undefined, origin: string | undefined): void {
    if (access === "anyone" || (access === "visitor" && this.#options.isPublic)) return;
    if (access === "reader") {
      if (mayRead(peer, origin ?? "", this.#options.isPublic)) return;
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

  /** handler.H4 */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#open);
  }
}

const NO_BODY = { name: "artifactBytes", bytes: 0 } as const;
