// HomeLink: the connection of a peer's worker with one home: polls for offers, renews them and posts their ends.
//
// home-link.L1. One poll waits at the home at a time, and none while the worker has no room.
// home-link.L2. All offers are renewed by one request, three times per lease of the home.
// home-link.L3. An end is posted until the home answers it; a refusal is an answer. One request is in flight at a time, and has the ends
//   that came while the one before it was: so the home commits them together.

import { systemRandom, type Clock, type Timers } from "../../base/index.ts";
import { RefusedByHome, type OfferClient, type WorkHome } from "./offer-client.ts";
import type { End, Offer } from "./offer.ts";

export interface HomeLinkHost {
  readonly client: OfferClient;
  readonly tasks: readonly string[];
  readonly clock: Clock;
  readonly timers: Timers;
  free(): number;
  execute(offer: Offer, link: HomeLink): Promise<void>;
  report(error: unknown): void;
}

const WAIT_MS = 20_000;
const RENEWALS_PER_LEASE = 3;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
const FETCHES = 3;
/** home-link.L3 */
const MAX_POST = 256;
const MAX_POST_CHARACTERS = 4 * 1024 * 1024;

export class HomeLink {
  readonly #host: HomeLinkHost;
  /** Ends the poll. */
  readonly #draining = new AbortController();
  /** Ends everything. */
  readonly #stopping = new AbortController();
  readonly #unposted: UnpostedEnd[] = [];
  #isPosting = false;
  readonly #wanted = new Map<string, PromiseWithResolvers<string>>();
  /** Offers that the home has not answered the end of. */
  readonly #held = new Map<string, { onGone: (() => void) | undefined; isEnding: boolean }>();
  readonly #executing = new Set<Promise<void>>();
  #polling: Promise<void> = Promise.resolve();
  #onFreed: (() => void) | undefined;
  #leaseMs = 0;
  #cancelRenewal: (() => void) | undefined;

  constructor(host: HomeLinkHost) {
    this.#host = host;
  }

  get home(): WorkHome {
    return this.#host.client.home;
  }

  start(): void {
    this.#polling = this.#poll();
  }

