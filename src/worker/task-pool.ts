// TaskPool: the items this worker is working on.

import type { EpochMs, Timers, PayloadLimits } from "../base/index.ts";
import type { Arrival, ClaimedItem, Logger, RunNumber } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { Registry } from "./registry.ts";
import type { Slots } from "./slots.ts";
import { runTask, type NextAttempt, type TaskHost } from "./tasks.ts";

export interface TaskPoolHost {
  readonly limits: PayloadLimits | undefined;
  readonly timers: Timers;
  readonly slots: Slots;
  readonly registry: Registry;
  now(): EpochMs;
  logger(runId: string, step: string): Logger;
  taskEnded(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void;
  taskFailed(item: ClaimedItem, next: NextAttempt, wasLocal: boolean): void;
  report(error: unknown): void;
  /** A slot is free. */
  slotFreed(): void;
}

export interface AtWork {
  readonly item: ClaimedItem;
  /** Claimed by its own run, in the commit that scheduled it. */
  readonly local: boolean;
  attempt: Attempt | undefined;
}

export class TaskPool {
  readonly #host: TaskPoolHost;
  readonly #byRun = new Map<RunNumber, Map<string, AtWork>>();

  constructor(host: TaskPoolHost) {
    this.#host = host;
  }

  /** Starts a claimed task; its slot has been taken. */
  start(item: ClaimedItem, local: boolean): void {
    const body = this.#host.registry.findTask(item.name);
    if (body === undefined) throw new Error(`claimed ${item.name}, which is not registered`);
    this.#begin(item, local, (host) => runTask(host, body, item));
  }

  /** The same for a node of a flow. */
  startNode(item: ClaimedItem, run: (host: TaskHost) => Attempt | undefined): void {
    this.#begin(item, false, run);
  }

  #begin(item: ClaimedItem, local: boolean, run: (host: TaskHost) => Attempt | undefined): void {
    const host = this.#host;
    const work: AtWork = { item, local, attempt: undefined };
    let ofRun = this.#byRun.get(item.run);
    if (ofRun === undefined) this.#byRun.set(item.run, (ofRun = new Map()));
    ofRun.set(item.item, work);
    work.attempt = run({
      timers: host.timers,
      now: () => host.now(),
      logger: (runId, step) => host.logger(runId, step),
      limits: host.limits,
      report: (error) => host.report(error),
      taskOver: () => this.#leave(item),
      taskEnded: (ended, arrival) => host.taskEnded(ended, arrival, local),
      taskFailed: (failed, next) => host.taskFailed(failed, next, local),
    });
  }

  #leave(item: ClaimedItem): void {
    const ofRun = this.#byRun.get(item.run);
    ofRun?.delete(item.item);
    if (ofRun?.size === 0) this.#byRun.delete(item.run);
    this.#host.slots.give();
    this.#host.slotFreed();
  }

  /** Nobody waits for the run's tasks, but those that are kept; answers how many of them were local. */
  abandon(run: RunNumber, reason: () => unknown, isKept?: (item: string) => boolean): number {
    const ofRun = this.#byRun.get(run);
    if (ofRun === undefined) return 0;
    const works = [...ofRun.values()].filter(({ item }) => isKept?.(item.item) !== true);
    for (const { attempt } of works) attempt?.abandon(reason());
    return works.filter(({ local }) => local).length;
  }

  /** Tells one item's function that its lease is gone: its run was cancelled or ended elsewhere. Undefined when it is over. */
  lose(item: ClaimedItem, reason: () => unknown): AtWork | undefined {
    const work = this.#byRun.get(item.run)?.get(item.item);
    if (work?.item !== item) return undefined;
    work.attempt?.abandon(reason());
    return work;
  }

  abandonAll(reason: () => unknown): void {
    for (const run of [...this.#byRun.keys()]) this.abandon(run, reason);
  }

  /** Whether an item that the store says is held here is. */
  knows(run: RunNumber, item: string, token: string): boolean {
    return this.#byRun.get(run)?.get(item)?.item.token === token;
  }

  /** Everything at work, to be given back when the worker goes. */
  items(): readonly ClaimedItem[] {
    return [...this.#byRun.values()].flatMap((ofRun) => [...ofRun.values()].map(({ item }) => item));
  }
}
