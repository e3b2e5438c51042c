// PostgresBackend: all tables in one schema of one database, created and migrated when the store is opened.

import type { Client } from "pg";
import { RepriseError, systemRandom, systemTimers, type Random, type Timers } from "../../base/index.ts";
import { ConnectionError, type Backend, type BackendInfo, type Connection } from "../remote/backend.ts";
import { addressOf, type Address } from "./address.ts";
import { CLOSE_MS, connectClient, DEFAULT_TIMEOUTS, sessionSettings, within, type Timeouts } from "./driver.ts";
import { isLost, isUnavailable, storeErrorOf } from "./errors.ts";
import { PostgresConnection, postgresConnection } from "./connection.ts";
import { Listener } from "./listener.ts";
import { migrate } from "./migrate.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { literal, Shapes } from "./shapes.ts";
import { samePid, verifySchema, verifyServer, verifySession, type Identity, type Server } from "./verify.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly durability?: "full" | "relaxed";
  /** False: an older schema is refused instead of migrated. */
  readonly migrate?: boolean;
  /** opened-to-read.V1 */
  readonly readOnly?: boolean;
  readonly random?: Random;
  /** Real timers: they limit the response times of the server. */
  readonly timers?: Timers;
  readonly timeouts?: Partial<Timeouts>;
}

/** The connection's `application_name`: tells its server process from another one that has its pid by now. */
const nameOf = (writer: string): string => `reprise ${writer}`;
/** How often `lastBatch` waits for a lock before it fails. */
const MAX_LOCK_WAITS = 12;

/** Contacts no server; the first `connect` does. */
export async function openPostgresBackend(options: PostgresOptions): Promise<Backend> {
  return new PostgresBackend({
    address: addressOf(options.url),
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    durability: options.durability ?? "full",
    mayMigrate: options.migrate ?? true,
    readOnly: options.readOnly ?? false,
    random: options.random ?? systemRandom,
    timers: options.timers ?? systemTimers,
  });
}

interface Parts {
  readonly address: Address;
  readonly timeouts: Timeouts;
  readonly durability: "full" | "relaxed";
  readonly mayMigrate: boolean;
  readonly readOnly: boolean;
  readonly random: Random;
  readonly timers: Timers;
}

