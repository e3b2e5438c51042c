// Rows: the port between the rules and a store. The rules read and change rows through these verbs, synchronously, one after the
// other. So a write has one meaning in every database. SQLite prepares a statement for each shape of a call (sqlite/sqlite-rows.ts).
// A remote store answers from rows in memory, which it loads before and writes together afterwards (remote/transaction-rows.ts).
//
// rows.P1. A read walks one declared path: equal values in its first columns, a range of the next one, a limit. So no rule can scan
//   a table, and every database uses the index that was meant.
// rows.P2. Verbs that answer must know the row. Verbs that answer nothing (`insert`, `set`, `drop`) cost no query behind a network;
//   except `set` on a row that other transactions lock and this one has not: it is locked first.
// rows.P3. Rows are values: they never change after they were read. A rule computes new values and writes them.
// rows.P4. Behind a network, a verb whose rows are not loaded records the query and answers what is likely, so that one round trip
//   loads what the whole list needs. The pass is then repeated. So a rule must end on any answer, and a fence is written with
//   `is`, `change` or `remove`, which guess that it holds.
// rows.P5. Locks follow from the verb, the table and the path. A rule names none; it says `peek` where it needs none.

import type { EpochMs } from "../../base/index.ts";
import type { RunNumber, TurnWrite } from "../../kernel/index.ts";
import type { AnyFilter, Filter, Path, TableOf } from "./indexes.ts";
import type { AnyRow, ColumnName, RowOf, TableName } from "./tables.ts";

/** Values of the first columns of a path, or of a whole primary key. */
export type Key = readonly (number | string)[];

/** Which rows below a prefix are read. The bounds are about the first column after the prefix. */
export interface Span<T extends TableName = TableName> {
  readonly limit?: number;
  readonly backwards?: boolean;
  /** Greater than this. */
  readonly after?: number | string | undefined;
  /** Less than this. */
  readonly before?: number | string | undefined;
  /** At most this. */
  readonly upTo?: number | string | undefined;
  /** Tests of further columns. The store reads the rows that fail them, too. */
  readonly also?: Filter<T>;
  /** Reads without a lock: a row may have changed when it is used, unless `own` locks it. */
  readonly peek?: true;
  /** Any rows will do. Behind a network, rows that are loaded already are enough. */
  readonly unordered?: true;
  /** How many rows a remote store loads at least: the transaction is about to change the first of them. */
  readonly ahead?: number;
}

/** A row with some of its columns. */
export type Part<T extends TableName, C extends ColumnName<T>> = { readonly [K in C]: RowOf<T>[K] };

export interface Counted {
  readonly count: number;
  readonly least: number;
}

