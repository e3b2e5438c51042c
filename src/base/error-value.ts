// Error value: errors as they are recorded, and created again from the record.

import { isErrorCode } from "./error-catalogue.ts";
import { CancelledError, FatalError, RepriseError } from "./errors.ts";

/** The recorded fields of an error. `cause` and `code` count by presence: `undefined` is a value, too. */
export interface RecordedError {
  readonly name: string;
  readonly message: string;
  readonly cause?: unknown;
  readonly code?: unknown;
  readonly errors?: readonly unknown[];
  readonly data: Readonly<Record<string, unknown>>;
}

const NATIVE_ERRORS: ReadonlyMap<string, new (message: string, options?: ErrorOptions) => Error> = new Map<
  string,
  new (message: string, options?: ErrorOptions) => Error
>(Object.entries({ Error, TypeError, RangeError, SyntaxError, ReferenceError, URIError, EvalError }));

const FORBIDDEN = new Set(["__proto__", "constructor", "stack", "name", "message", "cause", "code"]);

/** An error of the fixed set (codec.C5), or an `Error` with the recorded name. */
export function reviveError(recorded: RecordedError): Error {
  const error = construct(recorded);
  const { name, message, data } = recorded;
  if (error.name !== name) define(error, "name", name, false);
  // The stack of this call would mislead, and the original one is not recorded.
  define(error, "stack", message === "" ? name : `${name}: ${message}`, false);
  if ("cause" in recorded) define(error, "cause", recorded.cause, false);
  if ("code" in recorded) define(error, "code", recorded.code, true);
  if (recorded.errors !== undefined) define(error, "errors", recorded.errors, false);
  for (const key of Object.keys(data)) if (!FORBIDDEN.has(key)) define(error, key, data[key], true);
  return error;
}

function construct({ name, message, code, errors }: RecordedError): Error {
  const limit = Error.stackTraceLimit;
  // Collecting a stack that is then discarded would be most of the cost.
  Error.stackTraceLimit = 0;
  try {
    if (name === "FatalError" && code === "FATAL") return new FatalError(message);
    if (name === "CancelledError" && code === "CANCELLED") return new CancelledError(message);
    if (name === "RepriseError" && isErrorCode(code)) return new RepriseError(code, message);
    if (name === "AggregateError" && errors !== undefined) return new AggregateError(errors, message);
    return new (NATIVE_ERRORS.get(name) ?? Error)(message);
  } finally {
    Error.stackTraceLimit = limit;
  }
}

function define(error: Error, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}
