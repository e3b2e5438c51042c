import { toMs, type Duration } from "./duration.ts";
import { nameClass, RepriseError } from "./errors.ts";

/**
 * Thrown by user code: the engine starts another attempt, but not before `after` has passed.
 *
 * @example
 * ```ts
 * import { RetryLaterError, task } from "reprise";
 * const poll = task("poll", { retry: { maxAttempts: 10 } }, (ctx) => {
 *   if (ctx.attempt < 3) throw new RetryLaterError("30 s", "not ready yet");
 *   return "ready";
 * });
 * ```
 */
export class RetryLaterError extends RepriseError {
  readonly afterMs: number;

  static {
    nameClass(this, "RetryLaterError");
  }

  constructor(after: Duration, message?: string) {
    const afterMs = toMs(after, "the delay of RetryLaterError");
    super("RETRY_LATER", message ?? `Try again in ${afterMs} ms.`);
    this.afterMs = afterMs;
  }
}
