// Render query: a query of the port as statements of MySQL and MariaDB, and their rows as its result.
//
// render-query.R1. Rows are locked in the order of the primary key (remote.L1): rows found by another index are found first and
//   locked afterwards.
// render-query.R2. A long list of keys is queried in parts: with too many ranges both servers scan the whole table.

import { invariant } from "../../base/index.ts";
import type { QueryResult, WireRow, WireValue } from "../remote/backend.ts";
import { compareValues } from "../remote/evaluate.ts";
import type { Condition, Count, Distinct, Lock, Lookup, Query, Select } from "../remote/query.ts";
import { columnsOf, columnType, keyColumns, type TableName, type Value } from "../rows/tables.ts";
import type { RawRow } from "./driver.ts";
import { forced, isInOrder, pickIndex } from "./pick-index.ts";
import { isNegated, translate, type Order } from "./translate.ts";
import { literal, nameOf, namesOf, tableOf } from "./sql-text.ts";

export interface RenderedQuery {
  readonly statements: readonly string[];
  /** The rows of each statement, in order. */
  read(results: readonly (readonly RawRow[])[]): QueryResult | Unfinished;
}

/** The query needs another round trip. */
export class Unfinished {
  readonly next: RenderedQuery;
  constructor(next: RenderedQuery) {
    this.next = next;
  }
}

export function renderQuery(query: Query): RenderedQuery {
  switch (query.kind) {
    case "select":
      return renderSelect(query);
    case "lookup":
      return renderLookup(query);
    case "count":
      return renderCount(query);
    case "distinct":
      return renderDistinct(query);
  }
}

// Both servers support `lock in share mode`.
const LOCKS: Readonly<Record<Lock, string>> = {
  none: "",
  share: " lock in share mode",
  update: " for update",
  skip: " for update skip locked",
};

function renderSelect(select: Select): RenderedQuery {
  const columns = columnsOf(select.table);
  return {
    statements: [selectText(select, namesOf(columns))],
    read: ([rows = []]) => rowsOf(select.table, columns, rows),
  };
}

function selectText({ table, where, order, limit, lock }: Select, columns: string): string {
  const translated = translate(table, where, order ?? []);
  return [
    `select ${columns} from ${tableOf(table)}${forced(pickIndex(table, translated.where, translated.order))}`,
    whereOf(translated.where),
    orderOf(translated.order),
    limit === undefined ? "" : ` limit ${limit}`,
    LOCKS[lock],
  ].join("");
}

/** Selections from one table as one statement; `partOf` returns the index of a row's selection. */
export function renderUnion(selects: readonly Select[]): {
  readonly rendered: RenderedQuery;
  readonly partOf: (row: WireRow) => number;
} {
  const { table } = selects[0]!;
  const columns = columnsOf(table);
  const parts = new Map<WireRow, number>();
  const rendered: RenderedQuery = {
    statements: [
      selects.map((select, part) => `(${selectText(select, `${part},${namesOf(columns)}`)})`).join(" union all "),
    ],
    read: ([rows = []]) => {
      const result = rowsOf(
        table,
        columns,
        rows.map((row) => row.slice(1)),
      );
      for (const [at, row] of result.entries()) parts.set(row, Number(rows[at]![0]));
      return result;
    },
  };
  return { rendered, partOf: (row) => parts.get(row)! };
}

/** The newest generation of each id, found by a covering index. */
export function renderNewest(ids: readonly string[]): RenderedQuery {
  const columns = columnsOf("runs");
  const runs = tableOf("runs");
  const newest = `select id, max(generation) as generation from ${runs} force index (runs_by_id) where id in (${ids.map(literal).join(",")}) group by id`;
  const text = `select ${columns.map((column) => `t.${nameOf(column)}`).join(",")} from (${newest}) k straight_join ${runs} t force index (runs_by_id) on t.id=k.id and t.generation=k.generation`;
  return { statements: [text], read: ([rows = []]) => rowsOf("runs", columns, rows) };
}

/** render-query.R2 */
const KEYS_AT_ONCE = 400;
/** A subquery keeps its order only with a limit. */
const ALL = "18446744073709551615";

