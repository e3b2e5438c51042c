// Verify: checks the server before it is used: version, encoding, durability, poolers and schema.

import type { Client } from "pg";
import { RepriseError } from "../../base/index.ts";
import { ConnectionError, type BackendUse } from "../remote/backend.ts";
import { StandbyError } from "../remote/hosts.ts";
import { newerSchema } from "../remote/schema-errors.ts";
import type { Address } from "./address.ts";
import { isLost, serverErrorOf } from "./errors.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { quoted } from "./shapes.ts";

const OLDEST_VERSION = 150_000;

/** Other databases with PostgreSQL's protocol, by what `version()` says, and what they lack. None was available to test. */
const OTHER_DATABASES: readonly (readonly [sign: RegExp, name: string, lacks: string])[] = [
  [/CockroachDB/, "CockroachDB", "its advisory locks do nothing, and it has no LISTEN"],
  [/-YB-/, "YugabyteDB", "it may run READ COMMITTED as REPEATABLE READ, without an error"],
  [/Greenplum|Cloudberry|Redshift|Materialize/, "an analytical database", "it has no row locks with SKIP LOCKED"],
];

export interface Server {
  /** "PostgreSQL 15.18". */
  readonly name: string;
  /** The pid of the server process of this connection. */
  readonly pid: number;
  readonly identity: Identity;
}

/** The server's cluster, timeline and start time. A promoted standby begins a new timeline. */
export interface Identity {
  readonly system: string;
  readonly timeline: number;
  readonly started: string;
}

interface Facts {
  readonly product: string;
  readonly number: number;
  readonly version: string;
  readonly encoding: string;
  readonly pid: number;
  readonly standby: boolean;
  readonly fsync: string;
  readonly pages: string;
  readonly commit: string;
}

const FACTS = `select version() as product, current_setting('server_version_num')::int as number, current_setting('server_version') as version,
    current_setting('server_encoding') as encoding, pg_backend_pid() as pid, pg_is_in_recovery() as standby,
    current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
    current_setting('synchronous_commit') as commit`;

/** Called before a migration and on every connection, because settings may change. */
export async function verifyServer(
  client: Client,
  address: Address,
  { durability, readOnly }: Pick<BackendUse, "durability" | "readOnly">,
): Promise<Server> {
  const { location } = address;
  const facts = await readFacts(client, location);
  if (facts.number < OLDEST_VERSION)
    throw new RepriseError(
      "STORE_LOCATION",
      `${location} is PostgreSQL ${facts.version}; Reprise needs 15 or newer. Upgrade the server.`,
      { details: { version: facts.version } },
    );
  if (facts.encoding !== "UTF8")
    throw new RepriseError(
      "STORE_LOCATION",
      `${location} has the encoding ${facts.encoding}, which cannot store every text. Create a database with encoding UTF8: createdb --encoding=UTF8 --template=template0 NAME.`,
      { details: { encoding: facts.encoding } },
    );
  if (facts.standby && !readOnly) throw StandbyError.at(location);
  checkPooler(client, address, facts.pid);
  if (durability === "full") await makeDurable(client, location, facts);
  return { name: `PostgreSQL ${facts.version}`, pid: facts.pid, identity: await readIdentity(client) };
}

async function readFacts(client: Client, location: string): Promise<Facts> {
  try {
    const { rows } = await client.query<Facts>(FACTS);
    const facts = rows[0] as Facts;
    refuseOther(facts.product, location);
    return facts;
  } catch (error) {
    // Every PostgreSQL has these settings and functions.
    if (!/^42|^0A/.test(serverErrorOf(error)?.code ?? "")) throw error;
    const { rows } = await client.query<Pick<Facts, "product">>("select version() as product");
    refuseOther(rows[0]!.product, location);
    throw notPostgres(location, rows[0]!.product, (error as Error).message, error);
  }
}

function refuseOther(product: string, location: string): void {
  for (const [sign, name, lacks] of OTHER_DATABASES)
    if (sign.test(product)) throw notPostgres(location, product, `${name}: ${lacks}`);
}

