// MysqlConnection: one connection to MySQL or MariaDB, and the transaction on it.
//
// mysql.K1. All known statements are sent in one packet: BEGIN with the first query or change, COMMIT with the last. A failed
//   statement ends the packet (mysql.D1), so COMMIT runs only when everything before it succeeded. The stamp comes before all
//   changes (remote.L3): the next transaction that locks it sees all of them.
// mysql.K2. After any error: ROLLBACK, then decide (rules.A9). Error 1205 undoes only its statement, and a COMMIT after it would keep
//   the other half. Where ROLLBACK fails the connection is destroyed.
// mysql.K3. After COMMIT was sent, an error means "not committed" only if COMMIT itself cannot return it (mysql.E1).
// mysql.K4. While user SQL runs, autocommit is off: if the SQL ends the transaction, what follows is not committed, and the
//   savepoint from the start of the transaction is missing at the commit.

import { InvariantError, RepriseError, type EpochMs, type Timers } from "../../base/index.ts";
import {
  ConnectionError,
  type QueryResult,
  type Change,
  type CommitOutcome,
  type HistoryCheck,
  type Connection,
  type UserTransaction,
} from "../remote/backend.ts";
import type { Query } from "../remote/query.ts";
import { planQueries, statementsOf, takeResults } from "./merge-results.ts";
import type { Result, DriverConnection } from "./driver.ts";
import { isRetryable, isConflict, isBeforeCommit, isTransactionGone, isStampRefused, storeErrorOf } from "./errors.ts";
import { packetsOf } from "./packets.ts";
import { renderChange, renderStamp } from "./render-change.ts";
import { tableOf, textLiteral } from "./sql-text.ts";
import { UserHandle } from "./user-handle.ts";
import { OUR_SAVEPOINT } from "./user-sql.ts";

const BEGIN = "start transaction";
const BEGIN_READING: readonly string[] = [
  "set transaction isolation level repeatable read",
  "start transaction with consistent snapshot, read only",
];

export interface MysqlConnectionOptions {
  readonly driver: DriverConnection;
  readonly writer: string;
  readonly server: string;
  /** The longest packet the server accepts, in bytes. */
  readonly maxPacket: number;
  /** Ends this connection's statement on the server. */
  readonly kill: () => void;
  readonly timers: Timers;
  /** How long a ctx.tx function may send no statement. */
  readonly idleMs: number;
}

export class MysqlConnection implements Connection {
  readonly writer: string;
  readonly server: string;
  readonly #parts: MysqlConnectionOptions;
  readonly #driver: DriverConnection;
  #inTransaction = false;
  #isClosed = false;
  #user: UserHandle | undefined;

  constructor(parts: MysqlConnectionOptions) {
    this.#parts = parts;
    this.#driver = parts.driver;
    this.writer = parts.writer;
    this.server = parts.server;
  }

  get isUsable(): boolean {
    return this.#driver.isUsable && !this.#isClosed;
  }

  get threadId(): number {
    return this.#driver.threadId;
  }