function renderLookup({ table, columns, keys, lock }: Lookup): RenderedQuery {
  const all = columnsOf(table);
  const primary = keyColumns(table);
  const isByKey = columns.every((column, at) => primary[at] === column);
  // Sorted, so that the parts are in order, too.
  const sorted = keys.length > KEYS_AT_ONCE ? keys.toSorted(compareKeys) : keys;
  const statements: string[] = [];
  for (let at = 0; at < sorted.length; at += KEYS_AT_ONCE) {
    const found = isOneOf(columns, sorted.slice(at, at + KEYS_AT_ONCE));
    const order = ` order by ${namesOf(primary)}`;
    if (isByKey)
      statements.push(
        `select ${namesOf(all)} from ${tableOf(table)} force index (primary) where ${found}${order}${LOCKS[lock]}`,
      );
    else {
      const index = pickIndex(
        table,
        columns.map((column) => ({ column, is: "=", value: 0 })),
      );
      const from = `${tableOf(table)}${forced(index)} where ${found}`;
      statements.push(
        lock === "none"
          ? `select ${namesOf(all)} from ${from}${order}`
          : // render-query.R1
            `select ${all.map((column) => `t.${nameOf(column)}`).join(",")} from (select ${namesOf(primary)} from ${from}${order} limit ${ALL}) k straight_join ${tableOf(table)} t force index (primary) on ${primary.map((column) => `t.${nameOf(column)}=k.${nameOf(column)}`).join(" and ")} where ${isOneOf(columns, sorted.slice(at, at + KEYS_AT_ONCE), "t.")}${LOCKS[lock]}`,
      );
    }
  }
  return {
    statements,
    read: (results) => {
      const rows = results.flatMap((part) => rowsOf(table, all, part));
      // A key in two parts is returned twice.
      return isByKey && statements.length < 2 ? rows : inKeyOrder(primary, rows);
    },
  };
}

function inKeyOrder(primary: readonly string[], rows: readonly WireRow[]): QueryResult {
  const keyOf = (row: WireRow): readonly Value[] => primary.map((column) => row[column] as Value);
  const sorted = rows.toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
  return sorted.filter((row, at) => at === 0 || compareKeys(keyOf(row), keyOf(sorted[at - 1]!)) !== 0);
}

function compareKeys(a: readonly Value[], b: readonly Value[]): number {
  for (const [at, value] of a.entries()) {
    const order = compareValues(value, b[at] ?? null);
    if (order !== 0) return order;
  }
  return 0;
}

function isOneOf(columns: readonly string[], keys: readonly (readonly Value[])[], alias = ""): string {
  const [first] = columns;
  invariant(first !== undefined, "a lookup names its columns");
  if (columns.length === 1) return `${alias}${nameOf(first)} in (${keys.map(([value]) => literal(value!)).join(",")})`;
  const tuple = columns.map((column) => `${alias}${nameOf(column)}`).join(",");
  return `(${tuple}) in (${keys.map((key) => `(${key.map(literal).join(",")})`).join(",")})`;
}

function renderCount({ table, where, upTo, by, least, most }: Count): RenderedQuery {
  const grouped = by ?? [];
  const edge = least ?? most;
  const wanted = [...grouped, ...(edge === undefined ? [] : [edge])];
  const translated = translate(
    table,
    where,
    wanted.map((column) => [column, "asc"]),
  );
  const from = `${tableOf(table)}${forced(pickIndex(table, translated.where, translated.order))}${whereOf(translated.where)}`;
  // Read from the index, where it has the same value.
  const indexed = (column: string): string => {
    const [name = column] = translated.order[wanted.indexOf(column)] ?? [];
    return isNegated(table, column) ? column : name;
  };
  const parts = [
    ...grouped.map(nameOf),
    "count(*)",
    ...(least === undefined ? [] : [`min(${nameOf(indexed(least))})`]),
    ...(most === undefined ? [] : [`max(${nameOf(indexed(most))})`]),
  ];
  const columns = [
    ...grouped,
    "count",
    ...(least === undefined ? [] : ["least"]),
    ...(most === undefined ? [] : ["most"]),
  ];
  const text =
    upTo === undefined
      ? `select ${parts.join(",")} from ${from}${grouped.length === 0 ? "" : ` group by ${namesOf(grouped)} order by ${namesOf(grouped)}`}`
      : `select count(*) from (select 1 from ${from} limit ${upTo}) counted`;
  const typeOf = (column: string): ColumnKind => {
    if (column === "count") return "int";
    if (column === "least" || column === "most") return columnType(table, (column === "least" ? least : most)!);
    return columnType(table, column);
  };
  const kinds = columns.map(typeOf);
  return { statements: [text], read: ([rows = []]) => rows.map((row) => rowOf(columns, kinds, row)) };
}

// On MariaDB a recursive query cannot seek from one value to the next (its range would depend on the outer row), and a loose index
// scan cannot be forced. A variable set by the statement before is a constant for both servers. The first round trip finds few
// values, because most processes have a few definitions; the next ones find more.
const FIRST_SEEKS = 4;
const NEXT_SEEKS = 16;

