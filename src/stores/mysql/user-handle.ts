// UserHandle: what the function of ctx.tx may do on our connection.
//
// U1. Statements go one after the other, and only while the function runs (remote/user-calls.ts).
// U2. Each is one statement, and none of those that end a transaction: on MySQL that is whatever changes the schema, too. A
//     procedure that hides such a thing is found out at the commit, where our savepoint is missing.
// U3. A deadlock and a lock that was not got in time end the transaction (1205 only half of it): after one of them the handle
//     takes nothing more, and nothing is committed.

import { RepriseError, type Timers } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";
import { UserCalls } from "../remote/user-calls.ts";
import type { DriverConnection } from "./driver.ts";
import { endsTransaction, isTransactionAborted } from "./errors.ts";
import { objectionTo } from "./user-sql.ts";

/** What a statement answers. */
export interface MysqlResult<Row> {
  readonly rows: Row[];
  /** How many rows were found and written; 0 for a query. */
  readonly affectedRows: number;
  /** The number the server gave to the first new row; 0 when it gave none. */
  readonly insertId: number;
}

/** What the function of `ctx.tx(name, mysql, …)` is given. */
export interface MysqlHandle {
  /** Runs one statement in the transaction; each `?` stands for the next of `values`. */
  query<Row = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<MysqlResult<Row>>;
}

export class UserHandle extends UserCalls {
  readonly db: MysqlHandle;
  readonly #wire: DriverConnection;
  #isBroken = false;
  #shouldRetry = false;

  constructor(wire: DriverConnection, timers: Timers, idleMs: number) {
    super(timers, idleMs);
    this.#wire = wire;
    this.db = {
      query: <Row>(sql: string, values: readonly unknown[] = []) => this.enqueue(() => this.#run<Row>(sql, values)),
    };
  }

  /** U3 */
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
        "query was called after the server had ended the transaction. Let its error through.",
      );
    const objection = objectionTo(sql);
    if (objection !== undefined) throw new RepriseError("USAGE", `ctx.tx refuses SQL that ${objection}.`);
    try {
      const { rows, written } = await this.#wire.runUser(sql, values);
      return { rows: rows as Row[], affectedRows: written?.affectedRows ?? 0, insertId: written?.insertId ?? 0 };
    } catch (error) {
      if (error instanceof ConnectionError || endsTransaction(error)) this.#isBroken = true;
      this.#shouldRetry ||= isTransactionAborted(error);
      throw error;
    }
  }
}
