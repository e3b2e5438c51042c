// Held: one row in memory, and the table it belongs to.

import type { Answer } from "./backend.ts";
import type { Lock } from "./query.ts";
import { bitsOf, TABLES, type AnyRow, type TableName, type Value } from "./tables.ts";

/** Of a row: its one key column, or all of them as a text. */
export type Key = string | number;

export interface Held {
  readonly table: Table;
  readonly key: Key;
  /** As the database has it; undefined when it has no such row, or nobody has asked. */
  base: AnyRow | undefined;
  /** As it is here. A copy, once it was changed. */
  row: AnyRow | undefined;
  firmness: Firmness;
  /** Columns that were set, as bits. */
  dirty: number;
  /** Set without knowing the rest: key columns and these. */
  patch: AnyRow | undefined;
  /** Removed without knowing whether it is there: its key columns. */
  dropped: AnyRow | undefined;
  /** Not loaded but remembered: the commit checks `EXPECTED`. */
  assumed: boolean;
  /** Somebody looked at it, or changed it. */
  used: boolean;
}

/** How firmly it is known what the database has: not at all, seen, kept from being changed, ours. */
export type Firmness = 0 | 1 | 2 | 3;
export const FIRMNESS: Readonly<Record<Lock, Firmness>> = { none: 1, share: 2, update: 3, skip: 3 };
export const UNASKED = 0;
export const OURS = 3;

/** What is remembered of a selection that was loaded. */
export interface Known {
  readonly limit: number;
  readonly rows: readonly Held[];
  /** Fewer came than were asked for: there are no others. */
  readonly isWhole: boolean;
}

/** Columns that rows are found by besides their key and their run. Never changed while a row exists. */
const FOUND_BY: Partial<Record<TableName, readonly (readonly string[])[]>> = {
  runs: [["id"], ["id", "generation"]],
  checkpoints: [["key"]],
  outbox: [["line"]],
};

interface Index {
  readonly columns: readonly string[];
  readonly rows: Map<Key, Set<Held>>;
}

/** By table: the names of its indexes, and their columns. */
const INDEXES = Object.fromEntries(
  Object.entries(TABLES).map(([table, { key, columns }]) => {
    const foundBy = [...(FOUND_BY[table as TableName] ?? [])];
    if ("run" in columns && key.length > 1) foundBy.push(["run"]);
    return [table, new Map(foundBy.map((found) => [nameOf(found), found]))];
  }),
) as unknown as Readonly<Record<TableName, ReadonlyMap<string, readonly string[]>>>;

export class Table {
  readonly name: TableName;
  readonly bits: Readonly<Record<string, number>>;
  readonly rows = new Map<Key, Held>();
  readonly selected = new Map<string, Known>();
  readonly counted = new Map<string, Answer>();
  /** Keys of rows that somebody else has. */
  readonly taken = new Set<Key>();
  /** Lookups by other columns than the key: how firmly all such rows are here. Runs have a map of their own. */
  readonly #asked = new Map<string, Firmness>();
  readonly #askedRuns = new Map<Value, Firmness>();
  /** Made when somebody looks: most rows are only written. */
  readonly #indexes = new Map<string, Index>();

  constructor(name: TableName) {
    this.name = name;
    this.bits = bitsOf(name);
  }

  index(held: Held, row: AnyRow): void {
    if (this.#indexes.size > 0) for (const index of this.#indexes.values()) add(index, held, row);
  }

  /** Undefined when rows are not found by these columns. */
  indexOf(name: string): Index | undefined {
    const known = this.#indexes.get(name);
    if (known !== undefined) return known;
    const columns = INDEXES[this.name].get(name);
    if (columns === undefined) return undefined;
    const index: Index = { columns, rows: new Map() };
    this.#indexes.set(name, index);
    for (const held of this.rows.values()) {
      const row = held.row ?? held.base;
      if (row !== undefined) add(index, held, row);
    }
    return index;
  }

  firmnessOf(columns: readonly string[], key: readonly Value[]): Firmness {
    const asked = isRun(columns) ? this.#askedRuns.get(key[0]!) : this.#asked.get(lookupText(columns, key));
    return asked ?? UNASKED;
  }

  noteAsked(columns: readonly string[], key: readonly Value[], firmness: Firmness): void {
    if (isRun(columns)) this.#askedRuns.set(key[0]!, firmness);
    else this.#asked.set(lookupText(columns, key), firmness);
  }
}

function add({ columns, rows }: Index, held: Held, row: AnyRow): void {
  const value = keyText(columns.map((column) => row[column]!));
  const some = rows.get(value);
  if (some === undefined) rows.set(value, new Set([held]));
  else some.add(held);
}

function isRun(columns: readonly string[]): boolean {
  return columns.length === 1 && columns[0] === "run";
}

/** Of an index. */
export function nameOf(columns: readonly string[]): string {
  return columns.length === 1 ? columns[0]! : columns.join();
}

function lookupText(columns: readonly string[], key: readonly Value[]): string {
  return `${nameOf(columns)}=${keyText(key)}`;
}

export function newHeld(table: Table, key: Key, firmness: Firmness): Held {
  return {
    table,
    key,
    base: undefined,
    row: undefined,
    firmness,
    dirty: 0,
    patch: undefined,
    dropped: undefined,
    assumed: false,
    used: false,
  };
}

/** Lengths keep two parts apart that could be taken for another key. */
export function keyText(key: readonly Value[]): Key {
  if (key.length === 1) return key[0] as Key;
  let text = "";
  for (const part of key) text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  return text;
}

/** Of a row. */
export function keyOf(columns: readonly string[], row: AnyRow): Key {
  if (columns.length === 1) return row[columns[0]!] as Key;
  let text = "";
  for (const column of columns) {
    const part = row[column]!;
    text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  }
  return text;
}
