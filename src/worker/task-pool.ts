// TaskPool: the items that run on this worker, or wait here for a slot (local-queue.ts).

import { InvariantError, type EpochMs, type Timers, type PayloadLimits } from "../base/index.ts";
import type { Arrival, ClaimedItem, Logger, RunNumber, Telemetry } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { Registry } from "../process/index.ts";
import type { ExecutionSlots } from "./execution-slots.ts";
import type { Memos } from "./memos.ts";
import type { RemoteTasks } from "./remote-tasks.ts";
import type { SpendingHost } from "./spender.ts";
import { runTask, type NextAttempt, type TaskHost } from "./run-task.ts";
import { LocalQueue, type QueuedItem } from "./local-queue.ts";

export interface TaskPoolHost {
  readonly limits: PayloadLimits | undefined;
  readonly timers: Timers;
  readonly slots: ExecutionSlots;
  readonly registry: Registry;
  readonly workerName: string;
  readonly memos: Memos;
  readonly spending: SpendingHost;
  readonly remote?: RemoteTasks | undefined;
  readonly telemetry?: Telemetry | undefined;
  now(): EpochMs;
  logger(runId: string, step: string): Required<Logger>;
  onEnded(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void;
  onRetry(item: ClaimedItem, next: NextAttempt, wasLocal: boolean): void;
  onWaiting(item: ClaimedItem, wasLocal: boolean): void;
  /** The worker does not start the item; any worker may. */
  onGivenBack(item: ClaimedItem, wasLocal: boolean): void;
  report(error: unknown): void;
  /** A slot is free. */
  onSlotFreed(): void;
}

export interface RunningItem extends QueuedItem {
  /** Undefined while it waits for a slot, or its function is being called. */
  attempt: Attempt | undefined;
}

export class TaskPool {
  readonly #host: TaskPoolHost;
  readonly queue: LocalQueue;
  readonly #byRun = new Map<RunNumber, Map<string, RunningItem>>();

  constructor(host: TaskPoolHost) {
    this.#host = host;
    this.queue = new LocalQueue(host);
  }

  /** Starts a claimed task when a slot is free. */
  start(item: ClaimedItem, local: boolean): void {
    const body = this.#host.registry.findTask(item.name);
    if (body === undefined) throw new InvariantError(`The worker claimed task ${item.name}, which is not registered.`);
    const work = this.#register(item, local);
    this.#whenFree(work, () => this.#begin(work, (host) => runTask(host, body, item)));
  }

  /** Starts an item of the queue when a slot is free; `startNode` gets the nodes of flows. */
  startClaimed(item: ClaimedItem, startNode: (node: ClaimedItem) => void): void {
    if (item.kind !== "node") return this.start(item, false);
    const work = this.#register(item, false);
    this.#whenFree(work, () => {
      this.#unregister(work);
      startNode(item);
    });
  }

  /** Starts a node of a flow that has its slot. */
  startNode(item: ClaimedItem, run: (host: TaskHost) => Attempt | undefined): void {
    this.#begin(this.#register(item, false), run);
  }

  #register(item: ClaimedItem, local: boolean): RunningItem {
    const work: RunningItem = { item, local, attempt: undefined };
    let ofRun = this.#byRun.get(item.run);
    if (ofRun === undefined) this.#byRun.set(item.run, (ofRun = new Map()));
    ofRun.set(item.item, work);
    return work;
  }

  #unregister(work: RunningItem): void {
    const { run, item } = work.item;
    const ofRun = this.#byRun.get(run);
    if (ofRun?.get(item) === work) ofRun.delete(item);
    if (ofRun?.size === 0) this.#byRun.delete(run);
  }

  #whenFree(work: RunningItem, start: () => void): void {
    this.queue.add(work, start, () => {
      this.#unregister(work);
      this.#host.onGivenBack(work.item, work.local);
    });
  }

  #begin(work: RunningItem, run: (host: TaskHost) => Attempt | undefined): void {
    const host = this.#host;
    const { local } = work;
    const startedAt = host.now();
    work.attempt = run({
      timers: host.timers,
      workerName: host.workerName,
      memos: host.memos,
      spending: host.spending,
      remote: host.remote,
      telemetry: host.telemetry,
      now: () => host.now(),
      logger: (runId, step) => host.logger(runId, step),
      limits: host.limits,
      report: (error) => host.report(error),
      onSettled: () => this.#onSettled(work, startedAt),
      onEnded: (ended, arrival) => host.onEnded(ended, arrival, local),
      onWaiting: (waiting) => host.onWaiting(waiting, local),
      onRetry: (failed, next) => host.onRetry(failed, next, local),
    });
  }

  #onSettled(work: RunningItem, startedAt: EpochMs): void {
    this.#unregister(work);
    this.queue.onEnded(work, Math.max(0, this.#host.now() - startedAt));
    this.#host.slots.release();
    this.#host.onSlotFreed();
  }

  /** worker.R2. Gives back what waits for a slot. */
  giveBackWaiting(): void {
    this.queue.giveBackAll();
  }

  /** worker.R2. Gives back a task that a commit in flight leased to this worker when the drain began. */
  giveBackReserved(item: ClaimedItem): void {
    this.queue.cancelReserved(item);
    this.#host.onGivenBack(item, true);
  }

  /** Whether an item of the run runs or waits here. */
  hasWork(run: RunNumber): boolean {
    return this.#byRun.has(run);
  }

  /** Aborts the run's tasks, except those that are kept; returns how many of them were local. */
  abandon(run: RunNumber, reason: () => unknown, isKept?: (item: string) => boolean): number {
    const ofRun = this.#byRun.get(run);
    if (ofRun === undefined) return 0;
    const works = [...ofRun.values()].filter(({ item }) => isKept?.(item.item) !== true);
    for (const work of works) this.#abandon(work, reason);
    return works.filter(({ local }) => local).length;
  }

  /** Aborts the function of an item whose lease is lost. Undefined when the item has ended. */
  abandonItem(item: ClaimedItem, reason: () => unknown): RunningItem | undefined {
    const work = this.#byRun.get(item.run)?.get(item.item);
    if (work?.item !== item) return undefined;
    this.#abandon(work, reason);
    return work;
  }

  #abandon(work: RunningItem, reason: () => unknown): void {
    if (this.queue.withdraw(work)) this.#unregister(work);
    else work.attempt?.abandon(reason());
  }

  abandonAll(reason: () => unknown): void {
    for (const run of [...this.#byRun.keys()]) this.abandon(run, reason);
  }

  /** Whether this worker holds the item under that token. */
  holdsToken(run: RunNumber, item: string, token: string): boolean {
    return this.#byRun.get(run)?.get(item)?.item.token === token;
  }

  items(): readonly ClaimedItem[] {
    return [...this.#byRun.values()].flatMap((ofRun) => [...ofRun.values()].map(({ item }) => item));
  }
}
