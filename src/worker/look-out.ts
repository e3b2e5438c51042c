// LookOut: when to look for work. In-process wake-ups come at once; this is for what comes due, and for other processes.
//
// L1. Something that comes due is looked for at that moment, not before.
// L2. Other processes are noticed by a cheap look at the store: often while something is going on, rarely when nothing is,
//     and at once where they can be heard.

import type { EpochMs, Timers } from "../base/index.ts";
import type { ChangeNotice, Store } from "../kernel/index.ts";

export interface LookOutHost {
  readonly store: Store;
  readonly timers: Timers;
  /** False: nobody else writes to this store, so there is nothing to look for. */
  readonly polls: boolean;
  due(): void;
  /** `news`: what it was; undefined: anything. */
  changed(news: ChangeNotice | undefined): void;
}

const BUSY_MS = 10;
const IDLE_MS = 100;
/** Looks without news before the pace goes down. */
const PATIENCE = 100;

export class LookOut {
  readonly #host: LookOutHost;
  #alarm: { readonly at: EpochMs; readonly cancel: () => void } | undefined;
  #cancelPoll: (() => void) | undefined;
  #quietLooks = PATIENCE;
  #stopped = false;

  constructor(host: LookOutHost) {
    this.#host = host;
  }

  start(): void {
    if (!this.#host.polls) return;
    this.#poll();
    this.#host.store.onNews?.(() => this.#hear());
  }

  /** L1 */
  dueAt(at: EpochMs | undefined): void {
    if (at === undefined || this.#stopped || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.cancel();
    const cancel = this.#host.timers.set(Math.max(0, at - this.#host.store.now()), () => {
      this.#alarm = undefined;
      this.#host.due();
    });
    this.#alarm = { at, cancel };
  }

  /** Not more often than it would be looked at anyway while something is going on. */
  #hear(): void {
    if (this.#quietLooks === 0) return;
    this.#quietLooks = 0;
    this.#cancelPoll?.();
    this.#poll(0);
  }

  /** L2 */
  #poll(ms = this.#quietLooks < PATIENCE ? BUSY_MS : IDLE_MS): void {
    if (this.#stopped) return;
    this.#cancelPoll = this.#host.timers.set(ms, () => {
      const { store } = this.#host;
      const hasChanged = store.hasChanged();
      const news = hasChanged ? store.takeNews?.() : undefined;
      // A look that was only due to come says nothing about how often to look.
      const isNews = hasChanged && (store.takeNews === undefined || news !== undefined);
      this.#quietLooks = isNews ? 0 : this.#quietLooks + 1;
      if (hasChanged) this.#host.changed(news);
      this.#poll();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
    this.#cancelPoll?.();
  }
}
