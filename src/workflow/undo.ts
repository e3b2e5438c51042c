// Undo: undoes completed steps when the code fails or is canceled.
//
// undo.U1. Steps are undone one at a time, the last completed first. The journal determines the order, so every replay undoes in
//   the same order.
// undo.U2. A step with an undo that is running when the code throws, or is canceled, finishes first and is undone if it completed.
// undo.U3. After the code has thrown, it receives no other results and its further requests are ignored.
// undo.U4. An undo is a step: recorded, retried, shielded. An undo that fails permanently does not stop the others.
// undo.U5. A task with an undo that the code cancels finishes, too. If it completes it is undone at once, whatever becomes of
//   the run. The run does not end before that.

import { decode, encode, invariant, RepriseError, type RetryPolicy } from "../base/index.ts";
import { isTask, taskBody, type AnyTask, type Policy, type Task } from "../kernel/index.ts";
import { requestOperation } from "./command-operation.ts";
import { requestTask } from "./command-task.ts";
import type { CodeOutcome } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import type { Wait } from "./waits.ts";

/**
 * Undoes a step, given its result: a function, or a task that any worker may run.
 *
 * @example
 * ```ts
 * import { workflow, type Undo } from "reprise";
 * const release: Undo<{ seat: string }> = async ({ seat }) => `released ${seat}`;
 * export const book = workflow("book", (ctx) => ctx.run("hold", () => ({ seat: "7A" }), { undo: release }));
 * ```
 */
export type Undo<T> = ((result: T) => Promise<unknown>) | Task<string, T, any>;

/** The undo of a step, and the retry policy of the step. */
export interface StepUndo {
  readonly how: Undo<any>;
  readonly policy: Policy;
}

/** Used when neither the undo's task nor the step has a retry policy: about four minutes. */
const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 10, baseDelay: "1s", maxDelay: "1m" };

