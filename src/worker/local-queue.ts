// LocalQueue: tasks and nodes that are leased to this worker and wait for an execution slot.
//
// local-queue.Q1. The worker leases more work than it has slots only as long as this work starts soon. The window is how much it
//   leases. Once it has refused work, it grows by one with each start within SHORT_WAIT_MS. It shrinks by one with each later start, and
//   never falls below the number of slots.
// local-queue.Q2. A task whose function has not ended here yet, or takes longer than LONG_WAIT_MS on average, gets a lease only for
//   a free slot.
// local-queue.Q3. Work that has waited for LONG_WAIT_MS goes back to the queue of the store, where any worker can claim it. So
//   functions that take longer than they did before do not keep work from idle workers.
// local-queue.Q4. While items wait in the store, new tasks use at most three quarters of the window, and none of it if the window
//   is not larger than the slots.

import type { EpochMs } from "../base/index.ts";
import type { ClaimedItem } from "../kernel/index.ts";
import type { ExecutionSlots, SlotWaiter } from "./execution-slots.ts";
import type { QueueGate } from "./queue-gates.ts";
import type { PartsOf } from "./worker-parts.ts";

export const SHORT_WAIT_MS = 50;
export const LONG_WAIT_MS = 250;
/** The largest window, in functions. */
const MAX_WINDOW = 16_384;
/** The largest sum of inputs that wait, in characters: each is in memory. */
const MAX_WAITING_SIZE = 32 * 1024 * 1024;

type UsedParts = PartsOf<"gates" | "now" | "slots" | "timers">;

export interface QueuedItem {
  readonly item: ClaimedItem;
  /** Claimed eagerly, in the commit that scheduled it. */
  readonly isEager: boolean;
  /** It has its slot. */
  start(): void;
  /** It has waited too long, and was removed. */
  giveBack(): void;
}

interface Enqueued {
  readonly since: EpochMs;
  readonly waiter: SlotWaiter;
  /** What it waits for: a slot of its queue, or an execution slot. */
  readonly slots: ExecutionSlots;
}

export class LocalQueue {
  readonly #parts: UsedParts;
  #window: number;
  /** Oldest first. */
  readonly #waiting = new Map<QueuedItem, Enqueued>();
  #waitingSize = 0;
  /** Eagerly claimed tasks that have not ended. */
  #eager = 0;
  /** The average duration of each task's function, where recent ones count more. */
  readonly #durations = new Map<string, number>();
  #isChecking = false;
  /** The window refused work since it last grew. */
  #isLimiting = false;

  constructor(parts: UsedParts) {
    this.#parts = parts;
    this.#window = parts.slots.size;
  }

  /** local-queue.Q1, local-queue.Q2, local-queue.Q4. Whether the worker may lease one more task of this name. */
  admits(task: string, hasBacklog: boolean): boolean {
    const { load, size } = this.#parts.slots;
    const isWide = this.#window > size;
    const isOpen = load < this.#window && (!hasBacklog || (isWide && this.#eager < this.#window * 0.75));
    this.#isLimiting ||= !isOpen;
    if (!isOpen || load < size) return isOpen;
    return this.#waitingSize < MAX_WAITING_SIZE && this.#isShort(task);
  }

  /** How many items the worker may claim. */
  get room(): number {
    const { load, free } = this.#parts.slots;
    return this.#waitingSize < MAX_WAITING_SIZE ? Math.max(free, this.#window - load) : free;
  }

  /** A commit will lease the task to this worker. */
  reserve(data: string): void {
    this.#eager += 1;
    this.#waitingSize += data.length;
    this.#parts.slots.reserve();
  }

  /** The task of `reserve` does not start here. */
  cancelReserved({ data }: ClaimedItem): void {
    this.#eager -= 1;
    this.#unreserve(data);
  }

