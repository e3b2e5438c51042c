// RowCache: the rows this process wrote last, of runs whose turn one of its workers holds. Cached rows need not be loaded.
//
// row-cache.M1. Correctness does not depend on the cache: a commit verifies the rows it assumed and fails if they differ.
// row-cache.M2. A transaction that adds an item to a run also moves the run's head or holds its turn. So a process that started
//   a run, or read its items when it claimed the turn, knows all its items while it holds the turn: other processes can only
//   change or delete them, which the commit detects. The same holds for `once`: a new row there counts an arrival.
// row-cache.M3. A run whose turn no worker of this process holds is evicted; so are the oldest runs when there are too many.

import type { EventSubscription, RunNumber } from "../../kernel/index.ts";
import type { Change } from "./backend.ts";
import type { RowOf } from "../rows/tables.ts";
import type { WorkingSet } from "./working-set.ts";

type RunRow = RowOf<"runs">;
type ItemRow = RowOf<"queue">;

interface CachedRun {
  row: RunRow;
  /** row-cache.M2 */
  readonly hasAllItems: boolean;
  /** The run has no rows in `once`. */
  hasNoOnce: boolean;
  readonly items: Map<string, ItemRow>;
}

const RUN: readonly string[] = ["run"];
const MAX_RUNS = 20_000;
/** A run with more items is not cached. */
const MAX_ITEMS = 64;
const MAX_IDS = 20_000;

export class RowCache {
  readonly #runs = new Map<RunNumber, CachedRun>();
  /** Hints: the number last seen for an id, to lock runs in order. */
  readonly #numbers = new Map<string, RunNumber>();
  readonly #workers = new Set<number>();
  /** log.L5. As this process knows it. */
  isFederated = false;
  /** run-event.E1. Undefined: none. */
  subscriptions: readonly EventSubscription[] | undefined;

  addWorker(worker: number): void {
    this.#workers.add(worker);
  }

  dropWorker(worker: number): void {
    this.#workers.delete(worker);
    for (const [run, { row }] of this.#runs) if (row.turn_worker === worker) this.#runs.delete(run);
  }

  numberOf(id: string): RunNumber | undefined {
    return this.#numbers.get(id);
  }

  /** Whether all of these runs are cached. */
  hasAll(runs: Iterable<RunNumber>): boolean {
    for (const run of runs) if (!this.#runs.has(run)) return false;
    return true;
  }

  assumeRows(ws: WorkingSet, runs: Iterable<RunNumber>): void {
    for (const run of runs) {
      const cached = this.#runs.get(run);
      if (cached === undefined) continue;
      const { row, items, hasAllItems: knowsItems, hasNoOnce } = cached;
      ws.assume("runs", row);
      if (items.size > 0) for (const item of items.values()) ws.assume("queue", item);
      const key = [run];
      if (knowsItems) ws.assumeAbsent("queue", RUN, key);
      if (hasNoOnce) ws.assumeAbsent("once", RUN, key);
      // The note of an end goes when the run is retried (log.L6).
      if (this.isFederated) ws.assumeAbsent("ended_runs", RUN, key);
      // The run has read all arrivals, so its inbox is empty.
      if (row.arrivals === row.read) ws.assumeAbsent("inbox", RUN, key);
    }
  }

  /** Called after a commit with its working set and changes. */
  update(ws: WorkingSet, changes: readonly Change[]): void {
    const started = new Set<RunNumber>();
    const removed: { readonly run: RunNumber; readonly item: string }[] = [];
    for (const change of changes)
      if (change.table === "runs" && change.change === "insert")
        for (const row of change.rows) started.add(row["run"] as number);
      else if (change.table === "queue" && change.change === "delete")
        removed.push(...(change.rows as unknown as { run: number; item: string }[]));
      else if (change.table === "runs" && change.change === "delete")
        for (const row of change.rows) this.#runs.delete(row["run"] as number);
    for (const row of ws.locked("runs")) this.#cacheRun(ws, row, started.has(row.run));
    for (const { run, item } of removed) this.#runs.get(run)?.items.delete(item);
    for (const item of ws.current("queue")) this.#cacheItem(item);
    for (const { run } of ws.current("once")) {
      const cached = this.#runs.get(run);
      if (cached !== undefined) cached.hasNoOnce = false;
    }
  }

  clear(): void {
    this.#runs.clear();
    this.#numbers.clear();
  }

  evict(runs: Iterable<RunNumber>): void {
    for (const run of runs) this.#runs.delete(run);
  }

  #cacheRun(ws: WorkingSet, row: RunRow, isNew: boolean): void {
    const cached = this.#runs.get(row.run);
    const isHeld = row.turn_token !== null && row.turn_worker !== null && this.#workers.has(row.turn_worker);
    // Under another token, another worker may have held the turn in between.
    if (isHeld && cached !== undefined && cached.row.turn_token === row.turn_token) {
      cached.row = row;
      return;
    }
    cacheEntry(this.#numbers, row.id, row.run, MAX_IDS);
    // row-cache.M3
    this.#runs.delete(row.run);
    if (!isHeld) return;
    const hasAllItems = isNew || ws.isLoadedBy("queue", RUN, [row.run], "none");
    const hasNoOnce = isNew || row.arrivals === 0;
    cacheEntry(this.#runs, row.run, { row, items: new Map(), hasAllItems, hasNoOnce }, MAX_RUNS);
    // Unchanged items, too: an item missing from the cache would be left behind when the run ends.
    if (hasAllItems) for (const item of ws.loadedBy("queue", RUN, [row.run])) this.#cacheItem(item);
  }

  #cacheItem(item: ItemRow): void {
    const cached = this.#runs.get(item.run);
    if (cached === undefined) return;
    cached.items.set(item.item, item);
    if (cached.items.size > MAX_ITEMS) this.#runs.delete(item.run);
  }
}

/** Adds an entry and removes the oldest one when there are too many. */
function cacheEntry<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
