// Lease: this worker's one row, renewed by heartbeat; and taking over from workers that stopped renewing theirs.
//
// LS1. A lease is renewed three times before it runs out.
// LS2. What a dead worker held is taken over at the latest one heartbeat of some other worker after its lease has run out, which
//      is at the latest one lease after it died. Heartbeats are at most 3.4 s apart: with the default lease of 10 s that is
//      less than 14 s, and with any other less than the lease and 4 s.

import type { Timers } from "../base/index.ts";
import { emit, isObserved, type Store } from "../kernel/index.ts";

export interface LeaseHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly name: string;
  readonly leaseMs: number;
  /** What this worker says about itself, and of its work with each heartbeat. */
  readonly about: string;
  doing(): string;
  /** Tests under virtual time beat by hand. */
  readonly heartbeats: boolean;
  /** The lease was taken away: everything held under the old number is lost. */
  lost(): void;
  /** Others' work is free. */
  tookOver(): void;
  /** The lease was renewed: time for what should be looked at now and then. */
  renewed(): void;
  /** Once per lease: whether the store and this worker agree about what it holds. */
  reconcile(worker: number): Promise<void>;
  failed(error: unknown): void;
}

/** Heartbeats per lease: two may be missed. */
const BEATS = 3;
/** Others are looked at as often as with the default lease, however long this worker's own is (LS2). */
const BEAT_MS = 3_333;

export class Lease {
  readonly #host: LeaseHost;
  #worker = 0;
  #old = 0;
  #cancel: (() => void) | undefined;
  #stopped = false;
  #beats = 0;

  constructor(host: LeaseHost) {
    this.#host = host;
  }

  /** 0 while there is no lease: nothing may be claimed then. */
  get worker(): number {
    return this.#worker;
  }

  async start(): Promise<void> {
    const { store, name, leaseMs, about, heartbeats } = this.#host;
    this.#worker = await store.registerWorker(name, leaseMs, about);
    await this.reap();
    if (heartbeats) this.#schedule();
  }

  async reap(): Promise<void> {
    const taken = await this.#host.store.reap(this.#worker);
    if (taken.workers === 0) return;
    if (isObserved()) emit({ event: "lease.taken-over", ...taken });
    this.#host.tookOver();
  }

  /** From now on nothing may be claimed under this number; `renew` gives back what is held under it. */
  giveUp(): void {
    if (this.#worker !== 0) this.#old = this.#worker;
    this.#worker = 0;
  }

  /** Goes on under a new number. */
  async renew(): Promise<void> {
    const { store, name, leaseMs, about } = this.#host;
    if (this.#old !== 0) await store.releaseWorker(this.#old);
    this.#old = 0;
    if (!this.#stopped) this.#worker = await store.registerWorker(name, leaseMs, about);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel = this.#host.timers.set(Math.min(Math.floor(this.#host.leaseMs / BEATS), BEAT_MS), () => {
      this.#beat()
        .catch((error: unknown) => this.#host.failed(error))
        .finally(() => this.#schedule());
    });
  }

  async #beat(): Promise<void> {
    const { store, leaseMs } = this.#host;
    if (this.#worker !== 0 && !(await store.renewLease(this.#worker, leaseMs, this.#host.doing())) && !this.#stopped) {
      if (isObserved()) emit({ event: "lease.lost", worker: this.#worker, run: undefined });
      this.#host.lost();
    }
    if (this.#worker === 0 || this.#stopped) return;
    await this.reap();
    this.#host.renewed();
    this.#beats += 1;
    if (this.#beats % BEATS === 0 && this.#worker !== 0) await this.#host.reconcile(this.#worker);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async release(): Promise<void> {
    this.stop();
    for (const worker of [this.#worker, this.#old]) if (worker !== 0) await this.#host.store.releaseWorker(worker);
  }
}
