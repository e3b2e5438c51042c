// MysqlBackend: the backend port (remote/backend.ts) on MySQL or MariaDB.
//
// mysql.B1. `lastBatch` fences the writer: it marks the writer's row under its lock, and a commit still in flight fails on it
//   (remote.L3). It also kills the writer's connection, so that its locks are released.
// mysql.B2. A restarted server, and its replacement, reuse connection numbers. So a connection is killed only if it holds the named
//   lock that Reprise's connection took. The process list is not used: MariaDB 10.11.19 crashed twice while it answered `select
//   host from information_schema.processlist`.

import { RepriseError, type Random, type Timers } from "../../base/index.ts";
import { ConnectionError, type Backend, type BackendInfo, type Connection } from "../remote/backend.ts";
import { addressOf, type Address } from "./address.ts";
import { DEFAULT_TIMEOUTS, DriverConnection, type Timeouts } from "./driver.ts";
import { isUnavailable, storeErrorOf } from "./errors.ts";
import { MysqlConnection, mysqlConnection } from "./connection.ts";
import { migrate } from "./migrate.ts";
import { PREFIX, SCHEMA_VERSION } from "./schema.ts";
import { prepareSession, type Server } from "./session.ts";
import { tableOf, textLiteral } from "./sql-text.ts";

export interface MysqlBackendOptions {
  readonly url: string;
  readonly random: Random;
  /** Real timers: they limit the response times of the server. */
  readonly timers: Timers;
  readonly durability: "full" | "relaxed";
  /** Whether to migrate an older schema; default true. */
  readonly migrate?: boolean;
  /** opened-to-read.V1 */
  readonly readOnly?: boolean;
  readonly timeouts?: Partial<Timeouts>;
}

interface Thread {
  readonly id: number;
  /** mysql.B2. The name of a lock that only this connection holds. */
  readonly lock: string;
}

const lockOf = (writer: string): string => `reprise ${writer}`;

/** How long a process waits for the migration of another one. */
const MIGRATION_WAIT_S = 60;

/** Contacts no server; the first `connect` checks the server and migrates the schema. */
export function openMysqlBackend(options: MysqlBackendOptions): Backend {
  return new MysqlBackend(options);
}

class MysqlBackend implements Backend {
  readonly kind = "mysql";
  readonly #options: MysqlBackendOptions;
  readonly #address: Address;
  readonly #timeouts: Timeouts;
  /** mysql.B1. By writer: the connection number for `KILL`, and its lock. */
  readonly #threads = new Map<string, Thread>();
  #server: Server | undefined;
  /** The server of the last connection, its restarts seen so far, and its last connection number. */
  #instance = { name: "", starts: 0, threadId: 0 };
  #migration: Promise<void> | undefined;

  constructor(options: MysqlBackendOptions) {
    this.#options = options;
    this.#address = addressOf(options.url);
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  }

  async connect(): Promise<Connection> {
    const { location } = this.#address;
    const { random, timers, readOnly = false } = this.#options;
    let driver: DriverConnection | undefined;
    try {
      driver = await this.#open();
      this.#server = await prepareSession(driver, location, this.#options, this.#timeouts);
      await (this.#migration ??= this.#migrate());
      const writer = random.token();
      const insert = `insert into ${tableOf("writers")} (writer, batch, mark) values ('${writer}', 0, 0)`;
      await driver.run([...(readOnly ? [] : [insert]), `select get_lock('${lockOf(writer)}', 0)`]);
      const thread = { id: driver.threadId, lock: lockOf(writer) };
      this.#threads.set(writer, thread);
      const { maxPacket } = this.#server;
      const { idleInTransactionMs: idleMs } = this.#timeouts;
      const kill = (): void => void this.#kill(thread);
      return new MysqlConnection({
        driver,
        writer,
        server: this.#identityOf(this.#server, driver.threadId),
        maxPacket,
        kill,
        timers,
        idleMs,
      });
    } catch (error) {
      driver?.destroy();
      const thrown = this.#address.hosts.errorFor(error, this.#server !== undefined);
      if (thrown instanceof RepriseError || thrown instanceof ConnectionError) throw thrown;
      // Errors that an operator must fix, such as a wrong password, are not retried.
      if (isUnavailable(error)) throw new ConnectionError("lost", { cause: error });
      throw storeErrorOf(error, `Connecting to ${location}`);
    }
  }

  /** A restarted server numbers its connections from 1 again. */
  #identityOf({ instance: name }: Server, threadId: number): string {
    const last = this.#instance;
    const isNew = last.name !== name || threadId < last.threadId;
    this.#instance = { name, starts: last.starts + Number(isNew), threadId };
    return `${name} ${this.#instance.starts}`;
  }

