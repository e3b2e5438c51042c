// Bind query: a query of the port as SQL.
//
// bind-query.Q1. PostgreSQL reads the newest version of a row after it got the row's lock. The rows, sorted before, may then be
//   out of order, so locked rows are sorted once more, outside.
// bind-query.Q2. Rows are locked in the requested order, else in the order of the primary key, so that two transactions do not
//   deadlock.
// bind-query.Q3. Joins on keys use `= any(array[…])` instead of `=`: the planner then must look each key up. With `=` it scans the
//   whole table while it believes the table to be small, and keeps that plan when the table has grown.
// bind-query.Q4. Orders by a key are written in a form that no index has, for the same reason: the planner would scan the whole
//   primary key to avoid sorting a few rows.

import { InvariantError } from "../../base/index.ts";
import type { Condition, Count, Distinct, Lock, Lookup, Query, Select } from "../remote/query.ts";
import { columnsOf, columnType, keyColumns, type TableName, type Value } from "../rows/tables.ts";
import type { OutColumn } from "./rows.ts";
import { OPT_IN } from "./schema.ts";
import { literal, quoted, type Shapes } from "./shapes.ts";
import type { Bound, Parameter, WireType } from "./wire.ts";

export interface BoundQuery extends Bound {
  readonly columns: readonly OutColumn[];
  /** Whether queries that differ only in their values may share its statement (group-queries.G3). */
  readonly isOneOfMany: boolean;
}

export function bindQuery(shapes: Shapes, query: Query): BoundQuery {
  switch (query.kind) {
    case "select":
      return bindSelect(shapes, query);
    case "lookup":
      return bindLookup(shapes, query);
    case "count":
      return bindCount(shapes, query);
    case "distinct":
      return bindDistinct(shapes, query);
  }
}

const LOCKS: Readonly<Record<Lock, string>> = {
  none: "",
  share: " for share of t",
  update: " for update of t",
  skip: " for update of t skip locked",
};

const listed = (columns: readonly string[], from = "t"): string =>
  columns.map((column) => `${from}.${quoted(column)}`).join(", ");

const allListed = new Map<TableName, string>();

/** Every column of a table. */
function everything(table: TableName): string {
  let text = allListed.get(table);
  if (text === undefined) allListed.set(table, (text = listed(columnsOf(table))));
  return text;
}

function outColumns(table: TableName, columns: readonly string[]): readonly OutColumn[] {
  return columns.map((name) => ({ name, type: columnType(table, name) }));
}

const allColumns = new Map<TableName, readonly OutColumn[]>();

function allOut(table: TableName): readonly OutColumn[] {
  let all = allColumns.get(table);
  if (all === undefined) allColumns.set(table, (all = outColumns(table, columnsOf(table))));
  return all;
}

function optIn(table: TableName, columns: readonly string[]): string {
  const guards = OPT_IN[table];
  const column = guards === undefined ? undefined : columns.find((name) => name in guards);
  return column === undefined ? "" : ` ${guards?.[column] ?? ""}`;
}

/** Whether the first key column is given: then the primary key is used, and no partial index should be. */
function isByKey(table: TableName, conditions: readonly Condition[]): boolean {
  const [first] = keyColumns(table);
  return conditions.some(({ column, is }) => column === first && is === "=");
}

/** The text of conditions, and the values of its parameters. */
class Where {
  readonly values: Parameter[] = [];
  readonly #table: TableName;

  constructor(table: TableName) {
    this.#table = table;
  }

  place(type: WireType, value: Value): string {
    this.values.push({ type, value });
    return `$${this.values.length}`;
  }

  list(type: WireType, values: readonly (readonly Value[])[], column = 0): string {
    this.values.push({ type, rows: values as readonly Readonly<Record<number, Value>>[], column });
    return `$${this.values.length}`;
  }