  async query(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    const output: QueryResult[] = [];
    const begin = this.#inTransaction ? [] : [BEGIN];
    let pending = planQueries(queries);
    const results = await this.#within("Reading", [...begin, ...statementsOf(pending)]);
    pending = takeResults(output, pending, results.slice(begin.length));
    while (pending.length > 0)
      pending = takeResults(output, pending, await this.#within("Reading", statementsOf(pending)));
    return output;
  }

  async read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    this.#refuseOpen();
    const output: QueryResult[] = [];
    const all = planQueries(queries);
    const statements = statementsOf(all);
    // A single statement has one snapshot anyway.
    const isAlone = statements.length < 2;
    const before = isAlone ? [] : BEGIN_READING;
    const results = await this.#within("Reading", [...before, ...statements, ...(isAlone ? [] : ["commit"])]);
    this.#inTransaction = false;
    let pending = takeResults(output, all, results.slice(before.length));
    if (pending.length === 0) return output;
    // Rare: more distinct values than one packet finds. Read all again, so that the rest has the same snapshot.
    pending = takeResults(
      output,
      all,
      (await this.#within("Reading", [...before, ...statements])).slice(before.length),
    );
    while (pending.length > 0)
      pending = takeResults(output, pending, await this.#within("Reading", statementsOf(pending)));
    await this.rollback();
    return output;
  }

  /** Begins a read-only transaction with one snapshot; `rollback` ends it. */
  async snapshot(): Promise<void> {
    this.#refuseOpen();
    await this.#within("Reading", BEGIN_READING);
  }

  async commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome> {
    await this.#user?.settled();
    if (this.#user?.isBroken === true) {
      await this.rollback();
      return "retry";
    }
    const statements = [
      ...(this.#inTransaction ? [] : [BEGIN]),
      ...(this.#user === undefined ? [] : [`release savepoint ${OUR_SAVEPOINT}`]),
      ...renderStamp(this.writer, batch, mark, check),
      ...changes.flatMap(renderChange),
      "commit",
    ];
    this.#inTransaction = true;
    let isLast = false;
    try {
      const packets = packetsOf(statements, this.#parts.maxPacket);
      for (const [at, packet] of packets.entries()) {
        isLast = at === packets.length - 1;
        await this.#driver.run(packet);
      }
    } catch (error) {
      return await this.#outcomeOf(error, isLast, check !== undefined);
    }
    await this.#ended();
    return "committed";
  }

  /** mysql.K2, mysql.K3 */
  async #outcomeOf(error: unknown, wasCommitSent: boolean, wasChecked: boolean): Promise<CommitOutcome> {
    if (error instanceof ConnectionError) throw error;
    const isKnown =
      !wasCommitSent ||
      error instanceof RepriseError ||
      isConflict(error) ||
      isStampRefused(error) ||
      isTransactionGone(error) ||
      isBeforeCommit(error);
    // COMMIT output these itself only where it has undone everything.
    if (!isKnown && !isRetryable(error)) {
      this.destroy();
      throw new ConnectionError("lost", { cause: error });
    }
    await this.rollback();
    if (isStampRefused(error)) this.#isClosed = true;
    if (isStampRefused(error) && wasChecked) return "rolled_back";
    if (isConflict(error) || isStampRefused(error)) return "conflict";
    if (isRetryable(error)) return "retry";
    if (isTransactionGone(error))
      throw new RepriseError(
        "USAGE",
        "The SQL of ctx.tx ended its own transaction, so its changes up to that point are committed without the journal entry. Do not call procedures that commit or change the schema inside ctx.tx.",
        { cause: error },
      );
    throw storeErrorOf(error, "Committing");
  }

  async rollback(): Promise<void> {
    if (!this.#inTransaction || !this.#driver.isUsable) return;
    await this.#user?.settled();
    try {
      await this.#driver.run(["rollback"]);
    } catch (error) {
      this.destroy();
      throw error instanceof ConnectionError ? error : new ConnectionError("lost", { cause: error });
    }
    await this.#ended();
  }

  async userHandle(): Promise<UserTransaction> {
    const begin = this.#inTransaction ? [] : [BEGIN];
    // mysql.K4
    await this.#within("Beginning", [...begin, "set autocommit=0", `savepoint ${OUR_SAVEPOINT}`]);
    const { timers, idleMs } = this.#parts;
    this.#user = new UserHandle(this.#driver, timers, idleMs);
    return this.#user;
  }

  /** Runs statements of the backend outside a transaction; each one autocommits. */
  async alone(statements: readonly string[]): Promise<readonly Result[]> {
    this.#refuseOpen();
    const results = await this.#within("Querying the server", statements);
    this.#inTransaction = false;
    return results;
  }

  destroy(): void {
    const isBusy = this.#inTransaction || !this.#driver.isIdle;
    this.#isClosed = true;
    this.#inTransaction = false;
    this.#driver.destroy();
    if (isBusy) this.#parts.kill();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const line = `where writer=${textLiteral(this.writer)}`;
    // Its outcome is known. If the delete fails, the row is deleted with other old rows.
    if (this.#driver.isUsable && !this.#inTransaction)
      await this.#driver.run([`delete from ${tableOf("writers")} ${line}`]).catch(() => undefined);
    await this.#driver.close();
  }

  /** Runs statements that may be part of a transaction; an error ends it. */
  async #within(what: string, statements: readonly string[]): Promise<readonly Result[]> {
    this.#inTransaction = true;
    try {
      return await this.#driver.run(statements);
    } catch (error) {
      if (error instanceof ConnectionError) this.#inTransaction = false;
      else await this.rollback();
      if (isRetryable(error)) throw new ConnectionError("retry", { cause: error });
      throw storeErrorOf(error, what);
    }
  }

  async #ended(): Promise<void> {
    this.#inTransaction = false;
    if (this.#user === undefined) return;
    this.#user.close();
    this.#user = undefined;
    try {
      await this.#driver.run(["set autocommit=1"]);
    } catch {
      // The transaction has ended correctly; only the connection is lost.
      this.destroy();
    }
  }

  #refuseOpen(): void {
    if (this.#inTransaction) throw new InvariantError("A call that needs no transaction was made while one is open.");
  }
}

export function mysqlConnection(connection: Connection): MysqlConnection {
  if (connection instanceof MysqlConnection) return connection;
  throw new InvariantError("A MySQL store was given a connection of another backend.");
}
