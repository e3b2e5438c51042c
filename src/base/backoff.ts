// Backoff: retry policies, and the delay before the next attempt.

import { toMs, type Duration } from "./duration.ts";
import { invariant, RepriseError } from "./errors.ts";
import { checkOptionNames } from "./options.ts";

/** How often and after which delays a failed attempt is repeated. */
export interface RetryPolicy {
  /** How many attempts there are at most, including the first one. */
  maxAttempts: number;
  /** The delay after the first attempt, which doubles with each further attempt; default 1 second. */
  baseDelay?: Duration;
  /** The longest delay between two attempts; default 60 seconds, or `baseDelay` if that is longer. */
  maxDelay?: Duration;
  /** Returns false for an error that must not be retried; default: every error except `FatalError` is retried. */
  retryable?: (error: unknown) => boolean;
}

const DEFAULT_BASE_MS = 1_000;
const DEFAULT_MAX_MS = 60_000;

// 2^53 times any base is above any max; beyond 1023 the power itself would be Infinity.
const MAX_EXPONENT = 53;

/** Refuses an invalid policy before any code runs with it. */
export function checkRetryPolicy(policy: RetryPolicy, what: string): void {
  if (typeof policy !== "object" || policy === null)
    throw bad(what, `expected { maxAttempts, … }, not ${String(policy)}`);
  checkOptionNames(policy, ["baseDelay", "maxAttempts", "maxDelay", "retryable"], `${what}: retry`);
  const { maxAttempts, retryable } = policy;
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1) {
    throw bad(
      what,
      `maxAttempts must be a whole number of at least 1 (it counts the first attempt), not ${String(maxAttempts)}`,
    );
  }
  const baseMs = delayMs(policy.baseDelay, DEFAULT_BASE_MS, what, "baseDelay");
  const maxMs = delayMs(policy.maxDelay, Math.max(DEFAULT_MAX_MS, baseMs), what, "maxDelay");
  if (baseMs === 0) throw bad(what, "baseDelay must be above 0");
  if (maxMs < baseMs) throw bad(what, `maxDelay (${maxMs} ms) must be at least baseDelay (${baseMs} ms)`);
  if (retryable !== undefined && typeof retryable !== "function") throw bad(what, "retryable must be a function");
}

/**
 * The delay after attempt `attempt` (0-based) has failed: min(base·2^attempt + floor(jitter01·base), max).
 * With `drawUnit` of the run as `jitter01`, a restarted worker computes the same delay.
 */
export function backoffMs(policy: RetryPolicy, attempt: number, jitter01: number): number {
  invariant(Number.isSafeInteger(attempt) && attempt >= 0, "attempts are counted from 0", { attempt });
  invariant(jitter01 >= 0 && jitter01 < 1, "jitter lies in [0, 1)", { jitter01 });
  const baseMs = policy.baseDelay === undefined ? DEFAULT_BASE_MS : toMs(policy.baseDelay, "baseDelay");
  const maxMs = policy.maxDelay === undefined ? Math.max(DEFAULT_MAX_MS, baseMs) : toMs(policy.maxDelay, "maxDelay");
  const wanted = baseMs * 2 ** Math.min(attempt, MAX_EXPONENT) + Math.floor(jitter01 * baseMs);
  return Math.min(wanted, maxMs);
}

function delayMs(delay: Duration | undefined, otherwise: number, what: string, option: string): number {
  if (delay === undefined) return otherwise;
  try {
    return toMs(delay, option);
  } catch (error) {
    throw bad(what, error instanceof Error ? error.message : option, error);
  }
}

function bad(what: string, problem: string, cause?: unknown): RepriseError {
  const message = `Retry policy of ${what}: ${problem}.`.replace(/\.\.$/, ".");
  return new RepriseError(
    "BAD_POLICY",
    message,
    cause === undefined ? { details: { what } } : { cause, details: { what } },
  );
}
