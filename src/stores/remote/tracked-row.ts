// TrackedRow: one row of a working set, and the table it belongs to.

import type { QueryResult } from "./backend.ts";
import type { Lock } from "./query.ts";
import { bitsOf, keyBitsOf, TABLES, type AnyRow, type TableName, type Value } from "../rows/tables.ts";

/** The key of a row: its one key column, or all of them as a text. */
export type Key = string | number;

export interface TrackedRow {
  readonly table: TrackedTable;
  readonly key: Key;
  /** The row in the database; undefined when it has no such row, or the row is not loaded. */
  base: AnyRow | undefined;
  /** The row with the changes of this transaction; a copy of `base` once changed. */
  row: AnyRow | undefined;
  lockLevel: LockLevel;
  /** The columns that were set, as bits. */
  dirtyColumns: number;
  /** Columns set without loading the row, with its key columns. */
  blindUpdate: AnyRow | undefined;
  /** Deleted without loading the row: its key columns. */
  blindDelete: AnyRow | undefined;
  /** The row comes from the cache: the commit verifies its `EXPECTED` columns. */
  isAssumed: boolean;
  /** The transaction read it as an assumed row, or changed it. */
  isTouched: boolean;
}

/** How the row is locked: not loaded, read without a lock, share lock, exclusive lock (or verified by the commit). */
export type LockLevel = 0 | 1 | 2 | 3;
export const LOCK_LEVELS: Readonly<Record<Lock, LockLevel>> = { none: 1, share: 2, update: 3, skip: 3 };
export const NOT_LOADED = 0;
export const EXCLUSIVE = 3;

/** A selection whose rows were loaded. */
export interface LoadedSelection {
  readonly limit: number;
  readonly rows: readonly TrackedRow[];
  /** Fewer rows than the limit were returned: there are no others. */
  readonly isComplete: boolean;
}

/** Columns by which rows are looked up, besides the first columns of their key. They never change while a row exists. */
const LOOKUP_COLUMNS: Partial<Record<TableName, readonly (readonly string[])[]>> = {
  runs: [["id"], ["id", "generation"]],
  checkpoints: [["key"]],
  langgraph_checkpoints: [["thread", "namespace", "id"]],
  forks: [["origin"]],
  memo: [["memo"]],
  run_log: [["run"]],
};

interface Index {
  readonly columns: readonly string[];
  readonly rows: Map<Key, Set<TrackedRow>>;
}

/** By table: its indexes by name, with their columns. */
const INDEXES = Object.fromEntries(
  Object.entries(TABLES).map(([table, { key }]) => {
    const lookups: (readonly string[])[] = [...(LOOKUP_COLUMNS[table as TableName] ?? [])];
    for (let length = 1; length < key.length; length += 1) lookups.push(key.slice(0, length));
    return [table, new Map(lookups.map((found) => [nameOf(found), found]))];
  }),
) as unknown as Readonly<Record<TableName, ReadonlyMap<string, readonly string[]>>>;

/** Whether loaded rows can be found by these columns. */
export function canFindBy(table: TableName, columns: readonly string[]): boolean {
  return INDEXES[table].has(nameOf(columns));
}

export class TrackedTable {
  readonly name: TableName;
  readonly bits: Readonly<Record<string, number>>;
  /** The bits of the key columns. */
  readonly keyBits: number;
  readonly rows = new Map<Key, TrackedRow>();
  readonly selected = new Map<string, LoadedSelection>();
  readonly counted = new Map<string, QueryResult>();
  /** Keys of rows that a `skip` lookup left out: another transaction holds their lock. */
  readonly lockedByOthers = new Set<Key>();
  /** Completed lookups by columns other than the key, with their lock level. `#loadedRuns` has those by run. */
  readonly #loaded = new Map<string, LockLevel>();
  readonly #loadedRuns = new Map<Value, LockLevel>();
  /** Built on first use: most rows are only written. */
  readonly #indexes = new Map<string, Index>();

  constructor(name: TableName) {
    this.name = name;
    this.bits = bitsOf(name);
    this.keyBits = keyBitsOf(name);
  }

  index(tracked: TrackedRow, row: AnyRow): void {
    if (this.#indexes.size > 0) for (const index of this.#indexes.values()) add(index, tracked, row);
  }

  /** Undefined when the table has no index by these columns. */
  indexOf(name: string): Index | undefined {
    const built = this.#indexes.get(name);
    if (built !== undefined) return built;
    const columns = INDEXES[this.name].get(name);
    if (columns === undefined) return undefined;
    const index: Index = { columns, rows: new Map() };
    this.#indexes.set(name, index);
    for (const tracked of this.rows.values()) {
      const row = tracked.row ?? tracked.base;
      if (row !== undefined) add(index, tracked, row);
    }
    return index;
  }

  lockLevelOf(columns: readonly string[], key: readonly Value[]): LockLevel {
    const level = isRun(columns) ? this.#loadedRuns.get(key[0]!) : this.#loaded.get(lookupText(columns, key));
    return level ?? NOT_LOADED;
  }

  markLoaded(columns: readonly string[], key: readonly Value[], lockLevel: LockLevel): void {
    if (isRun(columns)) this.#loadedRuns.set(key[0]!, lockLevel);
    else this.#loaded.set(lookupText(columns, key), lockLevel);
  }
}

function add({ columns, rows }: Index, tracked: TrackedRow, row: AnyRow): void {
  const value = keyText(columns.map((column) => row[column]!));
  const some = rows.get(value);
  if (some === undefined) rows.set(value, new Set([tracked]));
  else some.add(tracked);
}

function isRun(columns: readonly string[]): boolean {
  return columns.length === 1 && columns[0] === "run";
}

/** The name of an index by these columns. */
export function nameOf(columns: readonly string[]): string {
  return columns.length === 1 ? columns[0]! : columns.join();
}

function lookupText(columns: readonly string[], key: readonly Value[]): string {
  return `${nameOf(columns)}=${keyText(key)}`;
}

export function newTrackedRow(table: TrackedTable, key: Key, lockLevel: LockLevel): TrackedRow {
  return {
    table,
    key,
    base: undefined,
    row: undefined,
    lockLevel,
    dirtyColumns: 0,
    blindUpdate: undefined,
    blindDelete: undefined,
    isAssumed: false,
    isTouched: false,
  };
}

/** Gives a tracked row the values that were loaded for it. */
export function fillRow(tracked: TrackedRow, row: AnyRow, lockLevel: LockLevel): void {
  if (tracked.base === undefined) tracked.table.index(tracked, row);
  tracked.base = tracked.row = row;
  tracked.lockLevel = lockLevel;
  tracked.isAssumed = false;
}

/** Lengths separate the parts, so that two different keys never have the same text. */
export function keyText(key: readonly Value[]): Key {
  if (key.length === 1) return key[0] as Key;
  let text = "";
  for (const part of key) text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  return text;
}

/** The key of a row in these columns. */
export function keyOf(columns: readonly string[], row: AnyRow): Key {
  if (columns.length === 1) return row[columns[0]!] as Key;
  let text = "";
  for (const column of columns) {
    const part = row[column]!;
    text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  }
  return text;
}
