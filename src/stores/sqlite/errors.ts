// Errors of the driver, told apart by SQLite's result code; never by text.

import { InvariantError, RepriseError, type ErrorCode } from "../../base/index.ts";

export const SQLITE_BUSY = 5;
const LOCKED = 6;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const TOOBIG = 18;
const CONSTRAINT = 19;
const NOTADB = 26;
const READONLY_DBMOVED = READONLY | (4 << 8);
const CONSTRAINT_PRIMARYKEY = 1555;
const CONSTRAINT_UNIQUE = 2067;

/** The extended result code; undefined when the error did not come from SQLite. */
export function errcodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === "number" ? errcode : undefined;
}

function primaryOf(error: unknown): number {
  return (errcodeOf(error) ?? 0) & 0xff;
}

/** Somebody else holds the lock (5, 6, and 517 BUSY_SNAPSHOT): waiting helps. */
export function isBusy(error: unknown): boolean {
  const code = primaryOf(error);
  return code === SQLITE_BUSY || code === LOCKED;
}

/** After one of these a COMMIT may or may not have happened. */
export function isUnknownCommit(error: unknown): boolean {
  const code = primaryOf(error);
  return code === IOERR || code === FULL;
}

export function isConstraint(error: unknown): boolean {
  return primaryOf(error) === CONSTRAINT;
}

const TROUBLE: ReadonlySet<number> = new Set([SQLITE_BUSY, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB]);

/** The database gave way, whatever the statement was. */
export function isTrouble(error: unknown): boolean {
  return TROUBLE.has(primaryOf(error));
}

const BY_CODE: Readonly<Record<number, { code: ErrorCode; text: string }>> = {
  [SQLITE_BUSY]: { code: "STORE_BUSY", text: "another program holds the database" },
  [LOCKED]: { code: "STORE_BUSY", text: "another statement holds the database" },
  [READONLY]: {
    code: "STORE_IO",
    text: "the database cannot be written; check the permissions of the file and its folder",
  },
  [IOERR]: { code: "STORE_IO", text: "the disk failed; check it and the permissions" },
  [CORRUPT]: {
    code: "STORE_CORRUPT",
    text: "the database is damaged; stop the workers, copy the file and run `reprise doctor`",
  },
  [FULL]: { code: "STORE_FULL", text: "no room is left; free or add disk space" },
  [CANTOPEN]: { code: "STORE_IO", text: "the file cannot be opened; check the path and its permissions" },
  [TOOBIG]: { code: "PAYLOAD_TOO_LARGE", text: "a value is larger than SQLite can keep" },
  [NOTADB]: { code: "STORE_CORRUPT", text: "the file is not a SQLite database; name another file" },
};

/** Nothing was written for want of room; unlike after a failed fsync, what can be read is on disk. */
export function isFull(error: unknown): boolean {
  return primaryOf(error) === FULL;
}

/** The error to throw for whatever went wrong while doing `what`. */
export function storeErrorOf(error: unknown, what: string): RepriseError {
  if (error instanceof RepriseError) return error;
  const errcode = errcodeOf(error);
  const options = { cause: error, ...(errcode !== undefined && { details: { errcode } }) };
  if (errcode === READONLY_DBMOVED)
    return new RepriseError("STORE_REPLACED", `${what}: the database file was moved or replaced.`, options);
  if (errcode === CONSTRAINT_PRIMARYKEY || errcode === CONSTRAINT_UNIQUE)
    return new InvariantError(`${what}: the same thing was about to be written twice.`, options);
  const known = errcode === undefined ? undefined : BY_CODE[errcode & 0xff];
  if (known !== undefined) return new RepriseError(known.code, `${what}: ${known.text}.`, options);
  // A statement that SQLite or the driver does not accept is our bug.
  return new InvariantError(`${what}: ${error instanceof Error ? error.message : String(error)}`, options);
}
