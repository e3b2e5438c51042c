// Query coverage: which loaded selections can answer a query; the texts and keys of queries.

import { matches, matchesKnown } from "./evaluate.ts";
import { NOT_LOADED, type TrackedRow, type LoadedSelection } from "./tracked-row.ts";
import type { Condition, Select } from "./query.ts";
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

function blindKey({ table, blindDelete, blindUpdate }: TrackedRow): readonly Value[] {
  return keyColumns(table.name).map((column) => (blindDelete ?? blindUpdate)![column]!);
}

/**
 * The keys of the rows that were changed without loading them and may match, or may have matched before. `used`: only of those that
 * may match now, because one of these columns was set.
 */
export function blindKeys(
  touched: readonly TrackedRow[],
  table: TableName,
  where: readonly Condition[],
  used?: readonly string[],
): (readonly Value[])[] {
  const keys: (readonly Value[])[] = [];
  const names = keyColumns(table);
  const conditions = used === undefined ? where.filter(({ column }) => names.includes(column)) : where;
  for (const tracked of touched) {
    const { blindUpdate, blindDelete, lockLevel } = tracked;
    const changed = used === undefined ? (blindUpdate ?? blindDelete) : blindUpdate;
    if (changed === undefined || tracked.table.name !== table || lockLevel !== NOT_LOADED) continue;
    const isUsed = used === undefined || used.some((name) => name in changed && !names.includes(name));
    if (isUsed && matchesKnown(conditions, changed)) keys.push(blindKey(tracked));
  }
  return keys;
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
