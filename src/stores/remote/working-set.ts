// WorkingSet: the rows of one transaction, in memory. The rules read and change them through the row port (transaction-rows.ts).
//
// working-set.W1. A read returns undefined when a row is not loaded, or not locked as required. The query that loads it is recorded:
//   by the working set for selections and counts, by the caller for rows. Assumed rows are verified by the commit.
// working-set.W2. A read returns the database's rows with all changes of this transaction applied, as if each change had been
//   written at once.
// working-set.W3. `reset` discards all changes and keeps the loaded rows: after a missing row was loaded the whole list is applied again.
// working-set.W4. `changes` are net: a row that was inserted and deleted again is omitted, a row changed ten times is one change.

import { invariant } from "../../base/index.ts";
import { blindKeys, covers, further, isSame, keyRow, reaching, selectText } from "./query-coverage.ts";
import type { QueryResult, Change } from "./backend.ts";
import { compareValues, matches } from "./evaluate.ts";
import {
  LOCK_LEVELS,
  keyOf,
  keyText,
  nameOf,
  fillRow,
  newTrackedRow,
  EXCLUSIVE,
  TrackedTable,
  NOT_LOADED,
  type LockLevel,
  type TrackedRow,
  type Key,
} from "./tracked-row.ts";
import { mergeQueries } from "./merge-queries.ts";
import { EXPECTED, netChanges } from "./net-changes.ts";
import {
  lookup,
  type Condition,
  type Count,
  type Distinct,
  type Lock,
  type Lookup,
  type Query,
  type Select,
} from "./query.ts";
import { columnsOf, keyColumns, type AnyRow, type RowOf, type TableName, type Value } from "../rows/tables.ts";

const RUN: readonly string[] = ["run"];

export class WorkingSet {
  readonly #tables = new Map<TableName, TrackedTable>();
  readonly #newRuns = new Set<Value>();
  #touched: TrackedRow[] = [];
  #missing: Query[] = [];
  /** Tables with rows that are changed without loading them. */
  readonly #blindUpdates = new Set<TableName>();

  // ── reads ──

  /** "none": the row does not exist. Undefined: it is not loaded, or not locked as required. */
  find(table: TableName, lock: Lock, key: readonly Value[]): AnyRow | "none" | undefined {
    const tracked = this.#known(table, lock, key);
    if (tracked === undefined || tracked === "none") return tracked;
    this.#markUsed(tracked);
    return tracked.row ?? "none";
  }

  /** A loaded row, whatever its lock. */
  unlocked(table: TableName, key: readonly Value[]): AnyRow | undefined {
    return this.#table(table).rows.get(keyText(key))?.row;
  }

  /** Records the query of rows that are not loaded. */
  recordMissing(query: Query): void {
    this.#missing.push(query);
  }

  get hasMissing(): boolean {
    return this.#missing.length > 0;
  }

