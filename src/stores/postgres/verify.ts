// Verify: what a server must be and promise before anything is entrusted to it.

import type { Client } from "pg";
import { RepriseError } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";
import { StandbyError } from "../remote/hosts.ts";
import { newerSchema } from "../remote/schema-errors.ts";
import type { Address } from "./address.ts";
import { isLost, serverErrorOf } from "./errors.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { quoted } from "./shapes.ts";

const OLDEST = 150_000;

export interface Server {
  /** "PostgreSQL 15.18". */
  readonly name: string;
  /** Of the process that serves this connection. */
  readonly pid: number;
  readonly identity: Identity;
}

/** The cluster it belongs to, the timeline it is on, and since when it runs. A standby that is promoted begins a new timeline. */
export interface Identity {
  readonly system: string;
  readonly timeline: number;
  readonly started: string;
}

interface Facts {
  readonly number: number;
  readonly version: string;
  readonly encoding: string;
  readonly pid: number;
  readonly standby: boolean;
  readonly fsync: string;
  readonly pages: string;
  readonly commit: string;
}

const FACTS = `select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
    current_setting('server_encoding') as encoding, pg_backend_pid() as pid, pg_is_in_recovery() as standby,
    current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
    current_setting('synchronous_commit') as commit`;

/** Before a migration and, with what may have changed since, on every connection. */
export async function verifyServer(client: Client, address: Address, durability: "full" | "relaxed"): Promise<Server> {
  const { rows } = await client.query<Facts>(FACTS);
  const facts = rows[0] as Facts;
  const { location } = address;
  if (facts.number < OLDEST)
    throw new RepriseError(
      "STORE_LOCATION",
      `${location} is PostgreSQL ${facts.version}; Reprise needs 15 or newer. Upgrade the server.`,
      { details: { version: facts.version } },
    );
  if (facts.encoding !== "UTF8")
    throw new RepriseError(
      "STORE_LOCATION",
      `${location} has the encoding ${facts.encoding}, which cannot keep every text. Create a database with encoding UTF8.`,
      { details: { encoding: facts.encoding } },
    );
  if (facts.standby) throw StandbyError.at(location);
  checkPooler(client, address, facts.pid);
  if (durability === "full") await makeDurable(client, location, facts);
  return { name: `PostgreSQL ${facts.version}`, pid: facts.pid, identity: await readIdentity(client) };
}

const STARTED = "extract(epoch from pg_postmaster_start_time())::text as started";
const IDENTITY = `select (select system_identifier from pg_control_system())::text as system,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline, ${STARTED}`;

/** Some services that speak PostgreSQL's protocol know nothing of files of a log: when it was started is known everywhere. */
async function readIdentity(client: Client): Promise<Identity> {
  try {
    const { rows } = await client.query<Identity>(IDENTITY);
    return rows[0] as Identity;
  } catch (error) {
    if (isLost(error)) throw error;
    const { rows } = await client.query<Identity>(`select '' as system, 0 as timeline, ${STARTED}`);
    return rows[0] as Identity;
  }
}

/** A pooler invents the number by which a connection could be cancelled. */
function checkPooler(client: Client, { location, isPooled }: Address, pid: number): void {
  const told = (client as unknown as { readonly processID: number }).processID;
  if (told === pid || isPooled) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `Between this process and ${location} stands a connection pooler, such as PgBouncer. Reprise needs connections of its own: prepared statements, settings and locks belong to them. Name the server itself, or, if the pooler is in session mode (PgBouncer: pool_mode = session), add ?pooler=session. Transaction mode cannot be used.`,
  );
}

/**
 * Refuses a pooler that is said to keep sessions and does not. In transaction mode a connection without a transaction has no
 * server process: while another connection is in a transaction, the next statement is served by a different one.
 */
export async function verifySession(client: Client, other: Client, location: string): Promise<void> {
  const asked = "select pg_backend_pid() as pid";
  const pidOf = async (on: Client): Promise<number> => (await on.query<{ pid: number }>(asked)).rows[0]!.pid;
  const before = await pidOf(client);
  try {
    await other.query("begin");
  } catch (error) {
    if (serverErrorOf(error)?.code !== PROTOCOL_VIOLATION) throw error;
    throw new RepriseError(
      "STORE_LOCATION",
      `Between this process and ${location} stands PgBouncer in statement mode, which refuses transactions. ${SESSION_MODE}`,
      { cause: error },
    );
  }
  const taken = await pidOf(other);
  samePid(before, taken === before ? -1 : await pidOf(client), location);
  await other.query("rollback");
}

/** How PgBouncer answers `begin` in statement mode. */
const PROTOCOL_VIOLATION = "08P01";

const SESSION_MODE =
  "Set pool_mode = session for this database in pgbouncer.ini, or name the PostgreSQL server itself and remove ?pooler=session.";

/** Of two statements on one connection. */
export function samePid(before: number, after: number, location: string): void {
  if (before === after) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `Between this process and ${location} stands a pooler in transaction mode (PgBouncer: pool_mode = transaction): two statements of one connection were served by different server processes. Reprise keeps prepared statements, settings and locks on a connection. ${SESSION_MODE}`,
  );
}

async function makeDurable(client: Client, location: string, facts: Facts): Promise<void> {
  const unsafe = [...(facts.fsync === "on" ? [] : ["fsync"]), ...(facts.pages === "on" ? [] : ["full_page_writes"])];
  if (unsafe.length > 0)
    throw new RepriseError(
      "STORE_UNSAFE_DURABILITY",
      `${location} has ${unsafe.join(" and ")} off: a power cut can lose or damage what was committed. Turn ${unsafe.length > 1 ? "them" : "it"} on, or ask for durability: "relaxed".`,
      { details: { settings: unsafe } },
    );
  // This one is the session's own choice.
  if (facts.commit === "off") await client.query("set synchronous_commit = on");
}

/** Somebody may have brought the schema on while this process ran. */
export async function verifySchema(client: Client, address: Address): Promise<void> {
  const { rows } = await client.query<{ readonly value: string | null; readonly whole: boolean }>(
    `select (select value from ${quoted(address.schema)}.meta where key = 'schema') as value, exists (
        select 1 from pg_catalog.pg_index where indisprimary and indrelid = '${quoted(address.schema)}.writers'::regclass
      ) as whole`,
  );
  const { value, whole } = rows[0]!;
  // A restore fills the tables first and makes their keys last: a row of ours in between would keep it from ending.
  if (value === null || !whole)
    throw new ConnectionError("lost", {
      cause: new Error(`${address.location} is not whole: a restore may be under way`),
    });
  const version = Number(value);
  if (version > SCHEMA_VERSION) throw newerSchema(address.location, version, SCHEMA_VERSION);
}
