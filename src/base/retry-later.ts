import { toMs, type Duration } from "./duration.ts";
import { nameClass, RepriseError } from "./errors.ts";

/**
 * Thrown by user code: try again, but not before `after` has passed.
 *
 * @example
 * ```ts
 * import { RetryLater, task } from "reprise";
 * const poll = task("poll", { retry: { maxAttempts: 10 } }, (ctx) => {
 *   if (ctx.attempt < 3) throw new RetryLater("30 s", "not there yet");
 *   return "there";
 * });
 * ```
 */
export class RetryLater extends RepriseError {
  readonly afterMs: number;

  static {
    nameClass(this, "RetryLater");
  }

  constructor(after: Duration, message?: string) {
    const afterMs = toMs(after, "the delay of RetryLater");
    super("RETRY_LATER", message ?? `Try again in ${afterMs} ms.`);
    this.afterMs = afterMs;
  }
}
