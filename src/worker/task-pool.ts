// TaskPool: the items that run on this worker.

import { InvariantError, type EpochMs, type Timers, type PayloadLimits } from "../base/index.ts";
import type { Arrival, ClaimedItem, Logger, RunNumber, Telemetry } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { Registry } from "../process/index.ts";
import type { ExecutionSlots } from "./execution-slots.ts";
import type { Memos } from "./memos.ts";
import type { RemoteTasks } from "./remote-tasks.ts";
import type { SpendingHost } from "./spender.ts";
import { runTask, type NextAttempt, type TaskHost } from "./run-task.ts";

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
  report(error: unknown): void;
  /** A slot is free. */
  onSlotFreed(): void;
}

export interface RunningItem {
  readonly item: ClaimedItem;
  /** Claimed eagerly, in the commit that scheduled it. */
  readonly local: boolean;
  attempt: Attempt | undefined;
}

export class TaskPool {
  readonly #host: TaskPoolHost;
  readonly #byRun = new Map<RunNumber, Map<string, RunningItem>>();

  constructor(host: TaskPoolHost) {
    this.#host = host;
  }

  /** Starts a claimed task; the caller has acquired its slot. */
  start(item: ClaimedItem, local: boolean): void {
    const body = this.#host.registry.findTask(item.name);
    if (body === undefined) throw new InvariantError(`The worker claimed task ${item.name}, which is not registered.`);
    this.#begin(item, local, (host) => runTask(host, body, item));
  }

  /** Starts a claimed node of a flow. */
  startNode(item: ClaimedItem, run: (host: TaskHost) => Attempt | undefined): void {
    this.#begin(item, false, run);
  }

  #begin(item: ClaimedItem, local: boolean, run: (host: TaskHost) => Attempt | undefined): void {
    const host = this.#host;
    const work: RunningItem = { item, local, attempt: undefined };
    let ofRun = this.#byRun.get(item.run);
    if (ofRun === undefined) this.#byRun.set(item.run, (ofRun = new Map()));
    ofRun.set(item.item, work);
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
      onSettled: () => this.#onSettled(item),
      onEnded: (ended, arrival) => host.onEnded(ended, arrival, local),
      onWaiting: (waiting) => host.onWaiting(waiting, local),
      onRetry: (failed, next) => host.onRetry(failed, next, local),
    });
  }

  #onSettled(item: ClaimedItem): void {
    const ofRun = this.#byRun.get(item.run);
    ofRun?.delete(item.item);
    if (ofRun?.size === 0) this.#byRun.delete(item.run);
    this.#host.slots.release();
    this.#host.onSlotFreed();
  }

  /** Aborts the run's tasks, except those that are kept; returns how many of them were local. */
  abandon(run: RunNumber, reason: () => unknown, isKept?: (item: string) => boolean): number {
    const ofRun = this.#byRun.get(run);
    if (ofRun === undefined) return 0;
    const works = [...ofRun.values()].filter(({ item }) => isKept?.(item.item) !== true);
    for (const { attempt } of works) attempt?.abandon(reason());
    return works.filter(({ local }) => local).length;
  }

  /** Aborts the function of an item whose lease is lost. Undefined when the item has ended. */
  abandonItem(item: ClaimedItem, reason: () => unknown): RunningItem | undefined {
    const work = this.#byRun.get(item.run)?.get(item.item);
    if (work?.item !== item) return undefined;
    work.attempt?.abandon(reason());
    return work;
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
