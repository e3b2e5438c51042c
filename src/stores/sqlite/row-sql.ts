// Row SQL: the text of the statements behind the row port, made from the tables and indexes (../rows).
//
// Payloads are bound as text, and SQLite casts them to blobs: no Buffer is made per row. `indexed by` turns a plan that would scan
// the table into an error. `limit +?`: SQLite plans a statement again at every call whose limit is a bare parameter, which takes
// about 6 µs.
//
// row-sql.Q1. With a codec, payloads pass through two SQL functions (sqlite-payload-cipher.ts), which are called with the payload's
//   place (`PAYLOADS`). A JavaScript number is bound as a double, whose text would be "3.0": it is cast to an integer first.
// row-sql.Q2. A payload is encoded with the place that its row has after the statement.

import { invariant } from "../../base/index.ts";
import type { PathInfo, Test } from "../rows/indexes.ts";
import { columnsOf, columnType, isNullable, keyColumns, PAYLOADS, type TableName } from "../rows/tables.ts";

/** Whether payloads pass through the codec's SQL functions (row-sql.Q1). */
export type WithCodec = boolean;

const quoted = (column: string): string => `"${column}"`;

function literal(value: unknown): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

/** SQLite has no column for the position of a tag: its rowid has the same order. */
function isRowid(table: TableName, column: string): boolean {
  return table === "tags" && column === "position";
}

/** The columns that SQLite has. */
export function storedColumns(table: TableName): readonly string[] {
  return columnsOf(table).filter((column) => !isRowid(table, column));
}

// ── payloads ──

/** row-sql.Q1. The arguments that tell the codec which payload it has. `of`: the SQL of a column of its row. */
export function payloadArguments(
  table: TableName,
  of: (column: string) => string,
): readonly [run: string, place: string, field: string] {
  const { field, place, form } = PAYLOADS[table]!;
  const run = (columnsOf(table) as readonly string[]).includes("run") ? of("run") : "0";
  const parts = place.map(of);
  const path = parts.length === 0 ? "'0'" : parts.join(" || '/' || ");
  return [run, form === "json" ? `json_array(${parts.join(", ")})` : path, literal(field)];
}

function payloadPlace(table: TableName, of: (column: string) => string): string {
  return payloadArguments(table, of).join(", ");
}

function readColumn(table: TableName, column: string, withCodec: WithCodec): string {
  if (isRowid(table, column)) return `rowid as ${quoted(column)}`;
  if (columnType(table, column) !== "payload") return quoted(column);
  if (!withCodec) return `cast(${quoted(column)} as text) as ${quoted(column)}`;
  return `reprise_decode(${quoted(column)}, ${payloadPlace(table, quoted)}) as ${quoted(column)}`;
}

function writeColumn(table: TableName, column: string, parameter: string, of: string): string {
  if (columnType(table, column) !== "payload") return parameter;
  return of === "" ? `cast(${parameter} as blob)` : `reprise_encode(${parameter}, ${of})`;
}

// ── conditions ──

/** The condition of a partial index. SQLite uses the index only if the statement repeats it. */
function indexCondition(column: string, test: Test): string {
  const name = quoted(column);
  if (test === null) return `${name} is null`;
  if (typeof test !== "object") return `${name} = ${literal(test)}`;
  if ("not" in test) return test.not === null ? `${name} is not null` : `${name} <> ${literal(test.not)}`;
  if ("in" in test) return `${name} in (${test.in.map(literal).join(", ")})`;
  if ("above" in test) return `${name} > ${literal(test.above)}`;
  invariant("least" in test || "most" in test, "no index has such a condition");
  return "least" in test ? `${name} >= ${literal(test.least)}` : `${name} <= ${literal(test.most)}`;
}

/** A test whose values are bound; `is` also compares nulls. */
function boundCondition(column: string, test: Test): string {
  const name = quoted(column);
  if (test === null || typeof test !== "object") return `${name} is ?`;
  if ("not" in test) return test.not === null ? `${name} is not null` : `${name} <> ?`;
  if ("in" in test) return `${name} in (${test.in.map(() => "?").join(", ")})`;
  if ("above" in test) return `${name} > ?`;
  if ("contains" in test) return `instr(${name}, ?) > 0`;
  if ("least" in test && "most" in test) return `${name} between ? and ?`;
  return "least" in test ? `${name} >= ?` : `${name} <= ?`;
}

