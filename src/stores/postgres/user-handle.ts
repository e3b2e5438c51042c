// UserHandle: what the function of ctx.tx may do on our connection.
//
// U1. Statements go one after the other, and only while the function runs (remote/user-calls.ts).
// U2. Each is one statement (the server refuses several), whose first words say whether it ends the transaction or changes
//     what belongs to the connection; such are refused, and so is whatever names our schema. A function of the user's that
//     hides this in its text is found out when it ends the transaction, and undone otherwise (K4).

import type { Client } from "pg";
import { RepriseError, type Timers } from "../../base/index.ts";
import { UserCalls } from "../remote/user-calls.ts";
import { isTransactionAborted } from "./errors.ts";
import { objectionTo } from "./user-sql.ts";

/** What a statement answers. */
export interface PostgresResult<Row> {
  readonly rows: Row[];
  /** How many rows were written or read. */
  readonly rowCount: number | null;
}

/** What the function of `ctx.tx(name, postgres, …)` is given. */
export interface PostgresHandle {
  /** Runs one statement in the transaction; `$1`, `$2` … stand for `values`. */
  query<Row = Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<PostgresResult<Row>>;
}

/** @internal The driver's types are not there for everybody. */
export class UserHandle extends UserCalls {
  readonly db: PostgresHandle;
  readonly #client: Client;
  readonly #schema: string;
  readonly #timed: <T>(act: () => Promise<T>) => Promise<T>;
  #shouldRetry = false;
  /** Not what the client says: its error comes before the server's word on the transaction. */
  #isAborted = false;

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
        this.#isAborted = true;
        throw error;
      },
    );
    // Only going back to a savepoint succeeds after a failure.
    this.#isAborted = false;
    this.#checkOurs();
    return { rows, rowCount };
  }

  override async ended(): Promise<void> {
    await super.ended();
    if (this.#isAborted)
      throw new RepriseError(
        "USAGE",
        "A statement of ctx.tx failed and its error was caught; PostgreSQL takes nothing more in that transaction. Let the error through, or use a savepoint.",
      );
  }

  /** U2 */
  #checkOurs(): void {
    if (this.#client.getTransactionStatus() === "T") return;
    this.close();
    throw new RepriseError("USAGE", "The transaction of ctx.tx was ended by its own SQL. Throw to roll back.");
  }
}
