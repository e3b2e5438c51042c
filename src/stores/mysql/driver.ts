// Driver: loads `mysql2` when a MySQL store is opened, and opens connections with Reprise's settings.
//
// mysql.D1. Several statements are sent in one packet and answered together. A failed statement ends the rest, including COMMIT.
// mysql.D2. The driver waits without a limit; Reprise does not: a response that does not arrive in time destroys the connection, and
//   the outcome is unknown.

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
  /** How long a client may keep a transaction open without a statement; whole seconds; only where the server supports it. */
  readonly idleInTransactionMs: number;
  /** Waiting for a response: longer than the server's own limits, so that a timeout means a broken connection. */
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

/** The result of one statement: rows as arrays, or the number of changed rows. */
export interface Result {
  readonly rows: readonly RawRow[];
  readonly written: Written | undefined;
}

export interface ObjectRows {
  readonly rows: Record<string, unknown>[];
  readonly written: Written | undefined;
}

const KEEP_ALIVE_MS = 10_000;
/** Privileged accounts can write to a read-only server, but such writes are not replicated. */
const READ_ONLY = "select @@global.read_only";

/** One connection of the driver; statements run one after the other. */
export class DriverConnection {
  readonly #connection: Connection;
  readonly #timers: Timers;
  readonly #answerMs: number;
  #isUsable = true;
  /** Rejects the pending call; undefined while there is none. */
  #rejectPending: (() => void) | undefined;

  private constructor(connection: Connection, timers: Timers, answerMs: number) {
    this.#connection = connection;
    this.#timers = timers;
    this.#answerMs = answerMs;
  }

  /** Connects to the host that serves; to read, any host that answers serves. Throws the driver's errors. */
  static async open(address: Address, timers: Timers, timeouts: Timeouts, readOnly = false): Promise<DriverConnection> {
    const { hosts } = address;
    const connectMs = connectMsWith(address.connectMs, timeouts.connectMs, hosts.areSeveral);
    const isTransient = (error: unknown): boolean => !(error instanceof RepriseError) && isUnavailable(error);
    return hosts.connect(async (host) => {
      const opened = await DriverConnection.#openAt(host, address, timers, { ...timeouts, connectMs });
      if (hosts.areSeveral && !readOnly) await opened.#refuseReadOnly(address.location);
      return opened;
    }, isTransient);
  }

  static async #openAt(host: Host, address: Address, timers: Timers, timeouts: Timeouts): Promise<DriverConnection> {
    const driver = await loadDriver();
    const { user, password, database, socket, tls, location } = address;
    const ssl = tls === undefined ? false : tlsOptions("mysql", tls);
    const connection = driver.createConnection({
      ...(socket === undefined ? { host: host.name, port: host.port } : { socketPath: socket }),
      // The driver verifies host names only: with an IP address, only the certificate chain is verified.
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
      // Dates as text are the same on every machine.
      dateStrings: true,
    });
    const opened = new DriverConnection(connection, timers, timeouts.answerMs);
    // Pending calls get the error themselves; without a listener it would end the process.
    connection.on("error", () => (opened.#isUsable = false));
    connection.on("end", () => (opened.#isUsable = false));
    try {
      await new Promise<void>((resolve, reject) =>
        connection.connect((error) => (error === null ? resolve() : reject(error))),
      );
      return opened;
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

  /** Whether no call is pending. */
  get isIdle(): boolean {
    return this.#rejectPending === undefined;
  }

  /** The connection number for `KILL`. */
  get threadId(): number {
    return this.#connection.threadId;
  }

  /** mysql.D1. One result per statement. Throws a ConnectionError when the connection is lost, else the server's error. */
  async run(statements: readonly string[]): Promise<readonly Result[]> {
    if (statements.length === 0) return [];
    const found = await this.#send(statements.join(";"), undefined, true);
    const results = statements.length === 1 ? [found] : (found as readonly unknown[]);
    return results.map(asResult);
  }

  /** Runs one statement of the user; rows are objects. */
  async runUser(sql: string, values: readonly unknown[]): Promise<ObjectRows> {
    const found = await this.#send(sql, values, false);
    if (!Array.isArray(found)) return { rows: [], written: asResult(found).written };
    // A procedure returns several results; the first one is used.
    const rows: unknown = Array.isArray(found[0]) ? found[0] : found;
    return { rows: rows as Record<string, unknown>[], written: undefined };
  }

  /** mysql.D2 */
  #send(sql: string, values: readonly unknown[] | undefined, rowsAsArray: boolean): Promise<unknown> {
    if (!this.#isUsable) return Promise.reject(new ConnectionError("lost"));
    if (this.#rejectPending !== undefined)
      return Promise.reject(new InvariantError("Two calls run on one connection at the same time."));
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (act: () => void): void => {
        if (isOver) return;
        isOver = true;
        this.#rejectPending = undefined;
        stopTimer();
        act();
      };
      const lose = (cause: unknown): void =>
        end(() => {
          this.destroy();
          reject(new ConnectionError("lost", { cause }));
        });
      this.#rejectPending = () => lose(new Error("the connection was closed"));
      const stopTimer = this.#timers.set(this.#answerMs, () =>
        lose(new Error(`no response within ${this.#answerMs} ms`)),
      );
      // Null, because with an empty list the driver would scan the whole text for placeholders.
      const options = { sql, rowsAsArray, values: values === undefined ? null : [...values] };
      this.#connection.query(options, (error: QueryError | null, found: unknown) => {
        // The driver attaches the whole packet to the error, payloads included.
        if (rowsAsArray && error !== null) delete (error as { sql?: string }).sql;
        if (error === null) end(() => resolve(found));
        else if (isLost(error)) lose(error);
        else if (mayBeReadOnly(error))
          this.#connection.query({ sql: READ_ONLY, rowsAsArray: true }, (failure: unknown, rows: unknown) => {
            // The server was the primary when this connection was opened.
            if (failure !== null || isOn((rows as RawRow[])[0]?.[0])) lose(error);
            else end(() => reject(error));
          });
        else end(() => reject(error));
      });
    });
  }

  /** Closes the connection and rejects the pending call. */
  destroy(): void {
    this.#isUsable = false;
    this.#connection.destroy();
    this.#rejectPending?.();
  }

  async close(): Promise<void> {
    if (!this.#isUsable) return this.#connection.destroy();
    this.#isUsable = false;
    await new Promise<void>((resolve) => {
      const stopTimer = this.#timers.set(this.#answerMs, () => resolve());
      this.#connection.end(() => {
        stopTimer();
        resolve();
      });
    });
    this.#connection.destroy();
  }
}

/** `read_only` has more than two values on newer servers. */
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
