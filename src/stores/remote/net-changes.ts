// Net changes: what has become of the rows of a transaction, as few bulk statements.
//
// N1. One update per table, whatever was set of each row: a column set to what it was changes nothing. Payloads are left
//     out of it, and rows of which only some columns are known: they have updates of their own.
// N2. Rows in the order of their keys, tables in the order they are locked (L1).

import type { Change } from "./backend.ts";
import { compareValues } from "./evaluate.ts";
import { UNASKED, type Held } from "./held.ts";
import { bitsOf, columnsOf, columnType, keyColumns, TABLES, type AnyRow, type TableName } from "./tables.ts";

/** What of an assumed row others may change, and whoever changes anything else changes too. */
export const EXPECTED: Partial<Record<TableName, readonly [string, ...string[]]>> = {
  runs: ["chain", "turn_token", "arrivals", "status"],
  queue: ["token"],
};

/** What becomes of some rows of a table in one statement. */
interface Group {
  readonly expects: boolean;
  /** Bits of the columns that are set. */
  columns: number;
  rows: AnyRow[];
  /** As they are in the database; only where something is expected. */
  old: AnyRow[];
}

/** Of one table. */
class Changed {
  readonly table: TableName;
  readonly #groups = new Map<number, Group>();
  inserted: AnyRow[] = [];

  constructor(table: TableName) {
    this.table = table;
  }

  remove(row: AnyRow, base: AnyRow | undefined): void {
    this.#add(base === undefined ? REMOVED : REMOVED_AS_EXPECTED, row, base, 0);
  }

  /** N1. `alone`: what must be the same in all rows of the statement, as bits. */
  update(set: number, alone: number, row: AnyRow, base: AnyRow | undefined): void {
    this.#add((alone + 1) * 4 + (base === undefined ? UPDATED : UPDATED_AS_EXPECTED), row, base, set);
  }

  #add(kind: number, row: AnyRow, base: AnyRow | undefined, columns: number): void {
    let group = this.#groups.get(kind);
    if (group === undefined)
      this.#groups.set(kind, (group = { expects: base !== undefined, columns: 0, rows: [], old: [] }));
    group.columns |= columns;
    group.rows.push(row);
    if (base !== undefined) group.old.push(base);
  }

  /** Removals, then updates, then what is new. */
  changes(): Change[] {
    const { table } = this;
    const all: Change[] = [];
    for (const removal of [true, false])
      for (const [kind, group] of this.#groups) {
        if (kind < 4 !== removal) continue;
        inOrder(table, group);
        const expected = group.expects ? { expect: EXPECTED[table]!, old: group.old } : undefined;
        const { rows } = group;
        if (removal) all.push({ change: "delete", table, rows, ...expected });
        else all.push({ change: "update", table, columns: namesOf(table, group.columns), rows, ...expected });
      }
    if (this.inserted.length > 0) {
      const inserted = { rows: this.inserted, old: [] };
      inOrder(table, inserted);
      all.push({ change: "insert", table, rows: inserted.rows });
    }
    return all;
  }
}

const REMOVED = 0;
const REMOVED_AS_EXPECTED = 1;
const UPDATED = 2;
const UPDATED_AS_EXPECTED = 3;

export function netChanges(touched: readonly Held[]): readonly Change[] {
  const tables = new Map<TableName, Changed>();
  for (const held of touched) {
    const { base, row, dirty, patch, dropped, table } = held;
    const { name } = table;
    let changed = tables.get(name);
    if (changed === undefined) tables.set(name, (changed = new Changed(name)));
    if (held.firmness === UNASKED) {
      if (dropped !== undefined) changed.remove(dropped, undefined);
      if (patch !== undefined) {
        const set = bitsIn(name, patch);
        changed.update(set, set, patch, undefined);
      }
    }
    if (base === undefined) {
      if (row !== undefined) changed.inserted.push(row);
      continue;
    }
    const expected = held.assumed ? base : undefined;
    if (row === undefined) changed.remove(expected ?? base, expected);
    else if (dirty !== 0) changed.update(dirty, dirty & payloadsOf(name), row, expected);
    // Nothing was changed, and yet something was decided by it.
    else if (expected !== undefined) changed.update(table.bits[EXPECTED[name]![0]]!, 0, row, expected);
  }
  return [...tables.values()].sort((a, b) => ORDER[a.table] - ORDER[b.table]).flatMap((changed) => changed.changes());
}

/** Of columns that are set, without the key. */
function bitsIn(table: TableName, row: AnyRow): number {
  const bits = bitsOf(table);
  let set = 0;
  for (const column of Object.keys(row)) if (!keyColumns(table).includes(column)) set |= bits[column]!;
  return set;
}

function namesOf(table: TableName, set: number): readonly string[] {
  return columnsOf(table).filter((_, at) => (set & (1 << at)) !== 0);
}

const PAYLOADS = new Map<TableName, number>();

function payloadsOf(table: TableName): number {
  let bits = PAYLOADS.get(table);
  if (bits === undefined) {
    bits = 0;
    for (const column of columnsOf(table)) if (columnType(table, column) === "payload") bits |= bitsOf(table)[column]!;
    PAYLOADS.set(table, bits);
  }
  return bits;
}

/** N2. Mostly they are. */
function inOrder(table: TableName, group: { rows: AnyRow[]; old: AnyRow[] }): void {
  const { rows, old } = group;
  let isSorted = true;
  for (let at = 1; at < rows.length && isSorted; at += 1) isSorted = byKey(table, rows[at - 1]!, rows[at]!) <= 0;
  if (isSorted) return;
  const order = rows.map((_, at) => at).sort((a, b) => byKey(table, rows[a]!, rows[b]!));
  group.rows = order.map((at) => rows[at]!);
  if (old.length > 0) group.old = order.map((at) => old[at]!);
}

function byKey(table: TableName, a: AnyRow, b: AnyRow): number {
  for (const column of keyColumns(table)) {
    const difference = compareValues(a[column]!, b[column]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** L1 */
export const ORDER = Object.fromEntries(
  ["runs", "queues", ...Object.keys(TABLES).filter((name) => name !== "runs" && name !== "queues")].map(
    (name, index) => [name, index],
  ),
) as Record<TableName, number>;
