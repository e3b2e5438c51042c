// TransactionRows: the row port over the working set of one transaction.
//
// transaction-rows.R1. A verb whose rows are not loaded, or not locked as required, records the query and guesses (rows.P4); an
//   optimistic attempt, which must not send queries, ends there instead.
// transaction-rows.R2. The inbox of a live run contains its arrivals after `read`, one row each, without gaps. So its rows are deleted
//   by number, without reading them, and so are entries and chunks.

import { invariant, InvariantError } from "../../base/index.ts";
import { pathInfo, type Filter, type Path, type PathInfo, type TableOf } from "../rows/indexes.ts";
import type { Key, Part, Rows, Span } from "../rows/rows.ts";
import { keyColumns, type AnyRow, type ColumnName, type RowOf, type TableName, type Value } from "../rows/tables.ts";
import { compareValues } from "./evaluate.ts";
import { likelyRow } from "./guesses.ts";
import { changeLock, lockOf, pathLock, type AccessMode } from "./locks.ts";
import { MISS } from "./miss.ts";
import {
  countConditions,
  distinctConditions,
  insideRows,
  isWhole,
  pathConditions,
  prefixColumns,
  selectQuery,
  sortRows,
  testConditions,
} from "./path-query.ts";
import { lookup, type Count, type Distinct, type Lock, type Query } from "./query.ts";
import { canFindBy } from "./tracked-row.ts";
import type { WorkingSet } from "./working-set.ts";

/** More names than this are not queried one by one: the database lists those that have rows. */
const FEW_NAMES = 16;
const ALL: Span = {};
const NOTHING: readonly never[] = [];

/** The first rows of a `clear`, at most to a number. */
interface Range {
  readonly limit: number;
  readonly upTo: number | string | undefined;
}

export class TransactionRows implements Rows {
  isGuess = false;
  readonly isConcurrent = true;
  readonly #ws: WorkingSet;
  readonly #mode: AccessMode;
  readonly #mayGuess: boolean;

  constructor(ws: WorkingSet, mode: AccessMode, mayGuess = true) {
    this.#ws = ws;
    this.#mode = mode;
    this.#mayGuess = mayGuess;
  }