export function checkUndo(undo: unknown, what: string): void {
  if (undo !== undefined && typeof undo !== "function" && !isTask(undo))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a function or a task as undo, got ${typeof undo}.`);
}

interface Completed {
  readonly command: string;
  readonly name: string;
  readonly undo: StepUndo;
  /** Encoded at delivery: the code may change the object later. */
  readonly result: string;
}

interface FailedUndo {
  readonly step: string;
  readonly name: string;
  readonly error: unknown;
}

/** The steps of one run that have an undo. */
export class Undos {
  readonly #completed: Completed[] = [];
  readonly #failed: FailedUndo[] = [];
  #running = 0;
  /** undo.U5. Canceled tasks that have not ended, and the steps that undo those that completed. */
  readonly #canceled = new Set<string>();
  /** How many canceled tasks completed. */
  #canceledCount = 0;
  #whenSettled: { readonly isDone: () => boolean; readonly resolve: () => void } | undefined;
  /** undo.U3. Set when the code has thrown. Only `requesting`, for the steps of undos, accepts requests. */
  #phase: "waiting" | "requesting" | undefined;

  get phase(): "waiting" | "requesting" | undefined {
    return this.#phase;
  }

  opened(): void {
    this.#running += 1;
  }

  completed(execution: Execution, { command, name, undo }: Wait, result: unknown): void {
    if (undo !== undefined) {
      const step = { command, name, undo, result: encode(result) };
      if (!this.#canceled.has(command)) this.#completed.push(step);
      else void execution.callShielded(() => this.#undoCanceled(execution, step));
    }
    this.settled(command);
  }

  /** A step with an undo has completed or failed. */
  settled(command: string): void {
    this.#running -= 1;
    invariant(this.#running >= 0, "A step with an undo settles once.");
    this.#endCanceled(command);
  }

  /** undo.U5 */
  cancel(command: string): void {
    this.#canceled.add(command);
  }
  isCanceled(command: string): boolean {
    return this.#canceled.has(command);
  }
  get hasCanceled(): boolean {
    return this.#canceled.size > 0 || this.#failed.length > 0;
  }

  #endCanceled(command: string | undefined): void {
    if (command !== undefined) this.#canceled.delete(command);
    if (this.#whenSettled?.isDone() === true) this.#whenSettled.resolve();
  }

  async #undoCanceled(execution: Execution, step: Completed): Promise<void> {
    execution.undone = true;
    this.#canceledCount += 1;
    let command: string | undefined;
    try {
      const undoing = this.#asUndo(() => undoStep(execution, step));
      command = execution.commands.last;
      if (command !== undefined) this.#canceled.add(command);
      await undoing;
    } catch (error) {
      this.#failed.push({ step: step.command, name: step.name, error });
    }
    this.#endCanceled(command);
  }

  /** Whether there is, or may be, something to undo. */
  get isNeeded(): boolean {
    return this.#completed.length > 0 || this.#running > 0 || this.hasCanceled;
  }

  /** The code has thrown: undoes its steps, then ends the run. */
  begin(execution: Execution, cause: unknown): void {
    this.#dropUnless(execution, ({ undo, command }) => undo !== undefined || this.#canceled.has(command));
    void execution
      .callShielded(() => this.#undoAll(execution, cause))
      .then(({ error, undone }) => {
        execution.undone ||= undone;
        execution.conclude({ status: "threw", error });
      });
  }

  /** undo.U5. The code has returned: ends the run when no canceled task is left. */
  finish(execution: Execution, outcome: CodeOutcome): void {
    this.#dropUnless(execution, ({ command }) => this.#canceled.has(command));
    void this.#finish(outcome).then((end) => execution.conclude(end));
  }

  async #finish(outcome: CodeOutcome): Promise<CodeOutcome> {
    if (this.#canceled.size > 0) await this.#until(() => this.#canceled.size === 0);
    if (this.#failed.length === 0) return outcome;
    return { status: "threw", error: undoFailed(this.#failed, this.#canceledCount, undefined) };
  }

  /** undo.U3. Gives up what the code waits for, except what is kept. */
  #dropUnless(execution: Execution, isKept: (wait: Wait) => boolean): void {
    const { waits } = execution;
    this.#phase = "waiting";
    execution.abandon(waits.dropUnless(isKept));
    // An operation that has not started has no entry, so it can be dropped.
    execution.requests = execution.requests.filter(
      (request) => request.kind !== "operation" || waits.get(request.command) !== undefined,
    );
  }

  #until(isDone: () => boolean): Promise<void> {
    return new Promise((resolve) => (this.#whenSettled = { isDone, resolve }));
  }

  /** Lets an undo request its step. */
  #asUndo<T>(request: () => T): T {
    const before = this.#phase;
    this.#phase = "requesting";
    try {
      return request();
    } finally {
      this.#phase = before;
    }
  }

  /** undo.U1, undo.U2. Returns the error that the run ends with, and whether a step was undone. */
  async #undoAll(execution: Execution, cause: unknown): Promise<{ error: unknown; undone: boolean }> {
    if (this.#running > 0 || this.#canceled.size > 0)
      await this.#until(() => this.#running === 0 && this.#canceled.size === 0);
    const failed = this.#failed;
    for (const step of this.#completed.toReversed())
      try {
        await this.#asUndo(() => undoStep(execution, step));
      } catch (error) {
        failed.push({ step: step.command, name: step.name, error });
      }
    const undone = this.#completed.length > 0;
    const count = this.#completed.length + this.#canceledCount;
    return { undone, error: failed.length === 0 ? cause : undoFailed(failed, count, cause) };
  }
}

/** undo.U4 */
function undoStep(execution: Execution, { name, undo: { how, policy }, result }: Completed): Promise<unknown> {
  const value = decode(result);
  const retry = policy.retry ?? DEFAULT_RETRY;
  if (isTask(how)) return requestTask(execution, how, value, taskPolicy(how, retry), taskBody(how).priority);
  return requestOperation(
    execution,
    `undo ${name}`,
    { value },
    (_op, given) => how(given),
    operationPolicy(policy, retry),
  );
}

function operationPolicy({ timeout }: Policy, retry: RetryPolicy): Policy {
  return { retry, ...(timeout !== undefined && { timeout }) };
}

/** The retry policy of the task takes precedence. A call cannot carry functions, so `retryable` is left out. */
function taskPolicy(task: AnyTask, { maxAttempts, baseDelay, maxDelay }: RetryPolicy): Policy {
  if (taskBody(task).policy.retry !== undefined) return {};
  return {
    retry: { maxAttempts, ...(baseDelay !== undefined && { baseDelay }), ...(maxDelay !== undefined && { maxDelay }) },
  };
}

function undoFailed(failed: readonly FailedUndo[], count: number, cause: unknown): RepriseError {
  const steps = failed.map(({ step, name, error }) => ({ step, name, message: messageOf(error) }));
  const reasons = steps.map(({ step, name, message }) => `${name} (${step}): ${message}`).join("; ");
  return new RepriseError(
    "UNDO_FAILED",
    `${failed.length} of ${count} steps could not be undone: ${reasons}. Undo them by hand. The other steps are undone.`,
    { cause, details: { failed: steps } },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