  /**
   * Undefined: rows are not loaded, and their query is recorded. `ahead`: it loads at least that many rows, because the next reads
   * will need them.
   */
  select<T extends TableName>(query: Select<T>, ahead = 0): RowOf<T>[] | undefined {
    const { table, where, order = [], lock, limit = Number.POSITIVE_INFINITY } = query;
    if (this.#blindUpdates.has(table) && this.#recordBlindUpdates(query)) return undefined;
    const known = this.#table(table).selected.get(selectText(query));
    const rows = this.#matching<T>(this.#candidates(query), LOCK_LEVELS[lock], where);
    const isKnown = known === undefined ? this.#isRunLoaded(query) : covers(known, query, limit);
    if (!isKnown && (known === undefined || order.length > 0 || rows.length < limit)) {
      this.#missing.push(known === undefined ? reaching(query, ahead) : further(query, known, ahead));
      return undefined;
    }
    rows.sort((a, b) => {
      for (const [column, direction] of order) {
        const difference = compareValues((a as AnyRow)[column]!, (b as AnyRow)[column]!);
        if (difference !== 0) return direction === "asc" ? difference : -difference;
      }
      return 0;
    });
    return rows.length > limit ? rows.slice(0, limit) : rows;
  }

  /** Whether a row looked up with `skip` is locked by another transaction. */
  isLockedByOther(table: TableName, ...key: readonly Value[]): boolean {
    return this.#table(table).lockedByOthers.has(keyText(key));
  }

  /** Whether all rows with these values are loaded. */
  isLoadedBy(table: TableName, columns: readonly string[], key: readonly Value[], lock: Lock): boolean {
    if (columns.length === 1 && columns[0] === "run" && this.#newRuns.has(key[0]!)) return true;
    return this.#table(table).lockLevelOf(columns, key) >= LOCK_LEVELS[lock];
  }

  /** The loaded rows with these values; the database may have more. */
  loadedBy<T extends TableName>(table: T, columns: readonly string[], key: readonly Value[]): RowOf<T>[] {
    return this.#matching<T>(this.#table(table).indexOf(nameOf(columns))?.rows.get(keyText(key)) ?? [], NOT_LOADED, []);
  }

  /** The loaded rows of a selection that still match. */
  loaded<T extends TableName>(query: Select<T>): RowOf<T>[] {
    const known = this.#table(query.table).selected.get(selectText(query));
    return this.#matching<T>(known?.rows ?? [], NOT_LOADED, query.where);
  }

  /** A loaded row without the changes of this transaction. */
  original<T extends TableName>(table: T, ...key: readonly Value[]): RowOf<T> | undefined {
    return this.#table(table).rows.get(keyText(key))?.base as RowOf<T> | undefined;
  }

  /** Whether a row is known not to exist, or was deleted here. */
  isGone(table: TableName, ...key: readonly Value[]): boolean {
    const tracked = this.#table(table).rows.get(keyText(key));
    return (
      tracked !== undefined &&
      tracked.row === undefined &&
      (tracked.lockLevel !== NOT_LOADED || tracked.blindDelete !== undefined)
    );
  }

  /** Counts of the database, without the changes of this transaction. Undefined: they are not loaded, and the query is recorded. */
  counts<T extends TableName>(query: Count<T> | Distinct<T>): QueryResult | undefined {
    const answer = this.#table(query.table).counted.get(JSON.stringify(query));
    if (answer === undefined) this.#missing.push(query);
    return answer;
  }

  /** The rows changed by this transaction that match: before the change (`was`) and after it (`is`). */
  changed<T extends TableName>(table: T, where: readonly Condition[]): { was: RowOf<T>[]; is: RowOf<T>[] } {
    const was: RowOf<T>[] = [];
    const is: RowOf<T>[] = [];
    for (const { table: its, base, row } of this.#touched) {
      if (its.name !== table || base === row) continue;
      if (base !== undefined && matches(where, base)) was.push(base as RowOf<T>);
      if (row !== undefined && matches(where, row)) is.push(row as RowOf<T>);
    }
    return { was, is };
  }

  /** Records the query of rows that were changed without loading them and may match. False: there are none. */
  recordBlind(table: TableName, where: readonly Condition[]): boolean {
    return this.#recordKeys(table, blindKeys(this.#touched, table, where), "update");
  }

  /** working-set.W2. A row that was not loaded may match the selection, or have another place in it, because it was changed. */
  #recordBlindUpdates({ table, where, order = [], lock }: Select): boolean {
    const used = [...where.map(({ column }) => column), ...order.map(([column]) => column)];
    return this.#recordKeys(table, blindKeys(this.#touched, table, where, used), lock === "skip" ? "update" : lock);
  }

  #recordKeys(table: TableName, keys: Lookup["keys"], lock: Lock): boolean {
    if (keys.length > 0) this.#missing.push(lookup(table, keyColumns(table), keys, lock));
    return keys.length > 0;
  }

