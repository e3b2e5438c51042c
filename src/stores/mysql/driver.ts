// Driver: `mysql2`, loaded when a MySQL store is opened, and a connection as we want it.
//
// D1. Several statements travel in one packet and are answered in one go. One that fails ends the rest, COMMIT included.
// D2. The driver waits for ever; we do not. Who got no answer in time destroys the connection and knows nothing.

import { isIP } from "node:net";
import type mysql2 from "mysql2";
import type { Connection, QueryError, ResultSetHeader } from "mysql2";
import { InvariantError, RepriseError, type Timers } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";
import { StandbyError } from "../remote/hosts.ts";
import { noTlsOffered, tlsErrorOf, tlsOptions } from "../remote/tls.ts";
import { connectMsWith } from "../remote/url-options.ts";
import type { Address, Host } from "./address.ts";
import { isLost, isTlsMissing, isUnavailable, mayBeReadOnly, tlsFailureOf } from "./errors.ts";

export interface Timeouts {
  readonly connectMs: number;
  /** Waiting for another transaction's lock; whole seconds. */
  readonly lockMs: number;
  /** A transaction whose owner is silent; whole seconds, and only where the server has it. */
  readonly idleInTransactionMs: number;
  /** Waiting for an answer: longer than the server should take, so that it is the connection that is broken. */
  readonly answerMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 10_000,
  lockMs: 5_000,
  idleInTransactionMs: 10_000,
  answerMs: 30_000,
};

export interface Written {
  readonly affectedRows: number;
  readonly insertId: number;
}

export type RawRow = readonly (number | string | Buffer | null)[];

/** The answer to one statement: rows as arrays, or what it wrote. */
export interface Result {
  readonly rows: readonly RawRow[];
  readonly written: Written | undefined;
}

export interface ObjectRows {
  readonly rows: Record<string, unknown>[];
  readonly written: Written | undefined;
}

const KEEP_ALIVE_MS = 10_000;
/** Accounts with many rights write to such a server all the same, and what they write is in no other. */
const READ_ONLY = "select @@global.read_only";

/** One connection, statements one after the other. */
export class DriverConnection {
  readonly #connection: Connection;
  readonly #timers: Timers;
  readonly #answerMs: number;
  #isUsable = true;
  /** Tells whoever waits for an answer that none will come; undefined while nobody does. */
  #abandon: (() => void) | undefined;

  private constructor(connection: Connection, timers: Timers, answerMs: number) {
    this.#connection = connection;
    this.#timers = timers;
    this.#answerMs = answerMs;
  }

  /** At the host that serves. Throws as the driver does: nothing is known yet about the server. */
  static async open(address: Address, timers: Timers, timeouts: Timeouts): Promise<DriverConnection> {
    const { hosts } = address;
    const connectMs = connectMsWith(address.connectMs, timeouts.connectMs, hosts.areSeveral);
    const isTransient = (error: unknown): boolean => !(error instanceof RepriseError) && isUnavailable(error);
    return hosts.connect(async (host) => {
      const wire = await DriverConnection.#openAt(host, address, timers, { ...timeouts, connectMs });
      if (hosts.areSeveral) await wire.#refuseReadOnly(address.location);
      return wire;
    }, isTransient);
  }

