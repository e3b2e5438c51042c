// Site log: keeps the log of this site's store, and its copy in the home, up to date.
//
// site-log.L1. Calls run one after the other. Callers that come while one runs share the next one.
// site-log.L2. A round compares the log with the copies that others have before it signs anything (meet-own.N3), then sequences the runs
//   that ended, then publishes and copies the log into the home.
// site-log.L3. A rotation that was cut off is finished before the next round: `key.next` is in force if the log names it (key-file.K4).
//   A rotation by another process is followed: a round begins with the key that the file has.

import { RepriseError, type Clock, type Timers } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import type { ArchiveReport, EraseReport, ExchangeOptions } from "./api.ts";
import type { Carrier } from "../carriers/index.ts";
import { erase } from "./erase-run.ts";
import { pruneArchived, rememberArchived } from "./prune-archived.ts";
import { archiveTo } from "./sync/archive.ts";
import type { SigningKey } from "../receipts/index.ts";
import type { CheckedSettings } from "./check-settings.ts";
import type { Home } from "./home/home.ts";
import { findKeyIn, findNextKey, finishRotation, KEY_VARIABLE, nextKey, type SiteKey } from "./key-file.ts";
import { meetOwn } from "./sync/meet-own.ts";
import { readOwnEnd, seenIn } from "./sync/own-log.ts";
import { rotateKey } from "./sync/rotate-key.ts";
import { Sequencer } from "./sync/sequencer.ts";
import type { SyncState } from "./sync/sync-state.ts";
import { copyLog, takeOwn } from "./sync/take-own.ts";

export interface SiteLogParts {
  readonly dir: string;
  readonly home: Home;
  readonly state: SyncState;
  readonly settings: CheckedSettings;
  readonly own: SiteKey;
  readonly store: Store | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Whether `<dir>/key` has the key: only then it can be replaced. */
  readonly isKeyInFile: boolean;
}

/** Opens the carriers that may have a longer log of this site: those that it pushes to. */
export type OpenCopies = () => Promise<readonly Carrier[]>;

export class SiteLog {
  readonly #parts: SiteLogParts;
  #own: SiteKey;
  #sequencer: Sequencer | undefined;
  #running: Promise<number> | undefined;
  #next: Promise<number> | undefined;

  readonly #openCopies: OpenCopies;
  #hasMet = false;

  constructor(parts: SiteLogParts, openCopies: OpenCopies) {
    this.#parts = parts;
    this.#openCopies = openCopies;
    this.#own = parts.own;
  }

  get key(): SigningKey {
    return this.#own.key;
  }

  /** site-log.L1. Returns how many records are new in the home. */
  update(signal?: AbortSignal): Promise<number> {
    if (this.#running === undefined) return this.#start(signal);
    this.#next ??= this.#running.then(
      () => this.#start(signal),
      () => this.#start(signal),
    );
    return this.#next;
  }

