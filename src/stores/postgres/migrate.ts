// Migrate: brings the schema to the newest version. Each step is one transaction under an advisory lock of this schema, and first
// checks whether another process has done it already. So any number of processes may migrate at the same time, and a kill leaves
// a complete step or nothing: PostgreSQL creates tables transactionally.

import type { Client } from "pg";
import { RepriseError } from "../../base/index.ts";
import { newerSchema, olderSchema } from "../remote/schema-errors.ts";
import type { Address } from "./address.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "./schema.ts";
import { quoted } from "./shapes.ts";

export async function migrate(client: Client, address: Address, mayMigrate: boolean): Promise<void> {
  // Wait without a limit for other migrations.
  await client.query("set lock_timeout = 0; set statement_timeout = 0");
  for (;;) {
    const version = await readVersion(client, address);
    if (version >= SCHEMA_VERSION) return;
    if (!mayMigrate) throw olderSchema(address.location, version, SCHEMA_VERSION);
    await migrateOnce(client, address, version);
  }
}

/** The schema's version; 0 when it has no tables. */
export async function readVersion(client: Client, address: Address): Promise<number> {
  const { schema } = address;
  const { rows: relations } = await client.query<{ readonly name: string; readonly columns: string }>(
    `select c.relname as name, (select string_agg(attname, ',' order by attnum) from pg_catalog.pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped) as columns
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')`,
    [schema],
  );
  if (relations.length === 0) return 0;
  const isMeta = relations.some(({ name, columns }) => name === "meta" && columns === "key,value");
  const { rows: meta } = isMeta
    ? await client.query<{ key: string; value: string }>(`select key, value from ${quoted(schema)}.meta`)
    : { rows: [] };
  const values = new Map(meta.map(({ key, value }) => [key, value]));
  if (values.get("application") !== "reprise")
    throw new RepriseError(
      "STORE_NOT_REPRISE",
      `The schema ${schema} of ${address.location} has tables of another program. Nothing was changed. Choose another schema: add ?schema=NAME to the store URL.`,
      { details: { schema, found: relations.slice(0, 10).map(({ name }) => name) } },
    );
  const version = Number(values.get("schema"));
  if (version > SCHEMA_VERSION) throw newerSchema(address.location, version, SCHEMA_VERSION);
  return version;
}

async function migrateOnce(client: Client, address: Address, from: number): Promise<void> {
  const { schema } = address;
  await client.query("begin isolation level read committed read write");
  try {
    await client.query("select pg_advisory_xact_lock(hashtextextended('reprise/' || $1, 0))", [schema]);
    // Checked again under the lock: another process may have migrated.
    if ((await readVersion(client, address)) === from) {
      if (!(await hasSchema(client, schema))) await client.query(`create schema ${quoted(schema)}`);
      await client.query(`set local search_path to ${quoted(schema)}`);
      await client.query(MIGRATIONS[from] ?? "");
      await client.query(
        `insert into meta (key, value) values ('application', 'reprise'), ('schema', '${from + 1}')
          on conflict (key) do update set value = excluded.value`,
      );
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

/** A role that may create tables in an existing schema need not be allowed to create schemas. */
async function hasSchema(client: Client, schema: string): Promise<boolean> {
  const { rowCount } = await client.query("select 1 from pg_catalog.pg_namespace where nspname = $1", [schema]);
  return rowCount === 1;
}
