// SQLite session: one connection, and transactions whose outcome is always known.
//
// sqlite-session.X1. There is no await between BEGIN IMMEDIATE and COMMIT: no other code of this process runs in between, and no
//   lock outlives a turn of the event loop.
// sqlite-session.X2. Every transaction first writes its batch number to this writer's row. After a COMMIT that failed with an I/O
//   error, the session reopens the connection, and that row says whether the commit happened (rules.A8).
// sqlite-session.X3. After any other error the session rolls back first.
// sqlite-session.X4. The same statement checks that the row holds the batch that was acknowledged last, and that the store's
//   incarnation (a random row of `meta`) is the one this process knows. If not, the store was rolled back to an earlier state:
//   everything this process knows is void (`epoch`), and the first process that notices writes a new incarnation and the time.
// sqlite-session.X5. Nothing is written once the file, its log or the index of its log was removed or replaced: no other process, and
//   no restart, would ever read those commits.
// sqlite-session.X6. A mirror holds runs of another store: every write but those that put such runs in is refused.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import {
  historyRow,
  INCARNATION_KEY,
  newIncarnation,
  otherIncarnation,
  type EventSubscription,
  type HistoryBreak,
  type HistoryEvent,
} from "../../kernel/index.ts";
import { isFederated } from "../rules/run-log.ts";
import { StoreClock } from "../rules/store-clock.ts";
import type { Tx } from "../rules/transaction.ts";
import { isBusy, isFull, isUnknownCommit, SQLITE_BUSY, storeErrorOf } from "./errors.ts";
import { mirrorRefusal, parseMirrorInfo, type MirrorInfo } from "./mirror-info.ts";
import { checkFiles } from "./store-file.ts";
import { isUnchanged } from "./read-only-file.ts";
import { connectSqlite, type ConnectOptions, type SqliteConnection } from "./sqlite-connection.ts";
import { busyError, withRetry, BUSY_TIMEOUT_MS, sleep, retryDelayMs } from "./retry-busy.ts";
import type { Rows, RunNumbers } from "../rows/rows.ts";
import type { Statements } from "./statements.ts";
import { OutsideNeeded } from "./needed-contents.ts";

/** A transaction with the statements of the rules and those that only SQLite has. */
export interface SqliteTx extends Tx {
  readonly sql: Statements;
}

/** Thrown by the body of a transaction to roll it back and still return a result. */
export class RollbackWith<T> extends Error {
  readonly answer: T;
  constructor(answer: T) {
    super("rolled back");
    this.answer = answer;
  }
}

/** How often a batch is applied again after COMMITs that did not happen. */
const MAX_UNKNOWN_COMMITS = 3;
/** Rows of writers that did not write for this long are deleted. */
const DELETE_WRITERS_AFTER_MS = 30 * 86_400_000;
/** sqlite-session.X4. How long after its last commit a writer's row must exist. */
const WRITER_EXISTS_MS = 10 * 86_400_000;

type Attempt<T> = { readonly done: T } | { readonly unknown: unknown; readonly result: T };

/** sqlite-session.X4. Thrown inside a transaction, which is then rolled back and repeated. */
class StoreRolledBack extends Error {}

export class SqliteSession {
  readonly options: ConnectOptions;
  readonly clock: StoreClock;
  #writer: string;
  #batch = 0;
  /** sqlite-session.X4. The last batch that is known to be committed; undefined while this writer has no row. */
  #acknowledged: number | undefined;
  #acknowledgedAt = 0;
  #incarnation: string | null = null;
  /** The rollback that the next transaction records. */
  #rollbackEvent: { readonly incarnation: string | null; readonly event: HistoryEvent } | undefined;
  #epoch = 0;
  /** The time of the transaction that was tried last. */
  #attemptedAt: EpochMs = 0;
  readonly #listeners: ((change: HistoryBreak) => void)[] = [];
  #connection: SqliteConnection;
  /** Set while the connection is being replaced. */
  #recovery: Promise<number> | undefined;
  /** After a failed fsync the log may be readable but not on disk. */
  #logIsUnsafe = false;
  /** sqlite-session.X5. Set when the file was replaced before the connection was closed: no other connection is opened. */
  #replaced: unknown;
  #closed = false;
  /** sqlite-session.X6. Undefined: the store is not a mirror. */
  readonly mirror: MirrorInfo | undefined;
  /** log.L5. As this process knows it. */
  isFederated: boolean;
  /** run-event.E1. Undefined: none. */
  subscriptions: readonly EventSubscription[] | undefined;

