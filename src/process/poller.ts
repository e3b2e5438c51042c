// Poller: decides when the worker polls the store. The process wakes itself up directly; the poller covers due times and
// other processes.
//
// poller.L1. The worker polls for timed work when it becomes due, not before.
// poller.L2. A cheap poll detects writes of other processes: often while the store changes, rarely while it does not.
// poller.L3. A notice of the store triggers a poll at once. After one that found a change, the next waits for a few milliseconds, and
//   for longer the more runs the process had to read again: under load notices cost no more than polling does. A notice that is lost
//   costs time only.

import type { EpochMs, Timers } from "../base/index.ts";
import type { ChangeNotice, Store } from "../kernel/index.ts";

export interface PollerHost {
  readonly store: Store;
  readonly timers: Timers;
  /** False when no other process writes to this store. */
  readonly polls: boolean;
  onDue(): void;
  /** Without a notice, any kind of work may be ready. Returns how many runs the host reads again. */
  onChanged(notice: ChangeNotice | undefined): number;
}

const BUSY_MS = 10;
const IDLE_MS = 100;
/** poller.L3. The pause after a poll that a notice triggered, and the number of runs that make it longer by a millisecond. */
const NOTICE_MS = 2;
const READS_PER_MS = 20;
/** Polls without a change before the poller slows down. */
const QUIET_POLLS = 100;

export class Poller {
  readonly #host: PollerHost;
  #alarm: { readonly at: EpochMs; readonly cancel: () => void } | undefined;
  #cancelPoll: (() => void) | undefined;
  /** poller.L3 */
  #isNoticed = false;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #cancelNoticed: (() => void) | undefined;
  #quietPolls = QUIET_POLLS;
  #stopped = false;

  constructor(host: PollerHost) {
    this.#host = host;
  }

  start(): void {
    if (!this.#host.polls) return;
    this.#pollLater();
    this.#host.store.onNotice?.(() => this.#onNotice());
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

  /** poller.L3 */
  #onNotice(): void {
    if (this.#isNoticed || this.#stopped) return;
    this.#isNoticed = true;
    const { store, timers } = this.#host;
    const waitMs = this.#pausedUntil - store.now();
    if (waitMs > 0) this.#cancelNoticed = timers.set(waitMs, () => this.#pollNoticed());
    else timers.soon(() => this.#pollNoticed());
  }

  #pollNoticed(): void {
    this.#isNoticed = false;
    if (this.#stopped) return;
    this.#cancelPoll?.();
    const reads = this.#poll();
    // A notice of a commit of this process, or of one that an earlier poll found.
    if (reads === undefined) return;
    this.#pausedUntil = this.#host.store.now() + Math.min(BUSY_MS, NOTICE_MS + reads / READS_PER_MS);
  }

  /** poller.L2 */
  #pollLater(): void {
    const ms = this.#quietPolls < QUIET_POLLS ? BUSY_MS : IDLE_MS;
    this.#cancelPoll = this.#host.timers.set(ms, () => {
      this.#quietPolls += 1;
      this.#poll();
    });
  }

  /** How many runs are read again; undefined: there was no change. */
  #poll(): number | undefined {
    const { store } = this.#host;
    const mayHaveChanged = store.pollChanges();
    const notice = mayHaveChanged ? store.takeNotice?.() : undefined;
    // A poll that the store schedules from time to time, without a change, does not keep the poller busy.
    if (mayHaveChanged && (store.takeNotice === undefined || notice !== undefined)) this.#quietPolls = 0;
    const reads = mayHaveChanged ? this.#host.onChanged(notice) : undefined;
    if (!this.#stopped) this.#pollLater();
    return reads;
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm?.cancel();
    this.#cancelPoll?.();
    this.#cancelNoticed?.();
  }
}