function notPostgres(location: string, product: string, why: string, cause?: unknown): RepriseError {
  return new RepriseError(
    "STORE_LOCATION",
    `${location} is not PostgreSQL (${why}). Its version is "${product}". Reprise needs READ COMMITTED, row locks with SKIP LOCKED, advisory locks and LISTEN as in PostgreSQL. Use PostgreSQL 15 or newer; docs/guides/scale.md says how to spread runs over several databases.`,
    { details: { version: product }, ...(cause !== undefined && { cause }) },
  );
}

const STARTED = "extract(epoch from pg_postmaster_start_time())::text as started";
const IDENTITY = `select (select system_identifier from pg_control_system())::text as system,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline, ${STARTED}`;

/** Some services with PostgreSQL's protocol have no WAL functions; the start time is available everywhere. */
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

/** A pooler reports a pid of its own, not the server's. */
function checkPooler(client: Client, { location, isPooled }: Address, pid: number): void {
  const reported = (client as unknown as { readonly processID: number }).processID;
  if (reported === pid || isPooled) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `${location} is a connection pooler, such as PgBouncer. Reprise keeps prepared statements, settings and locks on a connection, so it needs a connection per session. Use the address of the PostgreSQL server, or, if the pooler is in session mode (PgBouncer: pool_mode = session), add ?pooler=session to the store URL. Transaction mode is not supported.`,
  );
}

/**
 * Refuses a pooler that is not in session mode, although the URL has ?pooler=session. In transaction mode a connection without a
 * transaction has no server process: while another connection is in a transaction, the next statement runs in another process.
 */
export async function verifySession(client: Client, other: Client, location: string): Promise<void> {
  const query = "select pg_backend_pid() as pid";
  const pidOf = async (on: Client): Promise<number> => (await on.query<{ pid: number }>(query)).rows[0]!.pid;
  const before = await pidOf(client);
  try {
    await other.query("begin");
  } catch (error) {
    if (serverErrorOf(error)?.code !== PROTOCOL_VIOLATION) throw error;
    throw new RepriseError(
      "STORE_LOCATION",
      `${location} is PgBouncer in statement mode, which does not support transactions. ${SESSION_MODE}`,
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
  "Set pool_mode = session for this database in pgbouncer.ini, or use the address of the PostgreSQL server without ?pooler=session.";

/** Checks that two statements on one connection ran in the same server process. */
export function samePid(before: number, after: number, location: string): void {
  if (before === after) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `${location} is a pooler in transaction mode (PgBouncer: pool_mode = transaction): two statements of one connection ran in different server processes. Reprise keeps prepared statements, settings and locks on a connection. ${SESSION_MODE}`,
  );
}

async function makeDurable(client: Client, location: string, facts: Facts): Promise<void> {
  const unsafe = [...(facts.fsync === "on" ? [] : ["fsync"]), ...(facts.pages === "on" ? [] : ["full_page_writes"])];
  if (unsafe.length > 0)
    throw new RepriseError(
      "STORE_UNSAFE_DURABILITY",
      `${location} has ${unsafe.join(" and ")} off: a power failure can lose or damage committed data. Set ${unsafe.map((name) => `${name} = on`).join(" and ")} in postgresql.conf, or accept the risk with durability: "relaxed".`,
      { details: { settings: unsafe } },
    );
  // This setting can be changed for the session.
  if (facts.commit === "off") await client.query("set synchronous_commit = on");
}

/** Another process may have migrated the schema while this process ran. */
export async function verifySchema(client: Client, address: Address): Promise<void> {
  const { rows } = await client.query<{ readonly value: string | null; readonly whole: boolean }>(
    `select (select value from ${quoted(address.schema)}.meta where key = 'schema') as value, exists (
        select 1 from pg_catalog.pg_index where indisprimary and indrelid = '${quoted(address.schema)}.writers'::regclass
      ) as whole`,
  );
  const { value, whole } = rows[0]!;
  // A restore creates primary keys after it has filled the tables: a row written in between would make it fail.
  if (value === null || !whole)
    throw new ConnectionError("lost", {
      cause: new Error(`${address.location} has no complete schema; a restore may be running`),
    });
  const version = Number(value);
  if (version > SCHEMA_VERSION) throw newerSchema(address.location, version, SCHEMA_VERSION);
}
