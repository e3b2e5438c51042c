// Control: pause, resume, terminate and retry. Each is one write under the lock of the run's row.
//
// control.C1. A pause takes effect immediately: no turn of a paused run becomes due. A worker that holds the turn keeps its
//   token, so that it can commit the results of running steps, and then returns the turn without making it due.
// control.C2. A termination ends the run without running its code. It revokes the holder's token, so the store rejects the
//   holder's next commit.

import type { Arrival, NewItem } from "./commit.ts";
import type { NewPromise } from "./open-promise.ts";
import type { QueueSlot } from "./queue.ts";
import type { SentSettlement } from "./settlement.ts";
import type { EndedRunStatus, RunNumber, RunRecord, RunStatus } from "./run.ts";

/** Stops scheduling steps of the run; messages still arrive. */
export interface PauseWrite {
  readonly write: "pause";
  readonly id: string;
  /**
   * Set by a worker that pauses a run it holds in memory; rejected if another worker holds the turn. `token` is that of the
   * turn, undefined while it is released. The row keeps the evidence until the run is resumed.
   */
  readonly own?: { readonly token: string | undefined; readonly evidence: string };
}
export type PauseOutcome =
  /** Also if the run was already paused. */
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  /** The run has ended, is stopped for another reason, or another worker holds it. */
  | { readonly status: "not_pausable"; readonly as: RunStatus };

/** Makes the turn of a stopped or paused run due. */
export interface ResumeWrite {
  readonly write: "resume";
  readonly id: string;
}
export type ResumeOutcome =
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  | { readonly status: "not_stopped"; readonly as: RunStatus };

/** control.C2. Ends the run as `cancelled`, answers its parent and cancels its live children. */
export interface TerminateWrite {
  readonly write: "terminate";
  readonly id: string;
  /** The data of its last entry, `RunCancelled`. */
  readonly data: string;
  /** The data of `ChildWorkflowFailed` for its parent, and of `CancelRequested` for its children. */
  readonly answer: string;
  readonly cancel: string;
}
export type TerminateOutcome =
  /** `notified`: the runs that received a message. */
  | { readonly status: "committed"; readonly record: RunRecord; readonly notified: readonly RunNumber[] }
  | { readonly status: "no_run" }
  | { readonly status: "ended"; readonly as: EndedRunStatus };

/** Makes a failed run live again, from the point of failure (retry-record.ts). Every commit is kept. */
export interface RetryWrite {
  readonly write: "retry";
  readonly run: RunNumber;
  /** The head for which the plan was computed. */
  readonly head: number;
  /** The data of the `RunRetried` entry. */
  readonly data: string;
  /** The commands that are open again. */
  readonly items: readonly NewItem[];
  /** From now. */
  readonly deadlineMs?: number;
  /** The queue that counts the run again, even if it is full: the run already had a slot. */
  readonly slot?: QueueSlot;
  /** The singleton key that the run takes again, unless another live run has it. */
  readonly singleton?: string;
  /** The ports whose value is void, and which accept a value again. */
  readonly reopened?: readonly string[];
  /** Settlements of promises of other runs whose answer is lost or void: sent again. */
  readonly settlements?: readonly SentSettlement[];
  /** The promises that are open again. */
  readonly promises?: readonly NewPromise[];
  /** Children that the run waits for. They must be live: they will answer. */
  readonly children: readonly RunNumber[];
  /** The answers of ended children. */
  readonly answers: readonly Arrival[];
}
export type RetryOutcome =
  | { readonly status: "committed" }
  /** Another live run has the singleton key; the store wrote nothing. */
  | { readonly status: "taken"; readonly by: string }
  /** The run, or a child, changed since the plan was computed. */
  | { readonly status: "moved" };
