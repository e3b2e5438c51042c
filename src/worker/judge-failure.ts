// What follows from a failed attempt, whoever made it: a task, an operation, a node of a flow.

import { drawUnit, seedOf, type RetryPolicy } from "../base/index.ts";
import { decideRetry, emit, isObserved, type RetryDecision } from "../kernel/index.ts";

export interface FailedAttempt {
  readonly runId: string;
  readonly generation: number;
  /** Its command or node. */
  readonly step: string;
  readonly name: string;
  readonly attempt: number;
}

/** The pause is drawn from the run (A6): the same everywhere. */
export function judgeFailure(failed: FailedAttempt, retry: RetryPolicy | undefined, error: unknown): RetryDecision {
  const { runId: run, generation, step, name, attempt } = failed;
  const jitter = drawUnit(seedOf(run, generation), `${step}/retry`, attempt);
  const decision = decideRetry(retry, error, attempt, jitter);
  const retryInMs = decision.retry ? decision.delayMs : undefined;
  if (isObserved()) emit({ event: "attempt.failed", run, step, name, attempt, error, retryInMs });
  return decision;
}