  /** transaction-rows.R1 */
  #miss(query: Query): void {
    this.#ws.recordMissing(query);
    this.#guess();
  }

  #guess(): void {
    if (!this.#mayGuess) throw MISS;
    this.isGuess = true;
  }

  /** Undefined: not loaded. A row that `skip` left out is locked by another transaction, or does not exist. */
  #find(table: TableName, lock: Lock, key: Key): AnyRow | "none" | undefined {
    const found = this.#ws.find(table, lock, key);
    return found === undefined && lock === "skip" && this.#ws.isLockedByOther(table, ...key) ? "none" : found;
  }

  get<T extends TableName, C extends ColumnName<T>>(table: T, key: Key): Part<T, C> | undefined {
    return this.#read(table, lockOf(this.#mode, table), key) as Part<T, C> | undefined;
  }

  #read(table: TableName, lock: Lock, key: Key): AnyRow | undefined {
    const found = this.#find(table, lock, key);
    if (found !== undefined) return found === "none" ? undefined : found;
    this.#miss(lookup(table, keyColumns(table), [key], lock));
    // The row without the lock is the best guess.
    return this.#ws.unlocked(table, key) ?? likelyRow(table, key);
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
    span?: Span<TableOf<P>>,
  ): readonly Part<TableOf<P>, C>[] {
    const info = pathInfo(path);
    const lock = span?.peek === true ? "none" : pathLock(this.#mode, info);
    return this.#select(info, prefix, (span ?? ALL) as Span, lock) as unknown as Part<TableOf<P>, C>[];
  }

  #select(info: PathInfo, prefix: Key, span: Span, lock: Lock): readonly AnyRow[] {
    const { table } = info;
    if (isWhole(info, prefix, span)) {
      if (info.isPrimary && prefix.length === info.columns.length) {
        const row = this.#read(table, lock, prefix);
        return row === undefined ? NOTHING : [row];
      }
      const columns = prefixColumns(info, prefix);
      if (lock !== "skip" && canFindBy(table, columns))
        return this.#findBy(info, columns, prefix, lock, span.backwards === true);
    }
    const query = selectQuery(info, prefix, span, lock);
    let rows: readonly AnyRow[] | undefined = this.#ws.select(query, span.ahead);
    if (rows === undefined) {
      this.#guess();
      rows = this.#ws.loaded(query);
    }
    return insideRows(info, rows, span);
  }

  #findBy(info: PathInfo, columns: readonly string[], key: Key, lock: Lock, backwards: boolean): readonly AnyRow[] {
    const { table } = info;
    const isLoaded = this.#ws.isLoadedBy(table, columns, key, lock);
    if (!isLoaded) this.#miss(lookup(table, columns, [key], lock));
    const rows = this.#ws.loadedBy(table, columns, key) as AnyRow[];
    if (rows.length > 1) sortRows(rows, info, columns.length, backwards);
    return rows;
  }

  count<P extends Path>(path: P, prefix: Key, upTo?: number, also?: Filter<TableOf<P>>): number {
    const info = pathInfo(path);
    const { table } = info;
    const where = [...countConditions(info, prefix), ...testConditions(also)];
    const query: Count = { kind: "count", table, where };
    return upTo === undefined ? this.#countAll(query) : this.#countUpTo({ ...query, upTo }, upTo);
  }

  sum<P extends Path>(path: P, prefix: Key, column: ColumnName<TableOf<P>>, after: number | string): number {
    const info = pathInfo(path);
    const rows = this.#select(info, prefix, { after }, pathLock(this.#mode, info));
    return rows.reduce((sum, row) => sum + Number(row[column]), 0);
  }

  #countAll(query: Count): number {
    const [counted] = this.#counted(query);
    if (counted === undefined || this.#isBlind(query)) return 0;
    const { was, is } = this.#ws.changed(query.table, query.where);
    return Number(counted["count"]) + is.length - was.length;
  }

  #countUpTo(query: Count, upTo: number): number {
    const [counted] = this.#counted(query);
    if (counted === undefined || this.#isBlind(query)) return 0;
    const { was, is } = this.#ws.changed(query.table, query.where);
    const added = is.length - was.length;
    const count = Number(counted["count"]);
    if (count < upTo || added >= 0) return Math.min(upTo, count + added);
    // There may be more rows than were counted, in place of those that this transaction deleted.
    const [more] = this.#counted({ ...query, upTo: upTo - added });
    return more === undefined ? 0 : Number(more["count"]) + added;
  }

  /** Whether rows were changed that are not loaded: whether they match is unknown until then. */
  #isBlind({ table, where }: Count | Distinct): boolean {
    const isBlind = this.#ws.recordBlind(table, where);
    if (isBlind) this.#guess();
    return isBlind;
  }

  countBy(): never {
    throw new InvariantError("Rows are counted by values in a transaction.");
  }

  distinct<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
  ): readonly Part<TableOf<P>, C>[] {
    const info = pathInfo(path);
    const where = distinctConditions(info, prefix, columns);
    const query: Distinct = { kind: "distinct", table: info.table, columns, where };
    const rows = this.#counted(query);
    if (this.#isBlind(query)) return NOTHING;
    const { was, is } = this.#ws.changed(info.table, where);
    const changed =
      was.length + is.length === 0
        ? [...rows]
        : this.#changedValues(info, prefix, columns, rows, was as AnyRow[], is as AnyRow[]);
    return sortRows(changed, info, prefix.length, false) as unknown as Part<TableOf<P>, C>[];
  }

  /** The combinations with the changes of this transaction. */
  #changedValues(
    info: PathInfo,
    prefix: Key,
    columns: readonly string[],
    rows: readonly AnyRow[],
    was: readonly AnyRow[],
    is: readonly AnyRow[],
  ): AnyRow[] {
    const valuesOf = (row: AnyRow): Value[] => columns.map((column) => row[column]!);
    const found = new Map(rows.map((row) => [JSON.stringify(valuesOf(row)), row]));
    // As claims select: they have loaded the rows they may lock.
    const lock = this.#mode === "claim" ? pathLock(this.#mode, info) : "none";
    const changed = new Map(was.map(valuesOf).map((values) => [JSON.stringify(values), values]));
    for (const [text, values] of changed)
      if (this.#select(info, [...prefix, ...(values as Key)], { limit: 1 }, lock).length === 0) found.delete(text);
    for (const row of is) found.set(JSON.stringify(valuesOf(row)), row);
    return [...found.values()];
  }

  among(path: Path, names: readonly string[]): readonly string[] {
    if (names.length === 0) return NOTHING;
    // The caller reads the rows of a few names anyway.
    if (names.length <= FEW_NAMES) return names;
    const column = pathInfo(path).columns[0]!.name as never;
    const found = new Set<Value>(
      this.distinct(path, NOTHING, [column]).map((row) => (row as unknown as AnyRow)[column]!),
    );
    return names.filter((name) => found.has(name));
  }

  is<T extends TableName>(table: T, key: Key, expected: Partial<RowOf<T>>): boolean {
    return this.#checked(table, lockOf(this.#mode, table), key, expected) !== undefined;
  }

  /** The row with the expected values; "guess" when it is not loaded. */
  #checked(table: TableName, lock: Lock, key: Key, expected: object | undefined): AnyRow | "guess" | undefined {
    const found = this.#find(table, lock, key);
    if (found === undefined) {
      this.#miss(lookup(table, keyColumns(table), [key], lock));
      return "guess";
    }
    if (found === "none") return undefined;
    for (const column in expected) if (found[column] !== (expected as AnyRow)[column]) return undefined;
    return found;
  }

  own(table: TableName, key: Key): boolean {
    if (this.#mode === "read") return true;
    const lock = this.#mode === "claim" ? "skip" : "update";
    return this.#checked(table, lock, key, undefined) !== undefined;
  }

  add<T extends TableName>(table: T, row: RowOf<T>, ...unique: readonly Path[]): boolean {
    const paths = unique.length === 0 ? [table] : unique;
    for (const path of paths) {
      const info = pathInfo(path);
      const key = info.columns.map(({ name }) => (row as AnyRow)[name]) as Key;
      if (this.#isTaken(info, key)) return false;
    }
    this.insert(table, row);
    return true;
  }

  #isTaken(info: PathInfo, key: Key): boolean {
    const lock = lockOf(this.#mode, info.table);
    if (!info.isPrimary) return this.#findBy(info, prefixColumns(info, key), key, lock, false).length > 0;
    const found = this.#find(info.table, lock, key);
    if (found === undefined) this.#miss(lookup(info.table, keyColumns(info.table), [key], lock));
    return found !== undefined && found !== "none";
  }

  change<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>, expected?: Partial<RowOf<T>>): boolean {
    const found = this.#checked(table, changeLock(this.#mode, table), key, expected);
    if (found === undefined) return false;
    if (found !== "guess") this.#ws.update(table, found as RowOf<T>, values);
    return true;
  }

  remove<T extends TableName>(table: T, key: Key, expected?: Partial<RowOf<T>>): boolean {
    const found = this.#checked(table, changeLock(this.#mode, table), key, expected);
    if (found === undefined) return false;
    if (found !== "guess") this.#ws.remove(table, found as RowOf<T>);
    return true;
  }

  insert<T extends TableName>(table: T, row: RowOf<T>): void {
    if (table === "runs") this.#ws.markNewRun((row as RowOf<"runs">).run);
    const isNew = this.#ws.insert(table, row);
    invariant(isNew || this.isGuess, "a row is inserted whose key exists");
  }

  set<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>): void {
    const lock = changeLock(this.#mode, table);
    // Rows that other transactions lock are never changed blindly.
    if (lock === "none") this.#ws.updateBlind(table, key, values);
    else this.change(table, key, values);
  }

  drop(table: TableName, key: Key): void {
    this.#ws.deleteBlind(table, key);
  }

  clear<T extends TableName>(table: T, prefix: Key, { limit, upTo }: Pick<Span<T>, "limit" | "upTo">): number {
    const range: Range = { limit: limit ?? Number.POSITIVE_INFINITY, upTo };
    if (table === "inbox") return this.#clearInbox(prefix[0] as number, range);
    if (table === "journal" && prefix.length === 1) return this.#clearNumbered(table, prefix, "seq", range);
    if (table === "chunks" && prefix.length === 2) return this.#clearNumbered(table, prefix, "position", range);
    if (table === "chunks" && upTo === undefined) return this.#clearChunks(prefix[0] as number, range);
    if (table === "checkpoints" && prefix.length === 1) return this.#clearSteps(prefix[0] as number, range);
    const span: Span = { ...(limit !== undefined && { limit }), upTo };
    const rows = this.#select(pathInfo(table), prefix, span, lockOf(this.#mode, table));
    for (const row of rows) this.#ws.remove(table, row as RowOf<T>);
    return rows.length;
  }

  /** transaction-rows.R2 */
  #clearInbox(run: number, range: Range): number {
    const row = this.#read("runs", lockOf(this.#mode, "runs"), [run]) as RowOf<"runs"> | undefined;
    const original = this.#ws.original("runs", run);
    if (range.upTo !== undefined) {
      // The row may be changed already; its original `read` is where the inbox begins.
      const read = original?.read ?? (this.isGuess ? Number(range.upTo) : 0);
      return this.#deleteNumbers("inbox", [run], read + 1, Number(range.upTo), range.limit);
    }
    if (row !== undefined && (original?.ended_at ?? null) === null)
      return this.#deleteNumbers("inbox", [run], row.read + 1, row.arrivals, range.limit);
    return this.#clearNumbered("inbox", [run], "arrival", range);
  }

  #clearNumbered(table: TableName, prefix: Key, column: string, range: Range): number {
    const where = pathConditions(pathInfo(table), prefix);
    const [counted] = this.#counted({ kind: "count", table, where, least: column, most: column });
    if (counted === undefined) return 0;
    return this.#deleteRange(table, prefix, column, counted, range);
  }

  #clearChunks(run: number, { limit }: Range): number {
    const where = pathConditions(pathInfo("chunks"), [run]);
    const found = this.#counted({
      kind: "count",
      table: "chunks",
      where,
      by: ["stream"],
      least: "position",
      most: "position",
    });
    const streams = new Map(found.map((row) => [String(row["stream"]), row]));
    for (const { stream } of this.#ws.changed("chunks", where).is)
      if (!streams.has(stream)) streams.set(stream, { stream, least: null, most: null });
    let count = 0;
    for (const [stream, row] of [...streams].sort(([a], [b]) => compareValues(a, b)))
      count += this.#deleteRange("chunks", [run, stream], "position", row, { limit: limit - count, upTo: undefined });
    return count;
  }

  /** Deletes from `least` to `most`, which the database counted, and the rows that this transaction inserted. */
  #deleteRange(table: TableName, prefix: Key, column: string, { least, most }: AnyRow, { limit, upTo }: Range): number {
    let from = Number(least ?? Number.POSITIVE_INFINITY);
    let to = Number(most ?? Number.NEGATIVE_INFINITY);
    for (const row of this.#ws.changed(table, pathConditions(pathInfo(table), prefix)).is as unknown as AnyRow[]) {
      from = Math.min(from, Number(row[column]));
      to = Math.max(to, Number(row[column]));
    }
    return this.#deleteNumbers(table, prefix, from, upTo === undefined ? to : Math.min(to, Number(upTo)), limit);
  }

  #clearSteps(run: number, { limit, upTo }: Range): number {
    const where = pathConditions(pathInfo("checkpoints"), [run]);
    const found = this.#counted({ kind: "distinct", table: "checkpoints", columns: ["step"], where });
    const steps = new Set(found.map((row) => Number(row["step"])));
    for (const { step } of this.#ws.changed("checkpoints", where).is) steps.add(step);
    const left = [...steps]
      .filter((step) => !this.#ws.isGone("checkpoints", run, step) && (upTo === undefined || step <= Number(upTo)))
      .sort((a, b) => a - b)
      .slice(0, limit);
    for (const step of left) this.#ws.deleteBlind("checkpoints", [run, step]);
    return left.length;
  }

  #counted(query: Count | Distinct): readonly AnyRow[] {
    const found = this.#ws.counts(query);
    if (found === undefined) this.#guess();
    return (found ?? NOTHING) as readonly AnyRow[];
  }

  /** Deletes the rows with these numbers, as far as they are not deleted yet. */
  #deleteNumbers(table: TableName, prefix: Key, from: number, to: number, limit: number): number {
    let count = 0;
    for (let at = from; at <= to && count < limit; at++) {
      const key = [...prefix, at];
      if (this.#ws.isGone(table, ...key)) continue;
      this.#ws.deleteBlind(table, key);
      count += 1;
    }
    return count;
  }

  barrier(): void {
    if (this.#ws.hasMissing) throw MISS;
  }
}
