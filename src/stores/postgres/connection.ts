// Connection: one connection to PostgreSQL, and the transaction on it.
//
// K1. BEGIN is the first thing sent of a transaction and COMMIT the last, with everything in between where it is known: one
//     round trip for a batch. The stamp comes before all changes (L3): whoever locks it next knows of all of them.
// K2. After an error of the server the transaction is rolled back before anything else. Where that is not possible the
//     connection is broken, and after COMMIT was sent nobody knows.
// K3. An answer that does not come in time breaks the connection; nothing is ever read from it again.
// K4. What user SQL may have left on the connection is cleared away before the connection is used again.

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

const BEGIN = "begin isolation level read committed read write";
const BEGIN_READING = "begin isolation level repeatable read read only";

export interface PostgresConnectionOptions {
  readonly client: Client;
  readonly shapes: Shapes;
  /** As it is written in the URL, without quotes. */
  readonly schema: string;
  readonly writer: string;
  readonly server: string;
  readonly timers: Timers;
  readonly answerMs: number;
  /** How long a function of the user's may ask for nothing. */
  readonly idleMs: number;
  /** K4. The statements that make the connection as it was. */
  readonly reset: readonly string[];
}

export class PostgresConnection implements Connection {
  readonly writer: string;
  readonly server: string;
  readonly #parts: PostgresConnectionOptions;
  readonly #wire = new WireWriter();
  readonly #prepared: Prepared = new Set();
  #isBroken = false;
  #isBusy = false;
  #isOpen = false;
  #needsReset = false;
  #user: UserHandle | undefined;

  constructor(parts: PostgresConnectionOptions) {
    this.#parts = parts;
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
    const begin = this.#isOpen ? [] : [this.#plain(BEGIN)];
    const results = await this.#explained("Reading", () => this.#exchange([...begin, ...groups], true));
    return resultsOf(bound, groups, results.slice(begin.length));
  }

  async read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    if (this.#isOpen) throw new InvariantError("Something was to be read outside of the transaction that is open.");
    const bound = queries.map((query) => bindQuery(this.#parts.shapes, query));
    const groups = groupQueries(this.#parts.shapes, bound);
    // One statement sees one snapshot by itself.
    const around = groups.length > 1;
    const statements = around ? [this.#plain(BEGIN_READING), ...groups, this.#plain("commit")] : groups;
    const results = await this.#explained("Reading", () => this.#exchange(statements, around));
    this.#isOpen = false;
    return resultsOf(bound, groups, around ? results.slice(1) : results);
  }

  /** Begins a transaction that sees one moment and writes nothing; `rollback` ends it. */
  async snapshot(): Promise<void> {
    if (this.#isOpen) throw new InvariantError("A moment was to be looked at within the transaction that is open.");
    await this.#explained("Reading", () => this.#exchange([this.#plain(BEGIN_READING)], true));
  }

  async commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome> {
    const { shapes, schema } = this.#parts;
    const statements = this.#isOpen ? [] : [this.#plain(BEGIN)];
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
    this.#isOpen = false;
    const tag = results.at(-1)?.tag;
    if (tag !== "COMMIT") throw new InvariantError(`COMMIT was answered with ${tag}.`);
    return "committed";
  }

  async rollback(): Promise<void> {
    if (!this.#isOpen || this.#isBroken) return;
    await this.#user?.settled();
    await this.#rollBack();
  }

  async userHandle(): Promise<UserTransaction> {
    const begin = this.#isOpen ? [] : [this.#plain(BEGIN)];
    const planner = USUAL_PLANNER.map((text) => this.#plain(text));
    await this.#explained("Beginning", () => this.#exchange([...begin, ...planner], true));
    this.#needsReset = true;
    const { client, schema, timers, idleMs } = this.#parts;
    this.#user = new UserHandle(client, schema, (act) => this.#timed(act), timers, idleMs);
    return this.#user;
  }

  /** One statement of the backend's own, outside of any transaction. */
  async alone(text: string, values: Bound["values"]): Promise<Result> {
    if (this.#isOpen) throw new InvariantError("A statement was to run outside of the transaction that is open.");
    const statement = { shape: this.#parts.shapes.of(text), values };
    const results = await this.#explained("Asking the server", () => this.#exchange([statement], false));
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

  /** A server's error of a statement is thrown as the store's; those that pass by themselves as a LinkError. */
  async #explained<T>(what: string, act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (isRetryable(error)) throw new ConnectionError("retry", { cause: error });
      throw storeErrorOf(error, what);
    }
  }

  async #exchange(statements: readonly Bound[], opens: boolean): Promise<readonly Result[]> {
    if (this.#needsReset && !this.#isOpen) await this.#reset();
    const isOpen = this.#isOpen || opens;
    try {
      const results = await this.#send(statements);
      this.#isOpen = isOpen;
      return results;
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      if (isOpen) await this.#rollBack();
      throw error;
    }
  }

  /** K2 */
  async #rollBack(): Promise<void> {
    this.#isOpen = false;
    try {
      await this.#send([this.#plain("rollback")]);
    } catch (error) {
      this.#break();
      throw error instanceof ConnectionError ? error : new ConnectionError("lost", { cause: error });
    }
  }

  /** K4 */
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

  /** K3 */
  async #timed<T>(act: () => Promise<T>): Promise<T> {
    if (this.#isBroken) throw new ConnectionError("lost");
    if (this.#isBusy) throw new InvariantError("Two calls were made on one connection at the same time.");
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
    this.#isOpen = false;
    this.#parts.client.connection.stream.destroy();
  }

  #plain(text: string): Bound {
    return { shape: this.#parts.shapes.of(text), values: [] };
  }

  /** L3. A writer that somebody has asked about (`lastBatch`) writes nothing more: its batch is below zero. */
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
    // Without a row, the root of -1: told from whatever divides by zero.
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
  throw new RepriseError("USAGE", "A connection of another backend was given to a PostgreSQL store.");
}
