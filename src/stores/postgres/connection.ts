// PostgresConnection: one connection to PostgreSQL, and the transaction on it.
//
// postgres.K1. BEGIN, the changes and COMMIT are sent together where possible: one round trip for a batch. The stamp comes before
//   all changes (remote.L3): the next transaction that locks it sees all of them.
// postgres.K2. After an error of the server the transaction is rolled back first. Where that fails the connection is destroyed; if
//   COMMIT was sent, the outcome is unknown.
// postgres.K3. A response that does not arrive in time destroys the connection; nothing is read from it again.
// postgres.K4. Everything that user SQL may have left on the connection is reset before the connection is used again.

import type { Client } from "pg";
import { InvariantError, RepriseError, type EpochMs, type Timers } from "../../base/index.ts";
import { INCARNATION_KEY } from "../../kernel/index.ts";
import {
  ConnectionError,
  type QueryResult,
  type Change,
  type CommitOutcome,
  type HistoryCheck,
  type Connection,
  type UserTransaction,
  type WireValue,
} from "../remote/backend.ts";
import type { Query } from "../remote/query.ts";
import { bindChange } from "./bind-change.ts";
import { isRetryable, isLost, isConflict, isStampRefused, isUserConstraint, storeErrorOf } from "./errors.ts";
import { resultsOf, groupQueries } from "./group-queries.ts";
import { runPipeline, type Prepared, type Result } from "./pipeline.ts";
import { bindQuery } from "./bind-query.ts";
import type { Shapes } from "./shapes.ts";
import { UserHandle } from "./user-handle.ts";
import { CLOSE_MS, USUAL_PLANNER, within } from "./driver.ts";
import { WireWriter, type Bound, type Parameter } from "./wire.ts";

const BEGIN = "begin isolation level read committed";
const BEGIN_READING = "begin isolation level repeatable read read only";

export interface PostgresConnectionOptions {
  readonly client: Client;
  readonly shapes: Shapes;
  /** The name from the URL, without quotes. */
  readonly schema: string;
  readonly writer: string;
  readonly server: string;
  readonly timers: Timers;
  readonly answerMs: number;
  /** How long a ctx.tx function may send no statement. */
  readonly idleMs: number;
  /** postgres.K4. The statements that reset the connection. */
  readonly reset: readonly string[];
  /** opened-to-read.V1 */
  readonly readOnly: boolean;
}

export class PostgresConnection implements Connection {
  readonly writer: string;
  readonly server: string;
  readonly #parts: PostgresConnectionOptions;
  readonly #begin: string;
  readonly #wire = new WireWriter();
  readonly #prepared: Prepared = new Set();
  #isBroken = false;
  #isBusy = false;
  #inTransaction = false;
  #needsReset = false;
  #user: UserHandle | undefined;

