// Queue limiter: enforces the concurrency and rate limits of named queues (queue.Q1 to queue.Q4).
//
// queue-limiter.G1. Reading the room of a queue changes nothing, so a poll finds out without a transaction that there is no work.
// queue-limiter.G2. An item whose key has no free slot is parked. No claim reads it again before the key may have one: every write
//   that removes an item with a key frees the key's slot, and a rate that holds a key back has a rate gate with the time it opens.
// queue-limiter.G3. Unparking too many items is harmless: the next claim parks them again.
// queue-limiter.G4. Parked items, `begun` and `lanes` change under the lock of the queue's row. A claim that cannot lock the row
//   treats the queue as full: another claim is using it.
// queue-limiter.G5. A queue without a row has no limits, so none of its items was ever parked.
// queue-limiter.G6. A worker that has leased slots of a queue claims further items ahead of them (queue.Q6) without the lock: they take
//   no slot. It gets none while the queue is paused, has another limit than its concurrency, or has less slots than are taken.

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  QueueItemState,
  type AheadClaim,
  type LeasedSlots,
  type QueueLimits,
  type StoredLimit,
  type ThrottledWork,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import type { ItemKind, SlotKind } from "../rows/tables.ts";
import { addSlotLease, growSlotLease, itemsHeldBy, slotLeasesOf, takenSlots, type SlotLease } from "./leased-slots.ts";
import type { Tx } from "./transaction.ts";

export type { SlotKind } from "../rows/tables.ts";

export interface QueuedItem {
  readonly run: number;
  readonly item: string;
  readonly queue: string;
  readonly key: string | null;
}

/** What a limit still admits. */
interface Room {
  /** How many more items the concurrency limit admits. */
  slots: number;
  /** How many more items the rate limit admits. */
  allowance: number;
  /** How many items the rate's row for the time of this transaction counts, once it was read. */
  admitted: number | undefined;
}

interface QueueRoom extends Room {
  readonly limits: QueueLimits;
  readonly paused: boolean;
  /** By key, as far as they were read. */
  readonly keys: Map<string, Room>;
  /** queue.Q6 */
  readonly ahead: AheadRoom | undefined;
  /** How many items took a slot in this transaction. */
  taken: number;
}

/** queue.Q6. Of the worker that claims. */
interface AheadRoom {
  /** The slots that the worker had leased before this transaction. */
  readonly lease: SlotLease | undefined;
  /** How many of its functions may run; without leased slots. */
  readonly running: number;
  /** How many more items it may claim ahead, and how many it has claimed. */
  left: number;
  claimed: number;
  /** queue-limiter.G6 */
  isClosed: boolean;
}

/** The worker that claims. */
export interface Claimant {
  readonly worker: number;
  readonly ahead?: readonly AheadClaim[];
}

export interface SlotKey {
  readonly kind: SlotKind;
  readonly queue: string;
  readonly key: string;
  readonly count: number;
}

/** The key of rows about a queue as a whole. */
const WHOLE_QUEUE = "";
/** The text of limits that limit nothing. */
const UNLIMITED = "{}";
const NO_LIMITS: QueueLimits = {};
const NO_LEASES: readonly never[] = [];
/** Limits that make a guess read what a limit may need. */
const ANY_CONCURRENCY: StoredLimit = { concurrency: 1 };
const ANY_LIMIT: StoredLimit = { ...ANY_CONCURRENCY, rate: { limit: 1, perMs: 1 } };
/** How many items one transaction parks. */
const MAX_PARKED = 1_000;
const MAX_RATE_GATES = 1_000;
/** How many expired rows of `begun` are deleted for a new one, and how many a remote store reads ahead. */
const EXPIRED_AT_ONCE = 20;
const EXPIRED_AHEAD = 200;

export const LIMITS = ["limits", "paused"] as const;
const QUEUE_AND_NAME = ["queue", "name"] as const;
const NAME = ["name"] as const;
const COUNT = ["count"] as const;
const UNTIL = ["until"] as const;
const RATE_USE_KEY = ["kind", "queue", "key", "until"] as const;
const OPENS_AT = ["opens_at"] as const;
const RATE_GATE = ["kind", "queue", "key"] as const;
const ITEM_KEY = ["run", "item"] as const;
const PEEK = { peek: true } as const;

