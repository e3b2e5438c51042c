// Errors of the server, told apart by their number; never by text.
//
// E1. A commit has failed for good only with an error that COMMIT itself cannot answer. Anything else after it was sent is
//     unknown, and looked up (A8).

import { InvariantError, RepriseError, type ErrorCode } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";

interface ServerError extends Error {
  readonly errno: number;
}

/** Only what a server said: errors of the network have negative numbers. */
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
/** Interrupted: by an administrator, or because it took too long. The connection lives. */
const INTERRUPTED: ReadonlySet<number> = new Set([1317, 1907, 1969, 3024]);
/** Shutdown, broken or killed connections, errors of the network as the server saw them, idle for too long. */
const LOST: ReadonlySet<number> = new Set([
  1053, 1077, 1079, 1080, 1152, 1154, 1155, 1156, 1157, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2055, 4031,
]);

/** No connection can be made just now; later, or at another host, one may. */
export function isUnavailable(error: unknown): boolean {
  return !FOR_GOOD.has(errnoOf(error) ?? 0);
}

/** Access denied, no such database, no right to it or to a table. */
const FOR_GOOD: ReadonlySet<number> = new Set([1044, 1045, 1049, 1142, 1143, 1146, 1227, 1251, 1370, 1698]);

/** "running with --read-only" has a number that other options have, too. */
export function mayBeReadOnly(error: unknown): boolean {
  return READ_ONLY.has(errnoOf(error) ?? 0);
}

const READ_ONLY: ReadonlySet<number> = new Set([1290, 1792, 1836]);

export function isTlsMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === "HANDSHAKE_NO_SSL_SUPPORT";
}

/** The driver gives one code to all that goes wrong in a handshake. What Node had said shows in what it left. */
export function tlsFailureOf(error: unknown): unknown {
  if (!(error instanceof Error) || (error as NodeJS.ErrnoException).code !== "HANDSHAKE_SSL_ERROR") return error;
  // A broken connection is one, whatever was under way.
  if ("syscall" in error) return error;
  const code =
    "host" in error ? "ERR_TLS_CERT_ALTNAME_INVALID" : "library" in error ? "ERR_SSL_HANDSHAKE" : "CERT_REJECTED";
  return Object.assign(new Error(error.message, { cause: error }), { code });
}

/** After one of these the connection is of no more use. */
export function isLost(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === undefined || LOST.has(errno) || (error as { fatal?: unknown }).fatal === true;
}

export function isRetryable(error: unknown): boolean {
  const errno = errnoOf(error) ?? 0;
  return AGAIN.has(errno) || INTERRUPTED.has(errno);
}

/** The same for user SQL, where a statement that takes too long is the user's own affair. */
export function isTransactionAborted(error: unknown): boolean {
  return AGAIN.has(errnoOf(error) ?? 0);
}

/** The server has ended the whole transaction, or may have. */
export function endsTransaction(error: unknown): boolean {
  return isRetryable(error) || isLost(error);
}

/** Something was not as expected, or there already. */
export function isConflict(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === DUPLICATE || errno === OUT_OF_RANGE;
}

/** The writer's line is gone, or closed (`stampGuard`). */
export function isStampRefused(error: unknown): boolean {
  return errnoOf(error) === SEVERAL_ROWS;
}

/** The savepoint a transaction of user SQL begins with is gone, and the transaction with it. */
export function isTransactionGone(error: unknown): boolean {
  return errnoOf(error) === NO_SAVEPOINT;
}

interface Known {
  readonly code: ErrorCode;
  readonly text: string;
}

const full = { code: "STORE_FULL", text: "the server has no room left; free or add disk space" } as const;
const gone = { code: "STORE_REPLACED", text: "our tables are gone, or not what they were" } as const;
const denied = {
  code: "STORE_IO",
  text: "the account may not do this. Who makes the tables needs all rights on the database; who works, SELECT, INSERT, UPDATE and DELETE",
} as const;
const readOnly = { code: "STORE_IO", text: "the server takes no writes; name the primary" } as const;
const noEntry = { code: "STORE_IO", text: "the server does not accept the account or its password" } as const;
const tooLong = { code: "BAD_NAME", text: "a name is longer than MySQL can index; shorten it" } as const;
const tooLarge = {
  code: "PAYLOAD_TOO_LARGE",
  text: "a value is larger than the server takes; raise max_allowed_packet",
} as const;
const corrupt = { code: "STORE_CORRUPT", text: "a table is damaged; stop the workers and check it" } as const;
const crowded = {
  code: "STORE_BUSY",
  text: "the server has no connection left; raise max_connections or start fewer workers",
} as const;

/** Answers to a statement other than COMMIT (E1). */
const BY_ERRNO: ReadonlyMap<number, Known> = new Map<number, Known>([
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
  [1040, crowded],
  [1203, crowded],
  [1226, crowded],
  [1044, denied],
  [1142, denied],
  [1143, denied],
  [1227, denied],
  [1370, denied],
  [1045, noEntry],
  [1698, noEntry],
  [1049, { code: "STORE_IO", text: "there is no such database; create it" }],
  [1054, gone],
  [1146, gone],
  [1153, tooLarge],
  [1301, tooLarge],
  [1406, tooLong],
]);

/** Statements that are wrong, and values that do not fit: our bug, but nothing was written. */
const OURS: ReadonlySet<number> = new Set([
  1048, 1064, 1093, 1136, 1241, 1264, 1292, 1364, 1366, 1390, 3140, 3141, 3143, 3156, 4038, 4174, 4177, 4178,
]);

/** E1. Said of a statement before COMMIT, so nothing is written once it is rolled back. */
export function isSettled(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno !== undefined && (BY_ERRNO.has(errno) || OURS.has(errno));
}

/** The error to throw for whatever went wrong while doing `what`, once it is clear that nothing was written. */
export function storeErrorOf(error: unknown, what: string): Error {
  if (error instanceof RepriseError || error instanceof ConnectionError) return error;
  const errno = errnoOf(error);
  const options = { cause: error, ...(errno !== undefined && { details: { errno } }) };
  const text = error instanceof Error ? error.message : String(error);
  if (errno === undefined)
    return new RepriseError("STORE_IO", `${what}: ${text}. Check the server and the connection.`, options);
  const known = BY_ERRNO.get(errno);
  // What exactly is not allowed only the server says.
  if (known !== undefined)
    return new RepriseError(known.code, `${what}: ${known === denied ? `${text}: ` : ""}${known.text}.`, options);
  // A statement that the server does not accept is our bug.
  return new InvariantError(`${what}: ${text}`, options);
}
