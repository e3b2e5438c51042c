// UserHandle: the handle that a ctx.tx function uses on Reprise's connection.
//
// mysql.U1. Statements run one after the other, and only while the function runs (user-calls.U1).
// mysql.U2. Each call runs one statement. Statements that end a transaction are refused; on MySQL that includes schema changes. A
//   procedure that hides one is detected at the commit, where Reprise's savepoint is missing.
// mysql.U3. A deadlock or a lock timeout ends the transaction (1205 only half of it): the handle then refuses further statements,
//   and nothing is committed.

import { RepriseError, type Timers } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";
import { UserCalls } from "../remote/user-calls.ts";
import type { DriverConnection } from "./driver.ts";
import { endsTransaction, isTransactionAborted } from "./errors.ts";
import { objectionTo } from "./user-sql.ts";

/** The result of a statement. */
export interface MysqlResult<Row> {
  readonly rows: Row[];
  /** The number of rows found and written; 0 for a query. */
  readonly affectedRows: number;
  /** The number that the server assigned to the first new row; 0 if none. */
  readonly insertId: number;
}

/** The handle that the function of `ctx.tx(name, mysql, …)` gets. */
export interface MysqlHandle {
  /** Runs one statement in the transaction; each `?` stands for the next of `values`. */
  query<Row = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<MysqlResult<Row>>;
}

export class UserHandle extends UserCalls {
  readonly db: MysqlHandle;
  readonly #driver: DriverConnection;
  #isBroken = false;
  #shouldRetry = false;

  constructor(driver: DriverConnection, timers: Timers, idleMs: number) {
    super(timers, idleMs);
    this.#driver = driver;
    this.db = {
      query: <Row>(sql: string, values: readonly unknown[] = []) => this.enqueue(() => this.#run<Row>(sql, values)),
    };
  }

  /** mysql.U3 */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  get shouldRetry(): boolean {
    return this.#shouldRetry;
  }

  async #run<Row>(sql: string, values: readonly unknown[]): Promise<MysqlResult<Row>> {
    if (this.#isBroken)
      throw new RepriseError(
        "USAGE",
        "`query` was called after the server had aborted the transaction. Do not catch the error of the failed query.",
      );
    const objection = objectionTo(sql);
    if (objection !== undefined) throw new RepriseError("USAGE", `ctx.tx refuses SQL that ${objection}.`);
    try {
      const { rows, written } = await this.#driver.runUser(sql, values);
      return { rows: rows as Row[], affectedRows: written?.affectedRows ?? 0, insertId: written?.insertId ?? 0 };
    } catch (error) {
      if (error instanceof ConnectionError || endsTransaction(error)) this.#isBroken = true;
      this.#shouldRetry ||= isTransactionAborted(error);
      throw error;
    }
  }
}
