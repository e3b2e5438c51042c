// Site: what createFederation returns. It joins the store's log, the home, the carriers of peers, the server and work.
//
// site.S1. The own log is brought up to date before anything is handed out (site-log.L1).
// site.S2. What goes wrong with one peer is in its report; the exchange with the others continues.
// site.S3. `close` ends what waits, in this order: loop, servers, work, carriers, home. Twice is once.

import { RepriseError, toMs, type Duration, type Random, type Timers } from "../base/index.ts";
import type { AnyTask, Definition, Logger, Store } from "../kernel/index.ts";
import type {
  ArchiveReport,
  ConflictInfo,
  EraseReport,
  ExchangeOptions,
  FederatedRun,
  Federation,
  FederationStatus,
  GcReport,
  RunsFilter,
  SiteServer,
  ServeOptions,
  SyncReport,
  TracedRelation,
} from "./api.ts";
import type { Carrier } from "../carriers/index.ts";
import { OWN_LOG, type Peer } from "./check-settings.ts";
import type { Conflict } from "./home/conflicts.ts";
import { firstEpoch } from "./log/origin.ts";
import { PeerExchange, type PullWait, type Target } from "./peer-exchange.ts";
import { SiteLog, type SiteLogParts } from "./site-log.ts";
import type { Route } from "./serve/route.ts";
import { serveSite, siteRoutes, type SiteRoutes } from "./site-server.ts";
import { bundleOf, findRuns } from "./site-runs.ts";
import { SiteSnapshots } from "./site-snapshots.ts";
import { offerWork } from "./site-work.ts";
import { FederatedMemos } from "./work/federated-memos.ts";

export interface SiteParts extends SiteLogParts {
  /** Opens the store once more; undefined: the site has none. */
  readonly openStore: (() => Promise<Store>) | undefined;
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly logger: Logger;
  readonly timers: Timers;
  readonly random: Random;
}

/** Ended runs that are counted at most. */
const MAX_COUNTED = 1_000;
/** What a carrier at a bare URL gets is what rules give everyone. */
const EVERYONE = "*";

