// Path query: the reads of the row port as queries of a backend.

import { invariant } from "../../base/index.ts";
import { isOutside, type Filter, type PathInfo, type Test } from "../rows/indexes.ts";
import type { Key, Span } from "../rows/rows.ts";
import { isNullable, keyColumns, type AnyRow, type TableName, type Value } from "../rows/tables.ts";
import { compareValues } from "./evaluate.ts";
import type { Condition, Lock, Select } from "./query.ts";

/** The conditions of an index, and equal values in its first columns. */
export function pathConditions({ where, columns }: PathInfo, prefix: Key): Condition[] {
  const conditions: Condition[] = [];
  if (where !== undefined)
    for (const column in where) conditions.push({ ...conditionOf(column, where[column]!), fixed: true });
  prefix.forEach((value, at) => conditions.push({ column: columns[at]!.name, is: "=", value }));
  return conditions;
}

export function selectQuery(path: PathInfo, prefix: Key, span: Span, lock: Lock): Select {
  const where = pathConditions(path, prefix);
  const { after, before, upTo, also, limit, backwards = false } = span;
  const column = path.columns[prefix.length]?.name ?? "";
  if (after !== undefined) where.push({ column, is: ">", value: after });
  if (before !== undefined) where.push({ column, is: "<", value: before });
  if (upTo !== undefined) where.push({ column, is: "<=", value: upTo });
  where.push(...testConditions(also));
  const rest = path.columns.slice(prefix.length);
  const order = rest.map(({ name, isDescending }) => [name, isDescending === backwards ? "asc" : "desc"] as const);
  return {
    kind: "select",
    table: path.table,
    where,
    ...(order.length > 0 && span.unordered !== true && { order }),
    ...(limit !== undefined && { limit: path.apart === undefined ? limit : limit + 1 }),
    lock,
  };
}

/** The rows that an index with `apart` contains: `selectQuery` reads one more, because at most one below a prefix is outside. */
export function insideRows(path: PathInfo, rows: readonly AnyRow[], { limit }: Span): readonly AnyRow[] {
  if (path.apart === undefined) return rows;
  return rows.filter((row) => !isOutside(path, row)).slice(0, limit);
}

/** The conditions of a count, which cannot compare two columns. */
export function countConditions(path: PathInfo, prefix: Key): Condition[] {
  invariant(path.apart === undefined, "rows of an index with `apart` cannot be counted", { path: path.name });
  return pathConditions(path, prefix);
}

/** The conditions of distinct values: none of them is null. */
export function distinctConditions(path: PathInfo, prefix: Key, columns: readonly string[]): Condition[] {
  const nullable = columns.filter((column) => isNullable(path.table, column) && path.where?.[column] === undefined);
  return [...countConditions(path, prefix), ...nullable.map((column): Condition => ({ column, is: "not null" }))];
}

/** The tests of `also`. */
export function testConditions(also: Filter<TableName> | undefined): Condition[] {
  if (also === undefined) return [];
  return (Object.entries(also) as [string, Test][]).flatMap(([column, test]) => {
    if (typeof test !== "object" || test === null || !("least" in test && "most" in test))
      return conditionOf(column, test);
    return [conditionOf(column, { least: test.least }), conditionOf(column, { most: test.most })];
  });
}

function conditionOf(column: string, test: Test | undefined): Condition {
  if (test === null || test === undefined) return { column, is: "null" };
  if (typeof test !== "object") return { column, is: "=", value: test };
  if ("not" in test) return test.not === null ? { column, is: "not null" } : { column, is: "<>", value: test.not };
  if ("in" in test) return { column, is: "in", values: test.in.filter((value) => value !== null) };
  if ("above" in test) return { column, is: ">", value: bound(test.above) };
  if ("contains" in test) return { column, is: "contains", value: test.contains };
  return "least" in test
    ? { column, is: ">=", value: bound(test.least) }
    : { column, is: "<=", value: bound(test.most) };
}

function bound(value: Value): number | string {
  return value ?? 0;
}

/** Whether the read names all rows with equal values in these columns: such reads of many keys are merged into one lookup. */
export function isWhole(path: PathInfo, prefix: Key, span: Span | undefined): boolean {
  if (prefix.length === 0 || path.where !== undefined || path.apart !== undefined) return false;
  if (span === undefined) return true;
  const { after, before, upTo, also, limit } = span;
  if (after !== undefined || before !== undefined || upTo !== undefined || also !== undefined) return false;
  return limit === undefined || (path.isUnique && prefix.length === path.columns.length);
}

/** Whether a lookup by the prefix, which returns rows in the order of the primary key, returns them in the order of the path. */
export function isInKeyOrder({ table, columns, isPrimary }: PathInfo, prefix: Key, { backwards }: Span): boolean {
  if (columns.length === prefix.length) return true;
  if (backwards === true) return false;
  if (isPrimary) return true;
  const rest = columns.slice(prefix.length).map(({ name, isDescending }) => `${isDescending ? "-" : ""}${name}`);
  return rest.join() === keyColumns(table).join();
}

export function prefixColumns({ columns }: PathInfo, prefix: Key): readonly string[] {
  return columns.slice(0, prefix.length).map(({ name }) => name);
}

/** Sorts rows by the columns of a path after a prefix. */
export function sortRows(rows: AnyRow[], { columns }: PathInfo, from: number, backwards: boolean): AnyRow[] {
  return rows.sort((a, b) => {
    for (const { name, isDescending } of columns.slice(from)) {
      const difference = compareValues(a[name] ?? null, b[name] ?? null);
      if (difference !== 0) return isDescending === backwards ? difference : -difference;
    }
    return 0;
  });
}
