// Restart: after a store failure, a lost lease or a break in the store's history, the worker drops everything it holds and
// registers again under a new number (worker.R3).

import { CancelledError } from "../base/index.ts";
import type { PartsOf } from "./worker-parts.ts";
import { RETRY_WRITE_MS } from "./persistent-writes.ts";

type UsedParts = PartsOf<
  | "events"
  | "isStopped"
  | "lease"
  | "log"
  | "options"
  | "pump"
  | "quarantine"
  | "registry"
  | "runs"
  | "store"
  | "tasks"
  | "timers"
>;

export class Restart {
  readonly #parts: UsedParts;
  #isRunning = false;
  #done: Promise<void> = Promise.resolve();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Resolves when no restart is in progress. */
  done(): Promise<void> {
    return this.#done;
  }

  run(): void {
    const { pump, tasks, timers, lease, runs, quarantine, store, registry, events, log, options } = this.#parts;
    if (!options.works || this.#parts.isStopped || this.#isRunning) return;
    this.#isRunning = true;
    lease.abandon();
    runs.evictAll();
    quarantine.reset();
    tasks.abandonAll(() => new CancelledError("The worker lost its lease; another worker may run this task again."));
    // Finished work is committed first, while its tokens are still valid. Not `idle`: a loaded pump never is.
    this.#done = pump
      .flushed()
      // The database may have lost the queues, and claims depend on them.
      .then(() => store.write(registry.queueDeclarations()))
      .then(() => lease.reregister())
      .then(
        () => {
          this.#isRunning = false;
          events.due();
        },
        (error: unknown) => {
          this.#isRunning = false;
          log.report(error);
          timers.set(RETRY_WRITE_MS, () => this.run(), { ref: false });
        },
      );
  }
}
