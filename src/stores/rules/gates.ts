// Gates: what the limits of named queues let through (Q1–Q4).
//
// G1. Looking changes nothing, so that a poll can find out without a transaction that there is nothing to take.
// G2. An item whose key has no room is parked, and no claim sees it again before the key may have room: whatever takes an
//     item with a key away frees its key, and the claim after a rate's time opens its lane.
// G3. Too many let back in are harmless: the next claim parks them again.

import type { EpochMs } from "../../base/index.ts";
import type { QueueLimits, StoredLimit, Waiting } from "../../kernel/index.ts";
import type { Statements, Tx } from "./statements.ts";

/** Tasks, or runs that have not begun. */
export type LineKind = "task" | "start";

export interface LinedItem {
  readonly run: number;
  readonly item: string;
  readonly queue: string;
  readonly key: string | null;
}

interface Gate {
  readonly limits: QueueLimits;
  readonly paused: boolean;
  /** How many more may pass: places, and what the rate allows. */
  places: number;
  allowance: number;
}

interface Key {
  readonly kind: LineKind;
  readonly queue: string;
  readonly key: string;
  readonly count: number;
}

/** What stands for a queue as a whole where keys stand. */
const WHOLE = "";
/** Items parked in one transaction. */
const PARK_AT_MOST = 1_000;
export const LANES_AT_ONCE = 1_000;

export class Gates {
  readonly #sql: Statements;
  readonly #now: EpochMs;
  readonly #kind: LineKind;
  readonly #gates = new Map<string, Gate>();
  #parked = 0;
  #held = false;

  constructor(sql: Statements, now: EpochMs, kind: LineKind) {
    this.#sql = sql;
    this.#now = now;
    this.#kind = kind;
  }

  /** The lines of the wanted names that have something and are open, one seek per line. */
  openLines(wanted: readonly string[]): readonly { readonly queue: string; readonly name: string }[] {
    const open: { queue: string; name: string }[] = [];
    let names: ReadonlySet<string> | undefined;
    for (let queue = this.#nextQueue(""); queue !== undefined; queue = this.#nextQueue(queue))
      for (let name = this.#nextName(queue, ""); name !== undefined; name = this.#nextName(queue, name)) {
        names ??= new Set(wanted);
        if (!names.has(name)) continue;
        if (this.hasRoom(queue)) open.push({ queue, name });
        else this.#held = true;
      }
    return open;
  }

  #nextQueue(after: string): string | undefined {
    return (this.#sql.nextQueue.get(this.#kind, after) as { queue: string } | undefined)?.queue;
  }

  #nextName(queue: string, after: string): string | undefined {
    return (this.#sql.nextName.get(this.#kind, queue, after) as { name: string } | undefined)?.name;
  }

  hasRoom(queue: string): boolean {
    const { paused, places, allowance } = this.#gate(queue);
    return !paused && places > 0 && allowance > 0 && this.#parked < PARK_AT_MOST;
  }

  /** At most this many of the queue can pass. */
  room(queue: string): number {
    const { places, allowance } = this.#gate(queue);
    return Math.min(places, allowance);
  }

  #gate(queue: string): Gate {
    let gate = this.#gates.get(queue);
    if (gate === undefined) this.#gates.set(queue, (gate = this.#look(queue)));
    return gate;
  }

  #look(queue: string): Gate {
    const row = this.#sql.queue.get(queue) as { limits: string; paused: number } | undefined;
    const limits = row === undefined ? {} : (JSON.parse(row.limits) as QueueLimits);
    return { limits, paused: row?.paused === 1, ...this.#left(limits, queue, WHOLE) };
  }