export interface Rows {
  /** The row with this primary key. */
  get<T extends TableName, C extends ColumnName<T>>(table: T, key: Key, columns: readonly C[]): Part<T, C> | undefined;
  first<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
    span?: Span<TableOf<P>>,
  ): Part<TableOf<P>, C> | undefined;
  select<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
    span?: Span<TableOf<P>>,
  ): readonly Part<TableOf<P>, C>[];
  /** The number of rows below a prefix, without locks. `upTo`: counting stops there. `also`: tests of further columns. */
  count<P extends Path>(path: P, prefix: Key, upTo?: number, also?: Filter<TableOf<P>>): number;
  /** The sum of a column over the rows below a prefix, as far as the next column is greater than `after`. */
  sum<P extends Path>(path: P, prefix: Key, column: ColumnName<TableOf<P>>, after: number | string): number;
  /**
   * The number of rows below a prefix by the values of some columns, with the least value of another one. Outside of transactions,
   * for small parts of a table: a store may stop counting after the first `upTo` rows.
   */
  countBy<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    by: readonly C[],
    least: ColumnName<TableOf<P>>,
    upTo: number,
  ): readonly (Part<TableOf<P>, C> & Counted)[];
  /** The combinations of values of the columns that follow the prefix, in order, one seek each, without null. Without locks. */
  distinct<P extends Path, C extends ColumnName<TableOf<P>>>(
    path: P,
    prefix: Key,
    columns: readonly C[],
  ): readonly Part<TableOf<P>, C>[];
  /** Which of these values of the first column may have rows, in any order. */
  among(path: Path, names: readonly string[]): readonly string[];

  /** Whether the row exists and has these values. */
  is<T extends TableName>(table: T, key: Key, expected: Partial<RowOf<T>>): boolean;
  /** Locks a row that was read with `peek`. False: another transaction has it, or it is gone. SQLite has locked everything. */
  own(table: TableName, key: Key): boolean;

  /** Inserts the row. False: a row has the same primary key, or the same values in one of these unique paths instead of it. */
  add<T extends TableName>(table: T, row: RowOf<T>, ...unique: readonly Path[]): boolean;
  /** Sets columns. False: there is no such row, or it has other values than expected. */
  change<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>, expected?: Partial<RowOf<T>>): boolean;
  /** Deletes the row. False: there is no such row, or it has other values than expected. */
  remove<T extends TableName>(table: T, key: Key, expected?: Partial<RowOf<T>>): boolean;

  /** Inserts a row whose key is free. */
  insert<T extends TableName>(table: T, row: RowOf<T>): void;
  /** Sets columns of a row, if it exists. */
  set<T extends TableName>(table: T, key: Key, values: Partial<RowOf<T>>): void;
  /** Deletes a row, if it exists. */
  drop(table: TableName, key: Key): void;
  /** Deletes the first rows below a prefix of a primary key; returns how many. */
  clear<T extends TableName>(table: T, prefix: Key, span: Pick<Span<T>, "limit" | "upTo">): number;

  /** An override of `moveHead` in ../rules/commit-turn.ts, where a store has a faster form of it. */
  readonly moveHead?: (turn: TurnWrite, now: EpochMs) => boolean;

  /** What follows is read after the locks above were taken, and not guessed. */
  barrier(): void;
  /** Whether an answer was guessed (rows.P4): the rule then reads everything that it may need. */
  readonly isGuess: boolean;
  /** Whether other transactions run at the same time, so that the order of locks matters. */
  readonly isConcurrent: boolean;
}

/** The port for rules that treat several tables alike: tables and columns are named by values. */
export interface AnyRows extends Pick<Rows, "own" | "barrier" | "isGuess"> {
  get(table: TableName, key: Key, columns: readonly string[]): AnyRow | undefined;
  select(
    table: TableName,
    prefix: Key,
    columns: readonly string[],
    span: Omit<Span, "also"> & { readonly also: AnyFilter },
  ): readonly AnyRow[];
  count(table: TableName, prefix: Key, upTo: number | undefined, also: AnyFilter): number;
  set(table: TableName, key: Key, values: AnyRow): void;
}

/** A store whose rows are read and changed through the port, by work other than lists of writes. */
export interface RowSession {
  /** Reads without locks. `body` may run more than once. `what` names the work in errors. `now` is the store's time. */
  read<T>(what: string, body: (rows: Rows, now: EpochMs) => T): Promise<T>;
  /** One transaction. `body` may run more than once; its changes are committed once or not at all. */
  transact<T>(what: string, body: (tx: Tx) => T): Promise<T>;
  /** The same store with references in place of the payloads that have contents (../contents/run-contents.ts). */
  readonly stored: RowSession;
}

/** The transaction that a write is applied in. */
export interface Tx {
  readonly rows: Rows;
  readonly now: EpochMs;
  /** The number of the next run, once it was read. */
  nextRun: RunNumber | undefined;
  /** Where run numbers are not reserved beforehand. */
  readonly runNumbers?: RunNumbers | undefined;
}

export interface RunNumbers {
  /** The highest number that a run has or had. */
  highest(): RunNumber;
  /** Keeps the highest number when the newest run is deleted: a number is never used again. */
  keep(): void;
}
