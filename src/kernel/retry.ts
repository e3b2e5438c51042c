// Retry: whether a failed attempt is repeated, and when (G10). Attempts count from 0; `maxAttempts` includes the first.

import { backoffMs, FatalError, RepriseError, RetryLater, type RetryPolicy } from "../base/index.ts";

export type RetryDecision =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly error: unknown };

/** Codes for which trying again cannot help: the value itself is wrong. */
const HOPELESS: ReadonlySet<string> = new Set(["NOT_DATA", "BAD_PAYLOAD", "PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_DEEP"]);

function isRetryable(policy: RetryPolicy | undefined, error: unknown): boolean {
  if (error instanceof FatalError) return false;
  if (error instanceof RepriseError && HOPELESS.has(error.code)) return false;
  return policy?.retryable === undefined || policy.retryable(error);
}

/** `jitter01` is drawn from the run (A6), so that the same run waits the same time everywhere. */
export function decideRetry(
  policy: RetryPolicy | undefined,
  error: unknown,
  attempt: number,
  jitter01: number,
): RetryDecision {
  const later = error instanceof RetryLater;
  if (!later && (policy === undefined || !isRetryable(policy, error))) return { retry: false, error };
  const maxAttempts = policy?.maxAttempts ?? Number.POSITIVE_INFINITY;
  if (attempt + 1 < maxAttempts) {
    if (later) return { retry: true, delayMs: error.afterMs };
    return { retry: true, delayMs: backoffMs(policy ?? { maxAttempts: 1 }, attempt, jitter01) };
  }
  if (maxAttempts === 1) return { retry: false, error };
  return {
    retry: false,
    error: new RepriseError(
      "MAX_ATTEMPTS_EXCEEDED",
      `All ${maxAttempts} attempts failed; the last said: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    ),
  };
}