  constructor(parts: PostgresConnectionOptions) {
    this.#parts = parts;
    this.#begin = `${BEGIN} read ${parts.readOnly ? "only" : "write"}`;
    this.writer = parts.writer;
    this.server = parts.server;
    parts.client.once("error", () => this.#break());
    parts.client.once("end", () => (this.#isBroken = true));
  }

  get isUsable(): boolean {
    return !this.#isBroken;
  }

  async query(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    const bound = queries.map((query) => bindQuery(this.#parts.shapes, query));
    const groups = groupQueries(this.#parts.shapes, bound);
    const begin = this.#inTransaction ? [] : [this.#plain(this.#begin)];
    const results = await this.#withStoreErrors("Reading", () => this.#exchange([...begin, ...groups], true));
    return resultsOf(bound, groups, results.slice(begin.length));
  }

  async read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    if (this.#inTransaction) throw new InvariantError("`read` was called while a transaction is open.");
    const bound = queries.map((query) => bindQuery(this.#parts.shapes, query));
    const groups = groupQueries(this.#parts.shapes, bound);
    // A single statement has one snapshot anyway.
    const around = groups.length > 1;
    const statements = around ? [this.#plain(BEGIN_READING), ...groups, this.#plain("commit")] : groups;
    const results = await this.#withStoreErrors("Reading", () => this.#exchange(statements, around));
    this.#inTransaction = false;
    return resultsOf(bound, groups, around ? results.slice(1) : results);
  }

  /** Begins a read-only transaction with one snapshot; `rollback` ends it. */
  async snapshot(): Promise<void> {
    if (this.#inTransaction) throw new InvariantError("`snapshot` was called while a transaction is open.");
    await this.#withStoreErrors("Reading", () => this.#exchange([this.#plain(BEGIN_READING)], true));
  }

  async commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome> {
    const { shapes, schema } = this.#parts;
    const statements = this.#inTransaction ? [] : [this.#plain(this.#begin)];
    statements.push(this.#stamp(batch, mark, check));
    for (const change of changes) if (change.rows.length > 0) statements.push(bindChange(shapes, change));
    statements.push(this.#plain("commit"));
    let results: readonly Result[];
    try {
      await this.#user?.settled();
      results = await this.#exchange(statements, true);
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      if (isConflict(error, schema)) return "conflict";
      if (isStampRefused(error)) return check === undefined ? "conflict" : "rolled_back";
      if (isRetryable(error)) return "retry";
      if (this.#needsReset && isUserConstraint(error, schema)) throw error;
      throw storeErrorOf(error, "Committing");
    }
    this.#inTransaction = false;
    const tag = results.at(-1)?.tag;
    if (tag !== "COMMIT") throw new InvariantError(`The server answered COMMIT with ${tag}.`);
    return "committed";
  }

  async rollback(): Promise<void> {
    if (!this.#inTransaction || this.#isBroken) return;
    await this.#user?.settled();
    await this.#rollBack();
  }

  async userHandle(): Promise<UserTransaction> {
    const begin = this.#inTransaction ? [] : [this.#plain(this.#begin)];
    const planner = USUAL_PLANNER.map((text) => this.#plain(text));
    await this.#withStoreErrors("Beginning", () => this.#exchange([...begin, ...planner], true));
    this.#needsReset = true;
    const { client, schema, timers, idleMs } = this.#parts;
    this.#user = new UserHandle(client, schema, (act) => this.#timed(act), timers, idleMs);
    return this.#user;
  }

  /** Runs one statement of the backend outside a transaction. */
  async alone(text: string, values: Bound["values"]): Promise<Result> {
    if (this.#inTransaction) throw new InvariantError("`alone` was called while a transaction is open.");
    const statement = { shape: this.#parts.shapes.of(text), values };
    const results = await this.#withStoreErrors("Querying the server", () => this.#exchange([statement], false));
    return results[0] as Result;
  }

  destroy(): void {
    this.#break();
  }

  async close(): Promise<void> {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const { client, timers } = this.#parts;
    await within(client, timers, CLOSE_MS, () => client.end());
  }

  /** Converts the server's errors: transient ones to a ConnectionError, others to errors of the store. */
  async #withStoreErrors<T>(what: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (isRetryable(error)) throw new ConnectionError("retry", { cause: error });
      throw storeErrorOf(error, what);
    }
  }

  async #exchange(statements: readonly Bound[], opens: boolean): Promise<readonly Result[]> {
    if (this.#needsReset && !this.#inTransaction) await this.#reset();
    const inTransaction = this.#inTransaction || opens;
    try {
      const results = await this.#send(statements);
      this.#inTransaction = inTransaction;
      return results;
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      if (inTransaction) await this.#rollBack();
      throw error;
    }
  }

  /** postgres.K2 */
  async #rollBack(): Promise<void> {
    this.#inTransaction = false;
    try {
      await this.#send([this.#plain("rollback")]);
    } catch (error) {
      this.#break();
      throw error instanceof ConnectionError ? error : new ConnectionError("lost", { cause: error });
    }
  }

  /** postgres.K4 */
  async #reset(): Promise<void> {
    this.#needsReset = false;
    this.#user = undefined;
    try {
      await this.#send(this.#parts.reset.map((text) => this.#plain(text)));
    } catch (error) {
      this.#break();
      throw error instanceof ConnectionError ? error : new ConnectionError("lost", { cause: error });
    }
  }

  #send(statements: readonly Bound[]): Promise<readonly Result[]> {
    const { client } = this.#parts;
    return this.#timed(() => runPipeline(client, this.#wire, this.#prepared, statements));
  }

  /** postgres.K3 */
  async #timed<T>(act: () => Promise<T>): Promise<T> {
    if (this.#isBroken) throw new ConnectionError("lost");
    if (this.#isBusy) throw new InvariantError("Two calls run on one connection at the same time.");
    const { timers, answerMs } = this.#parts;
    this.#isBusy = true;
    const stop = timers.set(answerMs, () => this.#break(), { ref: false });
    try {
      return await act();
    } catch (error) {
      if (!isLost(error)) throw error;
      this.#break();
      throw new ConnectionError("lost", { cause: error });
    } finally {
      stop();
      this.#isBusy = false;
    }
  }

  #break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#inTransaction = false;
    this.#parts.client.connection.stream.destroy();
  }

  #plain(text: string): Bound {
    return { shape: this.#parts.shapes.of(text), values: [] };
  }

  /** remote.L3. A fenced writer (`lastBatch`) has a negative batch and cannot commit. */
  #stamp(batch: number, mark: EpochMs, check: HistoryCheck | undefined): Bound {
    const { shapes, writer } = this.#parts;
    const writers = shapes.table("writers");
    const values: Parameter[] = [
      { type: "text", value: writer },
      { type: "int", value: batch },
      { type: "int", value: mark },
      { type: "int", value: check?.previous ?? null },
      { type: "text", value: check?.incarnation ?? null },
    ];
    let lost = "";
    let isWhole = "";
    if (check !== undefined && check.others.length > 0) {
      const rows = check.others as unknown as readonly Record<string, WireValue>[];
      values.push({ type: "text", rows, column: "writer" }, { type: "int", rows, column: "batch" });
      lost = `lost as (select 1 from unnest($6, $7) k (writer, batch) left join ${writers} w on w.writer = k.writer
          where w.writer is null or greatest(w.batch, -1 - w.batch) < k.batch), `;
      isWhole = " and not exists (select 1 from lost)";
    }
    // Without a row, the square root of -1: an error code different from a division by zero (bind-change.C1).
    const text = `with ${lost}done as (
        update ${writers} w set batch = $2, mark = $3 where w.writer = $1 and w.batch = coalesce($4, greatest(w.batch, 0))
          and ($5 is null or (select value from ${shapes.table("meta")} where key = '${INCARNATION_KEY}') = $5)${isWhole}
        returning 1
      ) select sqrt(count(*) - 1) from done`;
    return { shape: shapes.of(text), values };
  }
}

export function postgresConnection(connection: Connection): PostgresConnection {
  if (connection instanceof PostgresConnection) return connection;
  throw new RepriseError("USAGE", "A PostgreSQL store was given a connection of another backend.");
}
