// Sites of the tests about work at another site: a home with an engine, a federation worker and a server, and peers.

import { createEngine, type AnyTask, type Definition } from "reprise";
import {
  sha256Hex,
  systemClock,
  systemRandom,
  systemTimers,
  type Clock,
  type Timers,
} from "../../../src/base/index.ts";
import { FederationWorker, type StepKeeper } from "../../../src/federation/work/federation-worker.ts";
import type { DivergentStep } from "../../../src/federation/work/offer-book.ts";
import type { WorkTarget } from "../../../src/federation/work/offer-job.ts";
import { offerRoutes } from "../../../src/federation/work/offer-routes.ts";
import { RequestHandler, listen as listenOn } from "../../../src/http/index.ts";
import { tokenDigest } from "../../../src/http/index.ts";
import { peerHandlerOptions, peerRoutes, type PeerRouteOptions } from "../../../src/federation/serve/peer-routes.ts";
import type { Call, Route } from "../../../src/federation/serve/route.ts";
import { serveLimits } from "../../../src/federation/serve/serve-limits.ts";
import { PeerWorker, type InputCache } from "../../../src/federation/work/peer-worker.ts";
import type { ExecutedStep } from "../../../src/federation/work/step-statement.ts";
import { runtimeText } from "../../../src/engine/index.ts";
import { signingKeyOf, type SigningKey } from "../../../src/receipts/index.ts";
import { storeOf } from "../../../src/stores/index.ts";

export const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom };
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The key of a site of a test: the same in every process. */
export function keyOf(name: string): SigningKey {
  return signingKeyOf(Buffer.from(sha256Hex(`seed of ${name}`), "hex"), name);
}

/** One of these peers executes each task. */
export function one(...peers: readonly string[]): WorkTarget {
  return { peers, redundancy: 1 };
}

/** The token by which the home knows the peer. */
export function tokenOf(peer: string): string {
  return `token-of-${peer}-for-the-home`;
}

/** What the home keeps beside its runs. */
export class KeptSteps implements StepKeeper {
  readonly late: { readonly peer: string; readonly executed: ExecutedStep; readonly result: string | undefined }[] = [];
  readonly divergences: DivergentStep[] = [];
  onLate: (peer: string, executed: ExecutedStep) => void = () => {};

  keepLate(peer: string, _envelope: string, executed: ExecutedStep, result: string | undefined): void {
    this.late.push({ peer, executed, result });
    this.onLate(peer, executed);
  }
  addDivergence(divergent: DivergentStep): void {
    this.divergences.push(divergent);
  }
}

/** Real time, except for waits of a minute and more: those pass when the test says so. */
export class SkippableTime {
  #skippedMs = 0;
  readonly #long = new Map<() => void, number>();
  readonly clock: Clock = { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + this.#skippedMs };
  readonly timers: Timers = {
    set: (ms, fn, options) => {
      if (ms < 60_000) return systemTimers.set(ms, fn, options);
      const run = (): void => fn();
      this.#long.set(run, this.clock.monotonic() + ms);
      return () => void this.#long.delete(run);
    },
    soon: (fn) => systemTimers.soon(fn),
  };

  skip(ms: number): void {
    this.#skippedMs += ms;
    for (const [run, at] of [...this.#long]) if (at <= this.clock.monotonic() && this.#long.delete(run)) run();
  }
}

/** Of offers; nothing of it passes by itself. */
export const OFFER_LEASE_MS = 300_000;

export interface HomeOptions {
  readonly store: string;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly work: Readonly<Record<string, WorkTarget>>;
  readonly concurrency?: number;
  /** Of the engine and of the federation worker. */
  readonly leaseMs?: number;
  readonly offerLeaseMs?: number;
}

export async function openHome(options: HomeOptions) {
  const { store, definitions, work, concurrency, leaseMs, offerLeaseMs = OFFER_LEASE_MS } = options;
  const worker = leaseMs === undefined ? {} : { lease: leaseMs };
  const engine = await createEngine({ store, definitions, worker, logger: SILENT });
  const kept = new KeptSteps();
  const opened = await storeOf(store)["~open"]({ ...MACHINE, durability: "full" });
  const time = new SkippableTime();
  const federation = new FederationWorker({
    clock: time.clock,
    timers: time.timers,
    random: systemRandom,
    store: opened,
    definitions,
    work: new Map(Object.entries(work)),
    keysOf: (peer) => [keyOf(peer)],
    keeper: kept,
    runtime: runtimeText(),
    logger: SILENT,
    offerLeaseMs,
    ...(leaseMs !== undefined && { leaseMs }),
    ...(concurrency !== undefined && { concurrency }),
  });
  await federation.start();
  const peers = [...new Set(Object.values(work).flatMap((target) => target.peers))];
  const asked: string[] = [];
  const routes = offerRoutes(federation.book).map((route) => ({
    ...route,
    handle: (call: Call) => (asked.push(call.url.pathname), route.handle(call)),
  }));
  const server = await listen(routes, peers);
  return {
    engine,
    worker: federation,
    time,
    routes,
    /** The paths of all requests. */
    asked,
    kept,
    url: server.url,
    store: opened,
    async [Symbol.asyncDispose]() {
      await federation.stop();
      await server.close();
      await engine.close();
      await opened.close();
    },
  };
}

export interface PeerOptions {
  readonly name: string;
  readonly url: string;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly inputs?: InputCache;
  readonly concurrency?: number;
}

export function openPeer({ name, url, definitions, inputs, concurrency }: PeerOptions) {
  const worker = new PeerWorker({
    ...MACHINE,
    definitions,
    homes: [{ name: "home", url, token: tokenOf(name) }],
    key: keyOf(name),
    runtime: runtimeText(),
    logger: SILENT,
    ...(inputs !== undefined && { inputs }),
    ...(concurrency !== undefined && { concurrency }),
  });
  worker.start();
  return Object.assign(worker, { [Symbol.asyncDispose]: () => worker.stop() });
}

/** A server with these routes, for these peers. */
export async function listen(routes: readonly Route[], peers: readonly string[]) {
  const access: PeerRouteOptions = {
    limits: serveLimits(),
    peers: () =>
      peers.map((name) => ({ name, tokenSha256: tokenDigest(tokenOf(name)), pull: [], push: false, grants: [] })),
    isPublic: false,
    onError: (error) => {
      throw error;
    },
  };
  const handler = new RequestHandler({ ...peerHandlerOptions(access), routes: peerRoutes(routes, access) });
  const closable = Object.assign((request: Request) => handler.handle(request), { close: () => handler.close() });
  return listenOn(closable, { timers: systemTimers });
}
