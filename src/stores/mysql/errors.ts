// Errors: classifies errors of the server by number, never by message text (rules.A9).
//
// mysql.E1. After COMMIT was sent, it certainly failed only with an error that COMMIT itself cannot return. Any other outcome is
//   unknown and is resolved (rules.A8).

import { InvariantError, RepriseError, type ErrorCode } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";

interface ServerError extends Error {
  readonly errno: number;
}

/** The number of a server's error; network errors have negative numbers. */
export function errnoOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errno } = error as Partial<ServerError>;
  return typeof errno === "number" && errno > 0 ? errno : undefined;
}

const DUPLICATE = 1062;
const OUT_OF_RANGE = 1690;
const NO_SAVEPOINT = 1305;
const SEVERAL_ROWS = 1242;

/** Lock wait timeout, deadlock, record has changed since it was read, out of memory for locks. */
const AGAIN: ReadonlySet<number> = new Set([1205, 1213, 1020, 1206]);
/** Interrupted by an administrator or a timeout. The connection stays usable. */
const INTERRUPTED: ReadonlySet<number> = new Set([1317, 1907, 1969, 3024]);
/** Shutdown, broken or killed connections, network errors reported by the server, idle timeout. */
const LOST: ReadonlySet<number> = new Set([
  1053, 1077, 1079, 1080, 1152, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2055, 4031,
]);

/** Whether a later attempt, or another host, may accept a connection. */
export function isUnavailable(error: unknown): boolean {
  return !PERMANENT.has(errnoOf(error) ?? 0);
}

/** Access denied, unknown database, no privilege on it or on a table. */
const PERMANENT: ReadonlySet<number> = new Set([1044, 1045, 1049, 1142, 1143, 1146, 1227, 1251, 1370, 1698]);

/** The error number of "running with --read-only" is shared with other options. */
export function mayBeReadOnly(error: unknown): boolean {
  return READ_ONLY.has(errnoOf(error) ?? 0);
}

const READ_ONLY: ReadonlySet<number> = new Set([1290, 1792, 1836]);

export function isTlsMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === "HANDSHAKE_NO_SSL_SUPPORT";
}

/** The driver has one code for all handshake errors; the properties of Node's error show the cause. */
export function tlsFailureOf(error: unknown): unknown {
  if (!(error instanceof Error) || (error as NodeJS.ErrnoException).code !== "HANDSHAKE_SSL_ERROR") return error;
  // A broken connection, not a TLS failure.
  if ("syscall" in error) return error;
  const code =
    "host" in error ? "ERR_TLS_CERT_ALTNAME_INVALID" : "library" in error ? "ERR_SSL_HANDSHAKE" : "CERT_REJECTED";
  return Object.assign(new Error(error.message, { cause: error }), { code });
}

/** Whether the connection is lost. */
export function isLost(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === undefined || LOST.has(errno) || (error as { fatal?: unknown }).fatal === true;
}

export function isRetryable(error: unknown): boolean {
  const errno = errnoOf(error) ?? 0;
  return AGAIN.has(errno) || INTERRUPTED.has(errno);
}

/** Whether the server aborted a transaction with user SQL, so that its function is called again. A timeout is not included: it is the function's own failure. */
export function isTransactionAborted(error: unknown): boolean {
  return AGAIN.has(errnoOf(error) ?? 0);
}

/** Whether the server may have ended the whole transaction. */
export function endsTransaction(error: unknown): boolean {
  return isRetryable(error) || isLost(error);
}

/** Whether a row differs from what was expected, or exists already. */
export function isConflict(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === DUPLICATE || errno === OUT_OF_RANGE;
}

/** Whether the writer's row is missing or fenced (`renderStamp`). */
export function isStampRefused(error: unknown): boolean {
  return errnoOf(error) === SEVERAL_ROWS;
}

/** Whether a column or an index that a migration adds exists already (mysql.M3). */
export function isAlreadyAdded(error: unknown): boolean {
  return ALREADY_ADDED.has(errnoOf(error) ?? 0);
}

/** Duplicate column name, duplicate key name. */
const ALREADY_ADDED: ReadonlySet<number> = new Set([1060, 1061]);

/** Whether the user lacks the privilege to create a view, or to select from a table with it. */
export function isViewDenied(error: unknown): boolean {
  return VIEW_DENIED.has(errnoOf(error) ?? 0);
}

