// Driver: `pg`, loaded when a PostgreSQL store is opened, and connections as we want them.
//
// D1. READ COMMITTED, also outside of a transaction of ours.
// D2. Nobody waits for ever: not for a lock, not for an answer, and a transaction whose owner is silent is ended by the server.
// D3. Our statements are planned once, for any values, and by index: a plan made while a table was empty serves when it is
//     full (questions.ts, Q3).

import type { Client } from "pg";
import { RepriseError, type Timers } from "../../base/index.ts";
import type { Address } from "./address.ts";

export interface Timeouts {
  readonly connectMs: number;
  /** Waiting for another transaction's lock. */
  readonly lockMs: number;
  readonly statementMs: number;
  readonly idleInTransactionMs: number;
  /** Waiting for an answer: longer than the server may take, so that it is the connection that is broken. */
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
/** For a goodbye, to which there may be no answer. */
export const CLOSE_MS = 2_000;

export function sessionSettings(timeouts: Timeouts): Readonly<Record<string, string>> {
  return {
    default_transaction_isolation: "read committed",
    default_transaction_read_only: "off",
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

/** D3 */
const PLANNER = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
} as const;

/** For user SQL, until its transaction ends. */
export const USUAL_PLANNER: readonly string[] = Object.keys(PLANNER).map((name) => `set local ${name} to default`);

/** @internal The driver's types are not there for everybody. */
export async function connectClient(address: Address, timeouts: Timeouts, name: string): Promise<Client> {
  const DriverClient = await loadDriver();
  const client = new DriverClient({
    connectionString: address.url,
    application_name: name,
    connectionTimeoutMillis: timeouts.connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_S * 1_000,
  });
  // Whoever waits for an answer hears of it there; without a listener it would end the process.
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (error) {
    void client.end().catch(() => undefined);
    throw error;
  }
  return client;
}

/** @internal D2. What takes longer than this breaks the connection, which whoever waits on it then hears. */
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
