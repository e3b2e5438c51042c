// Driver: loads `pg` when a PostgreSQL store is opened, and opens connections with Reprise's settings.
//
// postgres.D1. READ COMMITTED, also outside Reprise's transactions.
// postgres.D2. Every wait is limited: for a lock, for a response, and for a client that keeps a transaction open (the server ends
//   its transaction).
// postgres.D3. Statements are planned once, for all values, and use indexes: a plan made while a table is empty must still be
//   right when it is full (bind-query.Q3).

import type { Client } from "pg";
import { RepriseError, type Timers } from "../../base/index.ts";
import { StandbyError } from "../remote/hosts.ts";
import { noTlsOffered, tlsErrorOf, tlsOptions, type Tls } from "../remote/tls.ts";
import { connectMsWith } from "../remote/url-options.ts";
import type { Address } from "./address.ts";
import { isUnavailable } from "./errors.ts";

export interface Timeouts {
  readonly connectMs: number;
  /** Waiting for another transaction's lock. */
  readonly lockMs: number;
  readonly statementMs: number;
  readonly idleInTransactionMs: number;
  /** Waiting for a response: longer than the server's own limits, so that a timeout means a broken connection. */
  readonly answerMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = {
  connectMs: 10_000,
  lockMs: 5_000,
  statementMs: 15_000,
  idleInTransactionMs: 10_000,
  answerMs: 20_000,
};

const KEEP_ALIVE_S = 10;
/** The limit for closing a connection cleanly. */
export const CLOSE_MS = 2_000;

export function sessionSettings(timeouts: Timeouts, readOnly = false): Readonly<Record<string, string>> {
  return {
    default_transaction_isolation: "read committed",
    default_transaction_read_only: readOnly ? "on" : "off",
    statement_timeout: String(timeouts.statementMs),
    lock_timeout: String(timeouts.lockMs),
    idle_in_transaction_session_timeout: String(timeouts.idleInTransactionMs),
    tcp_keepalives_idle: String(KEEP_ALIVE_S),
    tcp_keepalives_interval: "5",
    tcp_keepalives_count: "3",
    bytea_output: "hex",
    standard_conforming_strings: "on",
    ...PLANNER,
  };
}

/** postgres.D3 */
const PLANNER = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
} as const;

/** Resets the planner settings for user SQL, until its transaction ends. */
export const USUAL_PLANNER: readonly string[] = Object.keys(PLANNER).map((name) => `set local ${name} to default`);

/**
 * @internal Hidden from the published types, because `pg` may not be installed. Connects to the host that serves; to read, any host
 * that answers serves.
 */
export async function connectClient(
  address: Address,
  timeouts: Timeouts,
  name: string,
  readOnly = false,
): Promise<Client> {
  const { hosts, tls } = address;
  const connectMs = connectMsWith(address.connectMs, timeouts.connectMs, hosts.areSeveral);
  const isTransient = (error: unknown): boolean => !(error instanceof RepriseError) && isUnavailable(error);
  return hosts.connect(async (url) => {
    const acceptsStandby = readOnly || !hosts.areSeveral;
    const connect = (secured: Tls | undefined) => connectHost(url, address, connectMs, name, secured, acceptsStandby);
    if (tls?.mode !== "prefer") return connect(tls);
    try {
      return await connect(tls);
    } catch (error) {
      if (!(error instanceof RepriseError) || error.details?.["tls"] === undefined) throw error;
      return connect({ ...tls, mode: "disable" });
    }
  }, isTransient);
}

async function connectHost(
  url: string,
  address: Address,
  connectMs: number,
  name: string,
  tls: Tls | undefined,
  acceptsStandby: boolean,
): Promise<Client> {
  const DriverClient = await loadDriver();
  const client = new DriverClient({
    connectionString: url,
    application_name: name,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_S * 1_000,
    ...(tls !== undefined && { ssl: tlsOptions("postgres", tls) }),
  });
  // Pending calls get the error themselves; without a listener it would end the process.
  client.on("error", () => undefined);
  // The server refuses TLS with one letter; the driver's error for it has no code.
  let isTlsRefused = false;
  client.connection.stream.once("data", (bytes) => {
    isTlsRefused = tls !== undefined && tls.mode !== "disable" && bytes.length === 1 && bytes[0] === NO_TLS;
  });
  const traits = new Map<string, string>();
  client.connection.on("parameterStatus", (status: { parameterName: string; parameterValue: string }) =>
    traits.set(status.parameterName, status.parameterValue),
  );
  try {
    await client.connect();
    if (!acceptsStandby) await refuseStandby(client, address, traits, connectMs);
  } catch (error) {
    void client.end().catch(() => undefined);
    if (isTlsRefused) throw noTlsOffered(address.location, tls!);
    throw tlsErrorOf(error, address.location, tls) ?? error;
  }
  return client;
}

const NO_TLS = "N".charCodeAt(0);

/** Servers report `in_hot_standby` at connect; a proxy may omit it. */
async function refuseStandby(
  client: Client,
  { location, target }: Address,
  traits: ReadonlyMap<string, string>,
  limitMs: number,
): Promise<void> {
  const asked = { text: "select pg_is_in_recovery() as standby", query_timeout: limitMs };
  const isStandby = traits.has("in_hot_standby")
    ? traits.get("in_hot_standby") === "on"
    : (await client.query<{ standby: boolean }>(asked)).rows[0]?.standby === true;
  if (isStandby) throw StandbyError.at(location);
  if (target === "read-write" && traits.get("default_transaction_read_only") === "on")
    throw new StandbyError(location, "read-only (default_transaction_read_only = on)");
}

/** @internal postgres.D2. Destroys the connection when `act` takes longer; pending calls then fail. */
export async function within<T>(client: Client, timers: Timers, ms: number, act: () => Promise<T>): Promise<T> {
  const stop = timers.set(ms, () => client.connection.stream.destroy(), { ref: false });
  try {
    return await act();
  } finally {
    stop();
  }
}

async function loadDriver(): Promise<typeof Client> {
  try {
    const driver = await import("pg");
    return driver.Client;
  } catch (error) {
    throw new RepriseError(
      "DRIVER_MISSING",
      "A PostgreSQL store needs the package `pg`, which is not installed. Run `npm install pg`.",
      { cause: error },
    );
  }
}
