// Migrate: migrates a database to the newest schema. Each step is one transaction that first checks whether another process has
// done it. So any number of processes may start at once, and a kill leaves a whole step or nothing.

import { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import type { ConnectOptions } from "./sqlite-connection.ts";
import { BUSY_SLICE_MS, withRetry, type RetryOptions } from "./retry-busy.ts";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "./schema.ts";
import { checkSchemaVersion, pragma } from "./version.ts";
import { readCompleteHeader } from "./file-header.ts";

export async function migrate(db: DatabaseSync, options: ConnectOptions): Promise<void> {
  for (;;) {
    const version = await withRetry(options, `Reading ${options.path}`, () => schemaVersion(db));
    if (version >= SCHEMA_VERSION) return;
    if (!options.migrate)
      throw new RepriseError(
        "STORE_OLDER_SCHEMA",
        `${options.path} has schema ${version}; this version of Reprise needs schema ${SCHEMA_VERSION}. Run \`reprise migrate\`. An engine that opens the store migrates it, too.`,
        { details: { found: version, needed: SCHEMA_VERSION } },
      );
    await withRetry(options, `Migrating ${options.path} to schema ${version + 1}`, () => migrateOnce(db, version));
  }
}

/** The schema of a file and the schema that a migration gives it. Writes nothing. */
export async function readSchema(
  options: RetryOptions,
  path: string,
): Promise<{ readonly from: number; readonly to: number }> {
  await readCompleteHeader(options, path);
  const from = await withRetry(options, `Reading ${path}`, () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_SLICE_MS });
    try {
      checkSchemaVersion(db, path);
      return schemaVersion(db);
    } finally {
      db.close();
    }
  });
  return { from, to: SCHEMA_VERSION };
}

function schemaVersion(db: DatabaseSync): number {
  return Number(pragma(db, "user_version"));
}

function migrateOnce(db: DatabaseSync, from: number): void {
  db.exec("begin immediate");
  try {
    // Read under the lock: another process may have migrated first.
    if (schemaVersion(db) === from) applyMigration(db, from);
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
}

function applyMigration(db: DatabaseSync, from: number): void {
  const version = from + 1;
  db.exec(MIGRATIONS[from] ?? "");
  db.exec(`insert into meta (key, value) values ('application', 'reprise'), ('schema', '${version}')
           on conflict (key) do update set value = excluded.value`);
  db.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = ${version};`);
}

/** For an empty database that no other connection uses. */
export function createSchema(db: DatabaseSync): void {
  for (let version = 0; version < SCHEMA_VERSION; version += 1) applyMigration(db, version);
}
