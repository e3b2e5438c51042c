// Version: refuses databases of other programs and of newer versions of Reprise.

import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./schema.ts";

export function pragma(db: DatabaseSync, name: string): unknown {
  const row = db.prepare(`pragma ${name}`).get();
  return row === undefined ? undefined : Object.values(row)[0];
}

/** Accepts an empty database, and a Reprise database whose schema is not newer than this version's. */
export function checkSchemaVersion(db: DatabaseSync, path: string): void {
  // Tables first: another process may create the store between the two reads, and commits its tables and its id together.
  const { tables } = db.prepare("select count(*) as tables from sqlite_schema").get() as { tables: number };
  const applicationId = pragma(db, "application_id");
  if (applicationId === APPLICATION_ID) return refuseNewer(Number(pragma(db, "user_version")), path);
  if (applicationId !== 0 || tables !== 0) throw notReprise(path);
}

export function notReprise(path: string): RepriseError {
  return new RepriseError(
    "STORE_NOT_REPRISE",
    `${path} is a SQLite database of another program. Nothing was changed. Use another file.`,
    { details: { path } },
  );
}

export function refuseNewer(found: number, path: string): void {
  if (found <= SCHEMA_VERSION) return;
  throw new RepriseError(
    "STORE_NEWER_SCHEMA",
    `${path} has schema ${found}; this version of Reprise knows schemas up to ${SCHEMA_VERSION}. Nothing was changed. Upgrade Reprise.`,
    { details: { path, found, known: SCHEMA_VERSION } },
  );
}
