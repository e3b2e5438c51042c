// Retry: how often, and for how long, a failed call to the database is repeated.
//
// remote.P1. A call fails for three transient reasons: the database aborted the transaction (`retry`), another transaction
//   committed first (`conflict`), or the connection was lost (`lost`). The first two are counted, the last is timed.
// remote.P2. Pauses grow and are random, so that processes that lost a server at the same time do not reconnect at the same time.

import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import { ConnectionError } from "./backend.ts";

export interface RetryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** How long calls to an unreachable database are retried: longer than a restart takes. */
export const RETRY_FOR_MS = 10_000;
/** remote.P1. How often a transaction is attempted. */
export const MAX_CONFLICTS = 10;
/** A second limit, for tests in which time stands still. */
export const MAX_RECONNECTS = 400;
const LONGEST_PAUSE_MS = 500;

export function pause({ timers }: RetryOptions, ms: number): Promise<void> {
  return new Promise((resolve) => void timers.set(ms, resolve));
}

/** remote.P2. Up to 4, 8, 16 … milliseconds. */
export function pauseMs({ random }: RetryOptions, tries: number): number {
  const [high = 0, low = 0] = random.bytes(2);
  const upTo = Math.min(LONGEST_PAUSE_MS, 2 ** (Math.min(tries, 16) + 2));
  return Math.ceil((upTo * (high * 256 + low + 1)) / 65_536);
}

/** Repeats `attempt`, which must be idempotent, while it fails for a transient reason. */
export async function withRetry<T>(
  options: RetryOptions,
  what: string,
  attempt: () => Promise<T>,
  retryForMs = RETRY_FOR_MS,
): Promise<T> {
  const start = options.clock.monotonic();
  for (let tries = 0, busy = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      if (error.reason === "retry" && ++busy >= MAX_CONFLICTS) throw busyError(what, error);
      if (options.clock.monotonic() - start >= retryForMs || tries >= MAX_RECONNECTS)
        throw unreachableError(what, error);
    }
    await pause(options, pauseMs(options, tries));
  }
}

export function busyError(what: string, cause?: unknown): RepriseError {
  return new RepriseError(
    "STORE_BUSY",
    `${what}: ${MAX_CONFLICTS} attempts in a row failed because of concurrent transactions or deadlocks; nothing was written. Look for a long transaction on Reprise's tables, then call again.`,
    { cause },
  );
}

export function unreachableError(what: string, cause: unknown, details?: Record<string, unknown>): RepriseError {
  return new RepriseError(
    "STORE_UNREACHABLE",
    `${what}: the database could not be reached for ${RETRY_FOR_MS / 1000} s${causeText(cause)}. Check that the server runs and that this machine can connect to it; workers resume automatically when it is back.`,
    { cause, ...(details && { details }) },
  );
}

/** Why the last attempt failed: ` (connect ECONNREFUSED 127.0.0.1:5432)`. */
function causeText(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error instanceof ConnectionError) return causeText(error.cause);
  // A host name with several addresses gives one error per address.
  if (error instanceof AggregateError && error.errors.length > 0) return causeText(error.errors[0]);
  const words = error.message.replace(/\.$/, "");
  return words === "" ? "" : ` (${words})`;
}
