// Queue limiter: enforces the concurrency and rate limits of named queues (queue.Q1 to queue.Q4).
//
// queue-limiter.G1. Reading the room of a queue changes nothing, so a poll finds out without a transaction that there is no work.
// queue-limiter.G2. An item whose key has no free slot is parked. No claim reads it again before the key may have one: every write
//   that removes an item with a key frees the key's slot, and a rate that holds a key back has a rate gate with the time it opens.
// queue-limiter.G3. Unparking too many items is harmless: the next claim parks them again.

import { invariant, type EpochMs } from "../../base/index.ts";
import type { QueueLimits, StoredLimit, ThrottledWork } from "../../kernel/index.ts";
import type { Statements, Tx } from "./statements.ts";

/** What holds a slot: a task, or a run from its start to its end. */
export type SlotKind = "task" | "start";

export interface QueuedItem {
  readonly run: number;
  readonly item: string;
  readonly queue: string;
  readonly key: string | null;
}

interface QueueRoom {
  readonly limits: QueueLimits;
  readonly paused: boolean;
  /** How many more items the concurrency limit admits. */
  slots: number;
  /** How many more items the rate limit admits. */
  allowance: number;
}

interface SlotKey {
  readonly kind: SlotKind;
  readonly queue: string;
  readonly key: string;
  readonly count: number;
}

/** The key of rows about a queue as a whole. */
const WHOLE_QUEUE = "";
/** How many items one transaction parks. */
const MAX_PARKED = 1_000;
export const MAX_RATE_GATES = 1_000;

export class QueueLimiter {
  readonly #sql: Statements;
  readonly #now: EpochMs;
  readonly #kind: SlotKind;
  readonly #rooms = new Map<string, QueueRoom>();
  #parked = 0;
  #hasThrottled = false;

  constructor(sql: Statements, now: EpochMs, kind: SlotKind) {
    this.#sql = sql;
    this.#now = now;
    this.#kind = kind;
  }

  /** The queues with ready items of the wanted names and with room for them: one seek per queue and name. */
  findOpenQueues(wanted: readonly string[]): readonly { readonly queue: string; readonly name: string }[] {
    const open: { queue: string; name: string }[] = [];
    let names: ReadonlySet<string> | undefined;
    for (let queue = this.#nextQueue(""); queue !== undefined; queue = this.#nextQueue(queue))
      for (let name = this.#nextName(queue, ""); name !== undefined; name = this.#nextName(queue, name)) {
        names ??= new Set(wanted);
        if (!names.has(name)) continue;
        if (this.hasRoom(queue)) open.push({ queue, name });
        else this.#hasThrottled = true;
      }
    return open;
  }

  #nextQueue(after: string): string | undefined {
    return (this.#sql.nextQueue.get(this.#kind, after) as { queue: string } | undefined)?.queue;
  }

  #nextName(queue: string, after: string): string | undefined {
    return (this.#sql.nextNameInQueue.get(this.#kind, queue, after) as { name: string } | undefined)?.name;
  }

  hasRoom(queue: string): boolean {
    const { paused, slots, allowance } = this.#roomOf(queue);
    return !paused && slots > 0 && allowance > 0 && this.#parked < MAX_PARKED;
  }

  /** How many more items the queue admits. */
  room(queue: string): number {
    const { slots, allowance } = this.#roomOf(queue);
    return Math.min(slots, allowance);
  }

  #roomOf(queue: string): QueueRoom {
    let room = this.#rooms.get(queue);
    if (room === undefined) this.#rooms.set(queue, (room = this.#readRoom(queue)));
    return room;
  }

  #readRoom(queue: string): QueueRoom {
    const row = this.#sql.queueLimits.get(queue) as { limits: string; paused: number } | undefined;
    const limits = row === undefined ? {} : (JSON.parse(row.limits) as QueueLimits);
    return { limits, paused: row?.paused === 1, ...this.#roomLeft(limits, queue, WHOLE_QUEUE) };
  }

