// Federation handler: everything that `reprise serve` answers, as one web-standard handler over a home.
//
// The table of routes is here: what a site says about itself, files of logs, uploads, bundles of runs, and the routes that other rooms
// bring (`extraRoutes`): offers of work, a dashboard, an API.

import { systemClock, systemTimers, type Clock, type Timers } from "../../base/index.ts";
import { RequestHandler, type HttpRoute } from "../../http/index.ts";
import type { Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { Origin } from "../log/origin.ts";
import { payloadsFor, Publication, type PublicationRule } from "../sync/publish.ts";
import { pushRoutes } from "./accept-push.ts";
import { ChangeFeed } from "./change-feed.ts";
import { siteRoutes } from "./describe-site.ts";
import { HashTiles } from "./hash-tiles.ts";
import { logFileRoutes } from "./read-files.ts";
import type { PeerAccess } from "./peer-access.ts";
import { peerHandlerOptions, peerRoutes } from "./peer-routes.ts";
import { runRoutes } from "./run-bundle.ts";
import type { Route } from "./route.ts";
import { serveLimits, type ServeLimits } from "./serve-limits.ts";
import { openServeDatabase, StagedFiles } from "./staged-files.ts";

export interface FederationHandlerOptions {
  /** Read with each request: a peer that is added or removed is so at once. */
  readonly peers: () => readonly PeerAccess[];
  /** Rules of publication. Default: nothing is published. */
  readonly rules?: () => readonly PublicationRule[];
  /** The origin of this site, whose runs the rules speak of. */
  readonly own?: Origin;
  /** The store of this site, for bundles of runs. */
  readonly store?: Store;
  /** Signs the bundles of runs. */
  readonly key?: SigningKey;
  /** Labels of tasks that this site offers to execute. */
  readonly labels?: () => readonly string[];
  /** Whether requests without a token may read logs, and what rules publish to everyone. Default: false. */
  readonly public?: boolean;
  readonly limits?: Partial<ServeLimits>;
  /** Routes of other rooms, tried before those of the logs. */
  readonly extraRoutes?: readonly Route[];
  /** Gets errors that are not refusals. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly timers?: Timers;
}

/** Answers web-standard requests of other sites. */
export interface FederationHandler {
  (request: Request): Promise<Response>;
  /** The routes, for a handler that serves others as well. That handler is closed before `close` is called here. */
  readonly routes: readonly HttpRoute[];
  /** The number of long polls that wait. */
  readonly waiting: number;
  /** Wakes long polls after this process changed the home. Changes of other processes are seen without it. */
  changed(): void;
  /** Ends long polls, and waits for requests that run. Does not close the home. */
  close(): Promise<void>;
}

/** The reader that requests without a token are: a rule names it with `"*"` only. */
const ANYONE = "*";

/** The handler of a site that other sites read from and push to. */
export function createFederationHandler(home: Home, options: FederationHandlerOptions): FederationHandler {
  const { peers, rules = () => [], own, store, key, labels = () => [], extraRoutes = [] } = options;
  const { clock = systemClock, timers = systemTimers, onError = () => undefined } = options;
  const isPublic = options.public ?? false;
  const limits = serveLimits(options.limits);
  const db = openServeDatabase(home.dir);
  const staged = new StagedFiles(db, limits, clock);
  const tiles = new HashTiles(
    db,
    (origin, first, count) => home.readLog(origin, first - 1, count).map(({ rec }) => rec),
    timers,
  );
  const feed = new ChangeFeed(home.dir, "federation.db", timers);
  const readerOf = (peer: PeerAccess | undefined): Publication =>
    new Publication(home, rules(), own, peer?.name ?? ANYONE);
  const routes: readonly Route[] = [
    ...extraRoutes,
    ...siteRoutes({ home, limits, labels, isPublic }),
    ...runRoutes({
      store,
      key,
      payloadsFor: ({ peer }, { definition, tags }) => payloadsFor(rules(), peer?.name ?? ANYONE, { definition, tags }),
    }),
    ...logFileRoutes({ home, tiles, feed, readerOf, limits, isPublic, clock }),
    ...pushRoutes({ home, staged, tiles, feed, limits }),
  ];
  const access = { limits, peers, isPublic, onError };
  const compiled = peerRoutes(routes, access);
  const handler = new RequestHandler({ ...peerHandlerOptions(access), routes: compiled, clock, timers });
  const handle = Object.assign((request: Request) => handler.handle(request), {
    routes: compiled,
    changed: () => feed.notify(),
    close: async () => {
      await handler.close();
      db.close();
    },
  });
  return Object.defineProperty(handle, "waiting", { get: () => feed.waiters }) as FederationHandler;
}