  #unreserve(data: string): void {
    this.#waitingSize -= data.length;
    this.#parts.slots.unreserve();
  }

  /** Starts the work now, or when a slot of the item's queue and then an execution slot are free. */
  add(work: QueuedItem): void {
    const { item, isEager } = work;
    if (isEager) this.#unreserve(item.data);
    const gate = this.#parts.gates.of(item);
    if (gate === undefined) this.#enter(work, gate);
    else this.#awaitSlot(work, gate.slots, () => this.#enter(work, gate));
  }

  /** The work has its slot of the queue. */
  #enter(work: QueuedItem, gate: QueueGate | undefined): void {
    this.#awaitSlot(work, this.#parts.slots, () => this.#start(work, gate));
  }

  #start(work: QueuedItem, gate: QueueGate | undefined): void {
    const waited = this.#remove(work);
    this.#adapt(gate, waited === undefined ? 0 : this.#parts.now() - waited.since);
    work.start();
  }

  #awaitSlot(work: QueuedItem, slots: ExecutionSlots, enter: () => void): void {
    const waiter = slots.whenFree(enter);
    if (waiter === undefined) return;
    const before = this.#waiting.get(work);
    this.#waiting.set(work, { since: before?.since ?? this.#parts.now(), waiter, slots });
    if (before === undefined) this.#waitingSize += work.item.data.length;
    this.#checkLater();
  }

  /** True if the work was waiting, and does not start any more. */
  withdraw(work: QueuedItem): boolean {
    const waiting = this.#remove(work);
    if (waiting === undefined) return false;
    waiting.slots.withdraw(waiting.waiter);
    if (waiting.slots === this.#parts.slots) this.#parts.gates.of(work.item)?.slots.release();
    if (work.isEager) this.#eager -= 1;
    return true;
  }

  /** A function has ended; `ms`: how long it took. */
  onEnded({ item, isEager }: QueuedItem, ms: number): void {
    if (isEager) this.#eager -= 1;
    this.#parts.gates.of(item)?.slots.release();
    const before = this.#durations.get(item.name);
    this.#durations.set(item.name, before === undefined ? ms : before + (ms - before) / 8);
  }

  /** worker.R2. Gives back everything that waits. */
  giveBackAll(): void {
    for (const work of this.#waiting.keys()) this.#giveBack(work);
  }

  /** queue-gates.G4. Gives back the items that wait for a slot of the queue. */
  giveBackWaiting({ slots }: QueueGate): void {
    for (const [work, waiting] of this.#waiting) if (waiting.slots === slots) this.#giveBack(work);
  }

  /** How long the task's function takes on average; unlimited if none has ended here. */
  averageMs(task: string): number {
    return this.#durations.get(task) ?? Number.POSITIVE_INFINITY;
  }

  #isShort(task: string): boolean {
    return this.averageMs(task) <= LONG_WAIT_MS;
  }

  #adapt(gate: QueueGate | undefined, waitedMs: number): void {
    if (gate !== undefined) return gate.adapt(waitedMs);
    const { size } = this.#parts.slots;
    if (waitedMs > SHORT_WAIT_MS) this.#window = Math.max(size, this.#window - 1);
    else if (this.#isLimiting) this.#window = Math.min(Math.max(size, MAX_WINDOW), this.#window + 1);
  }

  #remove(work: QueuedItem): Enqueued | undefined {
    const waiting = this.#waiting.get(work);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(work);
    this.#waitingSize -= work.item.data.length;
    return waiting;
  }

  #checkLater(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    this.#parts.timers.set(LONG_WAIT_MS, () => this.#check(), { ref: false });
  }

  /** local-queue.Q3 */
  #check(): void {
    this.#isChecking = false;
    const overdue = this.#parts.now() - LONG_WAIT_MS;
    for (const [work, waiting] of this.#waiting) {
      if (waiting.since > overdue) break;
      const { gates, slots } = this.#parts;
      const gate = gates.of(work.item);
      if (waiting.slots === slots) {
        this.#window = slots.size;
        // Its slot of the queue is of no use here.
        gates.close(gate);
      } else gate?.shrink();
      this.#giveBack(work);
    }
    if (this.#waiting.size > 0) this.#checkLater();
  }

  #giveBack(work: QueuedItem): void {
    // A suspect that is released is no longer a suspect (store.S5).
    if (work.item.suspicion === 0 && this.withdraw(work)) work.giveBack();
  }
}
