// Control: what somebody outside may do to a run besides sending it messages. Each is one write under the run's lock.
//
// C1. A pause takes effect at once: no turn of a paused run becomes due, whoever asks. A worker that holds the turn keeps
//     its token, so that what is at work can be kept, and gives the turn back without making it due.
// C2. A termination ends the run without asking its code. It voids the holder's token: the holder's next commit is void.

import type { Arrival, NewItem } from "./commit.ts";
import type { QueueSlot } from "./queue.ts";
import type { EndedRunStatus, RunNumber, RunRecord, RunStatus } from "./run.ts";

/** Lets no further code of the run go on; messages keep arriving. */
export interface PauseWrite {
  readonly write: "pause";
  readonly id: string;
  /**
   * Of who has the run in memory and pauses it by itself: void when somebody else holds its turn. `token` is that of its
   * turn, none while it is given back. Why is kept until the run is resumed.
   */
  readonly own?: { readonly token: string | undefined; readonly evidence: string };
}
export type PauseOutcome =
  /** Also when it was paused before. */
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  /** It has ended, is stopped by something else, or is held by somebody else. */
  | { readonly status: "not_pausable"; readonly as: RunStatus };

/** Makes a turn due for a run that was stopped or paused. */
export interface ResumeWrite {
  readonly write: "resume";
  readonly id: string;
}
export type ResumeOutcome =
  | { readonly status: "committed"; readonly run: RunNumber }
  | { readonly status: "no_run" }
  | { readonly status: "not_stopped"; readonly as: RunStatus };

/** C2. Ends the run as `cancelled`; its parent is answered, its live children are asked to stop. */
export interface TerminateWrite {
  readonly write: "terminate";
  readonly id: string;
  /** The data of its last entry, `RunCancelled`. */
  readonly data: string;
  /** What its parent gets as `ChildWorkflowFailed`, its children as `CancelRequested`. */
  readonly answer: string;
  readonly cancel: string;
}
export type TerminateOutcome =
  /** `told`: the runs that got a message. */
  | { readonly status: "committed"; readonly record: RunRecord; readonly notified: readonly RunNumber[] }
  | { readonly status: "no_run" }
  | { readonly status: "ended"; readonly as: EndedRunStatus };

/** Makes a failed run live again, from where it failed (retried.ts). Everything that was committed stays. */
export interface RetryWrite {
  readonly write: "retry";
  readonly run: RunNumber;
  /** The head the plan was made for. */
  readonly head: number;
  /** The data of the `RunRetried` entry. */
  readonly data: string;
  /** What is open again. */
  readonly items: readonly NewItem[];
  /** Counted from now. */
  readonly deadlineMs?: number;
  /** The queue it is counted in again, though that may be full: what it does cannot wait for a place it had. */
  readonly slot?: QueueSlot;
  /** The key it holds again, unless another live run has it. */
  readonly singleton?: string;
  /** The ports whose value is void, and may be given again. */
  readonly reopened?: readonly string[];
  /** Children it waits for that must be live now: they will answer. */
  readonly children: readonly RunNumber[];
  /** The answers of children that have ended. */
  readonly answers: readonly Arrival[];
}
export type RetryOutcome =
  | { readonly status: "committed" }
  /** Another live run has its singleton key; nothing was written. */
  | { readonly status: "taken"; readonly by: string }
  /** The run, or a child of it, is not as the plan has it. */
  | { readonly status: "moved" };
