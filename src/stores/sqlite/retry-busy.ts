// Retry busy: retries while another process holds the lock of the file, without blocking the event loop.

import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import { isBusy, storeErrorOf } from "./errors.ts";

/**
 * How long one statement may block the process while it waits for a lock. It is short, and the retry follows soon: a file lock has
 * no queue, and SQLite itself retries less and less often. (Measured: next to a run without pauses between its steps, ordinary
 * runs took 3.7 times as long with 40 ms and delays of 1 to 16 ms, and 1.3 times as long with these values.)
 */
export const BUSY_SLICE_MS = 3;
/** How long a call retries before it fails with STORE_BUSY. */
export const BUSY_TIMEOUT_MS = 5_000;

export interface RetryOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

export function sleep({ timers }: RetryOptions, ms: number): Promise<void> {
  return new Promise((resolve) => void timers.set(ms, resolve));
}

/** Lets other tasks of the event loop run. */
export function yieldToEventLoop({ timers }: RetryOptions): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}

/** Retries `attempt` while the database is busy. Other errors are mapped and thrown at once. */
export async function withRetry<T>(options: RetryOptions, what: string, attempt: () => T): Promise<T> {
  const start = options.clock.monotonic();
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw storeErrorOf(error, what);
      if (options.clock.monotonic() - start >= BUSY_TIMEOUT_MS) throw busyError(error, what);
    }
    await sleep(options, retryDelayMs(options));
  }
}

/** 1 to 4 ms at random, so that two processes do not retry in step. */
export function retryDelayMs({ random }: RetryOptions): number {
  return 1 + ((random.bytes(1)[0] ?? 0) & 3);
}

export function busyError(cause: unknown, what: string): RepriseError {
  return new RepriseError(
    "STORE_BUSY",
    `${what}: another process has held the write lock for ${BUSY_TIMEOUT_MS / 1000} s. Find the process with an open transaction on the file (\`lsof\` lists the processes that use it), then repeat the call.`,
    { cause },
  );
}
