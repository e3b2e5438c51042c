import { toMs, type Duration } from "./duration.ts";
import { nameClass, RepriseError } from "./errors.ts";

/** Thrown by user code: try again, but not before `after` has passed. */
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
