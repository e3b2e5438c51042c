// Patience: waiting for a lock without blocking the process.

import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import { isBusy, storeErrorOf } from "./errors.ts";

/**
 * How long one statement may block the process while it waits for a lock. Short, and asked again soon: nobody stands in line
 * for the lock of a file, and SQLite itself asks ever more rarely. (Measured: with 40 ms and pauses of 1 to 16, ordinary runs
 * beside one whose steps follow each other took 3.7 times as long as without it; with this 1.3 times.)
 */
export const BUSY_SLICE_MS = 3;
/** How long a lock is waited for in all. */
export const BUSY_TIMEOUT_MS = 5_000;

export interface RetryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

export function sleep({ timers }: RetryOptions, ms: number): Promise<void> {
  return new Promise((resolve) => void timers.set(ms, resolve));
}

/** Lets everything else in the process have its turn. */
export function yieldToEventLoop({ timers }: RetryOptions): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** Repeats `attempt` while the database is busy; other errors are mapped and thrown at once. */
export async function withRetry<T>(waiting: RetryOptions, what: string, attempt: () => T): Promise<T> {
  const start = waiting.clock.monotonic();
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw storeErrorOf(error, what);
      if (waiting.clock.monotonic() - start >= BUSY_TIMEOUT_MS) throw busyError(error, what);
    }
    await sleep(waiting, retryDelayMs(waiting));
  }
}

/** 1 to 4 ms at random, so that two waiting processes do not keep step. */
export function retryDelayMs({ random }: RetryOptions): number {
  return 1 + ((random.bytes(1)[0] ?? 0) & 3);
}

export function busyError(cause: unknown, what: string): RepriseError {
  return new RepriseError(
    "STORE_BUSY",
    `${what}: another program held the write lock for ${BUSY_TIMEOUT_MS / 1000} s. Look for a stopped process or a tool with an open transaction on the file; the call can be repeated.`,
    { cause },
  );
}