  /** Claims nothing more. What runs may end until the grace period ends; the rest is aborted, and the home offers it again. */
  async stop(graceMs: number): Promise<void> {
    this.#draining.abort();
    this.onFreed();
    await this.#polling;
    if (graceMs > 0 && this.#executing.size > 0) await this.#finish(graceMs);
    this.#stopping.abort();
    this.#cancelRenewal?.();
    this.#gone([...this.#held.keys()]);
    await Promise.all(this.#executing);
  }

  #finish(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#host.timers.set(graceMs, resolve);
      void Promise.allSettled(this.#executing).then(() => {
        cancel();
        resolve();
      });
    });
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #poll(): Promise<void> {
    let failures = 0;
    const { signal } = this.#draining;
    while (!signal.aborted) {
      const free = this.#host.free();
      if (free === 0) {
        await new Promise<void>((resolve) => (this.#onFreed = resolve));
        continue;
      }
      try {
        const request = { tasks: this.#host.tasks, free, waitMs: WAIT_MS };
        const { offers, gone, leaseMs } = await this.#host.client.claim(request, signal);
        failures = 0;
        this.#leaseMs = leaseMs;
        for (const offer of offers) this.#take(offer);
        this.#gone(gone);
      } catch (error) {
        if (signal.aborted) return;
        this.#host.report(error);
        await this.#pause((failures += 1), signal);
      }
    }
  }

  #take(offer: Offer): void {
    this.#held.set(offer.offer, { onGone: undefined, isEnding: false });
    this.#scheduleRenewal();
    const executing = this.#host.execute(offer, this).finally(() => {
      this.#held.delete(offer.offer);
      this.#executing.delete(executing);
    });
    this.#executing.add(executing);
  }

  /** The worker has room again. */
  onFreed(): void {
    this.#onFreed?.();
    this.#onFreed = undefined;
  }

  holds(offer: string): boolean {
    return this.#held.has(offer);
  }

  /** Calls `listener` when the home no longer waits for the offer. */
  onGone(offer: string, listener: () => void): void {
    const held = this.#held.get(offer);
    if (held === undefined) listener();
    else held.onGone = listener;
  }

  #gone(offers: readonly string[]): void {
    for (const offer of offers) {
      const held = this.#held.get(offer);
      // peer-worker.P3. A function that has ended has a statement for the home, even if it comes too late.
      if (held === undefined || (held.isEnding && !this.#isStopped)) continue;
      this.#held.delete(offer);
      held.onGone?.();
    }
  }

  // ── home-link.L2 ──

  #scheduleRenewal(): void {
    if (this.#cancelRenewal !== undefined || this.#isStopped || this.#held.size === 0) return;
    this.#cancelRenewal = this.#host.timers.set(
      Math.floor(this.#leaseMs / RENEWALS_PER_LEASE),
      () => {
        this.#renew()
          .catch((error: unknown) => this.#isStopped || this.#host.report(error))
          .finally(() => {
            this.#cancelRenewal = undefined;
            this.#scheduleRenewal();
          });
      },
      { ref: false },
    );
  }

  async #renew(): Promise<void> {
    const offers = [...this.#held.keys()];
    if (offers.length === 0) return;
    const tooLate = new AbortController();
    // After a lease without an answer the offers are lost, and the next request may find a connection that works.
    const cancel = this.#host.timers.set(this.#leaseMs, () => tooLate.abort(), { ref: false });
    try {
      const signal = AbortSignal.any([this.#stopping.signal, tooLate.signal]);
      const { gone } = await this.#host.client.renew({ offers, free: this.#host.free() }, signal);
      this.#gone(gone);
    } finally {
      cancel();
    }
  }

  // ── ends and inputs ──

  /** home-link.L3. Resolves when the home has answered. */
  end(end: End): Promise<void> {
    const held = this.#held.get(end.offer);
    if (held !== undefined) held.isEnding = true;
    return new Promise((resolve) => {
      this.#unposted.push({ end, resolve });
      if (this.#isPosting) return;
      this.#isPosting = true;
      void this.#postAll().finally(() => (this.#isPosting = false));
    });
  }

  async #postAll(): Promise<void> {
    for (let failures = 0; this.#unposted.length > 0;) {
      const batch = nextBatch(this.#unposted);
      if (this.#isStopped || (await this.#post(batch))) {
        this.#unposted.splice(0, batch.length);
        for (const { resolve } of batch) resolve();
        failures = 0;
      } else await this.#pause((failures += 1));
    }
  }

  /** Whether the home has answered. */
  async #post(batch: readonly UnpostedEnd[]): Promise<boolean> {
    try {
      const request = { ends: batch.map(({ end }) => end) };
      const { answers } = await this.#host.client.ends(request, this.#stopping.signal);
      for (const answer of answers) if ("refused" in answer) this.#host.report(new Error(answer.refused));
      return true;
    } catch (error) {
      if (!this.#isStopped) this.#host.report(error);
      return error instanceof RefusedByHome;
    }
  }

  /** The text of an input, as the home sends it. Inputs that are wanted at the same time are one request. */
  input(key: string): Promise<string> {
    const wanted = this.#wanted.get(key) ?? Promise.withResolvers<string>();
    if (this.#wanted.size === 0) this.#host.timers.soon(() => void this.#fetchAll());
    this.#wanted.set(key, wanted);
    return wanted.promise;
  }

  async #fetchAll(): Promise<void> {
    for (let failures = 0; this.#wanted.size > 0;) {
      const keys = [...this.#wanted.keys()];
      try {
        const { texts } = await this.#host.client.inputs({ keys }, this.#stopping.signal);
        const found = Object.entries(texts).filter(([key]) => this.#wanted.has(key));
        if (found.length === 0)
          throw new RefusedByHome(`${this.home.name} sent none of the inputs ${keys.join(", ")}.`);
        for (const [key, text] of found) this.#wanted.get(key)?.resolve(text);
        for (const [key] of found) this.#wanted.delete(key);
      } catch (error) {
        failures += 1;
        if (this.#isStopped || error instanceof RefusedByHome || failures === FETCHES) {
          for (const key of keys) this.#wanted.get(key)?.reject(error);
          for (const key of keys) this.#wanted.delete(key);
        } else await this.#pause(failures);
      }
    }
  }

  /** Longer after each failure, and not the same for all peers. */
  #pause(failures: number, signal = this.#stopping.signal): Promise<void> {
    const ms =
      Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + (systemRandom.bytes(1)[0] ?? 0) / 512);
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = this.#host.timers.set(ms, wake, { ref: false });
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

interface UnpostedEnd {
  readonly end: End;
  readonly resolve: () => void;
}

/** The first ends, as many as one request holds; one at least. */
function nextBatch(ends: readonly UnpostedEnd[]): readonly UnpostedEnd[] {
  let left = MAX_POST_CHARACTERS;
  const count = ends.findIndex(({ end }) => {
    if ("statement" in end) left -= end.statement.length + (end.result?.length ?? 0) + (end.error?.length ?? 0);
    return left < 0;
  });
  return ends.slice(0, Math.min(MAX_POST, count === -1 ? ends.length : Math.max(1, count)));
}