  /** The queries recorded since the last call, merged, in lock order. */
  takeMissing(): readonly Query[] {
    const queries = mergeQueries(this.#missing);
    this.#missing = [];
    return queries;
  }

  // ── changes ──

  /** False when a row with this key is loaded. An unloaded duplicate is a conflict at the commit. */
  insert<T extends TableName>(table: T, row: RowOf<T>): boolean {
    const tracked = this.#track(table, keyOf(keyColumns(table), row as AnyRow));
    if (tracked.row !== undefined) return false;
    tracked.table.index(tracked, row as AnyRow);
    tracked.row = row as AnyRow;
    tracked.blindUpdate = undefined;
    // It replaces a row that was deleted in this transaction.
    if (tracked.base !== undefined)
      for (const name of columnsOf(table))
        if (!keyColumns(table).includes(name)) tracked.dirtyColumns |= tracked.table.bits[name]!;
    this.#touch(tracked);
    return true;
  }

  /** `row` was read from or inserted into this set. Key columns are never set: a row that moves is deleted and inserted. */
  update<T extends TableName>(table: T, row: RowOf<T>, values: Partial<RowOf<T>>): void {
    const tracked = this.#tracked(table, row as AnyRow);
    // rows.P3. A copy: a rule may still use the row it read.
    const changed = { ...tracked.row! };
    const { bits } = tracked.table;
    let dirty = 0;
    for (const column in values) {
      changed[column] = (values as AnyRow)[column]!;
      dirty |= bits[column]!;
    }
    tracked.row = changed;
    invariant((dirty & tracked.table.keyBits) === 0, "an update sets a key column");
    if (tracked.base !== undefined) tracked.dirtyColumns |= dirty;
    this.#touch(tracked);
  }

  remove<T extends TableName>(table: T, row: RowOf<T>): void {
    const tracked = this.#tracked(table, row as AnyRow);
    tracked.row = undefined;
    this.#touch(tracked);
  }

  /** Sets columns of a row, if it exists, without loading it. */
  updateBlind<T extends TableName>(table: T, key: readonly Value[], values: Partial<RowOf<T>>): void {
    const tracked = this.#track(table, keyText(key));
    if (tracked.row !== undefined) return this.update(table, tracked.row as RowOf<T>, values);
    if (
      tracked.lockLevel !== NOT_LOADED ||
      tracked.blindDelete !== undefined ||
      this.#isKeyRunLoaded(table, key, EXCLUSIVE)
    )
      return;
    tracked.blindUpdate = { ...tracked.blindUpdate, ...keyRow(table, key), ...(values as AnyRow) };
    this.#blindUpdates.add(table);
    this.#touch(tracked);
  }

  /** Deletes a row, if it exists, without loading it. */
  deleteBlind(table: TableName, key: readonly Value[]): void {
    const tracked = this.#track(table, keyText(key));
    tracked.row = undefined;
    tracked.blindUpdate = undefined;
    if (tracked.lockLevel === NOT_LOADED && !this.#isKeyRunLoaded(table, key, EXCLUSIVE))
      tracked.blindDelete = keyRow(table, key);
    this.#touch(tracked);
  }

  /** Declares a run that this transaction creates: the database has no rows of it. */
  markNewRun(run: number): void {
    this.#newRuns.add(run);
  }

  // ── loading ──

  /** Adds the result of a query. */
  addResult(query: Query, result: QueryResult): void {
    const table = this.#table(query.table);
    if (query.kind === "count" || query.kind === "distinct")
      return void table.counted.set(JSON.stringify(query), result);
    const lockLevel = LOCK_LEVELS[query.lock];
    const rows = result.map((row) => this.#load(table, row as AnyRow, lockLevel));
    if (query.kind === "lookup") return this.#addLookup(table, query, new Set(rows));
    const limit = query.limit ?? Number.POSITIVE_INFINITY;
    invariant(rows.length <= limit, "the database returned more rows than the limit of a query");
    const isComplete = rows.length < limit;
    table.selected.set(selectText(query), { limit, rows, isComplete });
    const [only] = query.where;
    if (isComplete && query.where.length === 1 && only?.column === "run" && only.is === "=" && query.lock !== "skip")
      table.markLoaded(["run"], [only.value], lockLevel);
  }

  #addLookup(table: TrackedTable, { columns, keys, lock }: Lookup, found: ReadonlySet<TrackedRow>): void {
    const isByKey = isSame(columns, keyColumns(table.name));
    invariant(!isByKey || found.size <= keys.length, "the database returned more rows than the keys of a lookup");
    const index = table.indexOf(nameOf(columns));
    for (const key of keys) {
      const text = keyText(key);
      if (!isByKey && lock !== "skip") table.markLoaded(columns, key, LOCK_LEVELS[lock]);
      if (isByKey && lock === "skip" && !found.has(this.#track(table.name, text))) table.lockedByOthers.add(text);
      if (lock === "skip") continue;
      for (const tracked of isByKey ? [this.#track(table.name, text)] : (index?.rows.get(text) ?? []))
        if (!found.has(tracked) && tracked.lockLevel <= LOCK_LEVELS[lock]) {
          // The row was deleted since it was read.
          tracked.base = tracked.row = undefined;
          tracked.lockLevel = LOCK_LEVELS[lock];
          tracked.isAssumed = false;
        }
    }
  }

  /** Adds a cached row; the commit verifies that no other process has changed it. */
  assume<T extends TableName>(table: T, row: RowOf<T>): void {
    invariant(EXPECTED[table] !== undefined, "rows of this table cannot be verified by a commit", { table });
    const tracked = this.#track(table, keyOf(keyColumns(table), row as AnyRow));
    if (tracked.lockLevel === EXCLUSIVE) return;
    fillRow(tracked, row as AnyRow, EXCLUSIVE);
    tracked.isAssumed = true;
  }

  /** Assumes that a row does not exist; otherwise its insert is a conflict at the commit. */
  assumeAbsent(table: TableName, columns: readonly string[], key: readonly Value[]): void {
    if (!isSame(columns, keyColumns(table))) this.#table(table).markLoaded(columns, key, EXCLUSIVE);
    else {
      const tracked = this.#track(table, keyText(key));
      if (tracked.lockLevel === NOT_LOADED) tracked.lockLevel = EXCLUSIVE;
    }
  }

  // ── end of a pass ──

  /** working-set.W3 */
  reset(): void {
    for (const tracked of this.#touched) {
      tracked.row = tracked.base;
      tracked.dirtyColumns = 0;
      tracked.blindUpdate = undefined;
      tracked.blindDelete = undefined;
      tracked.isTouched = false;
      if (tracked.lockLevel === NOT_LOADED) tracked.table.rows.delete(tracked.key);
    }
    // A run that a guess declared new may exist.
    this.#newRuns.clear();
    this.#touched = [];
    this.#missing = [];
    this.#blindUpdates.clear();
  }

  /** Empties the set, for another transaction. */
  clear(): void {
    this.#tables.clear();
    this.#newRuns.clear();
    this.#touched = [];
    this.#missing = [];
    this.#blindUpdates.clear();
  }

  /** The rows, with their changes, that are exclusively locked, assumed, or inserted without a lookup. */
  *current<T extends TableName>(table: T): Iterable<RowOf<T>> {
    for (const { row, lockLevel } of this.#table(table).rows.values())
      if (row !== undefined && (lockLevel === EXCLUSIVE || lockLevel === NOT_LOADED)) yield row as RowOf<T>;
  }

  /** The rows, with their changes, that are exclusively locked, assumed, or inserted. */
  *locked<T extends TableName>(table: T): Iterable<RowOf<T>> {
    for (const { row, base, lockLevel } of this.#table(table).rows.values())
      if (row !== undefined && (base === undefined || lockLevel === EXCLUSIVE)) yield row as RowOf<T>;
  }

  /** working-set.W4 */
  changes(): readonly Change[] {
    return netChanges(this.#touched);
  }

  // ── private ──

  #table(name: TableName): TrackedTable {
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new TrackedTable(name)));
    return table;
  }

  /** "none": the row does not exist. Undefined: it is not loaded, or not locked as required. */
  #known(name: TableName, lock: Lock, key: readonly Value[]): TrackedRow | "none" | undefined {
    const tracked = this.#table(name).rows.get(keyText(key));
    if (tracked !== undefined) {
      if (tracked.lockLevel >= LOCK_LEVELS[lock]) return tracked;
      // Inserted here, or deleted without loading it.
      if (tracked.base === undefined && tracked.row !== undefined) return tracked;
      if (tracked.lockLevel === NOT_LOADED && tracked.blindDelete !== undefined) return tracked;
    }
    return this.#isKeyRunLoaded(name, key, LOCK_LEVELS[lock]) ? "none" : undefined;
  }

  /** Whether all rows of this key's run are loaded. */
  #isKeyRunLoaded(name: TableName, key: readonly Value[], lockLevel: LockLevel): boolean {
    if (keyColumns(name)[0] !== "run") return false;
    return this.#newRuns.has(key[0]!) || this.#table(name).lockLevelOf(RUN, key) >= lockLevel;
  }

  /** Whether the query names a run all of whose rows are loaded. */
  #isRunLoaded({ table, where, lock }: Select): boolean {
    return where.some(
      (one) => one.column === "run" && one.is === "=" && this.isLoadedBy(table, RUN, [one.value], lock),
    );
  }

  /** The tracked row of a key; a new one is not loaded. */
  #track(name: TableName, key: Key): TrackedRow {
    const table = this.#table(name);
    let tracked = table.rows.get(key);
    if (tracked === undefined) table.rows.set(key, (tracked = newTrackedRow(table, key, NOT_LOADED)));
    return tracked;
  }

  /** Adds a loaded row, unless it is already loaded with the same lock. */
  #load(table: TrackedTable, row: AnyRow, lockLevel: LockLevel): TrackedRow {
    const tracked = this.#track(table.name, keyOf(keyColumns(table.name), row));
    if (tracked.lockLevel < lockLevel || (tracked.isAssumed && lockLevel === EXCLUSIVE))
      fillRow(tracked, row, lockLevel);
    return tracked;
  }

  #tracked(name: TableName, row: AnyRow): TrackedRow {
    const tracked = this.#table(name).rows.get(keyOf(keyColumns(name), row));
    invariant(tracked?.row !== undefined, "a changed row is in the working set");
    return tracked;
  }

