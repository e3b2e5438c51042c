// Net changes: the changes of a working set as few bulk statements.
//
// net-changes.N1. One update per table sets the union of the changed columns of all its rows: setting a column to its old value
//   changes nothing. Payload columns and rows that are not loaded have their own updates.
// net-changes.N2. Rows are in key order, tables in lock order (remote.L1).
// net-changes.N3. Checkpoints come before all other tables (seed 003): a step that is committed twice fails before anything else
//   is written. Where the runs are not locked yet, two commits of the same step may deadlock; the database then aborts one of
//   them, and it is repeated.

import type { Change } from "./backend.ts";
import { compareValues } from "./evaluate.ts";
import { NOT_LOADED, type TrackedRow } from "./tracked-row.ts";
import { bitsOf, columnsOf, columnType, keyColumns, TABLES, type AnyRow, type TableName } from "../rows/tables.ts";

/** Columns of an assumed row that the commit verifies: every change by another process changes one of them. */
export const EXPECTED: Partial<Record<TableName, readonly [string, ...string[]]>> = {
  runs: ["chain", "turn_token", "arrivals", "status"],
  queue: ["token"],
};

/** The rows of one table that one statement updates or deletes. */
interface ChangeGroup {
  readonly expects: boolean;
  /** The columns that are set, as bits. */
  columns: number;
  rows: AnyRow[];
  /** The rows in the database; only where the statement verifies them. */
  old: AnyRow[];
}

/** The changes of one table. */
class TableChanges {
  readonly table: TableName;
  readonly #groups = new Map<number, ChangeGroup>();
  inserted: AnyRow[] = [];

  constructor(table: TableName) {
    this.table = table;
  }

  remove(row: AnyRow, base: AnyRow | undefined): void {
    this.#add(base === undefined ? REMOVED : REMOVED_AS_EXPECTED, row, base, 0);
  }

  /** net-changes.N1. `alone`: columns, as bits, that must be the same for all rows of one statement. */
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

  /** Deletes, then updates, then inserts. */
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

export function netChanges(touched: readonly TrackedRow[]): readonly Change[] {
  const tables = new Map<TableName, TableChanges>();
  for (const tracked of touched) {
    const { base, row, dirtyColumns, blindUpdate, blindDelete, table } = tracked;
    const { name } = table;
    let changed = tables.get(name);
    if (changed === undefined) tables.set(name, (changed = new TableChanges(name)));
    if (tracked.lockLevel === NOT_LOADED) {
      if (blindDelete !== undefined) changed.remove(blindDelete, undefined);
      if (blindUpdate !== undefined) {
        const set = bitsIn(name, blindUpdate);
        changed.update(set, set, blindUpdate, undefined);
      }
    }
    if (base === undefined) {
      if (row !== undefined) changed.inserted.push(row);
      continue;
    }
    const expected = tracked.isAssumed ? base : undefined;
    if (row === undefined) changed.remove(expected ?? base, expected);
    else if (dirtyColumns !== 0) changed.update(dirtyColumns, dirtyColumns & payloadsOf(name), row, expected);
    // The transaction read this assumed row without changing it; the commit must still verify it.
    else if (expected !== undefined) changed.update(table.bits[EXPECTED[name]![0]]!, 0, row, expected);
  }
  return [...tables.values()]
    .sort((a, b) => writeRank(a.table) - writeRank(b.table))
    .flatMap((changed) => changed.changes());
}

/** The columns that are set, without the key, as bits. */
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

/** net-changes.N2. Mostly the rows are sorted already. */
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

/** net-changes.N2, net-changes.N3 */
function writeRank(table: TableName): number {
  return table === "checkpoints" ? -1 : TABLE_ORDER[table];
}

/** remote.L1 */
export const TABLE_ORDER = Object.fromEntries(
  ["runs", "queues", ...Object.keys(TABLES).filter((name) => name !== "runs" && name !== "queues")].map(
    (name, index) => [name, index],
  ),
) as Record<TableName, number>;
