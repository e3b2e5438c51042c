// Migrate: brings a database to the newest schema. Any number of starters may race: one at a time holds the lock, and looks
// again under it. A kill leaves some statements done, and the next starter does them all again (M3).

import { createHash } from "node:crypto";
import { RepriseError } from "../../base/index.ts";
import { newerSchema, olderSchema } from "../remote/schema-errors.ts";
import type { Address } from "./address.ts";
import type { DriverConnection } from "./driver.ts";
import { MARK, MIGRATIONS, PREFIX, SCHEMA_VERSION } from "./schema.ts";
import { tableOf, textLiteral } from "./sql-text.ts";

export interface MigrateOptions {
  readonly migrate: boolean;
  /** How long to wait for somebody else's migration, in seconds. */
  readonly waitS: number;
}

export async function migrate(wire: DriverConnection, address: Address, options: MigrateOptions): Promise<void> {
  const { location } = address;
  const found = await readVersion(wire, location);
  if (found === SCHEMA_VERSION) return;
  if (!options.migrate) throw olderSchema(location, found, SCHEMA_VERSION);
  const lock = textLiteral(lockName(address.database));
  const [taken] = await wire.run([`select get_lock(${lock}, ${options.waitS})`]);
  if (taken?.rows[0]?.[0] !== 1)
    throw new RepriseError(
      "STORE_BUSY",
      `${location}: another program has been migrating the schema for ${options.waitS} seconds. Wait for it, or look for a connection that hangs.`,
    );
  try {
    for (let version = await readVersion(wire, location); version < SCHEMA_VERSION; version++) {
      for (const statement of MIGRATIONS[version] ?? []) await wire.run([statement]);
      // M3
      await wire.run([noteVersion(version + 1)]);
    }
  } finally {
    if (wire.isUsable) await wire.run([`do release_lock(${lock})`]);
  }
}

/** The schema a database has, 0 when it has none; a newer one and somebody else's tables are refused. */
export async function readVersion(wire: DriverConnection, location: string): Promise<number> {
  const [found] = await wire.run([
    `select table_name, table_comment from information_schema.tables
     where table_schema = database() and table_name like '${PREFIX.replace("_", String.raw`\_`)}%'`,
  ]);
  const tables = new Map(found!.rows.map(([name, comment]) => [String(name).toLowerCase(), String(comment)]));
  for (const [name, comment] of tables)
    if (OURS.has(name) && comment !== MARK)
      throw new RepriseError(
        "STORE_NOT_REPRISE",
        `${location} has a table ${name} of another program; nothing was changed. Name another database.`,
        { details: { table: name } },
      );
  if (!tables.has(`${PREFIX}meta`)) return 0;
  const [version] = await wire.run([`select cast(value as char) from ${tableOf("meta")} where \`key\` = 'schema'`]);
  const number = Number(version?.rows[0]?.[0] ?? 0);
  if (number > SCHEMA_VERSION) throw newerSchema(location, number, SCHEMA_VERSION);
  return number;
}

function noteVersion(version: number): string {
  return `insert into ${tableOf("meta")} (\`key\`, value) values ('application', 'reprise'), ('schema', '${version}')
    on duplicate key update value = values(value)`;
}

/** Locks have names of at most 64 characters, for the whole server. */
export function lockName(database: string): string {
  return `reprise/${createHash("sha256").update(database).digest("hex").slice(0, 40)}`;
}

const OURS: ReadonlySet<string> = new Set(
  MIGRATIONS.flat().flatMap((sql) =>
    Array.from(sql.matchAll(/create table if not exists `(\w+)`/g), ([, table = ""]) => table),
  ),
);
