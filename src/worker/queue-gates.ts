// QueueGates: the items of limited queues on this worker, those that run and those that wait here for a slot of their queue (queue.Q6).
//
// queue-gates.G1. While the worker has leased slots of a queue, it runs no more of the queue's functions at once than these.
//   Otherwise each item that it holds has a slot of its own, and starts at once.
// queue-gates.G2. Only answers to claims tell the worker how many slots it has leased. While it gives them back, no claim asks for
//   items ahead of them; while such a claim is in flight, it does not give them back.
// queue-gates.G3. The window is how many items wait here for a slot at most. It grows by one with each start within SHORT_WAIT_MS as
//   long as claims find all items that they ask for, and shrinks by one with each later start. Only tasks whose functions take at most
//   SHORT_WAIT_MS on average are leased ahead.
// queue-gates.G4. The worker gives its leased slots back when no item waits here for one of them and claims found no more items, or
//   when it claims none ahead: while it drains, in quarantine, and once the functions take longer. It also does when the store admits
//   no items ahead, when it has claimed a suspect of the queue, and when an item waited too long for an execution slot. Items that wait
//   here then go back, too, and it leases no slots of the queue for CLOSED_MS.
// queue-gates.G5. A worker without leased slots asks for no items ahead of them once a claim found none and none is here, until it
//   gets an item of the queue. So an idle worker polls without a transaction.

import type { EpochMs } from "../base/index.ts";
import { isNodeRoute, type AheadClaim, type ClaimedItem, type ClaimItemsOutcome } from "../kernel/index.ts";
import { ExecutionSlots } from "./execution-slots.ts";
import type { PartsOf } from "./worker-parts.ts";
import { SHORT_WAIT_MS } from "./local-queue.ts";

const FIRST_WINDOW = 16;
const MAX_WINDOW = 512;
/** queue-gates.G4 */
const CLOSED_MS = 1_000;

type UsedParts = PartsOf<"claimant" | "drain" | "filter" | "lease" | "localQueue" | "now" | "pump" | "quarantine">;

export class QueueGate {
  readonly queue: string;
  /** queue-gates.G1. Without leased slots its size is unlimited. */
  readonly slots = new ExecutionSlots(Number.POSITIVE_INFINITY);
  /** How many items the claims in flight ask for ahead of slots. */
  requested = 0;
  /** Claimed items that are about to be dispatched. */
  arriving = 0;
  isReturning = false;
  /** The last claim found as many items as it asked for. */
  isLimiting = true;
  /** queue-gates.G5 */
  isIdle = false;
  closedUntil: EpochMs = 0;
  #window = FIRST_WINDOW;

  constructor(queue: string) {
    this.queue = queue;
  }

  get isLeased(): boolean {
    return this.slots.size !== Number.POSITIVE_INFINITY;
  }

  /** The items that run here, wait here or arrive. */
  get load(): number {
    return this.slots.load + this.arriving;
  }

  /** queue-gates.G3. How many more items to claim ahead. */
  get wanted(): number {
    // Of two claims in flight, the one that gets the slots also gets the items ahead of them.
    if (!this.isLeased) return this.isIdle ? 0 : this.#window;
    return Math.max(0, this.slots.size + this.#window - this.load - this.requested);
  }

  /** queue-gates.G3. An item starts. */
  adapt(waitedMs: number): void {
    if (waitedMs > SHORT_WAIT_MS) this.#window = Math.max(0, this.#window - 1);
    else if (this.isLimiting) this.#window = Math.min(MAX_WINDOW, this.#window + 1);
  }

  /** local-queue.Q3. An item waited too long for a slot of the queue. */
  shrink(): void {
    this.#window = 0;
  }
}

export class QueueGates {
  readonly #parts: UsedParts;
  readonly #gates = new Map<string, QueueGate>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Undefined for items that are in no queue, and for nodes of flows, which never wait here for a slot. */
  of({ kind, slot }: Pick<ClaimedItem, "kind" | "slot">): QueueGate | undefined {
    if (slot === undefined || kind === "node") return undefined;
    let gate = this.#gates.get(slot.queue);
    if (gate === undefined) this.#gates.set(slot.queue, (gate = new QueueGate(slot.queue)));
    return gate;
  }

  /** Whether the worker has leased slots of the queue, and keeps them. */
  keeps(queue: string): boolean {
    const gate = this.#gates.get(queue);
    return gate?.isLeased === true && !gate.isReturning;
  }

