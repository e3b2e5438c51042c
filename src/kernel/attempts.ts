// Attempts: what is known about each execution of user code, beside the journal's data.
//
// attempts.X1. `execution` counts from 1 and grows with every dispatch of a step, also when the worker of an earlier one was lost. For
//   a task or a flow's node it counts the claims of its queue row. An operation, or a node of a graph, has no row before it ends: its
//   execution is its attempt, plus the turns of its run that were lost or returned since the code requested it. The holder of each
//   of those turns may have called it; no more is known, because a step is written once, when it ends. After a retry of the run, a
//   step that is executed again continues to count.
// attempts.X2. None of it is hashed, and no step costs a second write: the facts are columns of the entry that ends the execution.
//   Only an execution that ends without an entry has a row of its own (`AttemptRecord`).

import type { EpochMs } from "../base/index.ts";
import type { NewMemo } from "./memo.ts";
import type { Charge } from "./spending.ts";
import type { Traced } from "./telemetry.ts";

/** One execution of user code that has ended: its number, its worker, its start and its duration. */
export interface ExecutionFacts extends Traced {
  /** attempts.X1 */
  readonly execution: number;
  /** The name of the worker. */
  readonly worker: string;
  readonly startedAt: EpochMs;
  readonly tookMs: number;
  /** memo.M2. The row of its result, if the step is pure. Written beside the entry or the message that has the facts. */
  readonly memo?: NewMemo | undefined;
  /** spending.S3. What it cost, if it reserved. Written beside the entry or the message that has the facts. */
  readonly charge?: Charge | undefined;
}

/**
 * How an execution without an entry ended. `failed`: the code threw, and the engine retries it. `lost`: the worker's lease expired.
 * `returned`: the worker shut down, or dropped what it held in memory, before the code ended.
 */
export type AttemptOutcome = "failed" | "lost" | "returned";

/** An execution that ended without an entry of its own (attempts.X2). */
export interface AttemptRecord {
  /** The command or node; empty: the turn of the run, with every operation that its holder was running. */
  readonly step: string;
  readonly execution: number;
  /** As stored, from 0. */
  readonly attempt: number;
  readonly outcome: AttemptOutcome;
  /** When it ended, or was found lost. */
  readonly at: EpochMs;
  /** For a turn: the head of the journal then. Otherwise 0. */
  readonly seq: number;
  readonly worker: string | undefined;
  readonly startedAt: EpochMs | undefined;
  /** `FailureData`, encoded, for an attempt that failed. */
  readonly data: string | undefined;
}

/** The worker and the start of an attempt that failed and is retried; `data` is its `FailureData`, encoded. */
export interface FailedExecution extends Omit<ExecutionFacts, "tookMs" | "memo"> {
  readonly attempt: number;
  readonly data: string;
}
