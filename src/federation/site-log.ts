// Site log: keeps the log of this site's store, and its copy in the home, up to date.
//
// site-log.L1. Calls run one after the other. Callers that come while one runs share the next one.
// site-log.L2. A round compares the log with the copies that others have before it signs anything (meet-own.N3), then sequences the runs
//   that ended, then publishes and copies the log into the home.
// site-log.L3. A rotation that was cut off is finished before the next round: `key.next` is in force if the log names it (key-file.K4).
// site-log.L4. The first round, and one every hour, sweeps for runs that ended without a note (log.L5).

import { RepriseError, type Clock } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import type { SigningKey } from "../receipts/index.ts";
import type { Carrier } from "./carriers/carrier.ts";
import type { CheckedSettings } from "./check-settings.ts";
import type { Home } from "./home/home.ts";
import { findNextKey, finishRotation, KEY_VARIABLE, nextKey, type SiteKey } from "./key-file.ts";
import { firstEpoch } from "./log/origin.ts";
import { meetOwn } from "./sync/meet-own.ts";
import { readOwnEnd } from "./sync/own-log.ts";
import type { PublicationRule } from "./sync/publish.ts";
import { rotateKey } from "./sync/rotate-key.ts";
import { Sequencer } from "./sync/sequencer.ts";
import type { SyncState } from "./sync/sync-state.ts";
import { takeOwn } from "./sync/take-own.ts";

export interface SiteLogParts {
  readonly dir: string;
  readonly home: Home;
  readonly state: SyncState;
  readonly settings: CheckedSettings;
  readonly own: SiteKey;
  readonly store: Store | undefined;
  readonly clock: Clock;
}

const SWEEP_MS = 3_600_000;

export class SiteLog {
  readonly #parts: SiteLogParts;
  #own: SiteKey;
  #sequencer: Sequencer | undefined;
  #running: Promise<number> | undefined;
  #next: Promise<number> | undefined;
  #sweptAt: number | undefined;

  constructor(parts: SiteLogParts) {
    this.#parts = parts;
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
    if (store === undefined || !(await this.#hasLog(store))) return 0;
    await this.#finishRotation(store);
    await meetOwn(store, home, this.key);
    this.#sequencer ??= new Sequencer({ store, key: () => this.key, home });
    await this.#sweep(store);
    await this.#sequencer.run(signal);
    const rules = settings.publish;
    const { records } = await takeOwn(store, home, this.key, {
      rules,
      archives: settings.archive !== undefined,
      state,
      ...(signal && { signal }),
    });
    return records;
  }

  async #hasLog(store: Store): Promise<boolean> {
    return (await store.isFederated()) || (await store.logSize()) > 0;
  }
}