/**
 * `poll`: there is no transaction, so no lock has to be taken before the room is read. `refill`: the queue has limits, so its row is
 * locked and its items are counted in the round trip that reads the limits.
 */
export type LimiterUse = "claim" | "poll" | "refill";

export class QueueLimiter {
  readonly #rows: Rows;
  readonly #now: EpochMs;
  readonly #kind: SlotKind;
  readonly #use: LimiterUse;
  readonly #claimant: Claimant | undefined;
  readonly #rooms = new Map<string, QueueRoom>();
  #parked = 0;
  #hasThrottled = false;
  #hasExpiredRateUse = true;

  constructor(rows: Rows, now: EpochMs, kind: SlotKind, use: LimiterUse = "claim", claimant?: Claimant) {
    this.#rows = rows;
    this.#now = now;
    this.#kind = kind;
    this.#use = use;
    this.#claimant = claimant;
  }

  /** The queues with ready items of the wanted names, one seek per queue and name. */
  findQueues(wanted: readonly string[]): readonly { readonly queue: string; readonly name: string }[] {
    const found = this.#rows.distinct("queue_lined", [this.#kind], QUEUE_AND_NAME);
    if (found.length === 0) return [];
    const names = new Set(wanted);
    return found.flatMap(({ queue, name }) => (queue !== null && names.has(name) ? [{ queue, name }] : []));
  }

  /** The names of the ready items of a queue. */
  waitingIn(queue: string): readonly { readonly queue: string; readonly name: string }[] {
    return this.#rows.distinct("queue_lined", [this.#kind, queue], NAME).map(({ name }) => ({ queue, name }));
  }

  /** As `findQueues`, with room for these items. */
  findOpenQueues(wanted: readonly string[]): readonly { readonly queue: string; readonly name: string }[] {
    return this.findQueues(wanted).filter(({ queue }) => this.isOpen(queue));
  }

  /** As `hasRoom`, for a queue with a waiting item. */
  isOpen(queue: string): boolean {
    const isOpen = this.hasRoom(queue) || this.#mayClaimAhead(queue);
    if (!isOpen) this.#hasThrottled = true;
    return isOpen;
  }

  hasRoom(queue: string): boolean {
    const room = this.#roomOf(queue);
    return !room.paused && !isFull(room) && this.#parked < MAX_PARKED;
  }

  /** How many more items the queue admits. */
  room(queue: string): number {
    const { slots, allowance, ahead } = this.#roomOf(queue);
    return Math.max(0, Math.min(slots, allowance)) + (ahead?.left ?? 0);
  }

  /**
   * How many waiting items to read for a claim of `limit`: one more than the queue admits, which tells whether others wait. Limits
   * per key may park any number of them.
   */
  readLimit(queue: string, limit: number): number {
    return this.#roomOf(queue).limits.perKey === undefined ? Math.min(limit, this.room(queue) + 1) : limit;
  }

  /** How many items were parked. */
  get parked(): number {
    return this.#parked;
  }

