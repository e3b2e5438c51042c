// Held: one row in memory, and the table it belongs to.

import type { Answer } from "./backend.ts";
import type { Lock } from "./query.ts";
import { TABLES, type AnyRow, type TableName, type Value } from "./tables.ts";

export interface Held {
  readonly table: Table;
  readonly key: string;
  /** As the database has it; undefined when it has no such row, or nobody has asked. */
  base: AnyRow | undefined;
  /** As it is here. A copy, once it was changed. */
  row: AnyRow | undefined;
  firmness: Firmness;
  /** Columns that were set; undefined while none was. */
  dirty: Set<string> | undefined;
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
  readonly rows: Map<string, Set<Held>>;
}

export class Table {
  readonly name: TableName;
  readonly rows = new Map<string, Held>();
  readonly indexes = new Map<string, Index>();
  /** Lookups by other columns than the key: how firmly all such rows are here. */
  readonly asked = new Map<string, Firmness>();
  readonly selected = new Map<string, Known>();
  readonly counted = new Map<string, Answer>();
  /** Keys of rows that somebody else has. */
  readonly taken = new Set<string>();

  constructor(name: TableName) {
    this.name = name;
    const { key, columns } = TABLES[name];
    const foundBy = [...(FOUND_BY[name] ?? [])];
    if ("run" in columns && (key as readonly string[]).length > 1) foundBy.push(["run"]);
    for (const found of foundBy) this.indexes.set(found.join(), { columns: found, rows: new Map() });
  }

  index(held: Held, row: AnyRow): void {
    for (const { columns, rows } of this.indexes.values()) {
      const value = keyText(columns.map((column) => row[column]!));
      const some = rows.get(value);
      if (some === undefined) rows.set(value, new Set([held]));
      else some.add(held);
    }
  }
}

export function newHeld(table: Table, key: string, firmness: Firmness): Held {
  return {
    table,
    key,
    base: undefined,
    row: undefined,
    firmness,
    dirty: undefined,
    patch: undefined,
    dropped: undefined,
    assumed: false,
    used: false,
  };
}

/** Lengths keep two parts apart that could be taken for another key. */
export function keyText(key: readonly Value[]): string {
  if (key.length === 1) return String(key[0]);
  let text = "";
  for (const part of key) text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  return text;
}
