// MysqlBackend: a MySQL or MariaDB database as the port (remote/backend.ts) wants it.
//
// B1. A writer that somebody asked about is closed: its line says so, under its lock, and a commit whose bytes are still under
//     way finds that out (L3). Its connection is killed as well, so that nobody waits for what it would do.
// B2. Numbers of connections are given again by a server that was restarted, and by the one that took its place: a connection
//     is killed only if it has the lock that ours took. Not by the list of processes: MariaDB 10.11.19 crashed twice while it
//     answered `select host from information_schema.processlist`.

import { RepriseError, type Random, type Timers } from "../../base/index.ts";
import { ConnectionError, type Backend, type BackendInfo, type Connection } from "../remote/backend.ts";
import { addressOf, type Address } from "./address.ts";
import { DEFAULT_TIMEOUTS, DriverConnection, type Timeouts } from "./driver.ts";
import { isUnavailable, storeErrorOf } from "./errors.ts";
import { MysqlConnection, mysqlConnection } from "./connection.ts";
import { migrate } from "./migrate.ts";
import { PREFIX } from "./schema.ts";
import { prepareSession, type Server } from "./session.ts";
import { tableOf, textLiteral } from "./sql-text.ts";

export interface MysqlBackendOptions {
  readonly url: string;
  readonly random: Random;
  /** Real ones: they time the answers of the server. */
  readonly timers: Timers;
  readonly durability: "full" | "relaxed";
  /** Bring an older schema up to date; true unless said otherwise. */
  readonly migrate?: boolean;
  readonly timeouts?: Partial<Timeouts>;
}

interface Thread {
  readonly id: number;
  /** B2. The name of a lock that only this connection has. */
  readonly lock: string;
}

const lockOf = (writer: string): string => `reprise ${writer}`;

/** How long a starter waits for another's migration. */
const MIGRATION_PATIENCE_S = 60;

/** Nothing is opened yet: the first `connect` looks at the server and brings the schema up to date. */
export function openMysqlBackend(options: MysqlBackendOptions): Backend {
  return new MysqlBackend(options);
}

class MysqlBackend implements Backend {
  readonly kind = "mysql";
  readonly #options: MysqlBackendOptions;
  readonly #address: Address;
  readonly #timeouts: Timeouts;
  /** B1. What `KILL` calls the connection of a writer of ours, and where it comes from. */
  readonly #threads = new Map<string, Thread>();
  #server: Server | undefined;
  /** The server of the last connection, how often it was restarted since, and the last number it gave to one. */
  #instance = { name: "", starts: 0, threadId: 0 };
  #migration: Promise<void> | undefined;

  constructor(options: MysqlBackendOptions) {
    this.#options = options;
    this.#address = addressOf(options.url);
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  }

  async connect(): Promise<Connection> {
    const { location } = this.#address;
    const { random, durability, timers } = this.#options;
    let wire: DriverConnection | undefined;
    try {
      wire = await this.#open();
      this.#server = await prepareSession(wire, location, durability, this.#timeouts);
      await (this.#migration ??= this.#migrate());
      const writer = random.token();
      await wire.run([
        `insert into ${tableOf("writers")} (writer, batch, mark) values ('${writer}', 0, 0)`,
        `select get_lock('${lockOf(writer)}', 0)`,
      ]);
      const thread = { id: wire.threadId, lock: lockOf(writer) };
      this.#threads.set(writer, thread);
      const { maxPacket } = this.#server;
      const { idleInTransactionMs: idleMs } = this.#timeouts;
      const kill = (): void => void this.#kill(thread);
      return new MysqlConnection({
        wire,
        writer,
        server: this.#identityOf(this.#server, wire.threadId),
        maxPacket,
        kill,
        timers,
        idleMs,
      });
    } catch (error) {
      wire?.destroy();
      const thrown = this.#address.hosts.errorFor(error, this.#server !== undefined);
      if (thrown instanceof RepriseError || thrown instanceof ConnectionError) throw thrown;
      // Only what somebody must act on is for good: a wrong password, a database that is not there.
      if (isUnavailable(error)) throw new ConnectionError("lost", { cause: error });
      throw storeErrorOf(error, `Connecting to ${location}`);
    }
  }

  /** A server counts its connections from the beginning when it is restarted. */
  #identityOf({ instance: name }: Server, threadId: number): string {
    const last = this.#instance;
    const isNew = last.name !== name || threadId < last.threadId;
    this.#instance = { name, starts: last.starts + Number(isNew), threadId };
    return `${name} ${this.#instance.starts}`;
  }

  /** Once; over a connection of its own, because making tables may take longer than any answer. */
  async #migrate(): Promise<void> {
    const patient = { ...this.#timeouts, answerMs: this.#timeouts.answerMs + MIGRATION_PATIENCE_S * 1_000 };
    let wire: DriverConnection | undefined;
    try {
      wire = await DriverConnection.open(this.#address, this.#options.timers, patient);
      await prepareSession(wire, this.#address.location, this.#options.durability, this.#timeouts);
      await migrate(wire, this.#address, {
        migrate: this.#options.migrate ?? true,
        patienceS: MIGRATION_PATIENCE_S,
      });
    } catch (error) {
      this.#migration = undefined;
      throw error;
    } finally {
      await wire?.close();
    }
  }

  #open(): Promise<DriverConnection> {
    return DriverConnection.open(this.#address, this.#options.timers, this.#timeouts);
  }

  /** B1 */
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

  /** B1, B2. That it is gone already, or the server is, is as good. */
  async #kill({ id, lock }: Thread): Promise<void> {
    let wire: DriverConnection | undefined;
    try {
      wire = await this.#open();
      const [holder] = await wire.run([`select is_used_lock('${lock}')`]);
      if (Number(holder?.rows[0]?.[0] ?? 0) === id) await wire.run([`kill connection ${id}`]);
    } catch {
      // The lock on the writer's line is waited for in any case.
    } finally {
      wire?.destroy();
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
    };
  }

  close(): Promise<void> {
    this.#threads.clear();
    return Promise.resolve();
  }
}
