// SQLite rows: the row port on one connection. Each shape of a call is one prepared statement, made when it is first used.
//
// sqlite-rows.B1. A statement is found by the identity of the column list, or by the names of the given values in their order: rules
//   keep their column lists in constants and write values as literals.
// sqlite-rows.B2. Payloads that have contents (../contents/run-contents.ts) are taken apart and assembled here. Without contents, rows are
//   read and written as they are stored.

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import type { EpochMs } from "../../base/index.ts";
import type { TurnWrite } from "../../kernel/index.ts";
import { HeadMoves } from "./head-moves.ts";
import { bindHotRow } from "./hot-rows.ts";
import { pathInfo, type Filter, type Path, type PathInfo, type TableOf, type Test } from "../rows/indexes.ts";
import type { Counted, Key, Part, Rows, Span } from "../rows/rows.ts";
import { SMALLEST_SHARED, type ContentBatch, type ContentUse } from "../contents/content-batch.ts";
import { assemble, type Contents } from "../contents/run-contents.ts";
import { isReference } from "../contents/reference.ts";
import { NeededContents } from "./needed-contents.ts";
import { follow, newNode, step, type Bound, type ShapeNode } from "./shape-tree.ts";
import { PAYLOADS, type ColumnName, type RowOf, type TableName } from "../rows/tables.ts";
import {
  clearSql,
  countBySql,
  countSql,
  deleteSql,
  distinctSql,
  insertSql,
  isSql,
  selectSql,
  storedColumns,
  sumSql,
  testShape,
  updateSql,
  valuesOf,
  type WithCodec,
} from "./row-sql.ts";

/** Separates the names of two lists. */
const THEN = "|";
const NOTHING: readonly never[] = [];
const PREFIX_BITS = 3;

/** The statements of one table or path. */
class PathStatements {
  readonly info: PathInfo;
  /** By column list, then by the other parts of the shape as bits and text. */
  readonly selects = new Map<readonly string[], Map<number | string, StatementSync>>();
  readonly byNames = new Map<string, Map<number | string, StatementSync>>();
  readonly counts = new Map<number | string, StatementSync>();
  readonly groups = new Map<string, StatementSync>();
  readonly sums = new Map<string, StatementSync>();
  readonly distincts: (StatementSync | undefined)[] = [];
  readonly clears = new Map<number, StatementSync>();
  readonly inserts = new Map<string, StatementSync>();
  readonly updates: ShapeNode = newNode();
  readonly deletes: ShapeNode = newNode();
  readonly tests: ShapeNode = newNode();
  readonly stored: readonly string[];
  /** The column with payloads that have contents; "": none. */
  readonly payload: string;
  readonly use: ContentUse;
  insert: StatementSync | undefined;
  lastColumns: readonly string[] | undefined;
  lastSelects: Map<number | string, StatementSync> | undefined;

  constructor(path: Path) {
    this.info = pathInfo(path);
    this.stored = storedColumns(this.info.table);
    const { column = "", contents } = PAYLOADS[this.info.table] ?? {};
    this.payload = contents === undefined ? "" : column;
    this.use = contents ?? "large";
  }

  /** sqlite-rows.B1 */
  selectsOf(columns: readonly string[]): Map<number | string, StatementSync> {
    if (this.lastColumns === columns) return this.lastSelects!;
    const shapes = this.#selectsOf(columns);
    this.lastColumns = columns;
    this.lastSelects = shapes;
    return shapes;
  }

  #selectsOf(columns: readonly string[]): Map<number | string, StatementSync> {
    let shapes = this.selects.get(columns);
    if (shapes !== undefined) return shapes;
    const names = columns.join();
    shapes = this.byNames.get(names);
    if (shapes === undefined) this.byNames.set(names, (shapes = new Map()));
    // A rule that makes a new list at every call must not fill the memory.
    if (this.selects.size < MAX_LISTS) this.selects.set(columns, shapes);
    return shapes;
  }
}