  #roomLeft({ concurrency, rate }: StoredLimit, queue: string, key: string): { slots: number; allowance: number } {
    let slots = Number.POSITIVE_INFINITY;
    let allowance = Number.POSITIVE_INFINITY;
    if (concurrency !== undefined) slots = concurrency - this.#usedSlots(queue, key);
    if (rate !== undefined) allowance = rate.limit - this.#rateUse(queue, key).count;
    return { slots, allowance };
  }

  #usedSlots(queue: string, key: string): number {
    const row =
      key === WHOLE_QUEUE
        ? this.#sql.countBusyInQueue.get(this.#kind, queue)
        : this.#sql.countBusyInKey.get(this.#kind, queue, key);
    return (row as { count: number }).count;
  }

  #rateUse(queue: string, key: string): { count: number; until: EpochMs | undefined } {
    const row = this.#sql.rateUse.get(this.#kind, queue, key, this.#now) as {
      count: number | null;
      until: number | null;
    };
    return { count: row.count ?? 0, until: row.until ?? undefined };
  }

  /** As `admit`, but never parks the item. */
  admitSuspect(item: QueuedItem): boolean {
    if (!this.canAdmit(item)) return false;
    this.recordAdmission(item);
    return true;
  }

  /** Whether the limits admit a suspect now. */
  canAdmit({ queue, key }: Pick<QueuedItem, "queue" | "key">): boolean {
    if (!this.hasRoom(queue)) return false;
    const { perKey } = this.#roomOf(queue).limits;
    if (perKey === undefined || key === null) return true;
    const { slots, allowance } = this.#roomLeft(perKey, queue, key);
    return slots > 0 && allowance > 0;
  }

  /** Admits an item, which the caller then claims at once; or parks the item when its key has no room. */
  admit(item: QueuedItem): boolean {
    if (!this.hasRoom(item.queue)) {
      this.#hasThrottled = true;
      return false;
    }
    const { perKey } = this.#roomOf(item.queue).limits;
    if (perKey !== undefined && item.key !== null && !this.#admitKey(item, item.key, perKey)) return false;
    this.recordAdmission(item);
    return true;
  }

  #admitKey(item: QueuedItem, key: string, perKey: StoredLimit): boolean {
    const { slots, allowance } = this.#roomLeft(perKey, item.queue, key);
    if (slots > 0 && allowance > 0) return true;
    const { changes } = this.#sql.parkItem.run(item.run, item.item);
    invariant(changes === 1, "A ready item must have a row to park.");
    this.#parked += 1;
    this.#hasThrottled = true;
    const { until } = this.#rateUse(item.queue, key);
    // A key without a free slot needs no rate gate: the write that removes one of its items unparks the next.
    if (allowance <= 0 && until !== undefined) this.#sql.insertRateGate.run(this.#kind, item.queue, key, until);
    return false;
  }

  /** Counts an admitted item. */
  recordAdmission({ queue, key }: QueuedItem): void {
    const room = this.#roomOf(queue);
    room.slots -= 1;
    room.allowance -= 1;
    const { rate, perKey } = room.limits;
    if (rate !== undefined) this.#addRateUse(queue, WHOLE_QUEUE, rate.perMs);
    if (perKey?.rate !== undefined && key !== null) this.#addRateUse(queue, key, perKey.rate.perMs);
  }

  #addRateUse(queue: string, key: string, perMs: number): void {
    this.#sql.addRateUse.run(this.#kind, queue, key, this.#now + perMs);
    this.#sql.deleteExpiredRateUse.run(this.#now);
  }

  /** Whether the limits hold work back, and when they may admit more. */
  heldBack(): ThrottledWork {
    let nextAt = this.#parked >= MAX_PARKED ? this.#now : nextRateGate(this.#sql);
    for (const [queue, { allowance, paused }] of this.#rooms) {
      const until = allowance <= 0 && !paused ? this.#rateUse(queue, WHOLE_QUEUE).until : undefined;
      if (until !== undefined && (nextAt === undefined || until < nextAt)) nextAt = until;
    }
    return { nextAt, held: this.#hasThrottled || this.#sql.hasParked.get(this.#kind) !== undefined };
  }
}

function nextRateGate(sql: Statements): EpochMs | undefined {
  return (sql.nextRateGate.get() as { at: number | null }).at ?? undefined;
}

/** Whether a rate gate has opened: a claim must unpark its key. */
export function hasDueRateGates(sql: Statements, now: EpochMs): boolean {
  const at = nextRateGate(sql);
  return at !== undefined && at <= now;
}

/** queue-limiter.G2. Unparks items of keys whose rate admits more. */
export function openRateGates({ sql, now }: Tx): void {
  for (const { kind, queue, key } of sql.dueRateGates.all(now, MAX_RATE_GATES) as unknown as SlotKey[]) {
    sql.deleteRateGate.run(kind, queue, key);
    const row = sql.queueLimits.get(queue) as { limits: string } | undefined;
    const { perKey } = JSON.parse(row?.limits ?? "{}") as QueueLimits;
    // One more than the rate admits: that one is parked again and inserts the next rate gate.
    sql.unparkItems.run(kind, queue, key, (perKey?.rate?.limit ?? MAX_RATE_GATES) + 1);
  }
}

/** queue-limiter.G2. Unparks the next item after one item with this key was removed. */
export function freeSlot(
  { sql }: Tx,
  kind: SlotKind,
  { queue, key }: { readonly queue: string | null; readonly key?: string | null },
): void {
  if (queue !== null && key !== undefined && key !== null) sql.unparkItems.run(kind, queue, key, 1);
}

/** queue-limiter.G2. For a write that removes many rows: read before it, freed after it, as many as there were (queue-limiter.G3). */
export function slotsOfRun({ sql }: Tx, run: number): readonly SlotKey[] {
  return sql.keysOfRun.all(run) as unknown as SlotKey[];
}

export function slotsOfWorker({ sql }: Tx, worker: number): readonly SlotKey[] {
  return sql.keysOfWorker.all(worker) as unknown as SlotKey[];
}

export function freeSlots({ sql }: Tx, keys: readonly SlotKey[]): void {
  for (const { kind, queue, key, count } of keys) sql.unparkItems.run(kind, queue, key, count);
}

/** Unparks every item of a queue whose limits have changed. */
export function unparkQueue({ sql }: Tx, queue: string): void {
  for (const kind of ["task", "start"] as const) {
    sql.unparkQueue.run(kind, queue);
    sql.deleteRateGates.run(kind, queue);
  }
}
