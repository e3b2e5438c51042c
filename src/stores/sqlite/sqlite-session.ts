// Session: one connection, and transactions whose outcome is always known.
//
// X1. BEGIN IMMEDIATE to COMMIT without an await: nobody else in this process comes between, and no lock outlives a turn
//     of the event loop.
// X2. Every transaction first stamps this writer's row with its batch number. After a COMMIT that failed with an I/O
//     error, that row says whether it happened (A8): the connection is closed, opened anew and asked.
// X3. After any other error: ROLLBACK, then decide.
// X4. The same statement checks that the row has the batch that was acknowledged last, and that the store's incarnation (a random
//     row of `meta`) is the one this process knows. If not, the file went back to an earlier state: everything this process
//     knows is void (`epoch`), and the first process that notices writes a new incarnation and when that was.
// X5. Nothing is written once the file, its log or the index of its log has been removed or replaced: commits would go where
//     no other process, and no restart, ever reads them.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import {
  historyRow,
  INCARNATION_KEY,
  newIncarnation,
  otherIncarnation,
  type HistoryBreak,
  type HistoryEvent,
} from "../../kernel/index.ts";
import { StoreClock } from "../rules/store-clock.ts";
import type { Tx } from "../rules/statements.ts";
import { isBusy, isFull, isUnknownCommit, SQLITE_BUSY, storeErrorOf } from "./errors.ts";
import { checkFiles } from "./store-file.ts";
import { connectSqlite, type ConnectOptions, type SqliteConnection } from "./sqlite-connection.ts";
import { busyError, withRetry, BUSY_TIMEOUT_MS, sleep, retryDelayMs } from "./retry-busy.ts";
import type { Statements } from "./statements.ts";

/** What a transaction works with: the words of the rules, and those that only SQLite has. */
export interface SqliteTx extends Tx {
  readonly sql: Statements;
}

/** Thrown by the body of a transaction to roll it back and answer all the same. */
export class RollbackWith<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super("rolled back");
    this.answer = answer;
  }
}

/** How often a batch is applied anew after COMMITs that turned out not to have happened. */
const MAX_UNKNOWN_COMMITS = 3;
/** Marks of writers that died are kept this long before they are folded into one. */
const FOLD_AFTER_MS = 30 * 86_400_000;
/** X4. How long after its last commit a writer's row must be there. */
const CHECKED_FOR_MS = 10 * 86_400_000;

type Attempt<T> = { readonly done: T } | { readonly unknown: unknown; readonly result: T };

/** X4. Thrown inside a transaction, which is then rolled back and repeated. */
class RolledBack extends Error {}

export class SqliteSession {
  readonly options: ConnectOptions;
  readonly clock: StoreClock;
  #writer: string;
  #batch = 0;
  /** X4. The last batch that is known to be in; undefined while this writer has no row. */
  #acknowledged: number | undefined;
  #acknowledgedAt = 0;
  #incarnation: string | null = null;
  /** What the next transaction notes. */
  #lost: { readonly incarnation: string | null; readonly event: HistoryEvent } | undefined;
  #epoch = 0;
  readonly #listeners: ((change: HistoryBreak) => void)[] = [];
  #connection: SqliteConnection;
  /** Set while the connection is being replaced. */
  #recovery: Promise<number> | undefined;
  /** After a failed fsync the log may be readable and yet not on disk. */
  #logIsUnsafe = false;
  /** X5. Set when the store was found replaced as the connection was closed: no other is opened. */
  #replaced: unknown;
  #closed = false;

  private constructor(options: ConnectOptions, connection: SqliteConnection) {
    this.options = options;
    this.#connection = connection;
    this.#writer = options.random.id();
    this.clock = new StoreClock(options.clock, highestMark(connection.sql));
  }

  static async open(options: ConnectOptions): Promise<SqliteSession> {
    return new SqliteSession(options, await connectSqlite(options));
  }

  get connection(): SqliteConnection {
    return this.#connection;
  }

  /** X4. How often the file went back. */
  get epoch(): number {
    return this.#epoch;
  }

