// WorkerLease: the worker's row in the store, renewed by heartbeat. Each heartbeat also takes over from workers whose lease
// expired.
//
// worker-lease.L1. A worker renews its lease three times per lease duration, so it may miss two heartbeats.
// worker-lease.L2. A dead worker's lease expires at most one lease duration after its death. The next heartbeat of any other
//   worker takes over its work. Heartbeats are at most 3.4 s apart, so a takeover starts less than 14 s after the death with
//   the default lease of 10 s, and less than the lease duration plus 4 s with any other.

import { emit, isObserved } from "../kernel/index.ts";
import type { PartsOf } from "./worker-parts.ts";
import { describeWorker } from "./worker-description.ts";

/** worker-lease.L1 */
const BEATS_PER_LEASE = 3;
/** worker-lease.L2. A long lease must not delay the takeover of other workers' runs. */
const MAX_BEAT_MS = 3_333;

type UsedParts = PartsOf<
  | "claimer"
  | "drain"
  | "events"
  | "filter"
  | "log"
  | "meter"
  | "nodeSlots"
  | "options"
  | "reconciler"
  | "restart"
  | "runs"
  | "slots"
  | "store"
  | "timers"
>;

export class WorkerLease {
  readonly #parts: UsedParts;
  #worker = 0;
  #abandoned = 0;
  #cancel: (() => void) | undefined;
  #stopped = false;
  #beats = 0;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** 0 while the worker has no lease; it claims nothing then. */
  get worker(): number {
    return this.#worker;
  }

  async start(): Promise<void> {
    this.#worker = await this.#register();
    await this.reap();
    // False in tests under virtual time, which renew the lease themselves.
    if (this.#parts.options.heartbeats) this.#schedule();
  }

  #register(): Promise<number> {
    const { store, options, filter } = this.#parts;
    return store.registerWorker(options.name, options.leaseMs, describeWorker(options, filter));
  }

  /** Takes over the work of workers whose lease has expired. */
  async reap(): Promise<void> {
    const taken = await this.#parts.store.reap(this.#worker);
    if (taken.workers === 0) return;
    if (isObserved()) emit({ event: "lease.taken_over", ...taken });
    this.#parts.claimer.onTakeover();
  }

  /** The worker claims nothing more under its number; `reregister` releases what it holds under it. */
  abandon(): void {
    if (this.#worker !== 0) this.#abandoned = this.#worker;
    this.#worker = 0;
  }

  /** Continues under a new number. */
  async reregister(): Promise<void> {
    if (this.#abandoned !== 0) await this.#parts.store.releaseWorker(this.#abandoned);
    this.#abandoned = 0;
    if (!this.#stopped) this.#worker = await this.#register();
  }

  #schedule(): void {
    if (this.#stopped) return;
    const { timers, options, log } = this.#parts;
    this.#cancel = timers.set(Math.min(Math.floor(options.leaseMs / BEATS_PER_LEASE), MAX_BEAT_MS), () => {
      this.#beat()
        .catch((error: unknown) => log.report(error))
        .finally(() => this.#schedule());
    });
  }

  async #beat(): Promise<void> {
    const { store, options, restart, events, reconciler } = this.#parts;
    if (
      this.#worker !== 0 &&
      !(await store.renewLease(this.#worker, options.leaseMs, this.#activity())) &&
      !this.#stopped
    ) {
      if (isObserved()) emit({ event: "lease.lost", worker: this.#worker, run: undefined });
      // Everything held under the old number is lost.
      restart.run();
    }
    if (this.#worker === 0 || this.#stopped) return;
    await this.reap();
    events.renewed();
    this.#beats += 1;
    // lease-reconciler.R3
    if (this.#beats % BEATS_PER_LEASE === 0 && this.#worker !== 0) await reconciler.run(this.#worker);
  }

  /** What the worker committed since the last heartbeat. */
  #activity(): string {
    const { meter, store, runs, slots, nodeSlots, drain } = this.#parts;
    const running = slots.inUse + nodeSlots.inUse;
    return meter.text(store.now(), { runsHeld: runs.count, running, isDraining: drain.isDraining });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async release(): Promise<void> {
    this.stop();
    for (const worker of [this.#worker, this.#abandoned])
      if (worker !== 0) await this.#parts.store.releaseWorker(worker);
  }
}