/** Access denied to the database, command denied, privilege of the server missing. */
const VIEW_DENIED: ReadonlySet<number> = new Set([1044, 1142, 1227]);

/** Whether the savepoint of a user's transaction is missing, so that the transaction has ended. */
export function isTransactionGone(error: unknown): boolean {
  return errnoOf(error) === NO_SAVEPOINT;
}

interface KnownError {
  readonly code: ErrorCode;
  readonly text: string;
}

const full = { code: "STORE_FULL", text: "the server's disk is full. Free or add disk space" } as const;
const replaced = {
  code: "STORE_REPLACED",
  text: "Reprise's tables are missing or were changed. Restore them from a backup, then restart the workers",
} as const;
const denied = {
  code: "STORE_IO",
  text: "the account lacks a privilege. To create the tables it needs all privileges on the database; to run workers it needs SELECT, INSERT, UPDATE and DELETE",
} as const;
const readOnly = {
  code: "STORE_IO",
  text: "the server is read-only. Use the address of the primary in the store URL",
} as const;
const rejected = {
  code: "STORE_IO",
  text: "the server rejected the account or its password. Correct them in the store URL",
} as const;
const tooLong = { code: "BAD_NAME", text: "a name is longer than MySQL can index. Shorten it" } as const;
const tooLarge = {
  code: "PAYLOAD_TOO_LARGE",
  text: "a value is larger than the server accepts. Raise max_allowed_packet on the server",
} as const;
const corrupt = { code: "STORE_CORRUPT", text: "a table is damaged. Stop the workers and run CHECK TABLE" } as const;
const tooManyConnections = {
  code: "STORE_BUSY",
  text: "the server has no free connection. Raise max_connections, or start fewer worker processes",
} as const;

/** Errors of statements other than COMMIT (mysql.E1). */
const BY_ERRNO: ReadonlyMap<number, KnownError> = new Map<number, KnownError>([
  [1021, full],
  [1114, full],
  [1034, corrupt],
  [1035, corrupt],
  [1194, corrupt],
  [1712, corrupt],
  [1036, readOnly],
  [1290, readOnly],
  [1792, readOnly],
  [1836, readOnly],
  [1040, tooManyConnections],
  [1203, tooManyConnections],
  [1226, tooManyConnections],
  [1044, denied],
  [1142, denied],
  [1143, denied],
  [1227, denied],
  [1370, denied],
  [1045, rejected],
  [1698, rejected],
  [1049, { code: "STORE_IO", text: "the database does not exist. Create it: CREATE DATABASE name" }],
  [1054, replaced],
  [1146, replaced],
  [1153, tooLarge],
  [1301, tooLarge],
  [1406, tooLong],
]);

/** Invalid statements, and values that do not fit: bugs in Reprise, but nothing was written. */
const REPRISE_BUGS: ReadonlySet<number> = new Set([
  1048, 1064, 1093, 1136, 1241, 1264, 1292, 1364, 1366, 1390, 3140, 3141, 3143, 3156, 4038, 4174, 4177, 4178,
]);

/** mysql.E1. Whether the error comes from a statement before COMMIT, so that nothing is written after the rollback. */
export function isBeforeCommit(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno !== undefined && (BY_ERRNO.has(errno) || REPRISE_BUGS.has(errno));
}

/** The error to throw when `what` failed and nothing was written. */
export function storeErrorOf(error: unknown, what: string): Error {
  if (error instanceof RepriseError || error instanceof ConnectionError) return error;
  const errno = errnoOf(error);
  const options = { cause: error, ...(errno !== undefined && { details: { errno } }) };
  const text = error instanceof Error ? error.message : String(error);
  if (errno === undefined)
    return new RepriseError(
      "STORE_IO",
      `${what}: ${text}. Check that the server runs and that this machine can connect to it.`,
      options,
    );
  const known = BY_ERRNO.get(errno);
  // The server's message names the object that is not permitted.
  if (known !== undefined)
    return new RepriseError(known.code, `${what}: ${known === denied ? `${text}: ` : ""}${known.text}.`, options);
  // A statement that the server does not accept is a bug in Reprise.
  return new InvariantError(`${what}: ${text}`, options);
}