export class Site implements Federation {
  readonly #parts: SiteParts;
  readonly #log: SiteLog;
  readonly #exchange: PeerExchange;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #lastly: (() => Promise<void>)[] = [];
  readonly #listeners = new Set<() => void>();
  readonly snapshots: SiteSnapshots;
  readonly memos: FederatedMemos;
  #offered: Promise<readonly Route[]> | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: SiteParts) {
    this.#parts = parts;
    this.#log = new SiteLog(parts, () => this.#openCopies());
    const { home, state, settings, own, clock, timers, random } = parts;
    this.#exchange = new PeerExchange({
      home,
      state,
      rules: settings.publish,
      own: own.key.origin,
      clock,
      timers,
      random,
      onOtherLog: () => this.#log.meetAgain(),
    });
    this.snapshots = new SiteSnapshots(home);
    const trusted = settings.peers.filter(({ memo }) => memo.trust).map(({ origin, memo }) => [origin, memo] as const);
    this.memos = new FederatedMemos({
      home,
      own: own.key.origin,
      trusted: new Map(trusted),
      report: (message, data) => parts.logger.warn(message, data),
    });
  }

  get origin(): string {
    return firstEpoch(this.#parts.own.key.origin);
  }
  get vkey(): string {
    return this.#parts.own.vkey;
  }
  get home(): string {
    return this.#parts.dir;
  }

  // ── the exchange ──

  async sync(options: ExchangeOptions = {}): Promise<readonly SyncReport[]> {
    await this.record(options.signal);
    const reports: SyncReport[] = [];
    for (const target of this.#peers()) {
      const pulled = await reported(target, () => this.#exchange.pull(target, options));
      const pushed =
        target.push.length === 0 ? undefined : await reported(target, () => this.#exchange.push(target, options));
      const error = pulled.error ?? pushed?.error;
      reports.push({ ...pulled, pushed: pushed?.pushed ?? 0, ...(error && { error }) });
    }
    this.changed();
    return reports;
  }

  async push(name?: string, options: ExchangeOptions = {}): Promise<readonly SyncReport[]> {
    await this.record(options.signal);
    const targets = name === undefined ? this.#peers().filter(({ push }) => push.length > 0) : [this.target(name)];
    const reports: SyncReport[] = [];
    // Who names a peer means it, whatever its settings say.
    for (const target of targets) {
      const given = target.push.length === 0 ? { ...target, push: [OWN_LOG] } : target;
      reports.push(await reported(target, () => this.#exchange.push(given, options)));
    }
    return reports;
  }

  async pull(name?: string, options: ExchangeOptions = {}): Promise<readonly SyncReport[]> {
    const targets = name === undefined ? this.#peers() : [this.target(name)];
    const reports: SyncReport[] = [];
    for (const target of targets) reports.push(await reported(target, () => this.#exchange.pull(target, options)));
    this.changed();
    return reports;
  }

  /** meet-own.N3. A carrier that cannot be opened is left out. */
  async #openCopies(): Promise<readonly Carrier[]> {
    const targets = this.#peers().filter(({ push }) => push.length > 0);
    const opened = await Promise.allSettled(targets.map((target) => this.#exchange.carrier(target)));
    return opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  }

  /** Peers with files. */
  #peers(): readonly Target[] {
    return this.#parts.settings.peers.flatMap((peer) => targetOf(peer) ?? []);
  }

  /** A peer by its name, or a carrier by its URL. */
  target(name: string): Target {
    const { peers } = this.#parts.settings;
    const peer = peers.find((one) => one.name === name) ?? peers.find(({ url }) => url === name);
    const known = peer && targetOf(peer);
    if (known !== undefined) return known;
    if (peer !== undefined)
      throw new RepriseError(
        "BAD_OPTIONS",
        `The peer ${name} has no url: it connects to this site. Serve it: \`reprise serve\`.`,
      );
    if (/[:/]/.test(name)) return { name, url: name, token: undefined, reader: EVERYONE, pull: ["*"], push: ["*"] };
    const names = peers.map((one) => one.name).join(", ");
    throw new RepriseError(
      "BAD_OPTIONS",
      `There is no peer ${name}. ${names === "" ? "This site has none." : `The peers are ${names}.`}`,
    );
  }

  /** site.S1. Returns how many records are new. */
  async record(signal?: AbortSignal): Promise<number> {
    const records = await this.#log.update(signal);
    if (records > 0) this.changed();
    return records;
  }

  /** The home has changed: wakes those that wait for it. */
  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  // ── what is here ──

  async status(): Promise<FederationStatus> {
    const { home, settings, store } = this.#parts;
    const isOn = await store?.isFederated();
    const waiting = (await store?.listEnded(MAX_COUNTED))?.length ?? 0;
    return {
      origin: this.origin,
      vkey: this.vkey,
      ...(isOn !== undefined && { isOn }),
      waiting,
      origins: home.origins().map(({ id, own, peer, size, root, status }) => {
        const of = own ? "self" : peer;
        return { origin: id, ...(of !== undefined && { peer: of }), size, root, status };
      }),
      peers: settings.peers.map(({ name, origin, url }) => ({
        name,
        origin,
        ...(url !== undefined && { url }),
        ...this.#lastApplied(name),
        ...this.#exchange.note(name),
      })),
      conflicts: home.conflicts({ state: "open" }).length,
      missing: home.missing(undefined, MAX_COUNTED).length,
      snapshot: this.snapshots.current(),
    };
  }

  /** Also what other processes of this site did. */
  #lastApplied(peer: string): { readonly pulledAt?: Date } {
    const [last] = this.#parts.home.applied({ peer, limit: 1 });
    return last === undefined ? {} : { pulledAt: new Date(last.at) };
  }

  async head(): Promise<string> {
    await this.record();
    return this.#log.head();
  }

  async setOn(on: boolean): Promise<void> {
    await this.#log.setOn(on);
  }

  rotateKey(): Promise<{ readonly vkey: string }> {
    return this.#log.rotateKey();
  }

  async conflicts({ all = false }: { all?: boolean } = {}): Promise<readonly ConflictInfo[]> {
    return this.#parts.home.conflicts(all ? {} : { state: "open" }).map(conflictInfo);
  }

  async resolve(id: number, how: string): Promise<ConflictInfo> {
    return conflictInfo(this.#parts.home.resolve(id, how));
  }

  // ── runs ──

  async runs(filter: RunsFilter = {}): Promise<readonly FederatedRun[]> {
    return findRuns(this.#parts.home, filter);
  }

  async bundle(run: string, { origin, from }: { origin?: string; from?: string } = {}): Promise<readonly string[]> {
    const target = from === undefined ? undefined : this.target(from);
    return bundleOf(this.#parts.home, { run, origin }, target, target && (await this.#exchange.carrier(target)));
  }

  async trace(
    direction: "why" | "uses",
    key: string,
    { snapshot, ...bounds }: { depth?: number; limit?: number; snapshot?: string } = {},
  ): Promise<{ readonly relations: readonly TracedRelation[]; readonly isCut: boolean }> {
    const at = snapshot === undefined ? undefined : (await this.snapshots.get(snapshot)).id;
    const way = direction === "why" ? "back" : "forward";
    const { relations, isCut } = this.#parts.home.traverse(key, { direction: way, ...bounds }, at);
    const traced = relations.map(({ depth, type, from, to, mark }) => ({ depth, type, from, to, origin: mark.o }));
    return { relations: traced, isCut };
  }

  // ── history ──

  async archive(carrier = this.#parts.settings.archive, options: ExchangeOptions = {}): Promise<ArchiveReport> {
    if (carrier === undefined)
      throw new RepriseError(
        "BAD_OPTIONS",
        "There is no carrier to archive to. Name one, `reprise archive s3://bucket/prefix`, or set `archive` in the settings.",
      );
    return this.#log.archive(await this.#exchange.carrier(this.target(carrier)), options);
  }

  async pruneArchived({
    olderThan,
    dryRun = false,
  }: {
    olderThan: Duration;
    dryRun?: boolean;
  }): Promise<{ runs: number }> {
    const ageMs = toMs(olderThan, "pruneArchived: olderThan");
    const { store, clock } = this.#parts;
    return { runs: await this.#log.pruneArchived((store?.now() ?? clock.now()) - ageMs, dryRun) };
  }

  erase(what: string, options: { reason: string; all?: boolean }): Promise<EraseReport> {
    return this.#log.erase(what, options);
  }

  async rebuild(): Promise<{ readonly stateHash: string }> {
    this.#parts.home.rebuild();
    return { stateHash: this.#parts.home.stateHash() };
  }

  async gc(options: { maxBytes?: number } = {}): Promise<GcReport> {
    return this.#parts.home.gc(options);
  }

  // ── serving ──

  async serve(options: ServeOptions = {}): Promise<SiteServer> {
    const server = await serveSite(this.#parts, options, await this.#offeredRoutes());
    this.onChange(() => server.changed());
    this.onClose(() => server.close());
    return server;
  }

  /** What `serve` answers, as routes of a server that the caller has. */
  async openRoutes(): Promise<SiteRoutes> {
    const opened = siteRoutes(this.#parts, await this.#offeredRoutes());
    this.onChange(() => opened.changed());
    return opened;
  }

  async #offeredRoutes(): Promise<readonly Route[]> {
    await this.record();
    this.#offered ??= offerWork(this.#parts).then((work) => {
      if (work !== undefined) this.onClose(() => work.stop());
      return work?.routes ?? [];
    });
    this.#offered.catch(() => (this.#offered = undefined));
    return this.#offered;
  }

  // ── for createFederation ──

  /** Called before everything else is closed, the last one first. */
  onClose(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Called after everything else is closed. */
  onClosed(close: () => Promise<void>): void {
    this.#lastly.push(close);
  }

  /** Called when records are new in the home. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** One pull in the background. An error of the peer is thrown. */
  async pullInBackground(name: string, wait: PullWait & { readonly signal: AbortSignal }): Promise<void> {
    const { pulled, contents, error } = await this.#exchange.pull(this.target(name), wait);
    if (pulled + contents > 0) this.changed();
    if (error !== undefined) throw error;
  }

  async pushInBackground(name: string, signal: AbortSignal): Promise<void> {
    const { error } = await this.#exchange.push(this.target(name), { signal });
    if (error !== undefined) throw error;
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
    await this.#exchange.close();
    this.#parts.state.close();
    this.#parts.home.close();
    for (const close of this.#lastly) await close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function targetOf({ name, url, token, pull, push }: Peer): Target | undefined {
  return url === undefined ? undefined : { name, url, token, pull, push, reader: name };
}

/** site.S2 */
async function reported({ name }: Target, work: () => Promise<SyncReport>): Promise<SyncReport> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code === "INVARIANT") throw error;
    return { peer: name, pulled: 0, pushed: 0, contents: 0, error };
  }
}

function conflictInfo({ id, kind, cell, peer, firstSeen, state, resolution, evidence }: Conflict): ConflictInfo {
  return {
    id,
    kind,
    subject: cell,
    ...(peer !== undefined && { peer }),
    firstSeen: new Date(firstSeen),
    state,
    ...(resolution !== undefined && { resolution }),
    evidence,
  };
}