export function valuesOf(test: Test): readonly unknown[] {
  if (test === null || typeof test !== "object") return [test];
  if ("not" in test) return test.not === null ? [] : [test.not];
  if ("in" in test) return test.in;
  if ("above" in test) return [test.above];
  if ("contains" in test) return [test.contains];
  if ("least" in test && "most" in test) return [test.least, test.most];
  return ["least" in test ? test.least : test.most];
}

/** Tells tests apart that need different text. */
export function testShape(test: Test): string {
  if (test === null || typeof test !== "object") return "=";
  if ("not" in test) return test.not === null ? "set" : "not";
  return "in" in test ? `in${test.in.length}` : Object.keys(test).join();
}

function sourceOf(path: PathInfo): string {
  return path.isPrimary || AUTO_INDEXES.has(path.name) ? path.table : `${path.table} indexed by ${path.name}`;
}

/** Unique constraints, whose indexes SQLite names itself. */
const AUTO_INDEXES: ReadonlySet<string> = new Set(["runs_by_id", "langgraph_checkpoints_key"]);

function conditionsOf(path: PathInfo, prefix: number): string[] {
  const where = Object.entries(path.where ?? {}).map(([column, test]) => indexCondition(column, test));
  if (path.apart !== undefined) where.push(`${quoted(path.apart[0])} <> ${quoted(path.apart[1])}`);
  for (const { name } of path.columns.slice(0, prefix)) where.push(`${quoted(name)} = ?`);
  return where;
}

function whereText(conditions: readonly string[]): string {
  return conditions.length === 0 ? "" : ` where ${conditions.join(" and ")}`;
}

function orderText(path: PathInfo, from: number, backwards: boolean): string {
  const order = path.columns
    .slice(from)
    .map(({ name, isDescending }) => `${quoted(name)}${isDescending !== backwards ? " desc" : ""}`);
  return order.length === 0 ? "" : ` order by ${order.join(", ")}`;
}

// ── statements ──

export interface SelectShape {
  readonly prefix: number;
  readonly after: boolean;
  readonly before: boolean;
  readonly upTo: boolean;
  readonly also: readonly (readonly [column: string, test: Test])[];
  readonly backwards: boolean;
  readonly limit: boolean;
}

/** Parameters: the prefix, the bounds, the further tests, the limit. */
export function selectSql(
  path: PathInfo,
  columns: readonly string[],
  shape: SelectShape,
  withCodec: WithCodec,
): string {
  const where = conditionsOf(path, shape.prefix);
  const next = path.columns[shape.prefix];
  for (const [isUsed, operator] of [
    [shape.after, ">"],
    [shape.before, "<"],
    [shape.upTo, "<="],
  ] as const)
    if (isUsed) where.push(`${quoted(next!.name)} ${operator} ?`);
  for (const [column, test] of shape.also) where.push(boundCondition(column, test));
  const list = columns.map((column) => readColumn(path.table, column, withCodec)).join(", ");
  const order = orderText(path, shape.prefix, shape.backwards);
  return `select ${list} from ${sourceOf(path)}${whereText(where)}${order}${shape.limit ? " limit +?" : ""}`;
}

/** Parameters: the prefix, the further tests, the limit. */
export function countSql(path: PathInfo, prefix: number, also: SelectShape["also"], isLimited: boolean): string {
  const tests = also.map(([column, test]) => boundCondition(column, test));
  const from = `from ${sourceOf(path)}${whereText([...conditionsOf(path, prefix), ...tests])}`;
  return isLimited ? `select count(*) as count from (select 1 ${from} limit +?)` : `select count(*) as count ${from}`;
}

/** Parameters: the prefix, the lower bound. */
export function sumSql(path: PathInfo, prefix: number, column: string): string {
  const where = [...conditionsOf(path, prefix), `${quoted(path.columns[prefix]!.name)} > ?`];
  return `select coalesce(sum(${quoted(column)}), 0) as sum from ${sourceOf(path)}${whereText(where)}`;
}

/** Parameters: the prefix, the limit. */
export function countBySql(path: PathInfo, prefix: number, by: readonly string[], least: string): string {
  const list = by.map(quoted).join(", ");
  const from = `from ${sourceOf(path)}${whereText(conditionsOf(path, prefix))}`;
  return `select ${list}, count(*) as count, min(least) as least
    from (select ${list}, ${quoted(least)} as least ${from} limit +?) group by ${list}`;
}

