// SimDatabase: an in-memory database with the transactions of a real one. It uses neither time
// nor randomness; its caller decides which transaction runs when.
//
// sim-database.D1. Only the transaction itself sees its changes before it commits; then all become visible at once.
// sim-database.D2. `serial`: one transaction at a time. `rc`: each statement sees what was committed when it began; a locking read
//   waits, then sees the newest version, and omits rows that no longer match. `rr`: as MySQL by default, plain reads see the
//   snapshot of the first one, locking reads and writes see the newest version. No store uses `rr`: it shows what would go wrong.
// sim-database.D3. An insert locks its keys, so a second insert waits for the first transaction to end before it fails, or has no effect
//   in a table whose rows are inserted once.
// sim-database.D4. `rollBack` returns to the state after an earlier commit. A transaction that is open then never commits.

import { InvariantError } from "../../../src/base/index.ts";
import { INCARNATION_KEY } from "../../../src/kernel/index.ts";
import {
  INSERTED_ONCE,
  TABLES,
  type Acknowledged,
  type QueryResult,
  type Change,
  type Count,
  type HistoryCheck,
  type Query,
  type TableName,
  type WireRow,
  type WireValue,
} from "../../../src/stores/remote/index.ts";
import { CommitHistory } from "./commit-history.ts";
import { Locks, type LockMode } from "./locks.ts";
import { inKeyOrder, inOrder, matches, sameValue, SimTable, stored, type SimRow } from "./sim-table.ts";

export type Isolation = "serial" | "rc" | "rr";

/** A deadlock, a conflict, or the end of the transaction while it waited. */
export class TransactionAborted extends Error {
  readonly why: "deadlock" | "ended" | "conflict";
  constructor(why: "deadlock" | "ended" | "conflict") {
    super(why);
    this.why = why;
  }
}

const WHOLE = "the database";

export class SimDatabase {
  readonly isolation: Isolation;
  readonly locks = new Locks();
  /** The users' rows, for `ctx.tx`. */
  readonly userRows = new Map<string, string>();
  readonly #tables = new Map<TableName, SimTable>();
  readonly #open = new Set<SimTransaction>();
  #history: CommitHistory | undefined;
  /** The number of committed transactions. */
  commits = 0;

  constructor(isolation: Isolation) {
    this.isolation = isolation;
    for (const name of Object.keys(TABLES) as TableName[]) this.#tables.set(name, new SimTable(name));
  }

  table(name: TableName): SimTable {
    return this.#tables.get(name)!;
  }

  /** All tables, for checks. */
  tables(): Iterable<SimTable> {
    return this.#tables.values();
  }

