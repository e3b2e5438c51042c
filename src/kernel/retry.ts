// Retry: whether a failed attempt is repeated, and when (rules.G10). Here attempts count from 0; `maxAttempts` includes the
// first.

import { backoffMs, FatalError, invariant, RepriseError, RetryLaterError, type RetryPolicy } from "../base/index.ts";

export type RetryDecision =
  | { readonly retry: true; readonly delayMs: number }
  | { readonly retry: false; readonly error: unknown };

/** Errors that another attempt cannot fix: the value itself is wrong. */
const PERMANENT: ReadonlySet<string> = new Set([
  "BAD_GRAPH",
  "BUDGET_REACHED",
  "NOT_DATA",
  "BAD_PAYLOAD",
  "PAYLOAD_TOO_LARGE",
  "PAYLOAD_TOO_DEEP",
]);

function isRetryable(policy: RetryPolicy | undefined, error: unknown): boolean {
  if (error instanceof FatalError) return false;
  if (error instanceof RepriseError && PERMANENT.has(error.code)) return false;
  return policy?.retryable === undefined || policy.retryable(error);
}

/** `jitter01` is drawn from the run (rules.A6), so that the delay is the same on every worker. */
export function decideRetry(
  policy: RetryPolicy | undefined,
  error: unknown,
  attempt: number,
  jitter01: number,
): RetryDecision {
  invariant(attempt >= 0, "rules.G11: stored attempts count from 0");
  const later = error instanceof RetryLaterError;
  if (!later) {
    if (policy === undefined) return { retry: false, error };
    try {
      if (!isRetryable(policy, error)) return { retry: false, error };
    } catch (thrown) {
      const message = `\`retryable\` threw instead of returning true or false: ${messageOf(thrown)}`;
      return { retry: false, error: new RepriseError("BAD_POLICY", message, { cause: error }) };
    }
  }
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
      `All ${maxAttempts} attempts failed. Last error: ${messageOf(error)}`,
      { cause: error },
    ),
  };
}

/** Code can throw any value, also one that has no text. */
function messageOf(thrown: unknown): string {
  try {
    return (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, MESSAGE_LIMIT);
  } catch {
    return "a value that cannot be converted to text";
  }
}
const MESSAGE_LIMIT = 4_000;