/** The distinct values of the column after the prefix, one seek per value (a loose index scan). */
export function distinctSql(path: PathInfo, prefix: number): string {
  const { name, isDescending } = path.columns[prefix]!;
  const where = conditionsOf(path, 0);
  path.columns.slice(0, prefix).forEach((column, at) => where.push(`${quoted(column.name)} = ?${at + 1}`));
  if (isNullable(path.table, name) && path.where?.[name] === undefined) where.push(`${quoted(name)} is not null`);
  const next = (...after: readonly string[]): string =>
    `select ${quoted(name)} from ${sourceOf(path)}${whereText([...where, ...after])}
      order by ${quoted(name)}${isDescending ? " desc" : ""} limit 1`;
  return `with recursive found (value) as (
    select * from (${next()})
    union all
    select (${next(`${quoted(name)} ${isDescending ? "<" : ">"} found.value`)}) from found where found.value is not null
  ) select value from found where value is not null`;
}

/** Parameters: the stored columns. `taken`: the unique columns whose conflict is no error; "any": those of every unique index. */
export function insertSql(table: TableName, withCodec: WithCodec, taken?: readonly string[] | "any"): string {
  const columns = storedColumns(table);
  const parameter = (column: string): string => typedParameter(table, column, columns.indexOf(column) + 1);
  const place = withCodec && PAYLOADS[table] !== undefined ? payloadPlace(table, parameter) : "";
  const values = columns.map((column, at) => writeColumn(table, column, `?${at + 1}`, place));
  const conflict =
    taken === undefined ? "" : ` on conflict ${taken === "any" ? "" : `(${taken.map(quoted).join(", ")}) `}do nothing`;
  return `insert into ${table} (${columns.map(quoted).join(", ")}) values (${values.join(", ")})${conflict}`;
}

/** row-sql.Q1 */
function typedParameter(table: TableName, column: string, number: number): string {
  return columnType(table, column) === "int" ? `cast(?${number} as integer)` : `?${number}`;
}

/** row-sql.Q2. Parameters: the values, the key, the expected values. */
export function updateSql(
  table: TableName,
  columns: readonly string[],
  expected: readonly string[],
  withCodec: WithCodec,
): string {
  const payload = PAYLOADS[table];
  invariant(
    payload === undefined ||
      columns.includes(payload.column) ||
      !payload.place.some((column) => columns.includes(column)),
    "a payload moves to another place without being encoded again",
    { table, columns },
  );
  const current = (column: string): string =>
    columns.includes(column) ? typedParameter(table, column, columns.indexOf(column) + 1) : quoted(column);
  const place = withCodec && payload !== undefined ? payloadPlace(table, current) : "";
  const sets = columns.map((column, at) => `${quoted(column)} = ${writeColumn(table, column, `?${at + 1}`, place)}`);
  return `update ${table} set ${sets.join(", ")}${keyText(table, expected)}`;
}

/** Parameters: the key, the expected values. */
export function deleteSql(table: TableName, expected: readonly string[]): string {
  return `delete from ${table}${keyText(table, expected)}`;
}

/** Whether a row is as expected. Parameters: the key, the expected values. */
export function isSql(table: TableName, expected: readonly string[]): string {
  return `select 1 from ${table}${keyText(table, expected)}`;
}

function keyText(table: TableName, expected: readonly string[]): string {
  return whereText([
    ...keyColumns(table).map((column) => `${quoted(column)} = ?`),
    ...expected.map((column) => `${quoted(column)} is ?`),
  ]);
}

/** Parameters: the prefix of the primary key, the upper bound, the limit. */
export function clearSql(table: TableName, prefix: number, isBounded: boolean, isLimited: boolean): string {
  const key = keyColumns(table);
  const rest = key.slice(prefix).map(quoted);
  const where = key.slice(0, prefix).map((column, at) => `${quoted(column)} = ?${at + 1}`);
  if (isBounded) where.push(`${rest[0]!} <= ?${prefix + 1}`);
  if (!isLimited) return `delete from ${table}${whereText(where)}`;
  const list = rest.join(", ");
  const some = `select ${list} from ${table}${whereText(where)} order by ${list} limit +?${prefix + (isBounded ? 2 : 1)}`;
  return `delete from ${table}${whereText([...where, `${rest.length === 1 ? list : `(${list})`} in (${some})`])}`;
}
