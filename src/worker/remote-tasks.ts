// RemoteTasks: executes the claimed tasks of a worker somewhere else, at another site. The worker keeps the lease, decides about retries
// and writes the end; only the call of the function happens elsewhere.
//
// remote-tasks.R1. The other side enforces the timeout of an attempt, because the time until it begins does not count.
// remote-tasks.R2. An execution that got lost returns its item to the queue. It counts as an execution and not as an attempt, as if the
//   worker that ran it had died.

import type { ClaimedItem, Outcome, Write } from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";

/** One attempt of a task. */
export interface RemoteCall {
  readonly item: ClaimedItem;
  readonly label: string | undefined;
  /** The text of its input; undefined: the input is undefined. */
  readonly input: string | undefined;
  /** retry-record.V3 */
  readonly epoch: number;
  readonly timeoutMs: number | undefined;
  /** Its signal aborts when the run no longer waits for the task, or the worker loses the lease. */
  readonly context: Attempt;
}

export interface RemoteTasks {
  /** Resolves with the result of the function and rejects with its error, or with `ItemReturned`. */
  execute(call: RemoteCall): Promise<unknown>;
  /** The store answered a write of this worker. */
  wrote(write: Write, outcome: Outcome): void;
}

/** remote-tasks.R2 */
export class ItemReturned extends Error {
  override readonly name = "ItemReturned";
  /** How long the item waits in the queue before a worker claims it again. */
  readonly delayMs: number;

  constructor(message: string, delayMs = 0) {
    super(message);
    this.delayMs = delayMs;
  }
}
