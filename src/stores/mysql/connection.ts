// Connection: one connection to MySQL or MariaDB, and the transaction on it.
//
// K1. All that is known travels in one packet: BEGIN with the first query or change, COMMIT with the last. A statement
//     that fails ends the packet (D1), so COMMIT runs only when everything before it has. The stamp comes before all changes
//     (L3): whoever locks it next knows of all of them.
// K2. After any error ROLLBACK, and only then is anything decided: 1205 undoes no more than its statement, and a COMMIT behind
//     it would keep the other half (A9). Where that is not possible the connection is destroyed.
// K3. What the server says after COMMIT was sent is taken for a no only where COMMIT itself could not have said it (E1).
// K4. While user SQL runs, nothing commits by itself: what follows an end of the transaction stays undone, and the savepoint
//     from its beginning is missing at the commit.

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
import { isRetryable, isConflict, isSettled, isTransactionGone, isStampRefused, storeErrorOf } from "./errors.ts";
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
  readonly wire: DriverConnection;
  readonly writer: string;
  readonly server: string;
  /** The longest packet the server takes, in bytes. */
  readonly maxPacket: number;
  /** Ends what this connection does, in the server. */
  readonly kill: () => void;
  readonly timers: Timers;
  /** How long a function of the user's may ask for nothing. */
  readonly idleMs: number;
}

export class MysqlConnection implements Connection {
  readonly writer: string;
  readonly server: string;
  readonly #parts: MysqlConnectionOptions;
  readonly #wire: DriverConnection;
  #isOpen = false;
  #isClosed = false;
  #user: UserHandle | undefined;

  constructor(parts: MysqlConnectionOptions) {
    this.#parts = parts;
    this.#wire = parts.wire;
    this.writer = parts.writer;
    this.server = parts.server;
  }

  get isUsable(): boolean {
    return this.#wire.isUsable && !this.#isClosed;
  }

  get threadId(): number {
    return this.#wire.threadId;
  }

  async query(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    const answers: QueryResult[] = [];
    const begin = this.#isOpen ? [] : [BEGIN];
    let open = planQueries(queries);
    const results = await this.#within("Reading", [...begin, ...statementsOf(open)]);
    open = takeResults(answers, open, results.slice(begin.length));
    while (open.length > 0) open = takeResults(answers, open, await this.#within("Reading", statementsOf(open)));
    return answers;
  }

  async read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    this.#refuseOpen();
    const answers: QueryResult[] = [];
    const all = planQueries(queries);
    const statements = statementsOf(all);
    // One statement sees one snapshot by itself.
    const isAlone = statements.length < 2;
    const before = isAlone ? [] : BEGIN_READING;
    const results = await this.#within("Reading", [...before, ...statements, ...(isAlone ? [] : ["commit"])]);
    this.#isOpen = false;
    let open = takeResults(answers, all, results.slice(before.length));
    if (open.length === 0) return answers;
    // Rare: more different values than one packet looks for. All anew, so that the rest is of the same snapshot.
    open = takeResults(answers, all, (await this.#within("Reading", [...before, ...statements])).slice(before.length));
    while (open.length > 0) open = takeResults(answers, open, await this.#within("Reading", statementsOf(open)));
    await this.rollback();
    return answers;
  }

  /** Begins a transaction of one moment, in which nothing is written: `ask` sees that moment until `rollback`. */
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
      ...(this.#isOpen ? [] : [BEGIN]),
      ...(this.#user === undefined ? [] : [`release savepoint ${OUR_SAVEPOINT}`]),
      ...renderStamp(this.writer, batch, mark, check),
      ...changes.flatMap(renderChange),
      "commit",
    ];
    this.#isOpen = true;
    let isLast = false;
    try {
      const packets = packetsOf(statements, this.#parts.maxPacket);
      for (const [at, packet] of packets.entries()) {
        isLast = at === packets.length - 1;
        await this.#wire.run(packet);
      }
    } catch (error) {
      return await this.#judge(error, isLast, check !== undefined);
    }
    await this.#ended();
    return "committed";
  }

  /** K2, K3 */
  async #judge(error: unknown, wasCommitSent: boolean, wasChecked: boolean): Promise<CommitOutcome> {
    if (error instanceof ConnectionError) throw error;
    const isKnown =
      !wasCommitSent ||
      error instanceof RepriseError ||
      isConflict(error) ||
      isStampRefused(error) ||
      isTransactionGone(error) ||
      isSettled(error);
    // COMMIT answers these itself only where it has undone everything.
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
        "The transaction of ctx.tx was ended by its own SQL, so what came before is committed without its entry. Call no procedure that commits or changes the schema.",
        { cause: error },
      );
    throw storeErrorOf(error, "Committing");
  }

  async rollback(): Promise<void> {
    if (!this.#isOpen || !this.#wire.isUsable) return;
    await this.#user?.settled();
    try {
      await this.#wire.run(["rollback"]);
    } catch (error) {
      this.destroy();
      throw error instanceof ConnectionError ? error : new ConnectionError("lost", { cause: error });
    }
    await this.#ended();
  }

  async userHandle(): Promise<UserTransaction> {
    const begin = this.#isOpen ? [] : [BEGIN];
    // K4
    await this.#within("Beginning", [...begin, "set autocommit=0", `savepoint ${OUR_SAVEPOINT}`]);
    const { timers, idleMs } = this.#parts;
    this.#user = new UserHandle(this.#wire, timers, idleMs);
    return this.#user;
  }

  /** Statements of the backend's own, outside of any transaction; each commits by itself. */
  async alone(statements: readonly string[]): Promise<readonly Result[]> {
    this.#refuseOpen();
    const results = await this.#within("Asking the server", statements);
    this.#isOpen = false;
    return results;
  }

  destroy(): void {
    const isDoing = this.#isOpen || !this.#wire.isIdle;
    this.#isClosed = true;
    this.#isOpen = false;
    this.#wire.destroy();
    if (isDoing) this.#parts.kill();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const line = `where writer=${textLiteral(this.writer)}`;
    // Nobody will ask about it any more. If it stays, it is removed with the old ones.
    if (this.#wire.isUsable && !this.#isOpen)
      await this.#wire.run([`delete from ${tableOf("writers")} ${line}`]).catch(() => undefined);
    await this.#wire.close();
  }

  /** Statements that may be part of a transaction; an error has ended it. */
  async #within(what: string, statements: readonly string[]): Promise<readonly Result[]> {
    this.#isOpen = true;
    try {
      return await this.#wire.run(statements);
    } catch (error) {
      if (error instanceof ConnectionError) this.#isOpen = false;
      else await this.rollback();
      if (isRetryable(error)) throw new ConnectionError("retry", { cause: error });
      throw storeErrorOf(error, what);
    }
  }

  async #ended(): Promise<void> {
    this.#isOpen = false;
    if (this.#user === undefined) return;
    this.#user.close();
    this.#user = undefined;
    try {
      await this.#wire.run(["set autocommit=1"]);
    } catch {
      // The transaction has ended as it should; only the connection is of no more use.
      this.destroy();
    }
  }

  #refuseOpen(): void {
    if (this.#isOpen) throw new InvariantError("Something was to run outside of the transaction that is open.");
  }
}

export function mysqlConnection(connection: Connection): MysqlConnection {
  if (connection instanceof MysqlConnection) return connection;
  throw new InvariantError("A connection of another backend was given to a MySQL store.");
}
