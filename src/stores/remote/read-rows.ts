// ReadRows: the row port for reads outside of a transaction. It keeps the results of queries and records those that are missing; the
// reader sends them together and calls the body again (rows.P4).

import { InvariantError } from "../../base/index.ts";
import { pathInfo, type Filter, type Path, type TableOf } from "../rows/indexes.ts";
import type { Counted, Key, Part, Rows, Span } from "../rows/rows.ts";
import { keyColumns, type AnyRow, type ColumnName, type TableName, type Value } from "../rows/tables.ts";
import {
  countConditions,
  distinctConditions,
  insideRows,
  isInKeyOrder,
  isWhole,
  pathConditions,
  prefixColumns,
  selectQuery,
  sortRows,
  testConditions,
} from "./path-query.ts";
import { lookup, type Lookup, type Query } from "./query.ts";
import { keyOf, keyText } from "./tracked-row.ts";

/** More names than this are not queried one by one: the database lists those that have rows. */
const FEW_NAMES = 16;
const NOTHING: readonly never[] = [];
const ALL: Span = {};

function refuse(): never {
  throw new InvariantError("Rows are changed outside of a transaction.");
}

export class ReadRows implements Rows {
  isGuess = false;
  readonly isConcurrent = true;
  readonly #results = new Map<string, readonly AnyRow[]>();
  readonly #missing = new Map<string, Query>();

  /** The queries whose results are missing; lookups of the same columns are merged. */
  takeMissing(): readonly Query[] {
    const lookups = new Map<string, { readonly query: Lookup; readonly keys: (readonly Value[])[] }>();
    const queries: Query[] = [];
    for (const query of this.#missing.values()) {
      if (query.kind !== "lookup") {
        queries.push(query);
        continue;
      }
      const shape = shapeOf(query.table, query.columns);
      const group = lookups.get(shape);
      if (group === undefined) lookups.set(shape, { query, keys: [...query.keys] });
      else group.keys.push(...query.keys);
    }
    this.#missing.clear();
    this.isGuess = false;
    return [...[...lookups.values()].map(({ query, keys }): Query => ({ ...query, keys })), ...queries];
  }

  addResult(query: Query, rows: readonly AnyRow[]): void {
    if (query.kind !== "lookup") return void this.#results.set(JSON.stringify(query), rows);
    const { table, columns, keys } = query;
    const byKey = new Map<unknown, AnyRow[]>();
    for (const row of rows) {
      const key = keyOf(columns, row);
      const some = byKey.get(key);
      if (some === undefined) byKey.set(key, [row]);
      else some.push(row);
    }
    for (const key of keys) this.#results.set(lookupText(table, columns, key), byKey.get(keyText(key)) ?? NOTHING);
  }

  #resultOf(text: string, query: () => Query): readonly AnyRow[] {
    const found = this.#results.get(text);
    if (found !== undefined) return found;
    this.#missing.set(text, query());
    this.isGuess = true;
    return NOTHING;
  }

  #findBy(table: TableName, columns: readonly string[], key: Key): readonly AnyRow[] {
    return this.#resultOf(lookupText(table, columns, key), () => lookup(table, columns, [key], "none"));
  }

  #query(query: Query): readonly AnyRow[] {
    return this.#resultOf(JSON.stringify(query), () => query);
  }

  get<T extends TableName, C extends ColumnName<T>>(table: T, key: Key): Part<T, C> | undefined {
    return this.#findBy(table, keyColumns(table), key)[0] as Part<T, C> | undefined;
  }

  first<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
    span: Span<TableOf<P>> = ALL as Span<TableOf<P>>,
  ): Part<TableOf<P>, C> | undefined {
    return this.select(path, prefix, columns, { ...span, limit: 1 })[0];
  }

  select<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    _columns: readonly C[],
    span: Span<TableOf<P>> = ALL as Span<TableOf<P>>,
  ): readonly Part<TableOf<P>, C>[] {
    const info = pathInfo(path);
    const isLookup = isWhole(info, prefix, span as Span) && isInKeyOrder(info, prefix, span as Span);
    const rows = isLookup
      ? this.#findBy(info.table, prefixColumns(info, prefix), prefix)
      : this.#query(selectQuery(info, prefix, span as Span, "none"));
    return insideRows(info, rows, span as Span) as unknown as Part<TableOf<P>, C>[];
  }

  count<P extends Path>(path: P, prefix: Key, upTo?: number, also?: Filter<TableOf<P>>): number {
    const info = pathInfo(path);
    const limit = upTo === undefined ? {} : { upTo };
    const where = [...countConditions(info, prefix), ...testConditions(also)];
    return Number(this.#query({ kind: "count", table: info.table, where, ...limit })[0]?.["count"] ?? 0);
  }

  sum<P extends Path>(path: P, prefix: Key, column: ColumnName<TableOf<P>>, after: number | string): number {
    const rows = this.#query(selectQuery(pathInfo(path), prefix, { after }, "none"));
    return rows.reduce((sum, row) => sum + Number(row[column]), 0);
  }

  countBy<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    by: readonly C[],
    least: ColumnName<TableOf<P>>,
  ): readonly (Part<TableOf<P>, C> & Counted)[] {
    const info = pathInfo(path);
    const where = countConditions(info, prefix);
    const groups = this.#query({ kind: "count", table: info.table, where, by, least });
    return groups as unknown as (Part<TableOf<P>, C> & Counted)[];
  }

  /** The greatest value of a column below a prefix of the primary key. Nothing else of the rows is read. */
  most<T extends TableName>(table: T, prefix: Key, most: ColumnName<T>): number | undefined {
    const where = pathConditions(pathInfo(table), prefix);
    const found = this.#query({ kind: "count", table, where, most })[0]?.["most"];
    return typeof found === "number" ? found : undefined;
  }

  distinct<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
  ): readonly Part<TableOf<P>, C>[] {
    const info = pathInfo(path);
    const where = distinctConditions(info, prefix, columns);
    const rows = this.#query({ kind: "distinct", table: info.table, columns, where });
    return sortRows([...rows], info, prefix.length, false) as unknown as Part<TableOf<P>, C>[];
  }

  among(path: Path, names: readonly string[]): readonly string[] {
    if (names.length === 0) return NOTHING;
    // The caller reads the rows of a few names anyway.
    if (names.length <= FEW_NAMES) return names;
    const column = pathInfo(path).columns[0]!.name as never;
    const found = new Set<unknown>(this.distinct(path, NOTHING, [column]).map((row) => row[column]));
    return names.filter((name) => found.has(name));
  }

  is(table: TableName, key: Key, expected: object): boolean {
    const row = this.#findBy(table, keyColumns(table), key)[0];
    return row !== undefined && Object.entries(expected).every(([column, value]) => row[column] === value);
  }

  own(): boolean {
    return true;
  }

  barrier(): void {}

  add = refuse;
  change = refuse;
  remove = refuse;
  insert = refuse;
  set = refuse;
  drop = refuse;
  clear = refuse;
}

function shapeOf(table: TableName, columns: readonly string[]): string {
  return `${table} ${columns.join()}`;
}

function lookupText(table: TableName, columns: readonly string[], key: readonly Value[]): string {
  return `${shapeOf(table, columns)} ${keyText(key)}`;
}