function renderDistinct({ table, columns, where }: Distinct): RenderedQuery {
  const wanted: Order = columns.map((column) => [column, isNegated(table, column) ? "desc" : "asc"]);
  const { where: conditions, order } = translate(table, where, wanted, columns);
  const index = pickIndex(table, conditions, order);
  const from = `${tableOf(table)}${forced(index)}`;
  const names = order.map(([column]) => column);
  const rowFrom = (values: RawRow): WireRow => {
    const row = rowOf(
      columns,
      columns.map((column) => columnType(table, column)),
      values,
    );
    for (const column of columns) if (isNegated(table, column)) row[column] = -Number(row[column]);
    return row;
  };
  // No index has this order: the rows are few, or the query is not urgent.
  if (!isInOrder(table, index, conditions, order)) {
    const text = `select distinct ${namesOf(names)} from ${from}${whereOf(conditions)}${orderOf(order)}`;
    return { statements: [text], read: ([rows = []]) => rows.map(rowFrom) };
  }
  const seek = (number: number, after: readonly string[] | undefined): string =>
    `select ${namesOf(names)} into ${variablesOf(number, names).join(",")} from ${from}${whereOf(conditions, after && beyond(names, after))}${orderOf(order)} limit 1`;
  const part = (found: readonly RawRow[]): RenderedQuery => {
    const seeks = Array.from({ length: found.length === 0 ? FIRST_SEEKS : NEXT_SEEKS }, (_, number) => number);
    const variables = seeks.flatMap((number) => variablesOf(number, names));
    return {
      statements: [
        `set ${variables.map((variable) => `${variable}=null`).join(",")}`,
        ...seeks.map((number) => seek(number, number > 0 ? variablesOf(number - 1, names) : literalsOf(found.at(-1)))),
        `select ${variables.join(",")}`,
      ],
      read: (results) => {
        const values = results.at(-1)?.[0] ?? [];
        const all = [...found];
        for (const number of seeks) {
          const next = values.slice(number * names.length, (number + 1) * names.length);
          if (next.includes(null)) return all.map(rowFrom);
          all.push(next);
        }
        return new Unfinished(part(all));
      },
    };
  };
  return part([]);
}

function variablesOf(seek: number, columns: readonly string[]): readonly string[] {
  return columns.map((_, at) => `@reprise_${seek}_${at}`);
}

function literalsOf(values: RawRow | undefined): readonly string[] | undefined {
  return values?.map(literal);
}

/** The combinations after the given one; each part is one range of the index. Nothing sorts after null. */
function beyond(columns: readonly string[], last: readonly string[]): string {
  const ranges = columns.map((column, at) => {
    const same = columns.slice(0, at).map((earlier, place) => `${nameOf(earlier)}=${last[place]}`);
    return `(${[...same, `${nameOf(column)}>${last[at]}`].join(" and ")})`;
  });
  return ranges.join(" or ");
}

function whereOf(conditions: readonly Condition[], also?: string): string {
  const texts = conditions.map(conditionText);
  if (also !== undefined) texts.push(`(${also})`);
  return texts.length === 0 ? "" : ` where ${texts.join(" and ")}`;
}

function conditionText(condition: Condition): string {
  const column = nameOf(condition.column);
  switch (condition.is) {
    case "null":
      return `${column} is null`;
    case "not null":
      return `${column} is not null`;
    case "in":
      return condition.values.length === 0 ? "false" : `${column} in (${condition.values.map(literal).join(",")})`;
    case "contains":
      return `instr(${column},${literal(condition.value)})>0`;
    default:
      return `${column}${condition.is}${literal(condition.value)}`;
  }
}

function orderOf(order: readonly (readonly [string, string])[]): string {
  if (order.length === 0) return "";
  return ` order by ${order.map(([column, direction]) => `${nameOf(column)}${direction === "desc" ? " desc" : ""}`).join(",")}`;
}

type ColumnKind = ReturnType<typeof columnType>;

function rowsOf(table: TableName, columns: readonly string[], rows: readonly RawRow[]): QueryResult {
  if (rows.length === 0) return [];
  const kinds = columns.map((column) => columnType(table, column));
  return rows.map((row) => rowOf(columns, kinds, row));
}

function rowOf(columns: readonly string[], kinds: readonly ColumnKind[], raw: RawRow): WireRow {
  const row: WireRow = {};
  for (let at = 0; at < columns.length; at++) row[columns[at]!] = valueOf(kinds[at]!, raw[at]);
  return row;
}

function valueOf(kind: ColumnKind, raw: RawRow[number] = null): WireValue {
  if (raw === null || typeof raw === "number") return raw;
  if (typeof raw === "string") return kind === "int" ? Number(raw) : raw;
  // Texts are stored as bytes (mysql.M1).
  return kind === "payload" ? raw : kind === "text" ? raw.toString("utf8") : Number(raw.toString("latin1"));
}