  /** Which items the next claim asks for ahead of slots, `limit` at most: of these queues, or of all. */
  request(limit: number, queues: Iterable<string> = this.#gates.keys()): readonly AheadClaim[] {
    const claims: AheadClaim[] = [];
    let left = limit;
    for (const queue of queues) {
      const gate = this.#gates.get(queue);
      if (gate === undefined || !this.#mayClaimAhead(gate) || gate.wanted === 0) continue;
      const count = Math.min(left, gate.wanted);
      if (count <= 0) {
        this.#onRefused(gate);
        continue;
      }
      gate.requested += count;
      left -= count;
      claims.push({ queue, count, ...(gate.isLeased && { slots: gate.slots.size }) });
    }
    return claims;
  }

  /** queue-gates.G4. The worker claims no items for its slots, e.g. because it holds too many runs: without items they go back. */
  #onRefused(gate: QueueGate): void {
    gate.isLimiting = false;
    if (this.#mayReturn(gate)) this.#parts.pump.wake();
  }

  /** queue-gates.G2, queue-gates.G3 */
  #mayClaimAhead(gate: QueueGate): boolean {
    if (gate.isReturning || gate.closedUntil > this.#parts.now()) return false;
    const { filter, localQueue } = this.#parts;
    const items = filter.itemsOf(gate.queue);
    return items.length > 0 && items.every((name) => !isNodeRoute(name) && localQueue.averageMs(name) <= SHORT_WAIT_MS);
  }

  /** A claim was answered; before its items are dispatched. */
  onClaimed(worker: number, requested: readonly AheadClaim[], { items, slots }: ClaimItemsOutcome): void {
    this.onFailed(requested);
    for (const item of items) this.#addArriving(item, 1);
    if (worker !== this.#parts.claimant) return;
    // suspects.S2. A suspect starts at once in the slot that it has got: no item waits here for one.
    for (const item of items) if (item.suspicion > 0) this.close(this.of(item));
    for (const { queue, slots: count } of slots ?? []) if (count > 0) this.#gates.get(queue)?.slots.resize(count);
    for (const { queue, count } of requested) {
      const gate = this.#gates.get(queue)!;
      const leased = slots?.find((one) => one.queue === queue);
      if (slots !== undefined && (leased === undefined ? gate.isLeased : leased.slots === 0)) this.close(gate);
      const found = items.reduce((sum, { slot }) => sum + Number(slot?.queue === queue), 0);
      gate.isLimiting = found >= count;
      gate.isIdle = found === 0 && gate.load === 0;
      if (this.#mayReturn(gate)) this.#parts.pump.wake();
    }
  }

  /** A claimed item is dispatched. */
  onDispatched(item: ClaimedItem): void {
    this.#addArriving(item, -1);
  }

  #addArriving(item: ClaimedItem, count: number): void {
    const gate = this.of(item);
    if (gate === undefined) return;
    gate.arriving += count;
    if (count > 0) gate.isIdle = false;
  }

  onFailed(requested: readonly AheadClaim[]): void {
    for (const { queue, count } of requested) this.#gates.get(queue)!.requested -= count;
  }

  /** queue-gates.G4. The items that wait for a slot go back, and then the slots. */
  close(gate: QueueGate | undefined): void {
    if (gate === undefined) return;
    const { localQueue, now } = this.#parts;
    gate.closedUntil = now() + CLOSED_MS;
    if (gate.isLeased) localQueue.giveBackWaiting(gate);
  }

  /** queue-gates.G2, queue-gates.G4 */
  #mayReturn(gate: QueueGate): boolean {
    const { isLeased, isReturning, requested, isLimiting } = gate;
    if (!isLeased || isReturning || requested > 0 || gate.load > gate.slots.size) return false;
    const { drain, quarantine } = this.#parts;
    return !isLimiting || !this.#mayClaimAhead(gate) || drain.isDraining || quarantine.isActive;
  }

  /** queue-gates.G4. From time to time: slots without items here go back, whatever the last claim found. */
  returnIdle(): void {
    for (const gate of this.#gates.values()) if (gate.isLeased && gate.load === 0) this.#onRefused(gate);
  }

  /** queue-gates.G4. Adds to the batch that is about to be written. */
  returnSlots(): void {
    const { lease, pump } = this.#parts;
    const { worker } = lease;
    if (worker === 0) return;
    for (const gate of this.#gates.values()) {
      if (!this.#mayReturn(gate)) continue;
      gate.isReturning = true;
      const queues = [gate.queue];
      pump.submit({ write: "claim-items", worker, tokens: [], names: [], refills: queues, returnedSlots: queues }).then(
        () => {
          gate.isReturning = false;
          gate.slots.resize(Number.POSITIVE_INFINITY);
        },
        // worker.R3. The worker restarts.
        () => (gate.isReturning = false),
      );
    }
  }

  /** worker.R3. Nothing that waits starts any more. */
  shut(): void {
    for (const { slots } of this.#gates.values()) slots.resize(0);
  }

  /** worker.R3. The worker has dropped all items, and its leased slots with its number. */
  reset(): void {
    for (const { slots } of this.#gates.values()) slots.resize(Number.POSITIVE_INFINITY);
  }
}
