// Errors of the server, told apart by SQLSTATE; never by text.

import { InvariantError, RepriseError, type ErrorCode } from "../../base/index.ts";
import { ConnectionError } from "../remote/backend.ts";

/** What the server says of an error; the driver's class cannot be imported where the driver may be missing. */
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

/** Serialization failure, deadlock, lock not available, canceled (statement or lock timeout), statement not known any more. */
const AGAIN: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "57014", "26000"]);
/** Nobody knows what became of the statement; idle for too long in a transaction; a server that has become a standby. */
const LOST: ReadonlySet<string> = new Set(["40003", "25P03", "25006"]);
/** Connection exceptions, and interventions of whoever runs the server. */
const LOST_BEGINNING = /^08|^57P/;

/** After one of these the connection is of no more use. What is said of severity may be in any language. */
export function isLost(error: unknown): boolean {
  const code = serverErrorOf(error)?.code;
  return code === undefined || LOST.has(code) || LOST_BEGINNING.test(code);
}

/** Too many connections: the server refuses one, and is well otherwise. */
const NO_MORE = "53300";

/** No connection can be made just now; later, or at another host, one may. */
export function isUnavailable(error: unknown): boolean {
  return isLost(error) || serverErrorOf(error)?.code === NO_MORE;
}

export function isRetryable(error: unknown): boolean {
  return AGAIN.has(serverErrorOf(error)?.code ?? "");
}

/** The same for user SQL, where a statement that takes too long is the user's own affair. */
export function isTransactionAborted(error: unknown): boolean {
  return ["40001", "40P01", "55P03"].includes(serverErrorOf(error)?.code ?? "");
}

/** Something of ours was not as expected, or there already. */
export function isConflict(error: unknown, schema: string): boolean {
  const server = serverErrorOf(error);
  if (server === undefined) return false;
  return server.code === DIVISION_BY_ZERO || (server.code === UNIQUE_VIOLATION && server.schema === schema);
}

/** The writer's line is not as it was left, or closed (`PostgresLink.#stamp`). */
export function isStampRefused(error: unknown): boolean {
  return serverErrorOf(error)?.code === NEGATIVE_ROOT;
}

/** COMMIT refused what user SQL had done: a deferred constraint of a table that is not ours. */
export function isUserConstraint(error: unknown, schema: string): boolean {
  const server = serverErrorOf(error);
  return server !== undefined && server.code.startsWith("23") && server.schema !== schema;
}

const BY_CODE: Readonly<Record<string, { code: ErrorCode; text: string }>> = {
  "53100": { code: "STORE_FULL", text: "the server has no room left; free or add disk space" },
  "54000": { code: "PAYLOAD_TOO_LARGE", text: "a value is larger than PostgreSQL can keep or index" },
  "58030": { code: "STORE_IO", text: "the server's disk failed; check it" },
  XX001: { code: "STORE_CORRUPT", text: "the database is damaged; stop the workers and check it with pg_amcheck" },
  XX002: { code: "STORE_CORRUPT", text: "an index is damaged; stop the workers and check it with pg_amcheck" },
  [DENIED]: {
    code: "STORE_IO",
    text: "the role may not do this. Who makes the tables needs CREATE on the database, or a schema of its own; who works, USAGE on that schema and all rights on its tables",
  },
  "42P01": { code: "STORE_REPLACED", text: "our tables are gone" },
  "3F000": { code: "STORE_REPLACED", text: "our schema is gone" },
  "3D000": { code: "STORE_IO", text: "there is no such database; create it" },
  "28P01": { code: "STORE_IO", text: "the server does not accept the password" },
  "28000": { code: "STORE_IO", text: "the server does not accept the role" },
  [NO_MORE]: {
    code: "STORE_BUSY",
    text: "the server has no connection left; raise max_connections or start fewer workers",
  },
  "57P03": { code: "STORE_IO", text: "the server is starting or stopping" },
};

/** The error to throw for whatever went wrong while doing `what`, once it is clear that nothing was written. */
export function storeErrorOf(error: unknown, what: string): Error {
  if (error instanceof RepriseError || error instanceof ConnectionError) return error;
  const code = serverErrorOf(error)?.code;
  const options = { cause: error, ...(code !== undefined && { details: { sqlstate: code } }) };
  if (code === FAILED_TRANSACTION)
    return new RepriseError(
      "USAGE",
      `${what}: a statement of ctx.tx had failed, and its function went on. PostgreSQL gives up the whole transaction then: let the error through, or use a savepoint.`,
      options,
    );
  const known = code === undefined ? undefined : BY_CODE[code];
  const text = error instanceof Error ? error.message : String(error);
  // What exactly is not allowed only the server says.
  if (known !== undefined)
    return new RepriseError(known.code, `${what}: ${code === DENIED ? `${text}: ` : ""}${known.text}.`, options);
  if (code === undefined)
    return new RepriseError("STORE_IO", `${what}: ${text}. Check the server and the connection.`, options);
  // A statement that the server does not accept is our bug.
  return new InvariantError(`${what}: ${text}`, options);
}
