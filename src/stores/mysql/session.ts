// Session: checks the server and sets up a session before it is used.
//
// mysql.S1. READ COMMITTED, set and read back on every connection (rules.C5): at the default isolation, the last arrival at a join
//   saw 2 of 2 ready but read 1 of 2 inputs, and an empty poll blocked inserts.
// mysql.S2. A server that would lose acknowledged commits in a power failure is refused, unless `durability: "relaxed"` is set.
// mysql.S3. The server's configuration does not change the meaning of Reprise's statements: every session sets its own modes, limits
//   and time zone.

import { RepriseError } from "../../base/index.ts";
import type { BackendUse } from "../remote/backend.ts";
import { StandbyError } from "../remote/hosts.ts";
import { isOn, type RawRow, type Timeouts, type DriverConnection } from "./driver.ts";

export interface Server {
  readonly isMariaDb: boolean;
  /** As the server reports it. */
  readonly version: string;
  /** The longest packet it accepts, in bytes. */
  readonly maxPacket: number;
  /** Acknowledged commits survive a power cut. */
  readonly isDurable: boolean;
  /** Identifies the server among its replicas. */
  readonly instance: string;
}

const OLDEST = { MariaDB: [10, 6], MySQL: [8, 0] } as const;
/** The largest payload has 8 MiB and may be written in hexadecimal. */
const SMALLEST_PACKET = 16 * 1_048_576;

const MODES = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION";

function settings(isMariaDb: boolean, { lockMs, idleInTransactionMs }: Timeouts): Readonly<Record<string, string>> {
  return {
    sql_mode: `'${MODES}'`,
    time_zone: "'+00:00'",
    autocommit: "1",
    completion_type: "0",
    innodb_lock_wait_timeout: String(Math.ceil(lockMs / 1_000)),
    unique_checks: "1",
    sql_safe_updates: "0",
    sql_select_limit: "default",
    // Long lists of keys must stay index ranges.
    ...(isMariaDb
      ? {
          in_predicate_conversion_threshold: "0",
          idle_transaction_timeout: String(Math.ceil(idleInTransactionMs / 1_000)),
        }
      : { range_optimizer_max_mem_size: "0" }),
  };
}

/** mysql.S1, mysql.S3. Sets and checks the session; called on every connection. */
export async function prepareSession(
  driver: DriverConnection,
  location: string,
  { durability, readOnly = false }: Pick<BackendUse, "durability"> & Partial<Pick<BackendUse, "readOnly">>,
  timeouts: Timeouts,
): Promise<Server> {
  const [version] = await driver.run(["select version()"]);
  const server = serverOf(String(version?.rows[0]?.[0]), location);
  const set = Object.entries(settings(server.isMariaDb, timeouts)).map(([name, value]) => `${name}=${value}`);
  const [, , found] = await driver.run([
    `set session transaction isolation level read committed, read ${readOnly ? "only" : "write"}`,
    `set session ${set.join(", ")}`,
    `show variables where variable_name in ('${VARIABLES.join("', '")}')`,
  ]);
  const variables = new Map(found!.rows.map(([name, value]) => [asText(name), asText(value)]));
  checkSession(variables, location);
  if (!readOnly && isOn(variables.get("read_only"))) throw StandbyError.at(location);
  checkServer(variables, location);
  const unsafe = unsafeSetting(variables);
  if (durability === "full" && unsafe !== undefined) refuseUnsafe(unsafe, location);
  const maxPacket = Number(variables.get("max_allowed_packet"));
  const instance = INSTANCE.map((name) => variables.get(name) ?? "").join(" ");
  return { ...server, maxPacket, isDurable: unsafe === undefined, instance };
}

function asText(value: RawRow[number] = null): string {
  return value instanceof Buffer ? value.toString("utf8") : String(value);
}

function serverOf(version: string, location: string): Pick<Server, "isMariaDb" | "version"> {
  if (/tidb/i.test(version)) refuseTiDb(version, location);
  const isMariaDb = /mariadb/i.test(version);
  const name = isMariaDb ? "MariaDB" : "MySQL";
  // Some proxies put 5.5.5- before MariaDB's version.
  const [, major = "0", minor = "0"] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(version) ?? [];
  const [oldestMajor, oldestMinor] = OLDEST[name];
  if (Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor))
    return { isMariaDb, version: `${name} ${version}` };
  throw new RepriseError(
    "STORE_LOCATION",
    `${location} is ${name} ${version}; Reprise needs ${name} ${oldestMajor}.${oldestMinor} or newer, for SKIP LOCKED. Upgrade the server.`,
    { details: { version } },
  );
}

