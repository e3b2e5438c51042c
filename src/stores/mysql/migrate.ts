// Migrate: brings a database to the newest schema. Any number of processes may migrate at the same time: one holds the lock, and
// checks the version again under it. A kill leaves some statements done; the next process runs them all again (mysql.M3).

import { createHash } from "node:crypto";
import { RepriseError } from "../../base/index.ts";
import { newerSchema, olderSchema } from "../remote/schema-errors.ts";
import type { Address } from "./address.ts";
import type { DriverConnection } from "./driver.ts";
import { isAlreadyAdded, isViewDenied } from "./errors.ts";
import { MARK, MIGRATIONS, PREFIX, SCHEMA_VERSION, VIEW_STATEMENTS } from "./schema.ts";
import { tableOf, textLiteral } from "./sql-text.ts";

export interface MigrateOptions {
  readonly migrate: boolean;
  /** How long to wait for the migration of another process, in seconds. */
  readonly waitS: number;
}

export async function migrate(driver: DriverConnection, address: Address, options: MigrateOptions): Promise<void> {
  const { location } = address;
  const found = await readVersion(driver, location);
  if (found === SCHEMA_VERSION) return;
  if (!options.migrate) throw olderSchema(location, found, SCHEMA_VERSION);
  const lock = textLiteral(lockName(address.database));
  const [taken] = await driver.run([`select get_lock(${lock}, ${options.waitS})`]);
  if (taken?.rows[0]?.[0] !== 1)
    throw new RepriseError(
      "STORE_BUSY",
      `${location}: another process has held the migration lock for ${options.waitS} seconds. Wait for its migration and try again, or find a hanging connection with SHOW PROCESSLIST.`,
    );
  try {
    for (let version = await readVersion(driver, location); version < SCHEMA_VERSION; version++) {
      for (const statement of MIGRATIONS[version] ?? []) await runAgain(driver, statement);
      await driver.run([noteVersion(version + 1)]);
    }
  } finally {
    if (driver.isUsable) await driver.run([`do release_lock(${lock})`]);
  }
}

/** mysql.M3. Runs a statement that a killed migration may have run before. */
async function runAgain(driver: DriverConnection, statement: string): Promise<void> {
  try {
    await driver.run([statement]);
  } catch (error) {
    // Without the views everything else works: `reprise views` prints their statements.
    if (isViewDenied(error) && VIEW_STATEMENTS.includes(statement)) return;
    if (!isAlreadyAdded(error)) throw error;
  }
}

/** The schema's version; 0 when there is none. A newer version and tables of other programs are refused. */
export async function readVersion(driver: DriverConnection, location: string): Promise<number> {
  const [found] = await driver.run([
    `select table_name, table_comment from information_schema.tables
     where table_schema = database() and table_name like '${PREFIX.replace("_", String.raw`\_`)}%'`,
  ]);
  const tables = new Map(found!.rows.map(([name, comment]) => [String(name).toLowerCase(), String(comment)]));
  for (const [name, comment] of tables)
    if (REPRISE_TABLES.has(name) && comment !== MARK)
      throw new RepriseError(
        "STORE_NOT_REPRISE",
        `${location} has a table ${name} of another program. Nothing was changed. Use another database in the store URL.`,
        { details: { table: name } },
      );
  if (!tables.has(`${PREFIX}meta`)) return 0;
  const [version] = await driver.run([`select cast(value as char) from ${tableOf("meta")} where \`key\` = 'schema'`]);
  const number = Number(version?.rows[0]?.[0] ?? 0);
  if (number > SCHEMA_VERSION) throw newerSchema(location, number, SCHEMA_VERSION);
  return number;
}

function noteVersion(version: number): string {
  return `insert into ${tableOf("meta")} (\`key\`, value) values ('application', 'reprise'), ('schema', '${version}')
    on duplicate key update value = values(value)`;
}

/** Lock names have at most 64 characters and are shared by the whole server. */
export function lockName(database: string): string {
  return `reprise/${createHash("sha256").update(database).digest("hex").slice(0, 40)}`;
}

const REPRISE_TABLES: ReadonlySet<string> = new Set(
  MIGRATIONS.flat().flatMap((sql) =>
    Array.from(sql.matchAll(/create table if not exists `(\w+)`/g), ([, table = ""]) => table),
  ),
);
