// Cancellation: the cancel of a run, by a caller or by its deadline (execution.E6).

import { CancelledError, type RepriseError } from "../base/index.ts";
import type { EndedRunStatus, EntryType } from "../kernel/index.ts";
import { PARENT_DEADLINE_PASSED, deadlineExceeded, type CodeOutcome } from "./execution-host.ts";

export class Cancellation {
  /** The error that the code receives. The first cancel counts. */
  error: RepriseError | undefined;
  reason: string | undefined;
  /** The journal has the cancel; the code may not have received it yet. */
  announced = false;
  #abort: AbortController | undefined;

  /** Delivers the cancel to the code. */
  apply(type: EntryType, reason: string | undefined, run: string, deadline: number | undefined): RepriseError {
    if (type === "DeadlineExceeded") {
      this.reason = PARENT_DEADLINE_PASSED;
      this.error = deadlineExceeded(run, deadline);
    } else {
      if (reason !== undefined) this.reason = reason;
      this.error = new CancelledError(`The run was cancelled${reason === undefined ? "." : `: ${reason}`}`);
    }
    this.#abort?.abort(this.error);
    return this.error;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.error !== undefined && !this.#abort.signal.aborted) this.#abort.abort(this.error);
    return this.#abort.signal;
  }

  /** A cancel is a request: the run ends `cancelled` if its code does not catch the error. */
  endStatus(outcome: CodeOutcome): EndedRunStatus {
    if (outcome.status === "returned") return "completed";
    if (this.error === undefined) return outcome.status === "continued" ? "continued" : "failed";
    // A canceled run does not continue as new: code that never waits could otherwise not be stopped.
    const isStopped = outcome.status === "continued" || outcome.error instanceof CancelledError;
    return isStopped && this.error instanceof CancelledError ? "cancelled" : "failed";
  }
}
