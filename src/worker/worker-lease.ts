// WorkerLease: the worker's row in the store, renewed by heartbeat. Each heartbeat also takes over from workers whose lease
// expired.
//
// worker-lease.L1. A worker renews its lease three times per lease duration, so it may miss two heartbeats.
// worker-lease.L2. A dead worker's lease expires at most one lease duration after its death. The next heartbeat of any other
//   worker takes over its work. Heartbeats are at most 3.4 s apart, so a takeover starts less than 14 s after the death with
//   the default lease of 10 s, and less than the lease duration plus 4 s with any other.

import type { Timers } from "../base/index.ts";
import { emit, isObserved, type Store } from "../kernel/index.ts";

export interface WorkerLeaseHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly name: string;
  readonly leaseMs: number;
  /** What this worker can claim (`profile`), and with each heartbeat what it committed (`activity`). */
  readonly profile: string;
  activity(): string;
  /** False in tests under virtual time, which renew the lease themselves. */
  readonly heartbeats: boolean;
  /** Another worker took over the lease: everything held under the old number is lost. */
  onLost(): void;
  /** Work of dead workers can be claimed. */
  onTakeover(): void;
  /** The lease was renewed: time for the periodic polls. */
  onRenewed(): void;
  /** Called once per lease duration (lease-reconciler.R3). */
  reconcile(worker: number): Promise<void>;
  report(error: unknown): void;
}

/** worker-lease.L1 */
const BEATS_PER_LEASE = 3;
/** worker-lease.L2. A long lease must not delay the takeover of other workers' runs. */
const MAX_BEAT_MS = 3_333;

export class WorkerLease {
  readonly #host: WorkerLeaseHost;
  #worker = 0;
  #abandoned = 0;
  #cancel: (() => void) | undefined;
  #stopped = false;
  #beats = 0;

  constructor(host: WorkerLeaseHost) {
    this.#host = host;
  }

  /** 0 while the worker has no lease; it claims nothing then. */
  get worker(): number {
    return this.#worker;
  }

  async start(): Promise<void> {
    const { store, name, leaseMs, profile: about, heartbeats } = this.#host;
    this.#worker = await store.registerWorker(name, leaseMs, about);
    await this.reap();
    if (heartbeats) this.#schedule();
  }

  async reap(): Promise<void> {
    const taken = await this.#host.store.reap(this.#worker);
    if (taken.workers === 0) return;
    if (isObserved()) emit({ event: "lease.taken_over", ...taken });
    this.#host.onTakeover();
  }

  /** The worker claims nothing more under its number; `reregister` releases what it holds under it. */
  abandon(): void {
    if (this.#worker !== 0) this.#abandoned = this.#worker;
    this.#worker = 0;
  }

  /** Continues under a new number. */
  async reregister(): Promise<void> {
    const { store, name, leaseMs, profile: about } = this.#host;
    if (this.#abandoned !== 0) await store.releaseWorker(this.#abandoned);
    this.#abandoned = 0;
    if (!this.#stopped) this.#worker = await store.registerWorker(name, leaseMs, about);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancel = this.#host.timers.set(
      Math.min(Math.floor(this.#host.leaseMs / BEATS_PER_LEASE), MAX_BEAT_MS),
      () => {
        this.#beat()
          .catch((error: unknown) => this.#host.report(error))
          .finally(() => this.#schedule());
      },
    );
  }

  async #beat(): Promise<void> {
    const { store, leaseMs } = this.#host;
    if (
      this.#worker !== 0 &&
      !(await store.renewLease(this.#worker, leaseMs, this.#host.activity())) &&
      !this.#stopped
    ) {
      if (isObserved()) emit({ event: "lease.lost", worker: this.#worker, run: undefined });
      this.#host.onLost();
    }
    if (this.#worker === 0 || this.#stopped) return;
    await this.reap();
    this.#host.onRenewed();
    this.#beats += 1;
    if (this.#beats % BEATS_PER_LEASE === 0 && this.#worker !== 0) await this.#host.reconcile(this.#worker);
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async release(): Promise<void> {
    this.stop();
    for (const worker of [this.#worker, this.#abandoned])
      if (worker !== 0) await this.#host.store.releaseWorker(worker);
  }
}
