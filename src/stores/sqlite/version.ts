// Version: whose database this is, and how new.

import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./schema.ts";

export function pragma(db: DatabaseSync, name: string): unknown {
  const row = db.prepare(`pragma ${name}`).get();
  return row === undefined ? undefined : Object.values(row)[0];
}

/** Passes our own databases up to our own schema, and empty ones. */
export function checkSchemaVersion(db: DatabaseSync, path: string): void {
  // Tables first: another process may make the store between the two looks, and its tables come with its mark.
  const { tables } = db.prepare("select count(*) as tables from sqlite_schema").get() as { tables: number };
  const applicationId = pragma(db, "application_id");
  if (applicationId === APPLICATION_ID) return refuseNewer(Number(pragma(db, "user_version")), path);
  if (applicationId !== 0 || tables !== 0) throw notReprise(path);
}

export function notReprise(path: string): RepriseError {
  return new RepriseError(
    "STORE_NOT_REPRISE",
    `${path} is a SQLite database of another program; nothing was changed. Name another file.`,
    { details: { path } },
  );
}

export function refuseNewer(found: number, path: string): void {
  if (found <= SCHEMA_VERSION) return;
  throw new RepriseError(
    "STORE_NEWER_SCHEMA",
    `${path} has schema ${found}; this program knows schemas up to ${SCHEMA_VERSION}. Nothing was changed. Upgrade this program.`,
    { details: { path, found, known: SCHEMA_VERSION } },
  );
}