/** Its version begins with MySQL's, and it accepts SKIP LOCKED without an error (docs/decisions/0336). */
function refuseTiDb(version: string, location: string): never {
  throw new RepriseError(
    "STORE_LOCATION",
    `${location} is TiDB (${version}). TiDB accepts FOR UPDATE SKIP LOCKED, but ignores it and locks nothing, so two workers would claim the same run; it also has no FOR SHARE and no values above 6 MiB. Use MySQL 8.0, MariaDB 10.6 or PostgreSQL 15, or newer; docs/guides/scale.md says how to spread runs over several databases.`,
    { details: { version } },
  );
}

const INSTANCE: readonly string[] = ["hostname", "port", "server_id", "server_uuid", "datadir"];

const VARIABLES: readonly string[] = [
  ...INSTANCE,
  "transaction_isolation",
  "tx_isolation",
  "sql_mode",
  "innodb_flush_log_at_trx_commit",
  "innodb_doublewrite",
  "innodb_page_size",
  "log_bin",
  "sync_binlog",
  "binlog_format",
  "max_allowed_packet",
  "wsrep_on",
  "read_only",
];

/** mysql.S1 */
function checkSession(variables: ReadonlyMap<string, string>, location: string): void {
  const isolation = variables.get("transaction_isolation") ?? variables.get("tx_isolation");
  if (isolation === "READ-COMMITTED" && variables.get("sql_mode") === MODES) return;
  throw new RepriseError(
    "STORE_LOCATION",
    `${location}: the session has isolation ${isolation} and sql_mode ${variables.get("sql_mode")}, although Reprise set READ-COMMITTED and ${MODES}. A proxy between this process and the server probably changes them. Use the address of the server, or disable that in the proxy.`,
  );
}

function checkServer(variables: ReadonlyMap<string, string>, location: string): void {
  const refuse = (problem: string): never => {
    throw new RepriseError("STORE_LOCATION", `${location}: ${problem}`);
  };
  if (variables.get("wsrep_on") === "ON")
    refuse(
      "the server is a node of a Galera cluster (wsrep_on = ON). A row lock on one node does not exist on another, so two workers could change one run at the same time. Use one primary with semi-synchronous replicas (docs/guides/high-availability.md).",
    );
  if (variables.get("log_bin") === "ON" && variables.get("binlog_format") === "STATEMENT")
    refuse("binlog_format is STATEMENT, which does not support READ COMMITTED. Set binlog_format = ROW on the server.");
  if (Number(variables.get("innodb_page_size")) < 16_384)
    refuse(
      `innodb_page_size is ${variables.get("innodb_page_size")}: keys of 3,072 bytes do not fit. Use a server with innodb_page_size = 16384 or more.`,
    );
  if (Number(variables.get("max_allowed_packet")) < SMALLEST_PACKET)
    refuse(
      `max_allowed_packet is ${variables.get("max_allowed_packet")}: a large payload would not fit. Set max_allowed_packet = ${SMALLEST_PACKET} or more on the server.`,
    );
}

interface UnsafeSetting {
  readonly setting: string;
  readonly expected: string;
  readonly found: string;
}

/** mysql.S2. With a binary log, a transaction that is not in it is rolled back when the server recovers. */
function unsafeSetting(variables: ReadonlyMap<string, string>): UnsafeSetting | undefined {
  const wanted: (readonly [setting: string, expected: readonly [string, ...string[]]])[] = [
    ["innodb_flush_log_at_trx_commit", ["1"]],
    ["innodb_doublewrite", ["ON", "1", "DETECT_AND_RECOVER"]],
    ...(variables.get("log_bin") === "ON" ? [["sync_binlog", ["1"]] as const] : []),
  ];
  return wanted
    .filter(([setting, expected]) => !expected.includes(variables.get(setting) ?? ""))
    .map(([setting, [expected]]) => ({ setting, expected, found: variables.get(setting) ?? "" }))[0];
}

function refuseUnsafe({ setting, expected, found }: UnsafeSetting, location: string): never {
  throw new RepriseError(
    "STORE_UNSAFE_DURABILITY",
    `${location} has ${setting} = ${found}: a power failure can lose committed data. Set ${setting} = ${expected} on the server, or accept the risk with durability: "relaxed".`,
    { details: { setting, expected, found } },
  );
}
