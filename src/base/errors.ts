// Errors: what the engine throws, and what user code throws to direct it.
//
// errors.E1. `instanceof` holds across copies of the package: a bundler may load it twice, and a retry decision must not
//   depend on which copy made the error.

import { ERROR_CATALOGUE, type ErrorCode, type ErrorFamily } from "./error-catalogue.ts";

const isOrdinaryInstance = Function.prototype[Symbol.hasInstance];

export interface RepriseErrorOptions {
  readonly cause?: unknown;
  readonly details?: Record<string, unknown>;
}

/**
 * A failure that requires action: `code` identifies it, `family` says who must act.
 *
 * @example
 * ```ts
 * import { createEngine, RepriseError, workflow } from "reprise";
 * const fails = workflow("fails", async () => {
 *   throw new Error("no stock");
 * });
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [fails] });
 * const run = await engine.start(fails);
 * await run.result().catch((error: unknown) => {
 *   if (error instanceof RepriseError && error.code === "RUN_FAILED") console.log(error.cause);
 * });
 * ```
 */
export class RepriseError extends Error {
  readonly code: ErrorCode;
  declare readonly details?: Record<string, unknown>;

  static {
    nameClass(this, "RepriseError");
  }

  constructor(code: ErrorCode, message: string, options?: RepriseErrorOptions) {
    super(message, options !== undefined && "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    if (options?.details !== undefined) this.details = options.details;
  }

  get family(): ErrorFamily {
    return ERROR_CATALOGUE[this.code].family;
  }
}

/**
 * Thrown by user code: another attempt cannot help, so the engine does not retry.
 *
 * @example
 * ```ts
 * import { FatalError, task } from "reprise";
 * const ship = task("ship", { retry: { maxAttempts: 5 } }, (_ctx, to: string) => {
 *   if (to === "") throw new FatalError("no address");
 *   return `to ${to}`;
 * });
 * ```
 */
export class FatalError extends RepriseError {
  static {
    nameClass(this, "FatalError");
  }

  constructor(message: string, options?: { cause?: unknown }) {
    super("FATAL", message, options);
  }
}

/**
 * Thrown in a canceled run at the point where its code waits.
 *
 * @example
 * ```ts
 * import { CancelledError, workflow } from "reprise";
 * const patient = workflow("patient", async (ctx) => {
 *   try {
 *     await ctx.sleep("1 day");
 *   } catch (error) {
 *     if (error instanceof CancelledError) await ctx.shield(() => ctx.run("clean up", () => "done"));
 *     throw error;
 *   }
 * });
 * ```
 */
export class CancelledError extends RepriseError {
  static {
    nameClass(this, "CancelledError");
  }

  constructor(message = "The run was cancelled.") {
    super("CANCELLED", message);
  }
}

/** A bug in Reprise. It stops the worker before it commits invalid data. */
export class InvariantError extends RepriseError {
  static {
    nameClass(this, "InvariantError");
  }

  constructor(message: string, options?: RepriseErrorOptions) {
    super("INVARIANT", message, options);
  }
}

/** States what must hold here. Stays on in production: pass a constant message, and a condition that costs nothing. */
export function invariant(condition: unknown, message: string, details?: Record<string, unknown>): asserts condition {
  if (!condition) throw new InvariantError(message, details === undefined ? undefined : { details });
}

/**
 * Sets the name on the prototype, as built-in errors do: an own property would be printed with every error. Also brands the class
 * with a registered symbol, so that `instanceof` recognizes errors of another copy of the package (errors.E1).
 */
export function nameClass(errorClass: NamedClass, name: string): void {
  const brand = Symbol.for(`reprise.error.${name}`);
  Object.defineProperty(errorClass.prototype, "name", { value: name, writable: true, configurable: true });
  Object.defineProperty(errorClass.prototype, brand, { value: true });
  Object.defineProperty(errorClass, Symbol.hasInstance, {
    value(this: NamedClass, value: unknown): boolean {
      if (isOrdinaryInstance.call(this, value)) return true;
      // A subclass in user code inherits this method, and has no brand.
      return this === errorClass && typeof value === "object" && value !== null && brand in value;
    },
  });
}

type NamedClass = Function & { readonly prototype: Error };
