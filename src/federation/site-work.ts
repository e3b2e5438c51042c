// Site work: tasks of this site that peers execute, and tasks of peers that this site executes.
//
// site-work.W1. Peers ask for work over HTTP, so a site offers work while it serves, and from then on until it closes.
// site-work.W2. The worker that offers has the store open for itself: two pollers of one open store would miss changes.

import { RepriseError } from "../base/index.ts";
import { runtimeText } from "../engine/index.ts";
import type { Store } from "../kernel/index.ts";
import type { VerifyingKey } from "../receipts/index.ts";
import type { Route } from "./serve/route.ts";
import type { SiteParts } from "./site.ts";
import { FederationWorker } from "./work/federation-worker.ts";
import { HomeSteps } from "./work/home-steps.ts";
import { offerRoutes } from "./work/offer-routes.ts";
import { PeerWorker } from "./work/peer-worker.ts";

/** Work that is offered: the routes for peers, and how to stop. */
export interface OfferedWork {
  readonly routes: readonly Route[];
  stop(): Promise<void>;
}

/** site-work.W1. Undefined: no label is given to a peer. */
export async function offerWork(parts: SiteParts): Promise<OfferedWork | undefined> {
  const { settings, definitions, home, logger, clock, timers, random, openStore } = parts;
  if (settings.work.size === 0) return undefined;
  if (openStore === undefined)
    throw new RepriseError("BAD_OPTIONS", "work: this site has no store, so it has no tasks to offer. Pass `store`.");
  const store = await openStore();
  try {
    const worker = new FederationWorker({
      store,
      definitions,
      work: settings.work,
      keysOf: (peer) => keysOf(parts, peer),
      keeper: new HomeSteps(home),
      runtime: runtimeText(),
      logger,
      clock,
      timers,
      random,
    });
    await worker.start();
    return { routes: offerRoutes(worker.book), stop: () => stopWorker(worker, store) };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function stopWorker(worker: FederationWorker, store: Store): Promise<void> {
  await worker.stop();
  await store.close();
}

/** Every key that the log of a peer has named: a statement may be signed before a rotation and come after it. */
function keysOf({ settings, home }: SiteParts, name: string): readonly VerifyingKey[] | undefined {
  const peer = settings.peers.find((one) => one.name === name);
  return peer && home.keys(peer.origin).terms.map(({ key }) => key);
}

/** Executes tasks of peers. Undefined: it executes none. */
export function executeWork(parts: SiteParts): { stop(): Promise<void> } | undefined {
  const { settings, definitions, own, logger, clock, timers } = parts;
  const { execute } = settings;
  if (execute === undefined) return undefined;
  const homes = settings.peers
    .filter(({ name }) => execute.for.includes(name))
    .map(({ name, url, token }) => ({ name, url: url!, token }));
  const worker = new PeerWorker({
    definitions,
    homes,
    key: own.key,
    runtime: runtimeText(),
    logger,
    clock,
    timers,
    ...(execute.labels && { labels: execute.labels }),
    ...(execute.concurrency !== undefined && { concurrency: execute.concurrency }),
  });
  worker.start();
  return worker;
}
