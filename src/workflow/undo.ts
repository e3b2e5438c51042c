// Undo: steps that are taken back when the code does not come to its end.
//
// U1. Steps are undone one after the other, the last completed first. "Completed" is the order of the journal, so that
//     every replay undoes in the same order.
// U2. A step with an undo that is at work when the code throws, or is cancelled, is let finish; undone if it completed.
// U3. From the moment the code has thrown nothing else it asked for is heard, and nothing more it asks for is done.
// U4. An undo is a step of its own: journaled, retried, shielded. One that fails for good does not stop the others.

import { decode, encode, RepriseError, type RetryPolicy } from "../base/index.ts";
import { isTask, taskBody, type AnyTask, type Policy, type Task } from "../kernel/index.ts";
import { askOperation } from "./ask-operation.ts";
import { askTask } from "./ask-task.ts";
import type { Execution } from "./execution.ts";
import { callShielded } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** Takes a step back, given its result: a function, or a task any worker may run. */
export type Undo<T> = ((result: T) => Promise<unknown>) | Task<string, T, any>;

/** What a step says about its undo; the policy is that of the step. */
export interface StepUndo {
  readonly how: Undo<any>;
  readonly policy: Policy;
}

/** Where neither the undo's task nor the step says otherwise: about four minutes. */
const DEFAULT_RETRY: RetryPolicy = { maxAttempts: 10, baseDelay: "1s", maxDelay: "1m" };

export function checkUndo(undo: unknown, what: string): void {
  if (undo !== undefined && typeof undo !== "function" && !isTask(undo))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a function or a task as undo, got ${typeof undo}.`);
}

interface Completed {
  readonly command: string;
  readonly name: string;
  readonly undo: StepUndo;
  /** Encoded when it was delivered: the code may have changed the object since. */
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
  #atWork = 0;
  #whenNone: (() => void) | undefined;
  /** U3. The code has thrown; only undos may ask for anything. */
  #phase: "waiting" | "asking" | undefined;

  get phase(): "waiting" | "asking" | undefined {
    return this.#phase;
  }

  opened(): void {
    this.#atWork += 1;
  }

  completed({ command, name, undo }: Wait, result: unknown): void {
    if (undo !== undefined) this.#completed.push({ command, name, undo, result: encode(result) });
    this.settled();
  }

  /** A step with an undo has ended, one way or the other. */
  settled(): void {
    this.#atWork -= 1;
    if (this.#atWork === 0) this.#whenNone?.();
  }

  /** Whether there is, or may be, something to take back. */
  get isNeeded(): boolean {
    return this.#completed.length > 0 || this.#atWork > 0;
  }

  /** U1–U4. The code has thrown: takes everything back, then the run ends. */
  begin(execution: Execution, cause: unknown): void {
    const { waits } = execution;
    this.#phase = "waiting";
    execution.abandon(waits.dropUnless(({ undo }) => undo !== undefined));
    // Not started yet, and nobody waits: an operation has no entry that could be missed.
    execution.asks = execution.asks.filter((ask) => ask.ask !== "operation" || waits.get(ask.command) !== undefined);
    void callShielded(execution.host.guard, () => this.#takeBack(execution, cause)).then(({ error, undone }) => {
      execution.undone = undone;
      execution.conclude({ status: "threw", error });
    });
  }

  /** Lets an undo ask for its step. */
  #asUndo<T>(ask: () => T): T {
    this.#phase = "asking";
    try {
      return ask();
    } finally {
      this.#phase = "waiting";
    }
  }

  /** U1, U2. Answers what the run ends with; `undone` says whether anything was taken back. */
  async #takeBack(execution: Execution, cause: unknown): Promise<{ error: unknown; undone: boolean }> {
    if (this.#atWork > 0) await new Promise<void>((resolve) => (this.#whenNone = resolve));
    const failed: FailedUndo[] = [];
    for (const step of this.#completed.toReversed())
      try {
        await this.#asUndo(() => undoStep(execution, step));
      } catch (error) {
        failed.push({ step: step.command, name: step.name, error });
      }
    const undone = this.#completed.length > 0;
    return { undone, error: failed.length === 0 ? cause : undoFailed(failed, this.#completed.length, cause) };
  }
}

/** U4 */
function undoStep(execution: Execution, { name, undo: { how, policy }, result }: Completed): Promise<unknown> {
  const value = decode(result);
  const retry = policy.retry ?? DEFAULT_RETRY;
  if (isTask(how)) return askTask(execution, how, value, taskPolicy(how, retry), taskBody(how).priority);
  return askOperation(execution, `undo ${name}`, { value }, (_op, given) => how(given), operationPolicy(policy, retry));
}

function operationPolicy({ timeout }: Policy, retry: RetryPolicy): Policy {
  return { retry, ...(timeout !== undefined && { timeout }) };
}

/** A task that says how it is retried knows better; its functions cannot travel with the call. */
function taskPolicy(task: AnyTask, { maxAttempts, baseDelay, maxDelay }: RetryPolicy): Policy {
  if (taskBody(task).policy.retry !== undefined) return {};
  return {
    retry: { maxAttempts, ...(baseDelay !== undefined && { baseDelay }), ...(maxDelay !== undefined && { maxDelay }) },
  };
}

function undoFailed(failed: readonly FailedUndo[], count: number, cause: unknown): RepriseError {
  const steps = failed.map(({ step, name, error }) => ({ step, name, message: messageOf(error) }));
  const said = steps.map(({ step, name, message }) => `${name} (${step}): ${message}`).join("; ");
  return new RepriseError(
    "UNDO_FAILED",
    `${failed.length} of ${count} steps could not be undone: ${said}. Take them back by hand; the others are undone.`,
    { cause, details: { failed: steps } },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
