// Poller: decides when the worker polls the store. The process wakes itself up directly; the poller covers due times and
// other processes.
//
// poller.L1. The worker polls for timed work when it becomes due, not before.
// poller.L2. A cheap poll detects writes of other processes: often while the store changes, rarely while it does not. A store
//   that sends change notices triggers a poll at once.

import type { EpochMs, Timers } from "../base/index.ts";
import type { ChangeNotice, Store } from "../kernel/index.ts";

export interface PollerHost {
  readonly store: Store;
  readonly timers: Timers;
  /** False when no other process writes to this store. */
  readonly polls: boolean;
  onDue(): void;
  /** Without a notice, any kind of work may be ready. */
  onChanged(notice: ChangeNotice | undefined): void;
}

const BUSY_MS = 10;
const IDLE_MS = 100;
/** Polls without a change before the poller slows down. */
const QUIET_POLLS = 100;

export class Poller {
  readonly #host: PollerHost;
  #alarm: { readonly at: EpochMs; readonly cancel: () => void } | undefined;
  #cancelPoll: (() => void) | undefined;
  #quietPolls = QUIET_POLLS;
  #stopped = false;

  constructor(host: PollerHost) {
    this.#host = host;
  }

  start(): void {
    if (!this.#host.polls) return;
    this.#poll();
    this.#host.store.onNotice?.(() => this.#onChange());
  }

  /** poller.L1 */
  dueAt(at: EpochMs | undefined): void {
    if (at === undefined || this.#stopped || (this.#alarm !== undefined && this.#alarm.at <= at)) return;
    this.#alarm?.cancel();
    const cancel = this.#host.timers.set(Math.max(0, at - this.#host.store.now()), () => {
      this.#alarm = undefined;
      this.#host.onDue();
    });
    this.#alarm = { at, cancel };
  }

  /** A busy poller polls soon enough without this. */
  #onChange(): void {
    if (this.#quietPolls === 0) return;
    this.#quietPolls = 0;
    this.#cancelPoll?.();
    this.#poll(0);
  }

  /** poller.L2 */
  #poll(ms = this.#quietPolls < QUIET_POLLS ? BUSY_MS : IDLE_MS): void {
    if (this.#stopped) return;
    this.#cancelPoll = this.#host.timers.set(ms, () => {
      const { store } = this.#host;
      const mayHaveChanged = store.pollChanges();
      const notice = mayHaveChanged ? store.takeNotice?.() : undefined;
      // A poll that the store schedules from time to time, without a change, does not keep the poller busy.
      const isChange = mayHaveChanged && (store.takeNotice === undefined || notice !== undefined);
      this.#quietPolls = isChange ? 0 : this.#quietPolls + 1;
      if (mayHaveChanged) this.#host.onChanged(notice);
      this.#poll();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
    this.#cancelPoll?.();
  }
}
