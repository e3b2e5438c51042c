// Errors: maps errors of the driver by SQLite's result code, never by their text.

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
/** The index of the log cannot grow. */
export const IOERR_SHMSIZE = IOERR | (19 << 8);
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

/** Another connection holds the lock (5, 6, and 517 BUSY_SNAPSHOT): a retry can succeed. */
export function isBusy(error: unknown): boolean {
  const code = primaryOf(error);
  return code === SQLITE_BUSY || code === LOCKED;
}

/** Whether the outcome of a COMMIT that failed with this error is unknown. */
export function isUnknownCommit(error: unknown): boolean {
  const code = primaryOf(error);
  return code === IOERR || code === FULL;
}

export function isConstraint(error: unknown): boolean {
  return primaryOf(error) === CONSTRAINT;
}

const DATABASE_FAILURES: ReadonlySet<number> = new Set([SQLITE_BUSY, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB]);

/** The database failed, not the statement. */
export function isDatabaseFailure(error: unknown): boolean {
  return DATABASE_FAILURES.has(primaryOf(error));
}

const BY_CODE: Readonly<Record<number, { code: ErrorCode; text: string }>> = {
  [SQLITE_BUSY]: { code: "STORE_BUSY", text: "another process has locked the database; repeat the call" },
  [LOCKED]: { code: "STORE_BUSY", text: "another statement has locked the database; repeat the call" },
  [READONLY]: {
    code: "STORE_READ_ONLY",
    text: "the file or its folder cannot be written; check their permissions and the disk",
  },
  [IOERR]: { code: "STORE_IO", text: "the disk reported an I/O error; check the disk and the permissions of the file" },
  [CORRUPT]: {
    code: "STORE_CORRUPT",
    text: "the database is damaged; stop the workers, copy the file and run `reprise doctor`",
  },
  [FULL]: { code: "STORE_FULL", text: "the disk is full; free or add disk space" },
  [CANTOPEN]: { code: "STORE_IO", text: "the file cannot be opened; check the path and its permissions" },
  [TOOBIG]: {
    code: "PAYLOAD_TOO_LARGE",
    text: "a value is larger than SQLite can store; store it elsewhere and pass a reference",
  },
  [NOTADB]: { code: "STORE_CORRUPT", text: "the file is not a SQLite database; use another file" },
};

/** Nothing was written because the disk is full. Unlike after a failed fsync, everything that can be read is on disk. */
export function isFull(error: unknown): boolean {
  return primaryOf(error) === FULL;
}

/** The file or its folder cannot be written. */
export function isReadOnly(error: unknown): boolean {
  const code = primaryOf(error);
  return code === READONLY || code === CANTOPEN;
}

/** The error to throw for an error of the driver during `what`. */
export function storeErrorOf(error: unknown, what: string): RepriseError {
  if (error instanceof RepriseError) return error;
  const errcode = errcodeOf(error);
  const options = { cause: error, ...(errcode !== undefined && { details: { errcode } }) };
  if (errcode === READONLY_DBMOVED)
    return new RepriseError(
      "STORE_REPLACED",
      `${what}: the database file was moved or replaced. Restart this process.`,
      options,
    );
  if (errcode === CONSTRAINT_PRIMARYKEY || errcode === CONSTRAINT_UNIQUE)
    return new InvariantError(`${what}: a row with the same key exists.`, options);
  const known = errcode === IOERR_SHMSIZE ? BY_CODE[FULL] : BY_CODE[(errcode ?? 0) & 0xff];
  if (known !== undefined) return new RepriseError(known.code, `${what}: ${known.text}.`, options);
  // A statement that SQLite or the driver rejects is a bug in Reprise.
  return new InvariantError(`${what}: ${error instanceof Error ? error.message : String(error)}`, options);
}
