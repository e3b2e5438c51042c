// TaskPool: the items that run on this worker, or wait here for a slot (local-queue.ts).

import { InvariantError } from "../base/index.ts";
import type { ClaimedItem, RunNumber, TaskBody } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import type { PartsOf } from "./worker-parts.ts";
import { RunningItem, type ItemParts } from "./running-item.ts";
import { runTask } from "./run-task.ts";

type UsedParts = ItemParts & PartsOf<"flows" | "gates" | "localQueue" | "registry" | "slots">;

export class TaskPool {
  readonly #parts: UsedParts;
  readonly #byRun = new Map<RunNumber, Map<string, RunningItem>>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Starts a task when a slot is free. */
  start(item: ClaimedItem, isLocal: boolean): void {
    // Throws before the item counts as one that runs here.
    this.#bodyOf(item);
    this.#parts.localQueue.add(this.#register(item, isLocal));
  }

  /** A claimed item, which `startClaimed` starts in this turn or in a later one, unless it is dropped before. */
  expect(item: ClaimedItem): RunningItem {
    if (item.kind !== "node") this.#bodyOf(item);
    const running = this.#register(item, item.kind !== "node" && item.turn !== undefined);
    running.isArriving = true;
    return running;
  }

  /** False: the item was dropped since it was claimed. */
  isExpected(running: RunningItem): boolean {
    return this.#byRun.get(running.item.run)?.get(running.item.item) === running;
  }

  /** worker.R2. The item does not start here. */
  cancelExpected(running: RunningItem): void {
    this.#unregister(running);
  }

  /** Starts an item of the queue when a slot is free. */
  startClaimed(running: RunningItem): void {
    running.isArriving = false;
    this.#parts.localQueue.add(running);
  }

  /** A slot is free for the item. */
  onSlot(running: RunningItem): void {
    const { item } = running;
    if (item.kind !== "node") return this.#begin(running, () => runTask(running, this.#bodyOf(item)));
    this.#unregister(running);
    this.#parts.flows.startNode(item);
  }

  /** The item has waited here for so long that any worker may start it. */
  onWaitedTooLong(running: RunningItem): void {
    this.#unregister(running);
    running.onGivenBack();
  }

  #bodyOf({ name }: ClaimedItem): TaskBody {
    const body = this.#parts.registry.findTask(name);
    if (body === undefined) throw new InvariantError(`The worker claimed task ${name}, which is not registered.`);
    return body;
  }

  /** Starts a node of a flow that has its slot. */
  startNode(item: ClaimedItem, run: (running: RunningItem) => Attempt | undefined): void {
    const running = this.#register(item, false);
    this.#begin(running, () => run(running));
  }

  #register(item: ClaimedItem, isLocal: boolean): RunningItem {
    const running = new RunningItem(this.#parts, item, isLocal);
    let ofRun = this.#byRun.get(item.run);
    if (ofRun === undefined) this.#byRun.set(item.run, (ofRun = new Map()));
    ofRun.set(item.item, running);
    return running;
  }

  #unregister(running: RunningItem): void {
    const { run, item } = running.item;
    const ofRun = this.#byRun.get(run);
    if (ofRun?.get(item) !== running) return;
    if (ofRun.size === 1) this.#byRun.delete(run);
    else ofRun.delete(item);
  }

  #begin(running: RunningItem, run: () => Attempt | undefined): void {
    running.startedAt = this.#parts.now();
    running.attempt = run();
  }

  /** The attempt of the item has settled. */
  onSettled(running: RunningItem): void {
    const { slots, localQueue, claimer, pump, now } = this.#parts;
    const at = now();
    this.#unregister(running);
    localQueue.onEnded(running, Math.max(0, at - (running.startedAt ?? at)));
    slots.release();
    if (claimer.isRequested("items") || claimer.isRequested("messages")) pump.wake();
  }

  /** worker.R2. Gives back a task that a commit in flight leased to this worker when the drain began. */
  giveBackReserved(item: ClaimedItem): void {
    this.#parts.localQueue.cancelReserved(item);
    new RunningItem(this.#parts, item, true).onGivenBack();
  }

  /** Whether an item of the run runs or waits here. */
  hasWork(run: RunNumber): boolean {
    return this.#byRun.has(run);
  }

  /** Aborts the run's tasks, except those that are kept; returns how many of them were local. */
  abandon(run: RunNumber, reason: () => unknown, isKept?: (item: string) => boolean): number {
    const ofRun = this.#byRun.get(run);
    if (ofRun === undefined) return 0;
    const abandoned = [...ofRun.values()].filter(({ item }) => isKept?.(item.item) !== true);
    for (const running of abandoned) this.#abandon(running, reason);
    return abandoned.filter(({ isLocal }) => isLocal).length;
  }

  /** Aborts the function of an item whose lease is lost. Undefined when the item has ended. */
  abandonItem(item: ClaimedItem, reason: () => unknown): RunningItem | undefined {
    const running = this.#byRun.get(item.run)?.get(item.item);
    if (running?.item !== item) return undefined;
    this.#abandon(running, reason);
    return running;
  }

  #abandon(running: RunningItem, reason: () => unknown): void {
    if (running.isArriving || this.#parts.localQueue.withdraw(running)) this.#unregister(running);
    else running.attempt?.abandon(reason());
  }

  /** worker.R3 */
  abandonAll(reason: () => unknown): void {
    const { gates, localQueue } = this.#parts;
    gates.shut();
    // First, so that none of them starts in the slot of another one.
    for (const ofRun of [...this.#byRun.values()])
      for (const running of [...ofRun.values()]) if (localQueue.withdraw(running)) this.#unregister(running);
    for (const run of [...this.#byRun.keys()]) this.abandon(run, reason);
    gates.reset();
  }

  /** Whether this worker holds the item under that token. */
  holdsToken(run: RunNumber, item: string, token: string): boolean {
    return this.#byRun.get(run)?.get(item)?.item.token === token;
  }

  /** How many items of the run that run or wait here are local. */
  countLocal(run: RunNumber): number {
    let count = 0;
    for (const { isLocal } of this.#byRun.get(run)?.values() ?? []) count += Number(isLocal);
    return count;
  }

  items(): readonly ClaimedItem[] {
    return [...this.#byRun.values()].flatMap((ofRun) => [...ofRun.values()].map(({ item }) => item));
  }
}