  onBreak(listener: (change: HistoryBreak) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads, with the same patience as writes. */
  async read<T>(what: string, body: (sql: Statements) => T): Promise<T> {
    await this.#usable();
    return withRetry(this.options, this.#doing(what), () => body(this.#connection.sql));
  }

  /** X1–X3. `body` may run more than once, never partly. */
  async transact<T>(what: string, body: (tx: SqliteTx) => T): Promise<T> {
    const start = this.options.clock.monotonic();
    for (let unknowns = 0; ;) {
      // Looked at first: with nothing to wait for, a write begins in the caller's own turn of the event loop.
      if (this.#recovery !== undefined || this.#closed || !this.#connection.db.isOpen) await this.#usable();
      try {
        const attempt = this.#attempt(body);
        if ("done" in attempt) return attempt.done;
        if (await this.#happened(what, attempt.unknown)) return attempt.result;
        if (isFull(attempt.unknown) || ++unknowns === MAX_UNKNOWN_COMMITS)
          throw storeErrorOf(attempt.unknown, this.#doing(what));
        continue;
      } catch (error) {
        if (error instanceof RolledBack) {
          this.#wentBack(error.message);
          continue;
        }
        if (!isBusy(error)) throw storeErrorOf(error, this.#doing(what));
        if (this.options.clock.monotonic() - start >= BUSY_TIMEOUT_MS) throw busyError(error, this.#doing(what));
      }
      await sleep(this.options, retryDelayMs(this.options));
    }
  }

  /** An error names the file it happened with. */
  #doing(what: string): string {
    return `${what} in ${this.options.path}`;
  }

  #attempt<T>(body: (tx: SqliteTx) => T): Attempt<T> {
    const { sql, files } = this.#connection;
    // X5
    if (files !== undefined) checkFiles(files);
    sql.begin.run();
    let result: T;
    try {
      const now = this.clock.now();
      this.#stamp(sql, now);
      result = body({ sql, now, nextRun: undefined, flows: undefined });
    } catch (error) {
      this.#rollback();
      if (error instanceof RollbackWith) return { done: error.answer as T };
      throw error;
    }
    try {
      sql.commit.run();
    } catch (error) {
      if (files !== undefined && isUnknownCommit(error)) return { unknown: error, result };
      this.#rollback();
      throw error;
    }
    this.#acknowledged = this.#batch;
    this.#acknowledgedAt = this.options.clock.monotonic();
    this.#lost = undefined;
    return { done: result };
  }

  /** X2, X4 */
  #stamp(sql: Statements, now: EpochMs): void {
    const previous = this.#acknowledged;
    const batch = ++this.#batch;
    if (previous === undefined) return this.#begin(sql, batch, now);
    if (sql.stamp.run(this.#writer, batch, now, previous, this.#incarnation).changes === 1) return;
    const missing = this.#findMissing(sql, previous);
    if (missing === undefined) return this.#begin(sql, batch, now);
    throw new RolledBack(missing);
  }

  /** X4. Rows of writers that have not written for long are removed: a missing one proves nothing then. */
  #findMissing(sql: Statements, previous: number): string | undefined {
    const found = (sql.writer.get(this.#writer) as { batch: number } | undefined)?.batch;
    const incarnation = (sql.incarnation.get() as { value: string } | undefined)?.value;
    if (incarnation !== this.#incarnation) return otherIncarnation(this.#incarnation, incarnation);
    const isOld = this.options.clock.monotonic() - this.#acknowledgedAt > CHECKED_FOR_MS;
    if (found === previous || (found === undefined && isOld)) return undefined;
    return `it acknowledged ${previous} commits of this process and has ${found ?? "none"}`;
  }

  /** X4, for a process that commits nothing. */
  async checkHistory(): Promise<void> {
    const missing = await this.read("Checking the history of the store", (sql) =>
      this.#acknowledged === undefined ? undefined : this.#findMissing(sql, this.#acknowledged),
    );
    if (missing !== undefined) this.#wentBack(missing);
  }

  /** The first transaction of a writer: its row, the incarnation it belongs to, and that the file went back if it did. */
  #begin(sql: Statements, batch: number, now: EpochMs): void {
    sql.addWriter.run(this.#writer, batch, now);
    let incarnation = (sql.incarnation.get() as { value: string } | undefined)?.value;
    const lost = this.#lost;
    // Another process may have said so already, with a later incarnation. An earlier one is what the file went back to.
    if (lost !== undefined && !((incarnation ?? "") > (lost.incarnation ?? ""))) {
      incarnation = undefined;
      const { key, value } = historyRow(lost.event);
      sql.putMeta.run(key, value);
    }
    if (incarnation === undefined) {
      incarnation = newIncarnation(this.options.random, now);
      sql.putMeta.run(INCARNATION_KEY, incarnation);
    }
    this.#incarnation = incarnation;
  }

  /** X4. Listeners are called before anything else is written. */
  #wentBack(detail: string): void {
    const at = this.clock.now();
    this.#epoch += 1;
    this.#lost = { incarnation: this.#incarnation, event: { at, kind: "rolled_back", detail } };
    this.#writer = this.options.random.id();
    this.#acknowledged = undefined;
    for (const listener of this.#listeners) listener({ kind: "rolled_back", at, detail });
  }

  #rollback(): void {
    const { db, sql } = this.#connection;
    // SQLite has rolled back by itself after some errors.
    if (!db.isTransaction) return;
    try {
      sql.rollback.run();
    } catch {
      // Closing rolls back too; the next call opens a new connection.
      this.#disconnect();
    }
  }

  /** X5. The log and its index are looked at while the connection holds them: closing it may remove them. */
  #disconnect(): void {
    const { db, files = [] } = this.#connection;
    try {
      checkFiles(files);
    } catch (error) {
      this.#replaced = error;
    }
    db.close();
  }

  /** X2 */
  async #happened(what: string, commitError: unknown): Promise<boolean> {
    const batch = this.#batch;
    if (!isFull(commitError)) this.#logIsUnsafe = true;
    this.#disconnect();
    try {
      const last = await this.#reopen();
      if (this.#acknowledged !== undefined && last < this.#acknowledged)
        this.#wentBack(`it acknowledged ${this.#acknowledged} commits of this process and has ${last}`);
      else if (last >= batch) this.#acknowledged = batch;
      return last >= batch;
    } catch (error) {
      const { code } = storeErrorOf(commitError, what);
      throw new RepriseError(
        code,
        `${this.#doing(what)}: COMMIT failed, and the database could not be asked whether it happened. Check the disk; what was committed is in the store, the rest is done again when the leases run out.`,
        { cause: commitError, details: { unresolved: true, asking: String(error) } },
      );
    }
  }

  /** One at a time, and nobody writes before it is done: the answer is this writer's last batch in the store. */
  #reopen(): Promise<number> {
    if (this.#replaced !== undefined) return Promise.reject(this.#replaced);
    this.#recovery ??= this.#replaceConnection().finally(() => {
      this.#recovery = undefined;
    });
    return this.#recovery;
  }

  async #replaceConnection(): Promise<number> {
    const { path } = this.options;
    const [file] = this.#connection.files ?? [];
    if (file !== undefined) checkFiles([file]);
    const connection = await connectSqlite({ ...this.options, migrate: false });
    try {
      if (file !== undefined) checkFiles([file]);
      if (this.#logIsUnsafe) await withRetry(this.options, `Saving the log of ${path}`, () => saveLog(connection));
      const batch = await withRetry(this.options, `Reopening ${path}`, () => askBatch(connection, this.#writer));
      this.#logIsUnsafe = false;
      this.#connection = connection;
      return batch;
    } catch (error) {
      connection.db.close();
      throw error;
    }
  }

  async #usable(): Promise<void> {
    // A recovery that fails is reported to the write that caused it; the next call tries again.
    if (this.#recovery !== undefined) await this.#recovery.catch(() => undefined);
    if (this.#closed) throw new RepriseError("USAGE", `The store ${this.options.path} is closed.`);
    if (!this.#connection.db.isOpen) await this.#reopen();
  }

  /** Another writer of this file may be ahead of our clock. */
  catchUp(): void {
    this.clock.raise(highestMark(this.#connection.sql));
  }

  async close(): Promise<void> {
    if (this.#recovery !== undefined) await this.#recovery.catch(() => undefined);
    if (this.#closed) return;
    if (this.#batch > 0 && this.#connection.db.isOpen)
      await this.transact("Closing the store", ({ sql, now }) => {
        // The clock must not fall behind after a restart, yet lines of writers that are gone should not pile up.
        sql.saveMark.run(now);
        sql.deleteWriter.run(this.#writer);
        sql.deleteOldWriters.run(now - FOLD_AFTER_MS);
      }).catch(() => undefined);
    this.#closed = true;
    if (this.#connection.db.isOpen) this.#connection.db.close();
  }
}

/** Copying the log into the database and syncing that makes durable whatever is read from now on. */
function saveLog({ db }: SqliteConnection): void {
  const { busy } = db.prepare("pragma wal_checkpoint(truncate)").get() as { busy: number };
  if (busy !== 0) throw Object.assign(new Error("the log is in use"), { errcode: SQLITE_BUSY });
}

/** Under the write lock, which waits until no COMMIT can be under way any more; a plain read does not (A8). */
function askBatch({ sql }: SqliteConnection, writer: string): number {
  sql.begin.run();
  try {
    return (sql.writer.get(writer) as { batch: number } | undefined)?.batch ?? 0;
  } finally {
    sql.rollback.run();
  }
}

function highestMark(sql: Statements): EpochMs {
  return (sql.highestMark.get() as { mark: number | null }).mark ?? 0;
}