  text(conditions: readonly Condition[]): string {
    if (conditions.length === 0) return "";
    const byKey = isByKey(this.#table, conditions);
    const text = ` where ${conditions.map((condition) => this.#one(condition, byKey)).join(" and ")}`;
    // A query with a `fixed` condition uses the partial index of that condition.
    if (byKey || conditions.some((condition) => "fixed" in condition)) return text;
    return `${text}${optIn(
      this.#table,
      conditions.map(({ column }) => column),
    )}`;
  }

  #one(condition: Condition, byKey: boolean): string {
    const column = `t.${quoted(condition.column)}`;
    if (!("value" in condition || "values" in condition)) return `${column} is ${condition.is}`;
    const type = columnType(this.#table, condition.column);
    if ("values" in condition) {
      if (condition.fixed === true && !byKey)
        return condition.values.length === 0 ? "false" : `${column} in (${condition.values.map(literal).join(", ")})`;
      return `${column} = any(${this.list(
        type,
        condition.values.map((value) => [value]),
      )})`;
    }
    if (condition.is === "contains") return `strpos(${column}, ${this.place(type, condition.value)}) > 0`;
    const value = condition.fixed === true && !byKey ? literal(condition.value) : this.place(type, condition.value);
    return `${column} ${condition.is} ${value}`;
  }
}

function ordered(columns: readonly (readonly [column: string, direction: "asc" | "desc"])[], from = "t"): string {
  return columns.length === 0
    ? ""
    : ` order by ${columns.map(([column, direction]) => `${from}.${quoted(column)}${direction === "desc" ? " desc" : ""}`).join(", ")}`;
}

/** bind-query.Q4 */
function hiddenOrder(table: TableName, columns: readonly (readonly [string, "asc" | "desc"])[]): string {
  const [[first, direction] = ["", "asc"], ...others] = columns;
  const hidden = `(t.${quoted(first)} ${columnType(table, first) === "int" ? "+ 0" : "|| ''"})`;
  const rest = others.map(([column, way]) => `, t.${quoted(column)}${way === "desc" ? " desc" : ""}`);
  return ` order by ${hidden}${direction === "desc" ? " desc" : ""}${rest.join("")}`;
}

function byKey(table: TableName): string {
  return hiddenOrder(
    table,
    keyColumns(table).map((column) => [column, "asc"]),
  );
}

/** bind-query.Q2. With a limit any rows may be returned; sorting all of them would cost more than a deadlock. */
function orderOf({ table, where, order, limit, lock }: Select): string {
  if (order === undefined) return lock !== "none" && limit === undefined ? byKey(table) : "";
  const key = keyColumns(table);
  // bind-query.Q4. Not for the first of very many rows, which need an index, and not where the key itself is requested.
  const isMeant =
    order[0]?.[0] !== key[0] || isByKey(table, where) || where.every(({ column }) => key.includes(column));
  // The runs of one family are sorted: their index has no number of the run.
  const isOfFamily = table === "runs" && where.some(({ column, is }) => column === "root" && is === "=");
  const isOfMany = lock === "none" && limit !== undefined && !isOfFamily;
  return isMeant || isOfMany ? ordered(order) : hiddenOrder(table, order);
}

function bindSelect(shapes: Shapes, query: Select): BoundQuery {
  const { table, where, order, limit, lock } = query;
  const parts = new Where(table);
  const conditions = parts.text(where);
  const text = `select ${everything(table)} from ${shapes.table(table)} t${conditions}${orderOf(query)}${
    limit === undefined ? "" : ` limit ${parts.place("int", limit)}`
  }${LOCKS[lock]}`;
  // bind-query.Q1. Key columns do not change.
  const isFirm = order === undefined || limit === 1 || order.every(([column]) => keyColumns(table).includes(column));
  const whole =
    lock !== "none" && !isFirm ? `with locked as materialized (${text}) select * from locked t${ordered(order)}` : text;
  const isOneOfMany = lock === "none" || lock === "skip" || isByKey(table, where);
  return { shape: shapes.of(whole), values: parts.values, columns: allOut(table), isOneOfMany };
}

function bindLookup(shapes: Shapes, { table, columns, keys, lock }: Lookup): BoundQuery {
  const parts = new Where(table);
  const list = everything(table);
  const isOfKey = columns.includes(keyColumns(table)[0] as string);
  const end = `${isOfKey ? "" : optIn(table, columns)}${byKey(table)}${LOCKS[lock]}`;
  const different = differentKeys(keys);
  const [only] = columns;
  let text: string;
  if (columns.length === 1 && only !== undefined) {
    const array = parts.list(columnType(table, only), different);
    text = `select ${list} from ${shapes.table(table)} t where t.${quoted(only)} = any(${array})${end}`;
  } else {
    const arrays = columns.map((column, index) => parts.list(columnType(table, column), different, index));
    text = `select ${list} from unnest(${arrays.join(", ")}) k (${columns.map(quoted).join(", ")})
      join ${shapes.table(table)} t on ${sameKey(columns)}${end}`;
  }
  return { shape: shapes.of(text), values: parts.values, columns: allOut(table), isOneOfMany: false };
}

/** bind-query.Q3. Only the first column: the planner would not seek the others, but filter all rows that have the first one. */
export function sameKey([first = "", ...others]: readonly string[]): string {
  const parts = [`t.${quoted(first)} = any(array[k.${quoted(first)}])`];
  for (const column of others) parts.push(`t.${quoted(column)} = k.${quoted(column)}`);
  return parts.join(" and ");
}

/** Removes duplicate keys. */
function differentKeys(keys: readonly (readonly Value[])[]): readonly (readonly Value[])[] {
  const [first] = keys;
  if (first === undefined || keys.length === 1) return keys;
  const seen = new Map<Value, readonly Value[]>();
  if (first.length === 1) for (const key of keys) seen.set(key[0] as Value, key);
  else for (const key of keys) seen.set(JSON.stringify(key), key);
  return seen.size === keys.length ? keys : [...seen.values()];
}

function bindCount(shapes: Shapes, query: Count): BoundQuery {
  const { table, where, upTo, by = [], least, most } = query;
  const parts = new Where(table);
  const from = `from ${shapes.table(table)} t${parts.text(where)}`;
  const count = { name: "count", type: "int" } as const;
  if (upTo !== undefined) {
    const limit = parts.place("int", upTo);
    const text = `select count(*) from (select 1 ${from} limit ${limit}) counted`;
    return { shape: shapes.of(text), values: parts.values, columns: [count], isOneOfMany: true };
  }
  const figures = ["count(*)"];
  const columns: OutColumn[] = [...outColumns(table, by), count];
  for (const [name, column, figure] of [["least", least, "min"] as const, ["most", most, "max"] as const]) {
    if (column === undefined) continue;
    figures.push(`${figure}(t.${quoted(column)})`);
    columns.push({ name, type: columnType(table, column) });
  }
  const text =
    by.length === 0
      ? `select ${figures.join(", ")} ${from}`
      : `select ${listed(by)}, ${figures.join(", ")} ${from} group by ${listed(by)} order by ${listed(by)}`;
  return { shape: shapes.of(text), values: parts.values, columns, isOneOfMany: true };
}

/** Finds each combination by a seek in the index that starts with these columns. */
function bindDistinct(shapes: Shapes, { table, columns, where }: Distinct): BoundQuery {
  if (columns.length === 0) throw new InvariantError("A distinct query has no columns.");
  const parts = new Where(table);
  const conditions = parts.text(where);
  const list = listed(columns);
  const select = `select ${list} from ${shapes.table(table)} t${conditions}`;
  const order = (from: number): string => ordered(columns.slice(from).map((column) => [column, directionOf(column)]));
  // The next combination with the same leading columns, else with one column less: each is a seek.
  const nexts = columns.map((column, index) => {
    const same = columns.slice(0, index).map((one) => `t.${quoted(one)} = f.${quoted(one)} and `);
    const beyond = `t.${quoted(column)} ${directionOf(column) === "asc" ? ">" : "<"} f.${quoted(column)}`;
    return `(${select}${conditions === "" ? " where" : " and"} ${same.join("")}${beyond}${order(index)} limit 1)`;
  });
  const text = `with recursive found as (
      (${select}${order(0)} limit 1)
      union all
      select n.* from found f cross join lateral (select * from (${nexts.toReversed().join(" union all ")}) o limit 1) n
    ) select * from found order by ${columns.map(quoted).join(", ")}`;
  return { shape: shapes.of(text), values: parts.values, columns: outColumns(table, columns), isOneOfMany: false };
}

/** The direction in all indexes: the highest priority first. */
function directionOf(column: string): "asc" | "desc" {
  return column === "priority" ? "desc" : "asc";
}