  static async #openAt(host: Host, address: Address, timers: Timers, timeouts: Timeouts): Promise<DriverConnection> {
    const driver = await loadDriver();
    const { user, password, database, socket, tls, location } = address;
    const ssl = tls === undefined ? false : tlsOptions("mysql", tls);
    const connection = driver.createConnection({
      ...(socket === undefined ? { host: host.name, port: host.port } : { socketPath: socket }),
      // The driver knows names only: of a server that is named by its number, the chain of its certificate is verified.
      ...(ssl !== false && { ssl: { ...ssl, verifyIdentity: tls!.mode === "verify-full" && isIP(host.name) === 0 } }),
      user,
      password,
      database,
      charset: "utf8mb4",
      multipleStatements: true,
      supportBigNumbers: true,
      connectTimeout: timeouts.connectMs,
      enableKeepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      // `SHOW` and user SQL alike: dates as text are the same on every machine.
      dateStrings: true,
    });
    const wire = new DriverConnection(connection, timers, timeouts.answerMs);
    // Whoever waits for an answer hears of it there; without a listener it would end the process.
    connection.on("error", () => (wire.#isUsable = false));
    connection.on("end", () => (wire.#isUsable = false));
    try {
      await new Promise<void>((resolve, reject) =>
        connection.connect((error) => (error === null ? resolve() : reject(error))),
      );
      return wire;
    } catch (error) {
      connection.destroy();
      if (tls !== undefined && isTlsMissing(error)) throw noTlsOffered(location, tls);
      throw tlsErrorOf(tlsFailureOf(error), location, tls) ?? error;
    }
  }

  async #refuseReadOnly(location: string): Promise<void> {
    try {
      const [found] = await this.run([READ_ONLY]);
      if (isOn(found?.rows[0]?.[0])) throw StandbyError.at(location);
    } catch (error) {
      this.destroy();
      throw error;
    }
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** Nothing is under way. */
  get isIdle(): boolean {
    return this.#abandon === undefined;
  }

  /** What `KILL` calls it. */
  get threadId(): number {
    return this.#connection.threadId;
  }

  /** D1. One answer per statement. A LinkError when the connection is gone, else the server's own error. */
  async run(statements: readonly string[]): Promise<readonly Result[]> {
    if (statements.length === 0) return [];
    const found = await this.#send(statements.join(";"), undefined, true);
    const results = statements.length === 1 ? [found] : (found as readonly unknown[]);
    return results.map(asResult);
  }

  /** User SQL: one statement, rows as objects. */
  async runUser(sql: string, values: readonly unknown[]): Promise<ObjectRows> {
    const found = await this.#send(sql, values, false);
    if (!Array.isArray(found)) return { rows: [], written: asResult(found).written };
    // A procedure answers several times; the first counts.
    const rows: unknown = Array.isArray(found[0]) ? found[0] : found;
    return { rows: rows as Record<string, unknown>[], written: undefined };
  }

  /** D2 */
  #send(sql: string, values: readonly unknown[] | undefined, rowsAsArray: boolean): Promise<unknown> {
    if (!this.#isUsable) return Promise.reject(new ConnectionError("lost"));
    if (this.#abandon !== undefined)
      return Promise.reject(new InvariantError("Two calls were made on one connection at the same time."));
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (act: () => void): void => {
        if (isOver) return;
        isOver = true;
        this.#abandon = undefined;
        stopWaiting();
        act();
      };
      const lose = (cause: unknown): void =>
        end(() => {
          this.destroy();
          reject(new ConnectionError("lost", { cause }));
        });
      this.#abandon = () => lose(new Error("the connection was given up"));
      const stopWaiting = this.#timers.set(this.#answerMs, () =>
        lose(new Error(`no answer within ${this.#answerMs} ms`)),
      );
      // Null: with an empty list the driver would look through the whole text for places to put values in.
      const options = { sql, rowsAsArray, values: values === undefined ? null : [...values] };
      this.#connection.query(options, (error: QueryError | null, found: unknown) => {
        // The driver hangs the whole text of the packet on it, payloads included.
        if (rowsAsArray && error !== null) delete (error as { sql?: string }).sql;
        if (error === null) end(() => resolve(found));
        else if (isLost(error)) lose(error);
        else if (mayBeReadOnly(error))
          this.#connection.query({ sql: READ_ONLY, rowsAsArray: true }, (failure: unknown, rows: unknown) => {
            // It was the primary when we connected.
            if (failure !== null || isOn((rows as RawRow[])[0]?.[0])) lose(error);
            else end(() => reject(error));
          });
        else end(() => reject(error));
      });
    });
  }

  /** Whoever waits for an answer is told. */
  destroy(): void {
    this.#isUsable = false;
    this.#connection.destroy();
    this.#abandon?.();
  }

  async close(): Promise<void> {
    if (!this.#isUsable) return this.#connection.destroy();
    this.#isUsable = false;
    await new Promise<void>((resolve) => {
      const giveUp = this.#timers.set(this.#answerMs, () => resolve());
      this.#connection.end(() => {
        giveUp();
        resolve();
      });
    });
    this.#connection.destroy();
  }
}

/** Newer servers have more than two values for it. */
export function isOn(value: RawRow[number] | undefined): boolean {
  return !["OFF", "0"].includes(String(value ?? 0));
}

function asResult(found: unknown): Result {
  if (Array.isArray(found)) return { rows: found as Result["rows"], written: undefined };
  const { affectedRows, insertId } = found as ResultSetHeader;
  return { rows: [], written: { affectedRows, insertId } };
}

async function loadDriver(): Promise<typeof mysql2> {
  try {
    return (await import("mysql2")).default;
  } catch (error) {
    throw new RepriseError(
      "DRIVER_MISSING",
      "A MySQL store needs the package `mysql2`, which is not installed. Run `npm install mysql2`.",
      { cause: error },
    );
  }
}
