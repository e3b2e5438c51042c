// Queries as SQL.
//
// Q1. A row that is locked is also read after the lock was granted: PostgreSQL looks at its newest version again. What was
//     sorted before that may be out of order, so locked rows are sorted once more, outside.
// Q2. Rows are locked in the order asked for, else in the order of the primary key, so that two do not wait for each other.
// Q3. `= any(array[…])` instead of `=` where keys are joined: the planner then has no way but to look each key up. With `=`
//     it walks the whole table while it believes it to be small, and keeps that plan when it no longer is.
// Q4. The order of a key is asked for in a form that no index has, for the same reason: the planner would walk the whole
//     index of the key to save the sorting of a few rows.

import { InvariantError } from "../../base/index.ts";
import type { Condition, Count, Distinct, Lock, Lookup, Query, Select } from "../remote/query.ts";
import { columnsOf, columnType, keyColumns, type TableName, type Value } from "../remote/tables.ts";
import type { OutColumn } from "./rows.ts";
import { OPT_IN } from "./schema.ts";
import { literal, quoted, type Shapes } from "./shapes.ts";
import type { Bound, Parameter, WireType } from "./wire.ts";

export interface BoundQuery extends Bound {
  readonly columns: readonly OutColumn[];
  /** Whether others that differ in their values alone may be asked in the same statement (groups.ts, G3). */
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

/** Rows of one run, or of whatever else keys begin with: the primary key leads to them, and no partial index should. */
function isByKey(table: TableName, conditions: readonly Condition[]): boolean {
  const [first] = keyColumns(table);
  return conditions.some(({ column, is }) => column === first && is === "=");
}

/** The conditions, and the values that belong to their places. */
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
    // Who names a condition of another index means that one.
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
    const value = condition.fixed === true && !byKey ? literal(condition.value) : this.place(type, condition.value);
    return `${column} ${condition.is} ${value}`;
  }
}

function ordered(columns: readonly (readonly [column: string, direction: "asc" | "desc"])[], from = "t"): string {
  return columns.length === 0
    ? ""
    : ` order by ${columns.map(([column, direction]) => `${from}.${quoted(column)}${direction === "desc" ? " desc" : ""}`).join(", ")}`;
}

/** Q4 */
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

/** Q2. With a limit any rows will do, and sorting all of them to find the first would be the greater evil. */
function orderOf({ table, where, order, limit, lock }: Select): string {
  if (order === undefined) return lock !== "none" && limit === undefined ? byKey(table) : "";
  const key = keyColumns(table);
  // Q4. Not where the first of very many are listed, which only an index can give; nor where the key itself is meant.
  const isMeant =
    order[0]?.[0] !== key[0] || isByKey(table, where) || where.every(({ column }) => key.includes(column));
  return isMeant || (lock === "none" && limit !== undefined) ? ordered(order) : hiddenOrder(table, order);
}

function bindSelect(shapes: Shapes, query: Select): BoundQuery {
  const { table, where, order, limit, lock } = query;
  const parts = new Where(table);
  const conditions = parts.text(where);
  const text = `select ${everything(table)} from ${shapes.table(table)} t${conditions}${orderOf(query)}${
    limit === undefined ? "" : ` limit ${parts.place("int", limit)}`
  }${LOCKS[lock]}`;
  // Q1. Keys do not change.
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

/** Q3 */
export function sameKey(columns: readonly string[]): string {
  return columns.map((column) => `t.${quoted(column)} = any(array[k.${quoted(column)}])`).join(" and ");
}

/** A key that is asked for twice is answered once. */
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

/** From one combination to the next by a seek in the index that begins with them. */
function bindDistinct(shapes: Shapes, { table, columns, where }: Distinct): BoundQuery {
  if (columns.length === 0) throw new InvariantError("A combination of no columns was asked for.");
  const parts = new Where(table);
  const conditions = parts.text(where);
  const list = listed(columns);
  const select = `select ${list} from ${shapes.table(table)} t${conditions}`;
  const order = (from: number): string => ordered(columns.slice(from).map((column) => [column, directionOf(column)]));
  // The next with the same beginning, else with the next shorter one: each is a seek.
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

/** As all our indexes have it: the most urgent first. */
function directionOf(column: string): "asc" | "desc" {
  return column === "priority" ? "desc" : "asc";
}