  private constructor(options: ConnectOptions, connection: SqliteConnection) {
    this.options = { ...options, contents: connection.contents };
    this.#connection = connection;
    this.#writer = options.random.id();
    this.clock = new StoreClock(options.clock, highestMark(connection.sql));
    const row = connection.sql.mirror.get() as { value: string } | undefined;
    this.mirror = row && parseMirrorInfo(row.value);
    this.isFederated = isFederated(connection.rows);
  }

  static async open(options: ConnectOptions): Promise<SqliteSession> {
    return new SqliteSession(options, await connectSqlite(options));
  }

  get connection(): SqliteConnection {
    return this.#connection;
  }

  /** sqlite-session.X4. How often the store was rolled back. */
  get epoch(): number {
    return this.#epoch;
  }

  onBreak(listener: (change: HistoryBreak) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads, with the same retries as writes. */
  async read<T>(what: string, body: (sql: Statements, rows: Rows) => T): Promise<T> {
    return this.supply(() => this.#read(what, body));
  }

  /** needed-contents.N1 */
  supply<T>(work: () => Promise<T>): Promise<T> {
    return this.#connection.needed.supply(() => this.#connection.contents, work);
  }

  async #read<T>(what: string, body: (sql: Statements, rows: Rows) => T): Promise<T> {
    await this.#usable();
    if (this.#connection.frozen !== undefined) return this.#readFrozen(what, body);
    return withRetry(this.options, this.#describe(what), () => body(this.#connection.sql, this.#connection.rows));
  }

  /** read-only-file.V2 */
  async #readFrozen<T>(what: string, body: (sql: Statements, rows: Rows) => T): Promise<T> {
    for (;;) {
      const { sql, rows, frozen } = this.#connection;
      const outcome = await withRetry(this.options, this.#describe(what), () => ({ result: body(sql, rows) })).catch(
        // In a file that changes meanwhile, SQLite may find what looks like damage.
        (error: unknown) => ({ error }),
      );
      if (frozen === undefined || isUnchanged(frozen)) {
        if ("error" in outcome) throw outcome.error;
        return outcome.result;
      }
      await this.#usable();
      if (this.#connection.frozen === frozen) {
        const connection = await connectSqlite(this.options);
        this.#connection.db.close();
        this.#connection = connection;
      }
    }
  }

  /** sqlite-session.X1 to sqlite-session.X3. `body` may run more than once; its effects are committed once or not at all. */
  async transact<T>(what: string, body: (tx: SqliteTx) => T): Promise<T> {
    this.refuseMirror(what);
    // sqlite-connection.O4
    if (this.options.readOnly === true)
      throw new RepriseError(
        "STORE_READ_ONLY",
        `${this.#describe(what)}: this process opened the store to read. Open it to write.`,
      );
    const start = this.options.clock.monotonic();
    for (let unknowns = 0; ;) {
      // Checked first: with nothing to wait for, a write starts in the caller's turn of the event loop.
      if (this.#recovery !== undefined || this.#closed || !this.#connection.db.isOpen) await this.#usable();
      try {
        const attempt = this.#attempt(body, undefined);
        if ("done" in attempt) return attempt.done;
        if (await this.#happened(what, attempt.unknown)) return attempt.result;
        if (isFull(attempt.unknown) || ++unknowns === MAX_UNKNOWN_COMMITS)
          throw storeErrorOf(attempt.unknown, this.#describe(what));
        continue;
      } catch (error) {
        if (error instanceof StoreRolledBack) {
          this.#recordRollback(error.message);
          continue;
        }
        if (error instanceof OutsideNeeded) return this.#repeatWithContents(what, body, this.#attemptedAt);
        if (!isBusy(error)) throw storeErrorOf(error, this.#describe(what));
        if (this.options.clock.monotonic() - start >= BUSY_TIMEOUT_MS) throw busyError(error, this.#describe(what));
      }
      await sleep(this.options, retryDelayMs(this.options));
    }
  }

  /** sqlite-session.X6. For writes that find nothing to do, too: a worker on a mirror must not wait for work. */
  refuseMirror(what: string): void {
    if (this.mirror === undefined || this.options.writesMirror === true) return;
    throw mirrorRefusal(this.mirror, this.#describe(what));
  }

  /** Errors name the file. */
  #describe(what: string): string {
    return `${what} in ${this.options.path}`;
  }

  /** needed-contents.N1. At one time: the number of a new run depends on it, and so do the names of its contents. */
  async #repeatWithContents<T>(what: string, body: (tx: SqliteTx) => T, now: EpochMs): Promise<T> {
    return this.supply(async () => {
      for (const start = this.options.clock.monotonic(); ;) {
        await this.#usable();
        try {
          const attempt = this.#attempt(body, now);
          if ("done" in attempt) return attempt.done;
          if (await this.#happened(what, attempt.unknown)) return attempt.result;
          throw storeErrorOf(attempt.unknown, this.#describe(what));
        } catch (error) {
          if (error instanceof StoreRolledBack) {
            this.#recordRollback(error.message);
            continue;
          }
          if (!isBusy(error)) throw storeErrorOf(error, this.#describe(what));
          if (this.options.clock.monotonic() - start >= BUSY_TIMEOUT_MS) throw busyError(error, this.#describe(what));
        }
        await sleep(this.options, retryDelayMs(this.options));
      }
    });
  }

  #attempt<T>(body: (tx: SqliteTx) => T, at: EpochMs | undefined): Attempt<T> {
    const { sql, rows, files } = this.#connection;
    // sqlite-session.X5
    if (files !== undefined) checkFiles(files);
    sql.begin.run();
    let result: T;
    try {
      const now = at ?? this.clock.now();
      this.#attemptedAt = now;
      this.#stamp(sql, now);
      result = body({
        sql,
        rows,
        now,
        nextRun: undefined,
        runNumbers: runNumbers(sql),
        flows: undefined,
        isFederated: this.isFederated,
        subscriptions: this.subscriptions,
      });
      rows.checkOutside();
    } catch (error) {
      this.#rollback();
      if (error instanceof RollbackWith) return { done: error.answer as T };
      throw error;
    }
    try {
      sql.commit.run();
    } catch (error) {
      if (files !== undefined && isUnknownCommit(error)) {
        rows.settle(false);
        return { unknown: error, result };
      }
      this.#rollback();
      throw error;
    }
    this.#acknowledged = this.#batch;
    this.#acknowledgedAt = this.options.clock.monotonic();
    this.#rollbackEvent = undefined;
    rows.settle(true);
    return { done: result };
  }

  /** sqlite-session.X2, sqlite-session.X4 */
  #stamp(sql: Statements, now: EpochMs): void {
    const previous = this.#acknowledged;
    const batch = ++this.#batch;
    if (previous === undefined) return this.#addWriter(sql, batch, now);
    if (sql.stamp.run(this.#writer, batch, now, previous, this.#incarnation).changes === 1) return;
    const missing = this.#findMissing(sql, previous);
    if (missing === undefined) return this.#addWriter(sql, batch, now);
    throw new StoreRolledBack(missing);
  }

  /** sqlite-session.X4. The row of a writer that has not written for long may be deleted: then a missing row proves nothing. */
  #findMissing(sql: Statements, previous: number): string | undefined {
    const found = (sql.writer.get(this.#writer) as { batch: number } | undefined)?.batch;
    const incarnation = (sql.incarnation.get() as { value: string } | undefined)?.value;
    if (incarnation !== this.#incarnation) return otherIncarnation(this.#incarnation, incarnation);
    const isOld = this.options.clock.monotonic() - this.#acknowledgedAt > WRITER_EXISTS_MS;
    if (found === previous || (found === undefined && isOld)) return undefined;
    return lostCommits(previous, found);
  }

  /** sqlite-session.X4, for a process that commits nothing. */
  async checkHistory(): Promise<void> {
    const missing = await this.read("Checking the history of the store", (sql) =>
      this.#acknowledged === undefined ? undefined : this.#findMissing(sql, this.#acknowledged),
    );
    if (missing !== undefined) this.#recordRollback(missing);
  }

  /** In the first transaction of a writer: adds its row, reads the incarnation, and records a rollback of the store. */
  #addWriter(sql: Statements, batch: number, now: EpochMs): void {
    sql.addWriter.run(this.#writer, batch, now);
    let incarnation = (sql.incarnation.get() as { value: string } | undefined)?.value;
    const rollback = this.#rollbackEvent;
    // A later incarnation: another process has recorded the rollback. An earlier one is the state the store was rolled back to.
    if (rollback !== undefined && !((incarnation ?? "") > (rollback.incarnation ?? ""))) {
      incarnation = undefined;
      const { key, value } = historyRow(rollback.event);
      sql.putMeta.run(key, value);
    }
    if (incarnation === undefined) {
      incarnation = newIncarnation(this.options.random, now);
      sql.putMeta.run(INCARNATION_KEY, incarnation);
    }
    this.#incarnation = incarnation;
  }

  /** sqlite-session.X4. Calls the listeners before anything else is written. */
  #recordRollback(detail: string): void {
    const at = this.clock.now();
    this.#connection.contents.clear();
    this.#epoch += 1;
    this.#rollbackEvent = { incarnation: this.#incarnation, event: { at, kind: "rolled_back", detail } };
    this.#writer = this.options.random.id();
    this.#acknowledged = undefined;
    for (const listener of this.#listeners) listener({ kind: "rolled_back", at, detail });
  }

  #rollback(): void {
    const { db, sql, rows } = this.#connection;
    rows.settle(false);
    // After some errors SQLite has rolled back automatically.
    if (!db.isTransaction) return;
    try {
      sql.rollback.run();
    } catch {
      // Closing the connection rolls back, too; the next call opens a new one.
      this.#disconnect();
    }
  }

  /** sqlite-session.X5. Checks the log and its index before it closes the connection: closing may remove them. */
  #disconnect(): void {
    const { db, files = [] } = this.#connection;
    try {
      checkFiles(files);
    } catch (error) {
      this.#replaced = error;
    }
    db.close();
  }

  /** sqlite-session.X2 */
  async #happened(what: string, commitError: unknown): Promise<boolean> {
    const batch = this.#batch;
    if (!isFull(commitError)) this.#logIsUnsafe = true;
    this.#disconnect();
    try {
      const last = await this.#reopen();
      if (this.#acknowledged !== undefined && last < this.#acknowledged)
        this.#recordRollback(lostCommits(this.#acknowledged, last));
      else if (last >= batch) this.#acknowledged = batch;
      return last >= batch;
    } catch (error) {
      const { code } = storeErrorOf(commitError, what);
      throw new RepriseError(
        code,
        `${this.#describe(what)}: COMMIT failed, and reading its outcome failed, too. Check the disk. If the commit happened, it is in the store; otherwise a worker repeats the work when the leases expire.`,
        { cause: commitError, details: { unresolved: true, asking: String(error) } },
      );
    }
  }

  /** Runs once at a time, and every write waits for it. Returns this writer's last batch in the store. */
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
    // A recovery that fails is reported to the write that caused it; the next call retries.
    if (this.#recovery !== undefined) await this.#recovery.catch(() => undefined);
    if (this.#closed)
      throw new RepriseError("USAGE", `The store ${this.options.path} is closed. Open it again, or close it later.`);
    if (!this.#connection.db.isOpen) await this.#reopen();
  }

  /** log.L5 */
  refreshFederated(): void {
    this.isFederated = isFederated(this.#connection.rows);
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
        // The clock must not go backwards after a restart, and rows of closed writers must not accumulate.
        sql.saveMark.run(now);
        sql.deleteWriter.run(this.#writer);
        sql.deleteOldWriters.run(now - DELETE_WRITERS_AFTER_MS);
      }).catch(() => undefined);
    this.#closed = true;
    if (this.#connection.db.isOpen) this.#connection.db.close();
  }
}

function runNumbers(sql: Statements): RunNumbers {
  const highest = (): number => (sql.highestRun.get() as { run: number }).run;
  return { highest, keep: () => void sql.saveHighestRun.run(highest()) };
}

/** The detail of a rollback, for people. */
function lostCommits(acknowledged: number, found: number | undefined): string {
  return `it acknowledged ${acknowledged} commits of this process and holds ${found ?? 0}`;
}

/** Copies the log into the file and syncs it, so that everything read from now on is durable. */
function saveLog({ db }: SqliteConnection): void {
  const { busy } = db.prepare("pragma wal_checkpoint(truncate)").get() as { busy: number };
  if (busy !== 0) throw Object.assign(new Error("the log is in use"), { errcode: SQLITE_BUSY });
}

/** Takes the write lock, which waits for every running COMMIT; a plain read does not (rules.A8). */
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