  /** Runs once, over its own connection, because creating tables may exceed the response timeout. */
  async #migrate(): Promise<void> {
    const timeouts = { ...this.#timeouts, answerMs: this.#timeouts.answerMs + MIGRATION_WAIT_S * 1_000 };
    let driver: DriverConnection | undefined;
    try {
      driver = await this.#open(timeouts);
      await prepareSession(driver, this.#address.location, this.#options, this.#timeouts);
      await migrate(driver, this.#address, {
        migrate: this.#options.migrate ?? true,
        waitS: MIGRATION_WAIT_S,
      });
    } catch (error) {
      this.#migration = undefined;
      throw error;
    } finally {
      await driver?.close();
    }
  }

  #open(timeouts = this.#timeouts): Promise<DriverConnection> {
    return DriverConnection.open(this.#address, this.#options.timers, timeouts, this.#options.readOnly);
  }

  /** mysql.B1 */
  async lastBatch(connection: Connection, writer: string): Promise<number> {
    const thread = this.#threads.get(writer);
    if (thread !== undefined) await this.#kill(thread);
    const line = `where writer=${textLiteral(writer)}`;
    const [, , found] = await mysqlConnection(connection).alone([
      "start transaction",
      `update ${tableOf("writers")} set mark=-1 ${line}`,
      `select batch from ${tableOf("writers")} ${line}`,
      "commit",
    ]);
    this.#threads.delete(writer);
    return Number(found?.rows[0]?.[0] ?? 0);
  }

  /** mysql.B1, mysql.B2. An error means that the connection or the server is gone already. */
  async #kill({ id, lock }: Thread): Promise<void> {
    let driver: DriverConnection | undefined;
    try {
      driver = await this.#open();
      const [holder] = await driver.run([`select is_used_lock('${lock}')`]);
      if (Number(holder?.rows[0]?.[0] ?? 0) === id) await driver.run([`kill connection ${id}`]);
    } catch {
      // `lastBatch` waits for the lock of the writer's row in any case.
    } finally {
      driver?.destroy();
    }
  }

  async reserve(connection: Connection, counter: string, count: number, floor: number): Promise<number> {
    const [, last] = await mysqlConnection(connection).alone([
      `insert into ${tableOf("counters")} (name, value) values (${textLiteral(counter)}, last_insert_id(${floor + count}))
       on duplicate key update value = last_insert_id(greatest(value, ${floor}) + ${count})`,
      "select last_insert_id()",
    ]);
    return Number(last?.rows[0]?.[0]) - count + 1;
  }

  async serverTime(connection: Connection): Promise<number> {
    const [now] = await mysqlConnection(connection).alone(["select cast(unix_timestamp(now(3)) * 1000 as signed)"]);
    return Number(now?.rows[0]?.[0]);
  }

  async info(connection: Connection): Promise<BackendInfo> {
    const [size] = await mysqlConnection(connection).alone([
      `select cast(coalesce(sum(data_length + index_length), 0) as signed) from information_schema.tables
       where table_schema = database() and table_name like '${PREFIX.replace("_", String.raw`\_`)}%'`,
    ]);
    const { location } = this.#address;
    const server = this.#server?.version ?? "";
    return {
      location,
      server,
      bytes: Number(size?.rows[0]?.[0]),
      durability: this.#server?.isDurable === true ? "full" : "relaxed",
      schemaVersion: SCHEMA_VERSION,
    };
  }

  close(): Promise<void> {
    this.#threads.clear();
    return Promise.resolve();
  }
}
