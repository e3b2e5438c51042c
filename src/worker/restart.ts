// Restart: after a store failure, a lost lease or a break in the store's history, the worker drops everything it holds and
// registers again under a new number (worker.R3).

import { CancelledError, type Timers } from "../base/index.ts";
import { RETRY_WRITE_MS } from "./persistent-writes.ts";
import type { WorkerLease } from "./worker-lease.ts";
import type { Pump } from "./pump.ts";
import type { TaskPool } from "./task-pool.ts";

export interface RestartHost {
  readonly timers: Timers;
  readonly pump: Pump;
  readonly tasks: TaskPool;
  lease(): WorkerLease;
  mayRestart(): boolean;
  evictAll(): void;
  /** Repeats writes that the database may have lost and that claims depend on. */
  prepare(): Promise<unknown>;
  onRestarted(): void;
  report(error: unknown): void;
}

export class Restart {
  readonly #host: RestartHost;
  #isRunning = false;
  #done: Promise<void> = Promise.resolve();

  constructor(host: RestartHost) {
    this.#host = host;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Resolves when no restart is in progress. */
  done(): Promise<void> {
    return this.#done;
  }

  run(): void {
    const { pump, tasks, timers } = this.#host;
    if (!this.#host.mayRestart() || this.#isRunning) return;
    this.#isRunning = true;
    const lease = this.#host.lease();
    lease.abandon();
    this.#host.evictAll();
    tasks.abandonAll(() => new CancelledError("The worker lost its lease; another worker may run this task again."));
    // Finished work is committed first, while its tokens are still valid. Not `idle`: a loaded pump never is.
    this.#done = pump
      .flushed()
      .then(() => this.#host.prepare())
      .then(() => lease.reregister())
      .then(
        () => {
          this.#isRunning = false;
          this.#host.onRestarted();
        },
        (error: unknown) => {
          this.#isRunning = false;
          this.#host.report(error);
          timers.set(RETRY_WRITE_MS, () => this.run(), { ref: false });
        },
      );
  }
}
