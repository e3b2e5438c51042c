// Worker: claims work, runs it and commits the results. Here: its start, its drain and its end; worker-parts.ts has what it consists of.
//
// worker.R1. A worker runs at most `concurrency` user functions at once, and holds as many runs as run-cache.C3 allows.
// worker.R2. A draining worker starts no new work. Functions that run may finish until the grace period ends. The worker
//   releases each run as soon as none of its functions run.
// worker.R3. After a store failure the worker drops everything it holds and continues under a new number (restart.ts).
// worker.R4. It does the same when the database went back to an earlier state: nothing in memory is valid then.

import { CancelledError } from "../base/index.ts";
import { Parts } from "./worker-parts.ts";
import type { WorkerOptions } from "./worker-options.ts";

export class Worker {
  /** For handles in the same process: they write, start runs and read what is held. */
  readonly parts: Parts;

  constructor(options: WorkerOptions) {
    this.parts = new Parts(options);
  }

  async start(): Promise<void> {
    const { store, registry, options, lease, poller, events } = this.parts;
    store.onHistoryBreak?.((change) => events.historyBroke(change));
    await store.write(registry.queueDeclarations());
    if (options.works) await lease.start();
    poller.start();
    events.due();
  }

  /** worker.R2. False when user functions were still running after `graceMs`. */
  async drain(graceMs: number): Promise<boolean> {
    const { drain, failures, options, lease } = this.parts;
    const finished = await drain.run(graceMs);
    failures.flush();
    this.#stop();
    if (options.works) await lease.release();
    return finished;
  }

  /** How many user functions are running. */
  get runningCount(): number {
    return this.parts.slots.inUse + this.parts.nodeSlots.inUse;
  }

  /** Resolves when no user function is running. */
  readonly idle = (): Promise<unknown> => Promise.all([this.parts.slots.idle(), this.parts.nodeSlots.idle()]);

  /** No delivery, write, replay or poll is in progress; user functions may be running. */
  get isSettled(): boolean {
    const { pump, runs, flows, schedules, restart } = this.parts;
    return pump.isIdle && !runs.isLoading && !flows.isReading && !schedules.isPolling && !restart.isRunning;
  }

  async settled(): Promise<void> {
    const { pump, runs, flows, schedules, restart } = this.parts;
    while (!this.isSettled) {
      await pump.idle();
      await runs.allLoaded();
      await flows.allRead();
      await schedules.polled();
      await restart.done();
    }
  }

  /** After `drain`: stops polling for the ends of runs that other workers continue. */
  close(): void {
    this.parts.poller.stop();
  }

  /** Stops as a killed process does: releases nothing and writes nothing more. */
  crash(): void {
    this.#stop();
    this.parts.poller.stop();
  }

  #stop(): void {
    const { log, pump, lease, outbox, tasks, runs } = this.parts;
    this.parts.isStopped = true;
    log.stop();
    pump.stop();
    lease.stop();
    outbox.stop();
    tasks.abandonAll(() => new CancelledError("The worker has stopped."));
    runs.stop();
  }
}
