// Query coverage: which loaded selections can answer a query; the texts and keys of queries.

import { matches } from "./evaluate.ts";
import type { TrackedRow, LoadedSelection } from "./tracked-row.ts";
import type { Lock, Lookup, Select } from "./query.ts";
import { keyColumns, type AnyRow, type TableName, type Value } from "../rows/tables.ts";

/**
 * working-set.W2. Whether a loaded selection can answer the query: with a limit, rows that changed since may have displaced rows
 * that were not loaded.
 */
export function covers(
  known: LoadedSelection,
  { where, order = [] }: Pick<Select, "where" | "order">,
  limit: number,
): boolean {
  if (known.isComplete) return true;
  let matching = 0;
  for (const { base, row } of known.rows)
    if (row !== undefined && matches(where, row) && order.every(([column]) => row[column] === base?.[column]))
      matching += 1;
  return matching >= limit;
}

export function reaching(query: Select, ahead: number): Select {
  return query.limit === undefined || query.limit >= ahead ? query : { ...query, limit: ahead };
}

/** Loads further than before, past the rows that no longer match. */
export function further(query: Select, known: LoadedSelection, ahead: number): Select {
  if (query.limit === undefined) return query;
  return { ...query, limit: Math.max(known.limit * 2 + query.limit, ahead) };
}

export function blindKey({ table, blindDelete, blindUpdate }: TrackedRow): readonly Value[] {
  return keyColumns(table.name).map((column) => (blindDelete ?? blindUpdate)![column]!);
}

export function lookup(table: TableName, columns: readonly string[], keys: Lookup["keys"], lock: Lock): Lookup {
  return { kind: "lookup", table, columns, keys, lock };
}

export function keyRow(table: TableName, key: readonly Value[]): AnyRow {
  return Object.fromEntries(keyColumns(table).map((column, index) => [column, key[index]!]));
}

export function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((column, at) => column === b[at]);
}

/** Identifies a selection without its limit. */
export function selectText({ where, order, lock }: Select): string {
  return JSON.stringify([where, order, lock]);
}

export function groupText(by: readonly string[], row: AnyRow): string {
  return JSON.stringify(by.map((column) => row[column]));
}
