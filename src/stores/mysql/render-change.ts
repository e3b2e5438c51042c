// Render change: a change of the port as statements of MySQL and MariaDB.
//
// render-change.R1. Updates and deletes join a table given in the statement (JSON_TABLE), in key order, with the primary key: only
//   those rows are locked, in that order.
// render-change.R2. Expected values are compared in the same statement. If it matches fewer rows than given, the next statement (the
//   guard) fails, and with it everything up to COMMIT, all in one round trip.
//
// Forms of an update, in rows/s of one statement with 100 and with 400 rows (MariaDB 10.11, two runs on a busy machine, without
// waiting for commits):
//   this form                                        35k to 40k, 43k to 55k
//   a union of selects                               26k to 33k, 37k
//   one statement and one guard per row              8k, 11k
//   a temporary table                                46k, 74k; MySQL with GTIDs does not allow writes to it
//   insert … on duplicate key update                 45k, 50k to 69k; inserts missing rows and verifies nothing

import { compareValues } from "../remote/evaluate.ts";
import { INCARNATION_KEY } from "../../kernel/index.ts";
import type { Change, HistoryCheck, WireRow, WireValue } from "../remote/backend.ts";
import { columnsOf, columnType, INSERTED_ONCE, keyColumns, type TableName, type Value } from "../rows/tables.ts";
import { literal, nameOf, namesOf, tableOf, textLiteral } from "./sql-text.ts";

const ROWS_AT_ONCE = 1_000;
/** Characters per statement; a single row may have more. */
const TEXT_AT_ONCE = 1_000_000;

/** The statements in order. */
export function renderChange(change: Change): readonly string[] {
  if (change.rows.length === 0) return [];
  return change.change === "insert" ? renderInsert(change.table, change.rows) : renderJoined(change);
}

/** render-change.R2. Follows the statement whose rows it counts; fails with 1690, a number out of range. */
function guard(rows: number): string {
  return `set @reprise_guard=18446744073709551615+(row_count()<>${rows})`;
}

/**
 * remote.L3. Fails if the writer is fenced (`lastBatch` sets a negative mark), or if history went back (remote.Y1). The rows of
 * other writers are read by a separate statement, which locks nothing.
 */
export function renderStamp(writer: string, batch: number, mark: number, check?: HistoryCheck): readonly string[] {
  const writers = tableOf("writers");
  const conditions = [`writer=${textLiteral(writer)}`, "mark>=0"];
  const checks: string[] = [];
  if (check !== undefined) conditions.push(`batch=${check.previous}`);
  if (check?.incarnation !== undefined) {
    checks.push(
      `select count(*) into @reprise_history from ${tableOf("meta")} where \`key\`='${INCARNATION_KEY}' and value=${textLiteral(check.incarnation)}`,
    );
    conditions.push("@reprise_history=1");
  }
  if (check !== undefined && check.others.length > 0) {
    const found = check.others.map((line) => `(writer=${textLiteral(line.writer)} and batch>=${line.batch})`);
    checks.push(`select count(*) into @reprise_others from ${writers} where ${found.join(" or ")}`);
    conditions.push(`@reprise_others=${check.others.length}`);
  }
  return [
    ...checks,
    `update ${writers} set batch=${batch},mark=${mark} where ${conditions.join(" and ")}`,
    // Fails with 1242, more than one row, which is different from the guard's error (render-change.R2).
    "set @reprise_guard=if(row_count()=1,0,(select 1 union all select 2))",
  ];
}

function renderInsert(table: TableName, rows: readonly WireRow[]): readonly string[] {
  const columns = columnsOf(table);
  // Not `insert ignore`, which also ignores values that do not fit.
  const tail = INSERTED_ONCE.has(table) ? ` on duplicate key update ${nameOf(columns[0]!)}=${nameOf(columns[0]!)}` : "";
  const head = `insert into ${tableOf(table)} (${namesOf(columns)}) values `;
  const statements: string[] = [];
  let texts: string[] = [];
  let length = 0;
  const flush = (): void => {
    if (texts.length > 0) statements.push(head + texts.join(",") + tail);
    texts = [];
    length = 0;
  };
  for (const row of rows) {
    let text = "(";
    for (let at = 0; at < columns.length; at++) text += (at === 0 ? "" : ",") + literal(row[columns[at]!] ?? null);
    text += ")";
    if (texts.length >= ROWS_AT_ONCE || length + text.length > TEXT_AT_ONCE) flush();
    texts.push(text);
    length += text.length;
  }
  flush();
  return statements;
}