  #roomOf(queue: string): QueueRoom {
    let room = this.#rooms.get(queue);
    if (room === undefined) this.#rooms.set(queue, (room = this.#readRoom(queue)));
    return room;
  }

  #readRoom(queue: string): QueueRoom {
    const rows = this.#rows;
    const row = rows.get("queues", [queue], LIMITS);
    // A claim reads the rest once it knows the limits, with or after the lock.
    if (row === undefined && rows.isGuess && this.#use !== "claim") {
      rows.own("queues", [queue]);
      this.#roomLeft(this.#use === "poll" ? ANY_LIMIT : ANY_CONCURRENCY, queue, WHOLE_QUEUE);
    }
    const limits = row === undefined || row.limits === UNLIMITED ? NO_LIMITS : limitsOf(row);
    const isPaused = row?.paused === 1;
    // queue-limiter.G4
    const paused = isPaused || (limits !== NO_LIMITS && !rows.own("queues", [queue]));
    const leases = limits.concurrency === undefined || this.#kind !== "task" ? NO_LEASES : slotLeasesOf(rows, queue);
    const { slots, allowance } = this.#roomLeft(paused ? NO_LIMITS : limits, queue, WHOLE_QUEUE, leases);
    // Items of workers without leased slots may take more than are left, e.g. those of an earlier version.
    const isOverLimit = slots < 0;
    const ahead = this.#aheadRoom(queue, isPaused || isOverLimit ? NO_LIMITS : limits, leases, !paused);
    return { limits, paused, slots, allowance, admitted: undefined, keys: new Map(), ahead, taken: 0 };
  }

  /** queue-limiter.G6 */
  #aheadRoom(
    queue: string,
    { concurrency = 0, rate, perKey }: QueueLimits,
    leases: readonly SlotLease[],
    isLocked: boolean,
  ): AheadRoom | undefined {
    const { worker, ahead } = this.#claimant ?? {};
    if (worker === undefined) return undefined;
    const lease = leases.find((one) => one.worker === worker);
    const wanted = ahead?.find((one) => one.queue === queue);
    if (lease === undefined && wanted === undefined) return undefined;
    const leased = leases.reduce((sum, { count }) => sum + count, 0);
    const isClosed = rate !== undefined || perKey !== undefined || leased > concurrency || concurrency === 0;
    const held = lease !== undefined || isClosed ? 0 : itemsHeldBy(this.#rows, queue, worker);
    const running = Math.min(held, wanted?.slots ?? held);
    // leased-slots.S1
    const mayClaim = !isClosed && (lease !== undefined || isLocked);
    return { lease, running, left: mayClaim ? (wanted?.count ?? 0) : 0, claimed: 0, isClosed };
  }

  /** queue.Q6. Other items wait for the slots that the worker would keep. */
  closeAhead(queue: string): void {
    const { ahead } = this.#roomOf(queue);
    if (ahead === undefined) return;
    ahead.left = 0;
    ahead.isClosed = true;
  }

  /** queue.Q5. As `closeAhead`, and leaves the items to other claims. */
  holdBack(queue: string): void {
    this.closeAhead(queue);
    this.#hasThrottled = true;
  }

  #mayClaimAhead(queue: string): boolean {
    const { ahead, taken } = this.#roomOf(queue);
    return ahead !== undefined && ahead.left > 0 && (ahead.lease !== undefined || ahead.running + taken > 0);
  }

  /** queue.Q6. Writes the slots that the worker has leased now. */
  leaseSlots(): readonly LeasedSlots[] {
    const { worker, ahead: wanted } = this.#claimant ?? {};
    for (const { queue } of wanted ?? []) this.#roomOf(queue);
    const leased: LeasedSlots[] = [];
    for (const [queue, { ahead, taken }] of this.#rooms) {
      if (ahead === undefined || worker === undefined) continue;
      const { lease, running, claimed, isClosed } = ahead;
      const count = (lease?.count ?? running) + taken;
      if (lease === undefined && claimed === 0) {
        if (isClosed) leased.push({ queue, slots: 0 });
        continue;
      }
      if (lease === undefined) addSlotLease(this.#rows, queue, { worker, count });
      else if (taken > 0) growSlotLease(this.#rows, queue, { worker, count });
      leased.push({ queue, slots: isClosed ? 0 : count });
    }
    return leased;
  }

  #roomLeft(
    { concurrency, rate }: StoredLimit,
    queue: string,
    key: string,
    leases: readonly SlotLease[] = NO_LEASES,
  ): Room {
    const rows = this.#rows;
    const kind = this.#kind;
    const used = key === WHOLE_QUEUE ? [kind, queue] : [kind, queue, key];
    const taken = (): number => (leases.length > 0 ? takenSlots(rows, queue, leases) : rows.count("queue_busy", used));
    return {
      slots: concurrency === undefined ? Number.POSITIVE_INFINITY : concurrency - taken(),
      allowance:
        rate === undefined
          ? Number.POSITIVE_INFINITY
          : rate.limit - rows.sum("begun", [kind, queue, key], "count", this.#now),
      admitted: undefined,
    };
  }

  /** Undefined when the queue has no limits per key, or the item no key. */
  #keyRoomOf({ queue, key }: Pick<QueuedItem, "queue" | "key">): Room | undefined {
    const { limits, keys } = this.#roomOf(queue);
    if (limits.perKey === undefined || key === null) return undefined;
    let room = keys.get(key);
    if (room === undefined) {
      keys.set(key, (room = this.#roomLeft(limits.perKey, queue, key)));
      // Parking an item of the key may need its rate gate.
      if (this.#rows.isGuess && limits.perKey.rate !== undefined)
        this.#rows.get("lanes", [this.#kind, queue, key], OPENS_AT);
    }
    return room;
  }

  /** As `admit`, but never parks the item. */
  admitSuspect(item: QueuedItem): boolean {
    if (!this.hasRoom(item.queue)) return false;
    const keyRoom = this.#keyRoomOf(item);
    if (keyRoom !== undefined && isFull(keyRoom)) return false;
    this.#recordAdmission(item, keyRoom);
    return true;
  }

  /** Whether the limits admit a suspect now. */
  canAdmit(item: Pick<QueuedItem, "queue" | "key">): boolean {
    if (!this.hasRoom(item.queue)) return false;
    const keyRoom = this.#keyRoomOf(item);
    return keyRoom === undefined || !isFull(keyRoom);
  }

  /** Admits an item, which the caller then claims at once; or parks the item when its key has no room. */
  admit(item: QueuedItem): boolean {
    if (!this.isOpen(item.queue)) return false;
    if (!this.hasRoom(item.queue)) {
      const { ahead } = this.#roomOf(item.queue);
      invariant(ahead !== undefined && ahead.left > 0, "An item without a slot must be claimed ahead.");
      ahead.left -= 1;
      ahead.claimed += 1;
      return true;
    }
    const keyRoom = this.#keyRoomOf(item);
    if (keyRoom !== undefined && isFull(keyRoom)) {
      this.#park(item, keyRoom.allowance <= 0);
      return false;
    }
    this.#recordAdmission(item, keyRoom);
    return true;
  }

  #park({ run, item, queue, key }: QueuedItem, isRateUsed: boolean): void {
    const rows = this.#rows;
    const isChanged = rows.change("queue", [run, item], { state: QueueItemState.parked });
    invariant(isChanged, "A ready item must have a row to park.");
    this.#parked += 1;
    this.#hasThrottled = true;
    // A key without a free slot needs no rate gate: the write that removes one of its items unparks the next.
    const opensAt = key === null || !isRateUsed ? undefined : this.#opensAt(queue, key);
    if (key === null || opensAt === undefined) return;
    const gate = { kind: this.#kind, queue, key, opens_at: opensAt };
    if (!rows.add("lanes", gate)) rows.set("lanes", [this.#kind, queue, key], { opens_at: opensAt });
  }

  /** When the rate admits more than now. */
  #opensAt(queue: string, key: string): EpochMs | undefined {
    return this.#rows.first("begun", [this.#kind, queue, key], UNTIL, { after: this.#now })?.until;
  }

  /** Counts an admitted item. */
  #recordAdmission({ queue, key }: QueuedItem, keyRoom: Room | undefined): void {
    const room = this.#roomOf(queue);
    const { rate, perKey } = room.limits;
    room.taken += 1;
    this.#count(room, queue, WHOLE_QUEUE, rate?.perMs);
    if (keyRoom !== undefined && key !== null) this.#count(keyRoom, queue, key, perKey?.rate?.perMs);
  }

  #count(room: Room, queue: string, key: string, perMs: number | undefined): void {
    room.slots -= 1;
    room.allowance -= 1;
    if (perMs === undefined) return;
    const rows = this.#rows;
    const until = this.#now + perMs;
    const admitted = room.admitted ?? rows.get("begun", [this.#kind, queue, key, until], COUNT)?.count ?? 0;
    const count = (room.admitted = admitted + 1);
    if (count > 1) return rows.set("begun", [this.#kind, queue, key, until], { count });
    rows.insert("begun", { kind: this.#kind, queue, key, until, count });
    this.#deleteExpiredRateUse();
  }

  /** Rows that no rate counts any more. More of them are deleted than inserted, so that they do not accumulate. */
  #deleteExpiredRateUse(): void {
    if (!this.#hasExpiredRateUse) return;
    const span = { upTo: this.#now, limit: EXPIRED_AT_ONCE, ahead: EXPIRED_AHEAD } as const;
    const expired = this.#rows.select("begun_until", [], RATE_USE_KEY, span);
    for (const { kind, queue, key, until } of expired) this.#rows.drop("begun", [kind, queue, key, until]);
    this.#hasExpiredRateUse = expired.length === EXPIRED_AT_ONCE;
  }

  /** Whether the limits hold work back, and when they may admit more. */
  heldBack(): ThrottledWork {
    let nextAt = this.#parked >= MAX_PARKED ? this.#now : nextRateGate(this.#rows);
    for (const [queue, { allowance }] of this.#rooms) {
      const opensAt = allowance <= 0 ? this.#opensAt(queue, WHOLE_QUEUE) : undefined;
      if (opensAt !== undefined && (nextAt === undefined || opensAt < nextAt)) nextAt = opensAt;
    }
    return { nextAt, held: this.#hasThrottled || this.#hasParked() };
  }

  #hasParked(): boolean {
    return this.#rows.first("queue_parked", [this.#kind], ITEM_KEY, PEEK) !== undefined;
  }
}

function isFull({ slots, allowance }: Room): boolean {
  return slots <= 0 || allowance <= 0;
}

function limitsOf({ limits }: { readonly limits: string }): QueueLimits {
  return JSON.parse(limits) as QueueLimits;
}

function nextRateGate(rows: Rows): EpochMs | undefined {
  return rows.first("lanes_opening", [], OPENS_AT)?.opens_at;
}

/** Whether a rate gate has opened: a claim must unpark its key. */
export function hasDueRateGates(rows: Rows, now: EpochMs): boolean {
  const at = nextRateGate(rows);
  return at !== undefined && at <= now;
}

type RateGate = Part<"lanes", (typeof RATE_GATE)[number]>;

/** The rate gates that have opened, without locks. */
export function dueRateGates({ rows, now }: Tx): readonly RateGate[] {
  return rows.select("lanes_opening", [], RATE_GATE, { upTo: now, limit: MAX_RATE_GATES, peek: true });
}

/** queue-limiter.G2. Unparks items of keys whose rate admits more. */
export function openRateGates({ rows }: Tx, gates: readonly RateGate[]): void {
  for (const { kind, queue, key } of gates) {
    // queue-limiter.G4
    if (!rows.own("queues", [queue])) continue;
    rows.drop("lanes", [kind, queue, key]);
    const row = rows.get("queues", [queue], LIMITS);
    const { perKey } = row === undefined ? NO_LIMITS : limitsOf(row);
    // One more than the rate admits: that one is parked again and inserts the next rate gate.
    unpark(rows, kind, queue, key, (perKey?.rate?.limit ?? MAX_RATE_GATES) + 1);
  }
}

function unpark(rows: Rows, kind: SlotKind, queue: string, key: string, limit: number): void {
  // queue-limiter.G4, queue-limiter.G5
  if (!rows.own("queues", [queue])) return;
  // Further ahead: the list may remove more items of this key, some of them parked ones.
  const parked = rows.select("queue_parked", [kind, queue, key], ITEM_KEY, { limit, ahead: limit * 2 + 2 });
  for (const { run, item } of parked) rows.set("queue", [run, item], { state: QueueItemState.ready });
}

/** queue-limiter.G2. Unparks the next item after one item with this key was removed. */
export function freeSlot(
  { rows }: Tx,
  kind: SlotKind,
  { queue, key }: { readonly queue: string | null; readonly key?: string | null },
): void {
  if (queue !== null && key !== undefined && key !== null) unpark(rows, kind, queue, key, 1);
}

/** queue-limiter.G2. The slots of these items: for a write that removes many, which frees as many afterwards (queue-limiter.G3). */
export function slotKeysOf(
  items: readonly { readonly kind: ItemKind; readonly queue: string | null; readonly key: string | null }[],
): readonly SlotKey[] {
  const slots = new Map<string, SlotKey>();
  for (const { kind, queue, key } of items) {
    if (kind === "timer" || queue === null || key === null) continue;
    const text = JSON.stringify([kind, queue, key]);
    slots.set(text, { kind, queue, key, count: (slots.get(text)?.count ?? 0) + 1 });
  }
  return [...slots.values()];
}

export function freeSlots({ rows }: Tx, keys: readonly SlotKey[]): void {
  for (const { kind, queue, key, count } of keys) unpark(rows, kind, queue, key, count);
}

const KINDS: readonly SlotKind[] = ["task", "start"];

/** Unparks every item of a queue whose limits have changed. */
export function unparkQueue({ rows }: Tx, queue: string): void {
  for (const kind of KINDS) {
    for (const { run, item } of rows.select("queue_parked", [kind, queue], ITEM_KEY))
      rows.set("queue", [run, item], { state: QueueItemState.ready });
    rows.clear("lanes", [kind, queue], {});
  }
}
