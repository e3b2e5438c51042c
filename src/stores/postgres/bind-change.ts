// Bind change: a change as one SQL statement, however many rows it has.
//
// bind-change.C1. A row that differs from the expected values makes the statement divide by zero, which aborts the transaction. So
//   COMMIT is sent in the same round trip, without waiting for the result.
// bind-change.C2. Rows are written in key order, so that two writers do not deadlock.

import type { Change, WireRow } from "../remote/backend.ts";
import { columnsOf, columnType, INSERTED_ONCE, keyColumns, type TableName } from "../rows/tables.ts";
import { sameKey } from "./bind-query.ts";
import { quoted, type Shapes } from "./shapes.ts";
import type { Bound, Parameter } from "./wire.ts";

export function bindChange(shapes: Shapes, change: Change): Bound {
  if (change.change === "insert") return bindInsert(shapes, change.table, change.rows);
  return bindGuarded(shapes, change);
}

function arrayOf(table: TableName, rows: readonly WireRow[], column: string): Parameter {
  return { type: columnType(table, column), rows, column };
}

function places(from: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `$${from + index}`).join(", ");
}

function bindInsert(shapes: Shapes, table: TableName, rows: readonly WireRow[]): Bound {
  const columns = columnsOf(table);
  const text = `insert into ${shapes.table(table)} (${columns.map(quoted).join(", ")})
    select * from unnest(${places(1, columns.length)})${INSERTED_ONCE.has(table) ? " on conflict do nothing" : ""}`;
  return { shape: shapes.of(text), values: columns.map((column) => arrayOf(table, rows, column)) };
}

type Guarded = Exclude<Change, { readonly change: "insert" }>;

function bindGuarded(shapes: Shapes, change: Guarded): Bound {
  const { table, expect = [] } = change;
  const { rows, old } = inOrder(change);
  const key = keyColumns(table);
  const set = change.change === "update" ? change.columns : [];
  const names = [
    ...key.map(quoted),
    ...set.map((column) => quoted(`new ${column}`)),
    ...expect.map((column) => quoted(`old ${column}`)),
  ];
  const source = `unnest(${places(1, names.length)}) k (${names.join(", ")})`;
  // `is not distinct from` also matches null, and the planner uses no index for it.
  const asExpected = expect.map(
    (column) => ` and t.${quoted(column)} is not distinct from k.${quoted(`old ${column}`)}`,
  );
  const where = `where ${sameKey(key)}${asExpected.join("")}`;
  const write =
    change.change === "update"
      ? `update ${shapes.table(table)} t set ${set
          .map((column) => `${quoted(column)} = k.${quoted(`new ${column}`)}`)
          .join(", ")} from ${source} ${where}`
      : `delete from ${shapes.table(table)} t using ${source} ${where}`;
  const values = [...key, ...set].map((column) => arrayOf(table, rows, column));
  for (const column of expect) values.push(arrayOf(table, old, column));
  if (expect.length === 0) return { shape: shapes.of(write), values };
  // bind-change.C1
  values.push({ type: "int", value: rows.length });
  const guarded = `with done as (${write} returning 1) select 1 / (count(*) = $${values.length})::int from done`;
  return { shape: shapes.of(guarded), values };
}

/** bind-change.C2 */
function inOrder({ table, rows, old = [] }: Guarded): { rows: readonly WireRow[]; old: readonly WireRow[] } {
  const key = keyColumns(table);
  const before = (a: WireRow, b: WireRow): number => {
    for (const column of key) {
      const left = a[column] as number | string;
      const right = b[column] as number | string;
      if (left !== right) return left < right ? -1 : 1;
    }
    return 0;
  };
  if (rows.every((row, index) => index === 0 || before(rows[index - 1] as WireRow, row) <= 0)) return { rows, old };
  const order = rows.map((_, index) => index).sort((a, b) => before(rows[a] as WireRow, rows[b] as WireRow));
  return {
    rows: order.map((index) => rows[index] as WireRow),
    old: old.length === 0 ? old : order.map((index) => old[index] as WireRow),
  };
}