const MAX_LISTS = 64;
const CONTENT = ["data"] as const;

export class SqliteRows implements Rows {
  readonly isGuess = false;
  readonly isConcurrent = false;
  readonly #db: DatabaseSync;
  readonly #withCodec: WithCodec;
  readonly #paths = new Map<Path, PathStatements>();
  /** head-moves.H1 */
  readonly moveHead: (turn: TurnWrite, now: EpochMs) => boolean;

  readonly #contents: Contents | undefined;
  readonly #needed: NeededContents;
  /** Of the current transaction; undefined until it has contents. */
  #batch: ContentBatch | undefined;
  /** In the current transaction. */
  #deletedRuns: number[] = [];

  constructor(db: DatabaseSync, withCodec: WithCodec, contents?: Contents, needed = new NeededContents()) {
    this.#db = db;
    this.#needed = needed;
    this.#withCodec = withCodec;
    this.#contents = contents;
    const moves = new HeadMoves(db);
    this.moveHead = (turn, now) => moves.move(turn, now);
  }

  #path(path: Path): PathStatements {
    let found = this.#paths.get(path);
    if (found === undefined) this.#paths.set(path, (found = new PathStatements(path)));
    return found;
  }

  get<T extends TableName, C extends ColumnName<T>>(table: T, key: Key, columns: readonly C[]): Part<T, C> | undefined {
    const path = this.#path(table);
    const statement = this.#select(path, columns, key.length, undefined, undefined);
    return this.#assembled(path, columns, rowOf<Part<T, C>>(columns, statement.get(...key)));
  }

  first<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
    span?: Span<TableOf<P>>,
  ): Part<TableOf<P>, C> | undefined {
    const statements = this.#path(path);
    const statement = this.#select(statements, columns, prefix.length, span, 1);
    const row = rowOf<Part<TableOf<P>, C>>(columns, statement.get(...boundOf(prefix, span, 1)));
    return this.#assembled(statements, columns, row);
  }

  select<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
    span?: Span<TableOf<P>>,
  ): readonly Part<TableOf<P>, C>[] {
    const statements = this.#path(path);
    const statement = this.#select(statements, columns, prefix.length, span, span?.limit);
    const bound = span === undefined ? prefix : boundOf(prefix, span, span.limit);
    const rows = rowsOf<Part<TableOf<P>, C>>(columns, statement.all(...bound));
    if (statements.payload !== "" && (columns as readonly string[]).includes(statements.payload)) {
      for (const row of rows) this.#assemble(row, statements.payload);
      this.#needed.throwIfAny();
    }
    return rows;
  }

  // ── contents (sqlite-rows.B2) ──

  #assembled<R extends object>(
    { payload }: PathStatements,
    columns: readonly string[],
    row: R | undefined,
  ): R | undefined {
    if (row !== undefined && payload !== "" && columns.includes(payload)) {
      this.#assemble(row, payload);
      this.#needed.throwIfAny();
    }
    return row;
  }

  #assemble(row: object, column: string): void {
    const text = (row as Record<string, unknown>)[column];
    if (typeof text === "string" && isReference(text)) (row as Record<string, unknown>)[column] = this.#textOf(text);
  }

  /** The payload of a text that was read without this port. */
  assemble(text: string): string {
    if (!isReference(text)) return text;
    const whole = this.#textOf(text);
    this.#needed.throwIfAny();
    return whole;
  }

  #textOf(text: string): string {
    const contents = this.#contents;
    if (contents === undefined) return text;
    const whole = assemble(text, (run, content) => {
      const cached = this.#needed.found(run, content) ?? contents.cached(run, content);
      if (cached !== undefined) return cached;
      const stored = this.get("run_contents", [run, content], CONTENT);
      if (stored?.data === null && contents.outside !== undefined) return this.#needed.add(run, content);
      return contents.accept(run, content, stored?.data ?? undefined, contents.outside?.name);
    });
    return whole ?? "";
  }

  /** The row as it is stored, after its contents. */
  #reduced<R extends object>({ payload, use }: PathStatements, run: unknown, row: R): R {
    const text = (row as Record<string, unknown>)[payload];
    if (typeof text !== "string" || text.length < SMALLEST_SHARED || this.#contents === undefined) return row;
    const batch = (this.#batch ??= this.#contents.begin());
    const before = batch.added.length;
    const reduced = batch.reduce(run as number, text, use);
    if (reduced === text) return row;
    for (const added of batch.added.slice(before)) {
      const { run, content, text } = added;
      const isOutside = this.#contents.outside?.takes(added) === true;
      if (isOutside) this.#needed.addNew(added);
      this.add("run_contents", { run, content, size: text.length, data: isOutside ? null : text });
    }
    return { ...row, [payload]: reduced };
  }

  /** Before COMMIT: a content that is outside is there before a row refers to it. */
  checkOutside(): void {
    this.#needed.throwIfNew();
  }

  /** At the end of every transaction. */
  settle(isCommitted: boolean): void {
    if (this.#deletedRuns.length > 0) {
      if (isCommitted) this.#contents?.outside?.runsDeleted(this.#deletedRuns);
      this.#deletedRuns = [];
    }
    if (this.#batch === undefined) return;
    if (isCommitted) this.#batch.committed();
    this.#batch = undefined;
  }

  #select(
    path: PathStatements,
    columns: readonly string[],
    prefix: number,
    span: Span | undefined,
    limit: number | undefined,
  ): StatementSync {
    const shapes = path.selectsOf(columns);
    let shape: number | string = limit === undefined ? prefix : prefix | (1 << PREFIX_BITS);
    if (span !== undefined) {
      shape |=
        ((Number(span.backwards === true) << 1) |
          (Number(span.after !== undefined) << 2) |
          (Number(span.before !== undefined) << 3) |
          (Number(span.upTo !== undefined) << 4)) <<
        PREFIX_BITS;
      if (span.also !== undefined) shape = `${shape} ${alsoShape(span.also)}`;
    }
    let statement = shapes.get(shape);
    if (statement === undefined) {
      const sql = selectSql(
        path.info,
        columns,
        {
          prefix,
          after: span?.after !== undefined,
          before: span?.before !== undefined,
          upTo: span?.upTo !== undefined,
          also: testsOf(span?.also),
          backwards: span?.backwards === true,
          limit: limit !== undefined,
        },
        this.#withCodec,
      );
      shapes.set(shape, (statement = this.#db.prepare(sql)));
      statement.setReturnArrays(true);
    }
    return statement;
  }

  count<P extends Path>(path: P, prefix: Key, upTo?: number, also?: Filter<TableOf<P>>): number {
    const { info, counts } = this.#path(path);
    let shape: number | string = prefix.length * 2 + Number(upTo !== undefined);
    if (also !== undefined) shape = `${shape} ${alsoShape(also)}`;
    let statement = counts.get(shape);
    if (statement === undefined) {
      const sql = countSql(info, prefix.length, testsOf(also), upTo !== undefined);
      counts.set(shape, (statement = this.#db.prepare(sql)));
    }
    const bound = boundOf(prefix, also && { also }, upTo);
    return (statement.get(...bound) as { count: number }).count;
  }

  sum<P extends Path>(path: P, prefix: Key, column: ColumnName<TableOf<P>>, after: number | string): number {
    const { info, sums } = this.#path(path);
    const shape = `${column} ${prefix.length}`;
    let statement = sums.get(shape);
    if (statement === undefined) sums.set(shape, (statement = this.#db.prepare(sumSql(info, prefix.length, column))));
    return (statement.get(...prefix, after) as { sum: number }).sum;
  }

  countBy<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    by: readonly C[],
    least: ColumnName<TableOf<P>>,
    upTo: number,
  ): readonly (Part<TableOf<P>, C> & Counted)[] {
    const { info, groups } = this.#path(path);
    const shape = `${by.join()} ${least} ${prefix.length}`;
    let statement = groups.get(shape);
    if (statement === undefined) {
      const sql = countBySql(info, prefix.length, by, least);
      groups.set(shape, (statement = this.#db.prepare(sql)));
    }
    return statement.all(...prefix, upTo) as unknown as (Part<TableOf<P>, C> & Counted)[];
  }

  distinct<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
  ): readonly Part<TableOf<P>, C>[] {
    const found: Part<TableOf<P>, C>[] = [];
    const walk = (before: Key, at: number): void => {
      for (const value of this.#valuesAfter(path, before)) {
        if (at + 1 < columns.length) walk([...before, value], at + 1);
        else {
          const row: Record<string, number | string> = {};
          columns.forEach((column, index) => (row[column] = [...before, value][prefix.length + index]!));
          found.push(row as Part<TableOf<P>, C>);
        }
      }
    };
    walk(prefix, 0);
    return found;
  }

  /** The values of the column after a prefix, in order. */
  #valuesAfter(path: Path, prefix: Key): readonly (number | string)[] {
    const { info, distincts } = this.#path(path);
    const statement = (distincts[prefix.length] ??= this.#db.prepare(distinctSql(info, prefix.length)));
    return (statement.all(...prefix) as { value: number | string }[]).map(({ value }) => value);
  }

  among(path: Path, wanted: readonly string[]): readonly string[] {
    const found = this.#valuesAfter(path, NOTHING) as readonly string[];
    if (found.length === 0) return NOTHING;
    const names = new Set(wanted);
    return found.filter((name) => names.has(name));
  }

  is<T extends TableName>(table: T, key: Key, expected: Partial<RowOf<T>>): boolean {
    const bound: Bound = [...key];
    const node = follow(this.#path(table).tests, expected, bound);
    node.statement ??= this.#prepareTest(table, expected);
    return node.statement.get(...bound) !== undefined;
  }

  /** Arrays: an object with the column `1` takes longer than the rest of the statement. */
  #prepareTest(table: TableName, expected: object): StatementSync {
    const statement = this.#db.prepare(isSql(table, Object.keys(expected)));
    statement.setReturnArrays(true);
    return statement;
  }

  own(): boolean {
    return true;
  }

  add<T extends TableName>(table: T, row: RowOf<T>, ...unique: readonly Path[]): boolean {
    const path = this.#path(table);
    const { stored, inserts, payload } = path;
    const shape = unique.join();
    let statement = inserts.get(shape);
    if (statement === undefined) {
      const [only = table, ...others] = unique;
      const taken = others.length > 0 ? "any" : pathInfo(only).columns.map(({ name }) => name);
      inserts.set(shape, (statement = this.#db.prepare(insertSql(table, this.#withCodec, taken))));
    }
    const reduced = payload === "" ? row : this.#reduced(path, (row as { run?: unknown }).run, row);
    return runInsert(statement, table, reduced, stored).changes === 1;
  }

  change<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>, expected?: Partial<RowOf<T>>): boolean {
    const bound: Bound = [];
    const path = this.#path(table);
    const reduced = path.payload === "" ? values : this.#reduced(path, key[0], values);
    let node = follow(path.updates, reduced, bound);
    for (const part of key) bound.push(part);
    if (expected !== undefined) node = follow(step(node, THEN), expected, bound);
    node.statement ??= this.#db.prepare(
      updateSql(table, Object.keys(values), expected === undefined ? NOTHING : Object.keys(expected), this.#withCodec),
    );
    return node.statement.run(...bound).changes === 1;
  }

  remove<T extends TableName>(table: T, key: Key, expected?: Partial<RowOf<T>>): boolean {
    const bound: Bound = [...key];
    let node = this.#path(table).deletes;
    if (expected !== undefined) node = follow(node, expected, bound);
    node.statement ??= this.#db.prepare(deleteSql(table, expected === undefined ? NOTHING : Object.keys(expected)));
    if (table === "runs" && this.#contents?.outside !== undefined) this.#deletedRuns.push(key[0] as number);
    return node.statement.run(...bound).changes === 1;
  }

  insert<T extends TableName>(table: T, row: RowOf<T>): void {
    const path = this.#path(table);
    const statement = (path.insert ??= this.#db.prepare(insertSql(table, this.#withCodec)));
    const reduced = path.payload === "" ? row : this.#reduced(path, (row as { run?: unknown }).run, row);
    runInsert(statement, table, reduced, path.stored);
  }

  set<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>): void {
    this.change(table, key, values);
  }

  drop(table: TableName, key: Key): void {
    this.remove(table, key);
  }

  clear<T extends TableName>(table: T, prefix: Key, { limit, upTo }: Pick<Span<T>, "limit" | "upTo">): number {
    const { clears } = this.#path(table);
    const shape = prefix.length * 4 + Number(upTo !== undefined) * 2 + Number(limit !== undefined);
    let statement = clears.get(shape);
    if (statement === undefined) {
      const sql = clearSql(table, prefix.length, upTo !== undefined, limit !== undefined);
      clears.set(shape, (statement = this.#db.prepare(sql)));
    }
    const bound: Bound = [...prefix];
    if (upTo !== undefined) bound.push(upTo);
    if (limit !== undefined) bound.push(limit);
    // A mirror puts a run in again under its number.
    if (table === "run_contents") this.#contents?.forget(prefix[0] as number);
    return Number(statement.run(...bound).changes);
  }

  barrier(): void {}
}

/** From arrays: SQLite's own objects take twice as long. */
function rowOf<R>(columns: readonly string[], values: unknown): R | undefined {
  if (values === undefined) return undefined;
  const row: Record<string, unknown> = {};
  for (let at = 0; at < columns.length; at += 1) row[columns[at]!] = (values as unknown[])[at];
  return row as R;
}

function rowsOf<R>(columns: readonly string[], found: readonly unknown[]): R[] {
  const rows: R[] = [];
  for (const values of found) rows.push(rowOf<R>(columns, values)!);
  return rows;
}

function boundOf(prefix: Key, span: Span | undefined, limit: number | undefined): Bound {
  const bound: Bound = [...prefix];
  if (span === undefined) {
    if (limit !== undefined) bound.push(limit);
    return bound;
  }
  const { after, before, upTo, also } = span;
  if (after !== undefined) bound.push(after);
  if (before !== undefined) bound.push(before);
  if (upTo !== undefined) bound.push(upTo);
  if (also !== undefined) for (const [, test] of testsOf(also)) bound.push(...(valuesOf(test) as Bound));
  if (limit !== undefined) bound.push(limit);
  return bound;
}

function testsOf(also: Filter<TableName> | undefined): readonly (readonly [string, Test])[] {
  return also === undefined ? NOTHING : (Object.entries(also) as (readonly [string, Test])[]);
}

function alsoShape(also: Filter<TableName>): string {
  let shape = "";
  for (const [column, test] of testsOf(also)) shape += `${column}${testShape(test)} `;
  return shape;
}

function runInsert<T extends TableName>(
  statement: StatementSync,
  table: T,
  row: RowOf<T>,
  columns: readonly string[],
): ReturnType<StatementSync["run"]> {
  return bindHotRow(statement, table, row) ?? statement.run(...valuesIn(row, columns));
}

function valuesIn(row: object, columns: readonly string[]): Bound {
  const bound: Bound = [];
  for (const column of columns) bound.push((row as Record<string, SQLInputValue>)[column]!);
  return bound;
}
