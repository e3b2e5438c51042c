import { ERROR_CATALOGUE, type ErrorCode, type ErrorFamily } from "./error-catalogue.ts";

export interface RepriseErrorOptions {
  readonly cause?: unknown;
  readonly details?: Record<string, unknown>;
}

/**
 * A failure someone must act on: `code` says which, `family` says who.
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
 * Thrown by user code: repeating will not help, so nothing is retried.
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
 * What a cancelled run sees at the point where it waits.
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

/** Our own bug. It stops the worker before nonsense is committed. */
export class InvariantError extends RepriseError {
  static {
    nameClass(this, "InvariantError");
  }

  constructor(message: string, options?: RepriseErrorOptions) {
    super("INVARIANT", message, options);
  }
}

/** States what must be true here; cheap enough to stay in production. */
export function invariant(condition: unknown, message: string, details?: Record<string, unknown>): asserts condition {
  if (!condition) throw new InvariantError(message, details === undefined ? undefined : { details });
}

/** On the prototype, as built-in errors have it: an own property would be printed with every error. */
export function nameClass(errorClass: { readonly prototype: Error }, name: string): void {
  Object.defineProperty(errorClass.prototype, "name", { value: name, writable: true, configurable: true });
}