  #start(signal: AbortSignal | undefined): Promise<number> {
    this.#next = undefined;
    const running = this.#round(signal).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  /** site-log.L2 */
  async #round(signal: AbortSignal | undefined): Promise<number> {
    const { store, home, settings, state } = this.#parts;
    if (store === undefined || !(await hasLog(store))) return 0;
    this.#admitSelf();
    await this.#finishRotation(store);
    await this.#meetCopies(store);
    await this.#sequencerOf(store).run(signal);
    const { records } = await takeOwn(store, home, this.key, {
      rules: settings.publish,
      archives: settings.archive !== undefined,
      state,
      ...(signal && { signal }),
    });
    return records;
  }

  /** The next round compares the log with the copies on carriers again. */
  meetAgain(): void {
    this.#hasMet = false;
  }

  /**
   * site-log.L2. The home each time; carriers once per process, because a store is restored while no process has it open. A carrier that
   * could not be read then is compared when a push finds another log there.
   */
  async #meetCopies(store: Store): Promise<void> {
    const { home } = this.#parts;
    await meetOwn(store, home, this.key);
    if (this.#hasMet) return;
    this.#hasMet = true;
    for (const carrier of await this.#openCopies())
      try {
        await meetOwn(store, home, this.key, carrier);
      } catch (error) {
        // A peer that cannot be reached, or whose files are damaged, must not stop this site; its push reports it.
        if (!(error instanceof RepriseError)) throw error;
      }
  }

  /** Other sites know this one by its first key, which may no longer be in force. */
  #admitSelf(): void {
    this.#parts.home.admit(this.#own.vkey, { own: true });
  }

  /** Every end is pinned until it is published or, with `archive`, archived: `takeOwn` releases what no rule wants. */
  #sequencerOf(store: Store): Sequencer {
    const { home, clock, timers } = this.#parts;
    this.#sequencer ??= new Sequencer({
      store,
      key: this.key,
      clock,
      timers,
      keeps: () => true,
      seen: () => seenIn(home),
    });
    return this.#sequencer;
  }

  async setOn(on: boolean): Promise<void> {
    await this.#getStore("Recording of ended runs").setFederated(on);
    if (on) await this.update();
  }

  /** The newest signed head of this site's log. */
  async head(): Promise<string> {
    const { store, home } = this.#parts;
    const origin = store === undefined ? this.key.origin : (await readOwnEnd(store, this.key)).origin;
    const checkpoint = home.checkpoint(origin);
    if (checkpoint !== undefined) return checkpoint.note;
    throw new RepriseError(
      "USAGE",
      `The log of ${this.key.origin} is empty, so it has no head. \`reprise fed on\` records the runs of a store.`,
    );
  }

  // ── history ──

  async archive(carrier: Carrier, { signal, onProgress }: ExchangeOptions): Promise<ArchiveReport> {
    const store = this.#getStore("An archive");
    const { home, state } = this.#parts;
    await meetOwn(store, home, this.key, carrier);
    await this.update(signal);
    const { runs, logs } = await archiveTo(store, home, this.key, carrier, {
      state,
      onProgress,
      ...(signal && { signal }),
    });
    rememberArchived(home, state, logs);
    const records = logs.reduce((sum, log) => sum + log.records, 0);
    return { carrier: carrier.url, runs, records };
  }

  pruneArchived(endedBefore: number, dryRun: boolean): Promise<number> {
    const { home, state } = this.#parts;
    const store = this.#getStore("Pruning");
    return pruneArchived({ store, home, state, own: this.key.origin }, endedBefore, dryRun);
  }

  async erase(what: string, options: { readonly reason: string; readonly all?: boolean }): Promise<EraseReport> {
    const store = this.#getStore("An erasure, which is a record of the log,");
    await this.update();
    const report = await erase({ store, home: this.#parts.home, key: this.key }, what, options);
    await this.update();
    return report;
  }

  // ── the key ──

  /** key-file.K4 */
  async rotateKey(): Promise<{ readonly vkey: string }> {
    const store = this.#getStore("A rotation, which is a record of the log,");
    const { dir, home, isKeyInFile } = this.#parts;
    if (!isKeyInFile)
      throw new RepriseError(
        "BAD_OPTIONS",
        `The key was passed in ${KEY_VARIABLE} or as an option, so a new one cannot be kept. Put it into ${dir}/key (mode 600), rotate, and pass the new text.`,
      );
    await this.update();
    const next = nextKey(dir, this.#own);
    await rotateKey(store, home, this.key, next.key);
    this.#use(next);
    await this.update();
    return { vkey: next.key.vkey };
  }

  /** site-log.L3 */
  async #finishRotation(store: Store): Promise<void> {
    const { dir, home, isKeyInFile } = this.#parts;
    if (!isKeyInFile) return;
    const next = findNextKey(dir);
    if (next === undefined) return this.#readKey();
    const { origin } = await readOwnEnd(store, this.key);
    await copyLog(store, home, this.key, { stopAtKey: true });
    const isNamed = home.keys(origin).terms.some(({ key }) => key.vkey === next.key.forOrigin(origin).vkey);
    if (isNamed) this.#use(next);
  }

  /** Another process may have rotated the key since this one read it. */
  #readKey(): void {
    const now = findKeyIn(this.#parts.dir);
    if (now === undefined || now.vkey !== this.#own.vkey || now.key.vkey === this.key.vkey) return;
    this.#own = now;
    this.#sequencer = undefined;
  }

  #use(next: SiteKey): void {
    finishRotation(this.#parts.dir);
    this.#own = next;
    this.#sequencer = undefined;
  }

  #getStore(what: string): Store {
    const { store } = this.#parts;
    if (store !== undefined) return store;
    throw new RepriseError("BAD_OPTIONS", `${what} needs the store of this site: pass \`store\`, or --store.`);
  }
}

async function hasLog(store: Store): Promise<boolean> {
  return (await store.isFederated()) || (await store.logSize()) > 0;
}