  #left({ concurrency, rate }: StoredLimit, queue: string, key: string): { places: number; allowance: number } {
    let places = Number.POSITIVE_INFINITY;
    let allowance = Number.POSITIVE_INFINITY;
    if (concurrency !== undefined) places = concurrency - this.#busy(queue, key);
    if (rate !== undefined) allowance = rate.limit - this.#begun(queue, key).count;
    return { places, allowance };
  }

  #busy(queue: string, key: string): number {
    const row =
      key === WHOLE ? this.#sql.busyInQueue.get(this.#kind, queue) : this.#sql.busyInKey.get(this.#kind, queue, key);
    return (row as { count: number }).count;
  }

  #begun(queue: string, key: string): { count: number; until: EpochMs | undefined } {
    const row = this.#sql.begun.get(this.#kind, queue, key, this.#now) as {
      count: number | null;
      until: number | null;
    };
    return { count: row.count ?? 0, until: row.until ?? undefined };
  }

  /** As `pass`; a suspect is never parked. */
  passSuspect(item: LinedItem): boolean {
    if (!this.mayPass(item)) return false;
    this.count(item);
    return true;
  }

  /** Whether a suspect may be handed out now. */
  mayPass({ queue, key }: Pick<LinedItem, "queue" | "key">): boolean {
    if (!this.hasRoom(queue)) return false;
    const { perKey } = this.#gate(queue).limits;
    if (perKey === undefined || key === null) return true;
    const { places, allowance } = this.#left(perKey, queue, key);
    return places > 0 && allowance > 0;
  }

  /** Lets an item through, or parks it when it is its key that has no room. The caller then takes it at once. */
  pass(item: LinedItem): boolean {
    if (!this.hasRoom(item.queue)) {
      this.#held = true;
      return false;
    }
    const { perKey } = this.#gate(item.queue).limits;
    if (perKey !== undefined && item.key !== null && !this.#passKey(item, item.key, perKey)) return false;
    this.count(item);
    return true;
  }

  #passKey(item: LinedItem, key: string, perKey: StoredLimit): boolean {
    const { places, allowance } = this.#left(perKey, item.queue, key);
    if (places > 0 && allowance > 0) return true;
    this.#sql.park.run(item.run, item.item);
    this.#parked += 1;
    this.#held = true;
    const { until } = this.#begun(item.queue, key);
    // A key that waits for a place is freed by whatever takes one of its items away.
    if (allowance <= 0 && until !== undefined) this.#sql.insertLane.run(this.#kind, item.queue, key, until);
    return false;
  }

  /** The item is handed out. */
  count({ queue, key }: LinedItem): void {
    const gate = this.#gate(queue);
    gate.places -= 1;
    gate.allowance -= 1;
    const { rate, perKey } = gate.limits;
    if (rate !== undefined) this.#countBegun(queue, WHOLE, rate.perMs);
    if (perKey?.rate !== undefined && key !== null) this.#countBegun(queue, key, perKey.rate.perMs);
  }

  #countBegun(queue: string, key: string, perMs: number): void {
    this.#sql.countBegun.run(this.#kind, queue, key, this.#now + perMs);
    this.#sql.forgetBegun.run(this.#now);
  }

  /** What is left behind, and when to look again. */
  waiting(): Waiting {
    let nextAt = this.#parked >= PARK_AT_MOST ? this.#now : nextLane(this.#sql);
    for (const [queue, { allowance, paused }] of this.#gates) {
      const until = allowance <= 0 && !paused ? this.#begun(queue, WHOLE).until : undefined;
      if (until !== undefined && (nextAt === undefined || until < nextAt)) nextAt = until;
    }
    return { nextAt, held: this.#held || this.#sql.anyParked.get(this.#kind) !== undefined };
  }
}

function nextLane(sql: Statements): EpochMs | undefined {
  return (sql.nextLane.get() as { at: number | null }).at ?? undefined;
}

/** Whether a rate lets go of a key: a claim has something to do. */
export function hasDueLanes(sql: Statements, now: EpochMs): boolean {
  const at = nextLane(sql);
  return at !== undefined && at <= now;
}

/** G2. Keys whose rate lets more through again. */
export function openLanes({ sql, now }: Tx): void {
  for (const { kind, queue, key } of sql.dueLanes.all(now, LANES_AT_ONCE) as unknown as Key[]) {
    sql.dropLane.run(kind, queue, key);
    const row = sql.queue.get(queue) as { limits: string } | undefined;
    const { perKey } = JSON.parse(row?.limits ?? "{}") as QueueLimits;
    // One more than can pass: it is parked again and says when the lane opens next.
    sql.unpark.run(kind, queue, key, (perKey?.rate?.limit ?? LANES_AT_ONCE) + 1);
  }
}

/** G2. One item with this key is no longer where it was. */
export function freeKey(
  { sql }: Tx,
  kind: LineKind,
  { queue, key }: { readonly queue: string | null; readonly key?: string | null },
): void {
  if (queue !== null && key !== undefined && key !== null) sql.unpark.run(kind, queue, key, 1);
}

/** G2. For what takes many rows away at once: asked before, freed after; as many as there were (G3). */
export function keysOfRun({ sql }: Tx, run: number): readonly Key[] {
  return sql.keysOfRun.all(run) as unknown as Key[];
}

export function keysOfWorker({ sql }: Tx, worker: number): readonly Key[] {
  return sql.keysOfWorker.all(worker) as unknown as Key[];
}

export function freeKeys({ sql }: Tx, keys: readonly Key[]): void {
  for (const { kind, queue, key, count } of keys) sql.unpark.run(kind, queue, key, count);
}

/** Limits have changed: whatever was parked is judged anew. */
export function openQueue({ sql }: Tx, queue: string): void {
  for (const kind of ["task", "start"] as const) {
    sql.unparkQueue.run(kind, queue);
    sql.dropLanes.run(kind, queue);
  }
}
