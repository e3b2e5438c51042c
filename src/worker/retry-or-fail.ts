// Retry or fail: what follows from a failed attempt of a task, an operation or a node.

import { drawUnit, seedOf, type RetryPolicy } from "../base/index.ts";
import { decideRetry, emit, isObserved, type RetryDecision } from "../kernel/index.ts";

export interface FailedAttempt {
  readonly runId: string;
  readonly generation: number;
  /** The command or node. */
  readonly step: string;
  readonly name: string;
  /** As stored, from 0. */
  readonly attempt: number;
}

/** The backoff jitter uses the run's random seed (rules.A6), so every worker computes the same delay. */
export function retryOrFail(failed: FailedAttempt, retry: RetryPolicy | undefined, error: unknown): RetryDecision {
  const { runId: run, generation, step, name, attempt } = failed;
  const jitter = drawUnit(seedOf(run, generation), `${step}/retry`, attempt);
  const decision = decideRetry(retry, error, attempt, jitter);
  const retryInMs = decision.retry ? decision.delayMs : undefined;
  if (isObserved()) emit({ event: "attempt.failed", run, step, name, attempt: attempt + 1, error, retryInMs });
  return decision;
}
