// Restart: after a failure of the store, the loss of the lease or a break in the store's history, the worker gives up everything
// it holds and continues under a new number (R6).

import { CancelledError, type Timers } from "../base/index.ts";
import { INSIST_MS } from "./persistent-writes.ts";
import type { Lease } from "./lease.ts";
import type { Pump } from "./pump.ts";
import type { TaskPool } from "./task-pool.ts";

export interface RestartHost {
  readonly timers: Timers;
  readonly pump: Pump;
  readonly tasks: TaskPool;
  lease(): Lease;
  mayRestart(): boolean;
  evictAll(): void;
  /** Writes again what the database must have before anything is claimed, and may have lost. */
  prepare(): Promise<unknown>;
  restarted(): void;
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

  /** Resolves when the last one is over. */
  done(): Promise<void> {
    return this.#done;
  }

  run(): void {
    const { pump, tasks, timers } = this.#host;
    if (!this.#host.mayRestart() || this.#isRunning) return;
    this.#isRunning = true;
    const lease = this.#host.lease();
    lease.giveUp();
    this.#host.evictAll();
    tasks.abandonAll(() => new CancelledError("The lease was lost."));
    // What was finished goes out first, while its tokens still count. Not `quiet`: under load it never is.
    this.#done = pump
      .written()
      .then(() => this.#host.prepare())
      .then(() => lease.renew())
      .then(
        () => {
          this.#isRunning = false;
          this.#host.restarted();
        },
        (error: unknown) => {
          this.#isRunning = false;
          this.#host.report(error);
          timers.set(INSIST_MS, () => this.run(), { ref: false });
        },
      );
  }
}
