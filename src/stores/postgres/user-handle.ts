// UserHandle: the handle that a ctx.tx function uses on Reprise's connection.
//
// postgres.U1. Statements run one after the other, and only while the function runs (user-calls.U1).
// postgres.U2. Each call runs one statement (the server refuses several). Statements that end the transaction, change the
//   connection or name Reprise's schema are refused by their first words. SQL that hides this in a stored function is detected if
//   it ends the transaction, and reset otherwise (postgres.K4).

import type { Client } from "pg";
import { RepriseError, type Timers } from "../../base/index.ts";
import { UserCalls } from "../remote/user-calls.ts";
import { isTransactionAborted } from "./errors.ts";
import { objectionTo } from "./user-sql.ts";

/** The result of a statement. */
export interface PostgresResult<Row> {
  readonly rows: Row[];
  /** The number of rows written or read. */
  readonly rowCount: number | null;
}

/** The handle that the function of `ctx.tx(name, postgres, …)` gets. */
export interface PostgresHandle {
  /** Runs one statement in the transaction; `$1`, `$2` … stand for `values`. */
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<PostgresResult<Row>>;
}

/** @internal Hidden from the published types, because `pg` may not be installed. */
export class UserHandle extends UserCalls {
  readonly db: PostgresHandle;
  readonly #client: Client;
  readonly #schema: string;
  readonly #timed: <T>(act: () => Promise<T>) => Promise<T>;
  #shouldRetry = false;
  /** A statement failed. The client's transaction status is not used: it is updated after the error. */
  #hasFailed = false;

  constructor(
    client: Client,
    schema: string,
    timed: <T>(act: () => Promise<T>) => Promise<T>,
    timers: Timers,
    idleMs: number,
  ) {
    super(timers, idleMs);
    this.#client = client;
    this.#schema = schema;
    this.#timed = timed;
    this.db = {
      query: <Row>(text: string, values: readonly unknown[] = []) => this.enqueue(() => this.#run<Row>(text, values)),
    };
  }

  get shouldRetry(): boolean {
    return this.#shouldRetry;
  }

  async #run<Row>(text: string, values: readonly unknown[]): Promise<PostgresResult<Row>> {
    const objection = objectionTo(text, this.#schema);
    if (objection !== undefined) throw new RepriseError("USAGE", `ctx.tx refuses SQL that ${objection}.`);
    const config = { text, values: [...values], queryMode: "extended" };
    const { rows, rowCount } = await this.#timed(() => this.#client.query<Row & object>(config)).catch(
      (error: unknown) => {
        this.#shouldRetry ||= isTransactionAborted(error);
        this.#hasFailed = true;
        throw error;
      },
    );
    // After a failed statement only ROLLBACK TO a savepoint succeeds.
    this.#hasFailed = false;
    this.#checkTransaction();
    return { rows, rowCount };
  }

  override async ended(): Promise<void> {
    await super.ended();
    if (this.#hasFailed)
      throw new RepriseError(
        "USAGE",
        "A statement of ctx.tx failed and its function caught the error, but PostgreSQL aborts the whole transaction then. Do not catch the error, or use a savepoint.",
      );
  }

  /** postgres.U2 */
  #checkTransaction(): void {
    if (this.#client.getTransactionStatus() === "T") return;
    this.close();
    throw new RepriseError(
      "USAGE",
      "The SQL of ctx.tx ended its own transaction, which Reprise must commit. Remove COMMIT and ROLLBACK from the SQL; throw an error to roll back.",
    );
  }
}