type Joined = Exclude<Change, { change: "insert" }>;

interface JoinedRow {
  readonly row: WireRow;
  readonly old: WireRow | undefined;
}

function renderJoined(change: Joined): readonly string[] {
  const { table, expect = [] } = change;
  const key = keyColumns(table);
  const keyOf = ({ row }: JoinedRow): readonly Value[] => key.map((column) => row[column] as Value);
  const rows = change.rows
    .map((row, at): JoinedRow => ({ row, old: change.old?.[at] }))
    .toSorted((a, b) => compareKeys(keyOf(a), keyOf(b)));
  return partsOf(rows, [...key, ...(change.change === "update" ? change.columns : [])]).flatMap((part) => {
    const given = new GivenTable(table, part);
    const on = [
      ...key.map((column) => `t.${nameOf(column)}=${given.add(column, ({ row }) => row[column]!)}`),
      // `<=>` also matches null.
      ...expect.map((column) => `t.${nameOf(column)}<=>${given.add(column, ({ old }) => old?.[column] ?? null)}`),
    ].join(" and ");
    const set =
      change.change === "delete"
        ? undefined
        : change.columns.map((column) => `t.${nameOf(column)}=${given.add(column, ({ row }) => row[column] ?? null)}`);
    const joined = `${given.text()} straight_join ${tableOf(table)} t force index (primary) on ${on}`;
    const text = set === undefined ? `delete t from ${joined}` : `update ${joined} set ${set.join(",")}`;
    return expect.length === 0 ? [text] : [text, guard(part.length)];
  });
}

function compareKeys(a: readonly Value[], b: readonly Value[]): number {
  for (let at = 0; at < a.length; at++) {
    const order = compareValues(a[at]!, b[at]!);
    if (order !== 0) return order;
  }
  return 0;
}

function partsOf(rows: readonly JoinedRow[], columns: readonly string[]): readonly (readonly JoinedRow[])[] {
  const parts: JoinedRow[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    const size = lengthOf(row.row, columns);
    if (length + size > TEXT_AT_ONCE || parts.at(-1)!.length >= ROWS_AT_ONCE) {
      parts.push([]);
      length = 0;
    }
    parts.at(-1)!.push(row);
    length += size;
  }
  return parts;
}

/** The approximate length of a row's text. */
function lengthOf(row: WireRow, columns: readonly string[]): number {
  let length = 0;
  for (const column of columns) {
    const value = row[column];
    length += 20;
    if (typeof value === "string") length += value.length;
    else if (value instanceof Uint8Array) length += value.length * 2;
  }
  return length;
}

/** A table in the text of a statement, with one column per use: a column may be both expected and set. */
class GivenTable {
  readonly #table: TableName;
  readonly #rows: readonly JoinedRow[];
  readonly #columns: string[] = [];
  readonly #values: unknown[][];

  constructor(table: TableName, rows: readonly JoinedRow[]) {
    this.#table = table;
    this.#rows = rows;
    this.#values = rows.map(() => []);
  }

  /** Adds a column; returns the expression that reads it. */
  add(column: string, valueOf: (row: JoinedRow) => WireValue): string {
    const at = this.#columns.length;
    const values = this.#rows.map(valueOf);
    // JSON has no bytes.
    const isBytes = values.some((value) => value instanceof Uint8Array);
    for (const [place, value] of values.entries()) this.#values[place]!.push(isBytes ? base64(value) : value);
    const name = `c${at}`;
    this.#columns.push(`${name} ${this.#typeOf(column, at)} path '$[${at}]' error on error`);
    return isBytes ? `from_base64(n.${name})` : `n.${name}`;
  }

  #typeOf(column: string, at: number): string {
    if (columnType(this.#table, column) === "int") return "bigint";
    let longest = 0;
    for (const row of this.#values) {
      const value = row[at];
      if (typeof value === "string" && value.length > longest) longest = value.length;
    }
    // At most three bytes per UTF-16 unit. The server creates a table with large columns on disk.
    const bytes = Math.max(64, longest * 3);
    return bytes > 8_192 ? "longblob" : `varbinary(${2 ** Math.ceil(Math.log2(bytes))})`;
  }

  text(): string {
    return `json_table(${textLiteral(JSON.stringify(this.#values))},'$[*]' columns(${this.#columns.join(",")})) n`;
  }
}

function base64(value: WireValue): string | null {
  if (value === null) return null;
  return (typeof value === "string" ? Buffer.from(value) : Buffer.from(value as Uint8Array)).toString("base64");
}
