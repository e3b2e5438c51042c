// Errors: classifies errors of the server by SQLSTATE, never by message text (rules.A9).

import { InvariantError, RepriseError, type ErrorCode } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";

/** An error of the server. The driver's class cannot be imported, because the driver may not be installed. */
interface ServerError extends Error {
  readonly severity: string;
  readonly code: string;
  readonly schema?: string;
}

export function serverErrorOf(error: unknown): ServerError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { severity, code } = error as Partial<ServerError>;
  return typeof severity === "string" && typeof code === "string" ? (error as ServerError) : undefined;
}

const DIVISION_BY_ZERO = "22012";
const NEGATIVE_ROOT = "2201F";
const UNIQUE_VIOLATION = "23505";
const FAILED_TRANSACTION = "25P02";
const DENIED = "42501";

/** Serialization failure, deadlock, lock not available, canceled (statement or lock timeout), unknown prepared statement. */
const AGAIN: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "57014", "26000"]);
/** Statement completion unknown; idle in transaction for too long; a server that has become read-only. */
const LOST: ReadonlySet<string> = new Set(["40003", "25P03", "25006"]);
/** Connection exceptions, and operator intervention. */
const LOST_BEGINNING = /^08|^57P/;

/** Whether the connection is lost. `severity` is not used: it is localized. */
export function isLost(error: unknown): boolean {
  const code = serverErrorOf(error)?.code;
  return code === undefined || LOST.has(code) || LOST_BEGINNING.test(code);
}

/** Too many connections. */
const NO_MORE = "53300";

/** Whether a later attempt, or another host, may accept a connection. */
export function isUnavailable(error: unknown): boolean {
  return isLost(error) || serverErrorOf(error)?.code === NO_MORE;
}

export function isRetryable(error: unknown): boolean {
  return AGAIN.has(serverErrorOf(error)?.code ?? "");
}

/** Whether the server aborted a transaction with user SQL, so that its function is called again. A statement timeout is not included: it is the function's own failure. */
export function isTransactionAborted(error: unknown): boolean {
  return ["40001", "40P01", "55P03"].includes(serverErrorOf(error)?.code ?? "");
}

/** Whether a row of Reprise differs from what was expected, or exists already. */
export function isConflict(error: unknown, schema: string): boolean {
  const server = serverErrorOf(error);
  if (server === undefined) return false;
  return server.code === DIVISION_BY_ZERO || (server.code === UNIQUE_VIOLATION && server.schema === schema);
}

/** Whether the writer's row has changed or is fenced (`PostgresConnection.#stamp`). */
export function isStampRefused(error: unknown): boolean {
  return serverErrorOf(error)?.code === NEGATIVE_ROOT;
}

/** Whether COMMIT violates a deferred constraint of a user's table. */
export function isUserConstraint(error: unknown, schema: string): boolean {
  const server = serverErrorOf(error);
  return server !== undefined && server.code.startsWith("23") && server.schema !== schema;
}

const BY_CODE: Readonly<Record<string, { code: ErrorCode; text: string }>> = {
  "53100": { code: "STORE_FULL", text: "the server's disk is full. Free or add disk space" },
  "54000": {
    code: "PAYLOAD_TOO_LARGE",
    text: "a value is larger than PostgreSQL can store or index. Store it elsewhere and pass a reference",
  },
  "58030": { code: "STORE_IO", text: "the server's disk failed. Check the disk and the server log" },
  XX001: { code: "STORE_CORRUPT", text: "the database is damaged. Stop the workers and run pg_amcheck" },
  XX002: { code: "STORE_CORRUPT", text: "an index is damaged. Stop the workers and run pg_amcheck" },
  [DENIED]: {
    code: "STORE_IO",
    text: "the role lacks a privilege. To create the tables it needs CREATE on the database, or ownership of the schema; to run workers it needs USAGE on the schema and all privileges on its tables",
  },
  "42P01": {
    code: "STORE_REPLACED",
    text: "Reprise's tables do not exist any more. Restore them from a backup, then restart the workers",
  },
  "3F000": {
    code: "STORE_REPLACED",
    text: "Reprise's schema does not exist any more. Restore it from a backup, then restart the workers",
  },
  "3D000": { code: "STORE_IO", text: "the database does not exist. Create it: createdb NAME" },
  "28P01": { code: "STORE_IO", text: "the server rejected the password. Correct it in the store URL" },
  "28000": {
    code: "STORE_IO",
    text: "the server rejected the role. Correct it in the store URL, or allow it in pg_hba.conf",
  },
  [NO_MORE]: {
    code: "STORE_BUSY",
    text: "the server has no free connection. Raise max_connections, or start fewer worker processes",
  },
  "57P03": {
    code: "STORE_IO",
    text: "the server is starting up or shutting down. Try again when it accepts connections",
  },
};

/** The error to throw when `what` failed and nothing was written. */
export function storeErrorOf(error: unknown, what: string): Error {
  if (error instanceof RepriseError || error instanceof ConnectionError) return error;
  const code = serverErrorOf(error)?.code;
  const options = { cause: error, ...(code !== undefined && { details: { sqlstate: code } }) };
  if (code === FAILED_TRANSACTION)
    return new RepriseError(
      "USAGE",
      `${what}: a statement of ctx.tx failed and its function caught the error, but PostgreSQL aborts the whole transaction then. Do not catch the error, or use a savepoint.`,
      options,
    );
  const known = code === undefined ? undefined : BY_CODE[code];
  const text = error instanceof Error ? error.message : String(error);
  // The server's message names the object that is not permitted.
  if (known !== undefined)
    return new RepriseError(known.code, `${what}: ${code === DENIED ? `${text}: ` : ""}${known.text}.`, options);
  if (code === undefined)
    return new RepriseError(
      "STORE_IO",
      `${what}: ${text}. Check that the server runs and that this machine can connect to it.`,
      options,
    );
  // A statement that the server does not accept is a bug in Reprise.
  return new InvariantError(`${what}: ${text}`, options);
}
