// Cancellation: what a run was told when somebody, or its deadline, wanted it to stop (E6).

import { CancelledError, type RepriseError } from "../base/index.ts";
import type { EndStatus, EntryType } from "../kernel/index.ts";
import { DEADLINE_PASSED, deadlineExceeded, type CodeOutcome } from "./execution-host.ts";

export class Cancellation {
  /** What the code is told; the first one counts. */
  error: RepriseError | undefined;
  reason: string | undefined;
  /** It stands in the journal, though the code may not have heard it yet. */
  announced = false;
  #abort: AbortController | undefined;

  /** The code hears it. */
  apply(type: EntryType, reason: unknown, run: string, deadline: unknown): RepriseError {
    if (type === "DeadlineExceeded") {
      this.reason = DEADLINE_PASSED;
      this.error = deadlineExceeded(run, deadline);
    } else {
      if (typeof reason === "string") this.reason = reason;
      this.error = new CancelledError(`The run was cancelled${typeof reason === "string" ? `: ${reason}` : "."}`);
    }
    this.#abort?.abort(this.error);
    return this.error;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.error !== undefined && !this.#abort.signal.aborted) this.#abort.abort(this.error);
    return this.#abort.signal;
  }

  /** A cancel is a request: the run ends `cancelled` when its code lets the cancellation through. */
  endStatus(outcome: CodeOutcome): EndStatus {
    if (outcome.status === "returned") return "completed";
    if (this.error === undefined) return outcome.status === "continued" ? "continued" : "failed";
    // Told to stop, it does not go on as new: code that never waits could not be stopped at all.
    const isStopped = outcome.status === "continued" || outcome.error instanceof CancelledError;
    return isStopped && this.error instanceof CancelledError ? "cancelled" : "failed";
  }
}
