// Net changes: what has become of the rows of a transaction, as few bulk statements.
//
// N1. One update per table, whatever was set of each row: a column set to what it was changes nothing. Payloads are left
//     out of it, and rows of which only some columns are known: they have updates of their own.
// N2. Rows in the order of their keys, tables in the order they are locked (L1).

import type { Change } from "./backend.ts";
import { compareValues } from "./evaluate.ts";
import { UNASKED, type Held } from "./held.ts";
import { columnType, keyColumns, TABLES, type AnyRow, type TableName } from "./tables.ts";

/** What of an assumed row others may change, and whoever changes anything else changes too. */
export const EXPECTED: Partial<Record<TableName, readonly [string, ...string[]]>> = {
  runs: ["head", "turn_token", "arrivals", "status"],
  queue: ["token"],
};

interface Update {
  readonly table: TableName;
  readonly columns: Set<string>;
  readonly expect: readonly string[] | undefined;
  readonly rows: { readonly row: AnyRow; readonly base: AnyRow | undefined }[];
}

export function netChanges(touched: Iterable<Held>): readonly Change[] {
  const removed = new Map<string, Removal>();
  const inserted = new Map<TableName, AnyRow[]>();
  const updated = new Map<string, Update>();
  for (const held of touched) {
    const { base, row, dirty, patch, dropped } = held;
    const { name } = held.table;
    const expect = held.assumed ? EXPECTED[name] : undefined;
    if (held.firmness === UNASKED) {
      if (dropped !== undefined) remove(removed, name, dropped, undefined);
      if (patch !== undefined) update(updated, name, keysFirst(name, patch), patch, undefined, undefined);
    }
    if (base === undefined) {
      if (row !== undefined) inserted.set(name, [...(inserted.get(name) ?? []), row]);
    } else if (row === undefined) remove(removed, name, base, expect);
    else if (dirty !== undefined && dirty.size > 0) update(updated, name, dirty, row, base, expect);
    // Nothing was changed, and yet something was decided by it.
    else if (expect !== undefined) update(updated, name, expect.slice(0, 1), row, base, expect);
  }
  return [
    ...[...removed.values()].map(deletion),
    ...[...updated.values()].map(updating),
    ...[...inserted].map(([table, rows]): Change => ({ change: "insert", table, rows: sorted(table, rows) })),
  ].sort((a, b) => ORDER[a.table] - ORDER[b.table] || KINDS[a.change] - KINDS[b.change]);
}

interface Removal {
  readonly table: TableName;
  readonly expect: readonly string[] | undefined;
  readonly rows: AnyRow[];
}

function remove(
  removed: Map<string, Removal>,
  table: TableName,
  row: AnyRow,
  expect: readonly string[] | undefined,
): void {
  const shape = `${table} ${String(expect !== undefined)}`;
  const group = removed.get(shape);
  if (group === undefined) removed.set(shape, { table, expect, rows: [row] });
  else group.rows.push(row);
}

/** N1 */
function update(
  updated: Map<string, Update>,
  table: TableName,
  columns: Iterable<string>,
  row: AnyRow,
  base: AnyRow | undefined,
  expect: readonly string[] | undefined,
): void {
  const set = [...columns].filter((column) => !keyColumns(table).includes(column));
  const alone = base === undefined ? set : set.filter((column) => columnType(table, column) === "payload");
  const shape = `${table} ${String(expect !== undefined)} ${String(base === undefined)} ${alone.sort().join()}`;
  let group = updated.get(shape);
  if (group === undefined) updated.set(shape, (group = { table, columns: new Set(), expect, rows: [] }));
  for (const column of set) group.columns.add(column);
  group.rows.push({ row, base });
}

function keysFirst(table: TableName, patch: AnyRow): readonly string[] {
  return Object.keys(patch).filter((column) => !keyColumns(table).includes(column));
}

function deletion({ table, expect, rows }: Removal): Change {
  const ordered = sorted(table, rows);
  return {
    change: "delete",
    table,
    rows: ordered.map((row) => pick(row, keyColumns(table))),
    ...(expect && { expect, old: ordered.map((row) => pick(row, expect)) }),
  };
}

function updating({ table, columns, expect, rows }: Update): Change {
  const set = [...columns].sort();
  const named = [...keyColumns(table), ...set];
  const ordered = rows.toSorted((a, b) => byKey(table, a.row, b.row));
  return {
    change: "update",
    table,
    columns: set,
    rows: ordered.map(({ row }) => pick(row, named)),
    ...(expect && { expect, old: ordered.map(({ base }) => pick(base!, expect)) }),
  };
}

/** N2 */
function sorted(table: TableName, rows: readonly AnyRow[]): readonly AnyRow[] {
  return rows.toSorted((a, b) => byKey(table, a, b));
}

function byKey(table: TableName, a: AnyRow, b: AnyRow): number {
  for (const column of keyColumns(table)) {
    const difference = compareValues(a[column]!, b[column]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

function pick(row: AnyRow, columns: readonly string[]): AnyRow {
  const picked: AnyRow = {};
  for (const column of columns) picked[column] = row[column]!;
  return picked;
}

/** L1 */
export const ORDER = Object.fromEntries(
  ["runs", "queues", ...Object.keys(TABLES).filter((name) => name !== "runs" && name !== "queues")].map(
    (name, index) => [name, index],
  ),
) as Record<TableName, number>;
const KINDS = { delete: 0, update: 1, insert: 2 } as const;