  begin(): SimTransaction {
    const transaction = new SimTransaction(this, () => this.#open.delete(transaction));
    this.#open.add(transaction);
    return transaction;
  }

  /** Enables `rollBack`. `now` is the time of commits. */
  keepHistory(now: () => number): CommitHistory {
    return (this.#history ??= new CommitHistory(now, this.userRows));
  }

  /** sim-database.D1. Applies one commit: rows by table and key, undefined for a deleted row. */
  apply(
    changes: ReadonlyMap<TableName, ReadonlyMap<string, SimRow | undefined>>,
    userRows: ReadonlyMap<string, string> = new Map(),
  ): void {
    const touched = [...changes].flatMap(([name, rows]) =>
      [...rows.keys()].map((key) => [this.table(name), key] as const),
    );
    this.#history?.record(touched, userRows.keys());
    for (const [name, rows] of changes) {
      const table = this.table(name);
      for (const [key, row] of rows) if (row === undefined) table.remove(key);
      for (const [key, row] of rows) if (row !== undefined) table.set(key, row);
    }
    for (const [key, value] of userRows) this.userRows.set(key, value);
    this.commits += 1;
  }

  /**
   * sim-database.D4. Undoes the last commits. `failover`: every transaction was on the server that died. `restore`: it locks the
   * tables; transactions that have not begun yet begin on the restored rows.
   */
  rollBack(count: number, how: "failover" | "restore"): void {
    for (const transaction of [...this.#open]) {
      if (how === "failover") transaction.end();
      else if (transaction.isBegun) transaction.end("deadlock");
    }
    this.#history!.undo(count);
  }

  /** sim-database.D2. For reads outside a transaction. */
  answer(query: Query): QueryResult {
    return plainAnswer(query, (name) => this.table(name).all(), this.table(query.table));
  }
}

export class SimTransaction {
  readonly #database: SimDatabase;
  readonly #onEnd: () => void;
  #isBegun = false;
  #isEnded = false;
  /** The error of calls after the end. */
  #why: "deadlock" | "ended" = "ended";
  /** sim-database.D2, `rr`. */
  #snapshot: ReadonlyMap<TableName, ReadonlyMap<string, SimRow>> | undefined;
  /** sim-database.D1. Its changes so far; undefined for a deleted row. */
  readonly #own = new Map<TableName, Map<string, SimRow | undefined>>();
  readonly #ownUser = new Map<string, string>();

  constructor(database: SimDatabase, onEnd: () => void) {
    this.#database = database;
    this.#onEnd = onEnd;
  }

  get isBegun(): boolean {
    return this.#isBegun;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** From now on plain reads see this snapshot. */
  keepMoment(): void {
    this.#snapshot ??= new Map([...this.#database.tables()].map((table) => [table.name, table.snapshot()]));
  }

  async ask(query: Query): Promise<QueryResult> {
    await this.#begin();
    const table = this.#database.table(query.table);
    if (query.kind === "count" || query.kind === "distinct" || query.lock === "none") {
      if (this.#database.isolation === "rr") this.keepMoment();
      return plainAnswer(query, (name) => this.#plainRows(name), this.#snapshot === undefined ? table : undefined);
    }
    const found = candidates(query, table);
    const limit = query.kind === "select" ? (query.limit ?? Infinity) : Infinity;
    const rows: SimRow[] = [];
    for (const candidate of found) {
      if (rows.length >= limit) break;
      const row = await this.#lockRow(table, candidate, query);
      if (row !== undefined) rows.push(row);
    }
    return rows.map((row) => ({ ...row }));
  }

  /** Checks, locks and keeps a change; throws `conflict` when a row differs from what is expected. */
  async change(change: Change): Promise<void> {
    await this.#begin();
    const table = this.#database.table(change.table);
    for (const [index, given] of change.rows.entries()) {
      if (change.change === "insert") await this.#insert(table, given);
      else await this.#replace(table, change, given, index);
    }
  }

  /** Stamps the writer's row: false when it is missing or fenced, or when history went back (`check`). */
  async stamp(writer: string, batch: number, mark: number, check?: HistoryCheck): Promise<boolean> {
    const table = this.#database.table("writers");
    await this.#take(rowLock(table, writer), "update");
    const row = this.#ownOrCommitted(table, writer);
    if (row === undefined || (row["mark"] as number) < 0) return false;
    if (check !== undefined && !this.#isWhole(row["batch"] as number, check)) return false;
    this.#keep(table, writer, { ...row, batch, mark });
    return true;
  }

  #isWhole(batch: number, { previous, others, incarnation }: HistoryCheck): boolean {
    const writers = this.#database.table("writers");
    const isThere = ({ writer, batch: least }: Acknowledged): boolean =>
      ((this.#ownOrCommitted(writers, writer)?.["batch"] as number | undefined) ?? -1) >= least;
    if (batch !== previous || !others.every(isThere)) return false;
    return (
      incarnation === undefined ||
      this.#ownOrCommitted(this.#database.table("meta"), INCARNATION_KEY)?.["value"] === incarnation
    );
  }

  /** A user's row by key: waits for its lock. */
  async userGet(key: string): Promise<string | undefined> {
    await this.#begin();
    await this.#take(`user:${key}`, "update");
    return this.#ownUser.get(key) ?? this.#database.userRows.get(key);
  }

  async userPut(key: string, value: string): Promise<void> {
    await this.#begin();
    await this.#take(`user:${key}`, "update");
    this.#ownUser.set(key, value);
  }

  /** sim-database.D1 */
  commit(): void {
    if (this.#isEnded) throw new TransactionAborted(this.#why);
    this.#database.apply(this.#own, this.#ownUser);
    this.end();
  }

  end(why: "deadlock" | "ended" = "ended"): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#why = why;
    this.#onEnd();
    this.#database.locks.release(this);
  }

  async #begin(): Promise<void> {
    if (this.#isEnded) throw new TransactionAborted(this.#why);
    if (this.#isBegun) return;
    this.#isBegun = true;
    if (this.#database.isolation === "serial") await this.#take(WHOLE, "update");
  }

  async #take(name: string, mode: LockMode): Promise<void> {
    if (this.#isEnded) throw new TransactionAborted(this.#why);
    const got = this.#database.locks.take(name, this, mode);
    const became = typeof got === "string" ? got : await got;
    if (became === "got") return;
    this.end();
    throw new TransactionAborted(became === "ended" ? this.#why : became);
  }

  #plainRows(name: TableName): Iterable<SimRow> {
    return this.#snapshot?.get(name)!.values() ?? this.#database.table(name).all();
  }

  async #lockRow(
    table: SimTable,
    candidate: SimRow,
    query: Query & { readonly lock: string },
  ): Promise<SimRow | undefined> {
    const key = table.keyOf(candidate);
    const name = rowLock(table, key);
    const mode = query.lock === "share" ? "share" : "update";
    const held = this.#database.locks.holds(name, this);
    if (query.lock === "skip" && !held && this.#database.locks.isTaken(name, this, mode)) return undefined;
    await this.#take(name, mode);
    const row = table.get(key);
    if (row !== undefined && isAsked(row, query)) return row;
    if (!held) this.#database.locks.drop(name, this);
    return undefined;
  }

  async #insert(table: SimTable, given: SimRow): Promise<void> {
    const row = stored(table.name, given);
    const key = table.keyOf(row);
    // sim-database.D3
    await this.#take(rowLock(table, key), "update");
    if (this.#ownOrCommitted(table, key) !== undefined && INSERTED_ONCE.has(table.name)) return;
    if (this.#ownOrCommitted(table, key) !== undefined) throw new TransactionAborted("conflict");
    await this.#takeUnique(table, key, row);
    this.#keep(table, key, row);
  }

  async #replace(
    table: SimTable,
    change: Exclude<Change, { change: "insert" }>,
    given: SimRow,
    index: number,
  ): Promise<void> {
    const key = table.keyOf(given);
    await this.#take(rowLock(table, key), "update");
    const row = this.#ownOrCommitted(table, key);
    const { expect = [], old } = change;
    if (expect.length > 0) {
      const before = stored(table.name, old![index]!, expect);
      if (row === undefined || !expect.every((column) => sameValue(row[column]!, before[column]!)))
        throw new TransactionAborted("conflict");
    }
    // As in SQL: an update of a missing row is no error.
    if (row === undefined) return;
    if (change.change === "delete") return this.#keep(table, key, undefined);
    const next = { ...row, ...stored(table.name, given, change.columns) };
    if (table.keyOf(next) !== key) throw new InvariantError(`simulated database: a key of ${table.name} is changed`);
    await this.#takeUnique(table, key, next);
    this.#keep(table, key, next);
  }

  async #takeUnique(table: SimTable, key: string, row: SimRow): Promise<void> {
    for (const name of table.uniqueOf(row)) {
      await this.#take(`${table.name}~${name}`, "update");
      const taken = this.#own.get(table.name);
      const committed = table.findUnique(name);
      const isStill = committed !== undefined && committed !== key && !(taken?.has(committed) ?? false);
      const isOwn = [...(taken ?? [])].some(
        ([other, its]) => other !== key && its !== undefined && table.uniqueOf(its).includes(name),
      );
      if (isStill || isOwn) throw new TransactionAborted("conflict");
    }
  }

  #ownOrCommitted(table: SimTable, key: string): SimRow | undefined {
    const own = this.#own.get(table.name);
    return own?.has(key) === true ? own.get(key) : table.get(key);
  }

  #keep(table: SimTable, key: string, row: SimRow | undefined): void {
    let own = this.#own.get(table.name);
    if (own === undefined) this.#own.set(table.name, (own = new Map()));
    own.set(key, row);
  }
}

function rowLock(table: SimTable, key: string): string {
  return `${table.name}:${key}`;
}

/** In lock order. */
function candidates(query: Query, table: SimTable): readonly SimRow[] {
  if (query.kind === "lookup") return inKeyOrder(table.name, lookedUp(query, lookupRows(query, table)));
  const { where } = query;
  const found = [...table.candidates(where)].filter((row) => matches(row, where));
  return query.kind === "select" && query.order !== undefined ? inOrder(found, query.order) : found;
}

function lookupRows(query: Query & { kind: "lookup" }, table: SimTable): Iterable<SimRow> {
  const [first] = query.columns;
  return table.candidates([{ column: first!, is: "in", values: query.keys.map((key) => key[0]!) }]);
}

function lookedUp(query: Query & { kind: "lookup" }, rows: Iterable<SimRow>): SimRow[] {
  // NULL equals nothing.
  const keys = query.keys.filter((key) => !key.includes(null));
  const wanted = new Set(keys.map((key) => JSON.stringify(key)));
  return [...rows].filter((row) => wanted.has(JSON.stringify(query.columns.map((column) => row[column]))));
}

/** Whether a row still matches after the wait for its lock. */
function isAsked(row: SimRow, query: Query): boolean {
  return query.kind === "lookup" ? lookedUp(query, [row]).length === 1 : matches(row, query.where);
}

/** `table`: where its indexes may be used. */
function plainAnswer(
  query: Query,
  rowsOf: (name: TableName) => Iterable<SimRow>,
  table: SimTable | undefined,
): QueryResult {
  if (query.kind === "lookup") {
    const rows = lookedUp(query, table === undefined ? rowsOf(query.table) : lookupRows(query, table));
    return inKeyOrder(query.table, rows).map((row) => ({ ...row }));
  }
  const from = table?.candidates(query.where) ?? rowsOf(query.table);
  const found = [...from].filter((row) => matches(row, query.where));
  if (query.kind === "count") return counted(query, found);
  if (query.kind === "distinct")
    return combinations(query.columns, found).map(([rows]) => pickColumns(query.columns, rows!));
  const ordered = query.order === undefined ? found : inOrder(found, query.order);
  return ordered.slice(0, query.limit).map((row) => ({ ...row }));
}

function counted(query: Count, found: readonly SimRow[]): QueryResult {
  const { by, least, most, upTo = Infinity } = query;
  const groups = by === undefined ? [found] : combinations(by, found);
  return groups.map((rows) => ({
    ...(by === undefined ? {} : pickColumns(by, rows[0]!)),
    count: Math.min(rows.length, upTo),
    ...(least === undefined ? {} : { least: ofColumn(rows, least)[0] ?? null }),
    ...(most === undefined ? {} : { most: ofColumn(rows, most).at(-1) ?? null }),
  }));
}

/** The values of a column, in order. */
function ofColumn(rows: readonly SimRow[], column: string): WireValue[] {
  return inOrder(rows, [[column, "asc"]]).flatMap((row) => (row[column] === null ? [] : [row[column]!]));
}

function pickColumns(columns: readonly string[], row: SimRow): WireRow {
  return Object.fromEntries(columns.map((column) => [column, row[column]!]));
}

/** Rows grouped by these columns, in their order. */
function combinations(columns: readonly string[], rows: readonly SimRow[]): SimRow[][] {
  const groups = new Map<string, SimRow[]>();
  const order = columns.map((column) => [column, "asc"] as const);
  for (const row of inOrder(rows, order)) {
    const name = JSON.stringify(Object.values(pickColumns(columns, row)));
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}
