// Memory: rows this process wrote last, of runs whose turn one of its workers holds. What is remembered need not be loaded.
//
// M1. Nothing depends on it: a commit that assumed a row says what it expects, and is not done when that is not so.
// M2. Whoever adds an item to a run moves its head or holds its turn. So who started a run and holds its turn since then
//     knows every item it can have: others only change or remove them, and both shows. So it is with `once`: whoever adds a
//     line there counts an arrival. And so does who claimed the turn and looked then.
// M3. A run that nobody here holds any more is forgotten; so are the oldest when there are too many.

import type { RunNumber } from "../../kernel/index.ts";
import type { Change } from "./backend.ts";
import type { RowOf } from "./tables.ts";
import type { WorkingSet } from "./working-set.ts";

type RunRow = RowOf<"runs">;
type ItemRow = RowOf<"queue">;

interface Remembered {
  row: RunRow;
  /** M2 */
  readonly knowsItems: boolean;
  /** Nothing it was told had to be told once. */
  hasNoOnce: boolean;
  readonly items: Map<string, ItemRow>;
}

const RUN: readonly string[] = ["run"];
const MAX_RUNS = 20_000;
/** A run with more items is looked at in the database. */
const MAX_ITEMS = 64;
const MAX_IDS = 20_000;

export class Memory {
  readonly #runs = new Map<RunNumber, Remembered>();
  /** Only hints: which numbers ids had, to lock them in order. */
  readonly #numbers = new Map<string, RunNumber>();
  readonly #workers = new Set<number>();

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

  /** Whether all of them are remembered. */
  knows(runs: Iterable<RunNumber>): boolean {
    for (const run of runs) if (!this.#runs.has(run)) return false;
    return true;
  }

  assume(ws: WorkingSet, runs: Iterable<RunNumber>): void {
    for (const run of runs) {
      const known = this.#runs.get(run);
      if (known === undefined) continue;
      const { row, items, knowsItems, hasNoOnce } = known;
      ws.assume("runs", row);
      if (items.size > 0) for (const item of items.values()) ws.assume("queue", item);
      const key = [run];
      if (knowsItems) ws.assumeAbsent("queue", RUN, key);
      if (hasNoOnce) ws.assumeAbsent("once", RUN, key);
      // What has been read is gone, and there is nothing else.
      if (row.arrivals === row.read) ws.assumeAbsent("inbox", RUN, key);
    }
  }

  /** After a commit: what is in the database now, as far as this process knows. */
  note(ws: WorkingSet, changes: readonly Change[]): void {
    const started = new Set<RunNumber>();
    const removed: { readonly run: RunNumber; readonly item: string }[] = [];
    for (const change of changes)
      if (change.table === "runs" && change.change === "insert")
        for (const row of change.rows) started.add(row["run"] as number);
      else if (change.table === "queue" && change.change === "delete")
        removed.push(...(change.rows as unknown as { run: number; item: string }[]));
      else if (change.table === "runs" && change.change === "delete")
        for (const row of change.rows) this.#runs.delete(row["run"] as number);
    for (const row of ws.ours("runs")) this.#noteRun(ws, row, started.has(row.run));
    for (const { run, item } of removed) this.#runs.get(run)?.items.delete(item);
    for (const item of ws.current("queue")) this.#noteItem(item);
    for (const { run } of ws.current("once")) {
      const known = this.#runs.get(run);
      if (known !== undefined) known.hasNoOnce = false;
    }
  }

  clear(): void {
    this.#runs.clear();
    this.#numbers.clear();
  }

  forget(runs: Iterable<RunNumber>): void {
    for (const run of runs) this.#runs.delete(run);
  }

  #noteRun(ws: WorkingSet, row: RunRow, isNew: boolean): void {
    const known = this.#runs.get(row.run);
    const isHeld = row.turn_token !== null && row.turn_worker !== null && this.#workers.has(row.turn_worker);
    // Under another token somebody else may have been at work in between.
    if (isHeld && known !== undefined && known.row.turn_token === row.turn_token) {
      known.row = row;
      return;
    }
    remember(this.#numbers, row.id, row.run, MAX_IDS);
    // M3
    this.#runs.delete(row.run);
    if (!isHeld) return;
    const knowsItems = isNew || ws.isFound("queue", RUN, [row.run], "none");
    const hasNoOnce = isNew || row.arrivals === 0;
    remember(this.#runs, row.run, { row, items: new Map(), knowsItems, hasNoOnce }, MAX_RUNS);
    // Those that were only looked at as well: one that is not known would stay behind when the run ends.
    if (knowsItems) for (const item of ws.here("queue", RUN, [row.run])) this.#noteItem(item);
  }

  #noteItem(item: ItemRow): void {
    const known = this.#runs.get(item.run);
    if (known === undefined) return;
    known.items.set(item.item, item);
    if (known.items.size > MAX_ITEMS) this.#runs.delete(item.run);
  }
}

/** The oldest goes. */
function remember<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