  #markUsed(tracked: TrackedRow): void {
    if (tracked.isAssumed && !tracked.isTouched) this.#touch(tracked);
  }

  #touch(tracked: TrackedRow): void {
    if (tracked.isTouched) return;
    tracked.isTouched = true;
    this.#touched.push(tracked);
  }

  *#candidates({ table, where }: Pick<Select, "table" | "where">): Iterable<TrackedRow> {
    const tracked = this.#table(table);
    for (const one of where) {
      const index = one.is === "=" ? tracked.indexOf(one.column) : undefined;
      if (index !== undefined && one.is === "=") return yield* index.rows.get(one.value as Key) ?? [];
    }
    yield* tracked.rows.values();
  }

  #matching<T extends TableName>(
    some: Iterable<TrackedRow>,
    lockLevel: LockLevel,
    where: readonly Condition[],
  ): RowOf<T>[] {
    const rows: RowOf<T>[] = [];
    for (const tracked of some) {
      const { row, base } = tracked;
      // A row that this transaction changed needs no other lock than the change did.
      if (row === undefined || (row === base && tracked.lockLevel < lockLevel)) continue;
      if (!matches(where, row)) continue;
      this.#markUsed(tracked);
      rows.push(row as RowOf<T>);
    }
    return rows;
  }
}