class PostgresBackend implements Backend {
  readonly kind = "postgres";
  readonly #parts: Parts;
  readonly #shapes: Shapes;
  /** The server process of each connection, by writer. */
  readonly #pids = new Map<string, number>();
  readonly #listeners = new Set<Listener>();
  readonly #processToken: string;
  /** Whether the schema is verified or migrated. */
  #isReady = false;
  #server = "PostgreSQL";
  #newestServer: Identity | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#shapes = new Shapes(parts.address.schema);
    this.#processToken = parts.random.token();
  }

  async connect(): Promise<Connection> {
    const { address } = this.#parts;
    try {
      if (!this.#isReady) await this.#prepare();
      return await this.#connect();
    } catch (error) {
      const thrown = address.hosts.errorFor(error, this.#isReady);
      if (thrown instanceof RepriseError || thrown instanceof ConnectionError) throw thrown;
      throw isUnavailable(error)
        ? new ConnectionError("lost", { cause: error })
        : storeErrorOf(error, `Opening ${address.location}`);
    }
  }

  async #prepare(): Promise<void> {
    const { address, timeouts, timers, mayMigrate, readOnly } = this.#parts;
    const client = await connectClient(address, timeouts, "reprise migrates", readOnly);
    try {
      await within(client, timers, timeouts.answerMs, () => verifyServer(client, address, this.#parts));
      if (address.isPooled) await this.#checkSession(client);
      // Without a time limit: another process may be migrating.
      await migrate(client, address, mayMigrate);
      this.#isReady = true;
    } finally {
      await within(client, timers, CLOSE_MS, () => client.end());
    }
  }

  async #checkSession(client: Client): Promise<void> {
    const { address, timeouts, timers, readOnly } = this.#parts;
    const other = await connectClient(address, timeouts, "reprise verifies", readOnly);
    try {
      const act = () => verifySession(client, other, address.location);
      await within(client, timers, timeouts.answerMs, () => within(other, timers, timeouts.answerMs, act));
    } finally {
      await within(other, timers, CLOSE_MS, () => other.end());
    }
  }

  async #connect(): Promise<Connection> {
    const { address, timeouts, timers, random, durability, readOnly } = this.#parts;
    const writer = random.token();
    const settings = settingsText(sessionSettings(timeouts, readOnly));
    const client = await connectClient(address, timeouts, nameOf(writer), readOnly);
    const server = await within(client, timers, timeouts.answerMs, async () => {
      await client.query(settings);
      await watchClient(client);
      const verified = await verifyServer(client, address, this.#parts);
      const identity = this.#checkTimeline(verified);
      await verifySchema(client, address);
      const insert = `insert into ${this.#shapes.table("writers")} (writer, batch, mark) values ($1, 0, 0) returning pg_backend_pid() as pid`;
      const { rows } = await (readOnly
        ? client.query<{ pid: number }>("select pg_backend_pid() as pid")
        : client.query<{ pid: number }>(insert, [writer]));
      samePid(verified.pid, rows[0]!.pid, address.location);
      return { ...verified, identity };
    }).catch((error: unknown) => {
      client.connection.stream.destroy();
      throw error;
    });
    this.#server = server.name;
    this.#pids.set(writer, server.pid);
    const reset = [...RESET, settings, ...(durability === "full" ? ["set synchronous_commit = on"] : [])];
    const { schema } = address;
    const { answerMs, idleInTransactionMs: idleMs } = timeouts;
    const parts = { client, shapes: this.#shapes, schema, writer, timers, answerMs, idleMs, reset, readOnly };
    return new PostgresConnection({ ...parts, server: server.identity });
  }

  /** remote.L5. An old primary that was replaced by a promoted standby still answers, but its commits are lost. */
  #checkTimeline({ identity }: Server): string {
    const { system, timeline, started } = identity;
    const newest = this.#newestServer;
    if (newest?.system === system && timeline < newest.timeline)
      throw new ConnectionError("lost", {
        cause: new Error(
          `the server is on timeline ${timeline}, but this process has used one on timeline ${newest.timeline}: it is an old primary. Point the address to the new primary; if you returned to the old one on purpose, restart this process`,
        ),
      });
    this.#newestServer = identity;
    return `${system} ${timeline} ${started}`;
  }

  async lastBatch(connection: Connection, writer: string): Promise<number> {
    const over = postgresConnection(connection);
    // End the writer's server process, which may still hold locks. Where the role may not do that, wait until it ends.
    await over
      .alone(
        "select pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where pid = $1 and application_name = $2",
        [
          { type: "int", value: this.#pids.get(writer) ?? -1 },
          { type: "text", value: nameOf(writer) },
        ],
      )
      .catch((error: unknown) => {
        if (error instanceof ConnectionError && error.reason === "lost") throw error;
      });
    for (let tries = 1; ; tries += 1)
      try {
        const batch = await this.#fence(over, writer);
        this.#pids.delete(writer);
        return batch;
      } catch (error) {
        if (!(error instanceof ConnectionError) || error.reason === "lost" || tries === MAX_LOCK_WAITS) throw error;
      }
  }

  /** remote.L3. A negative batch marks a fenced writer, which can no longer commit: -1 for 0, -2 for 1. */
  async #fence(connection: PostgresConnection, writer: string): Promise<number> {
    const { rows } = await connection.alone(
      `insert into ${this.#shapes.table("writers")} as w (writer, batch, mark) values ($1, -1, 0)
        on conflict (writer) do update set batch = least(w.batch, -1 - w.batch) returning batch`,
      [{ type: "text", value: writer }],
    );
    return -1 - Number(rows[0]?.[0]);
  }

  async reserve(connection: Connection, counter: string, count: number, floor: number): Promise<number> {
    const { rows } = await postgresConnection(connection).alone(
      `insert into ${this.#shapes.table("counters")} as c (name, value) values ($1, $3 + $2)
        on conflict (name) do update set value = greatest(c.value, $3) + $2 returning value`,
      [
        { type: "text", value: counter },
        { type: "int", value: count },
        { type: "int", value: floor },
      ],
    );
    return Number(rows[0]?.[0]) - count + 1;
  }

  async serverTime(connection: Connection): Promise<number> {
    const text = "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint";
    const { rows } = await postgresConnection(connection).alone(text, []);
    return Number(rows[0]?.[0]);
  }

  async notify(connection: Connection, text: string): Promise<void> {
    await postgresConnection(connection).alone("select pg_notify($1, $2)", [
      { type: "text", value: this.#channel },
      { type: "text", value: `${this.#processToken} ${text}` },
    ]);
  }

  async listen(onNotify: (text: string) => void): Promise<{ close(): Promise<void> }> {
    const { address, timeouts, timers } = this.#parts;
    const listener = new Listener({
      address,
      timeouts,
      timers,
      channel: this.#channel,
      own: this.#processToken,
      onNotify,
    });
    this.#listeners.add(listener);
    await listener.start();
    return {
      close: () => {
        this.#listeners.delete(listener);
        return listener.close();
      },
    };
  }

  get #channel(): string {
    return `reprise_due_${this.#parts.address.schema}`;
  }

  async info(connection: Connection): Promise<BackendInfo> {
    const { address } = this.#parts;
    const { rows } = await postgresConnection(connection).alone(
      `select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
          (current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on')::int
        from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = $1 and c.relkind = 'r'`,
      [{ type: "text", value: address.schema }],
    );
    const server = this.#server;
    const [bytes, isDurable] = rows[0] ?? [];
    const durability = Number(isDurable) === 1 ? "full" : "relaxed";
    return { location: address.location, server, bytes: Number(bytes), durability, schemaVersion: SCHEMA_VERSION };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#listeners].map((listener) => listener.close()));
  }
}

/** postgres.D2. Lets the server detect a lost client within seconds; not every operating system supports it. */
async function watchClient(client: Client): Promise<void> {
  try {
    await client.query(WATCH);
  } catch (error) {
    if (isLost(error)) throw error;
  }
}

const WATCH = "set client_connection_check_interval = 2000";

/** postgres.K4. Resets everything that user SQL can leave on a connection, except prepared statements. */
const RESET = [
  "reset session authorization",
  "reset all",
  "discard temp",
  "unlisten *",
  "select pg_advisory_unlock_all()",
] as const;

/** One statement for all settings. */
function settingsText(settings: Readonly<Record<string, string>>): string {
  const calls = Object.entries(settings).map(
    ([name, value]) => `set_config(${literal(name)}, ${literal(value)}, false)`,
  );
  return `select ${calls.join(", ")}`;
}
