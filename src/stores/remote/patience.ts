// Patience: how long what a database could not do just now is tried again.
//
// P1. Behind a network a call fails for three reasons that pass by themselves: the database gave up a transaction (`again`),
//     somebody was quicker (`moved`), the connection is gone (`lost`). The first two are counted, the last is timed.
// P2. Pauses grow and are drawn at random, so that processes that lost a server together do not come back together.

import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import { LinkError } from "./backend.ts";

export interface Waiting {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** How long a database that cannot be reached is waited for: a restart fits in. */
export const PATIENCE_MS = 10_000;
/** P1. How often a transaction is begun anew. */
export const MAX_TRIES = 10;
/** Where time stands still (tests), patience is counted. */
export const MAX_LOST = 400;
const LONGEST_PAUSE_MS = 500;

export function pause({ timers }: Waiting, ms: number): Promise<void> {
  return new Promise((resolve) => void timers.set(ms, resolve));
}

/** P2. Up to 4, 8, 16 … milliseconds. */
export function pauseMs({ random }: Waiting, tries: number): number {
  const [high = 0, low = 0] = random.bytes(2);
  const upTo = Math.min(LONGEST_PAUSE_MS, 2 ** (Math.min(tries, 16) + 2));
  return Math.ceil((upTo * (high * 256 + low + 1)) / 65_536);
}

/** Repeats `attempt` while connections get lost under it; it must be such that doing it twice does no harm. */
export async function patiently<T>(
  waiting: Waiting,
  what: string,
  attempt: () => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const start = waiting.clock.monotonic();
  for (let tries = 0, busy = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      if (error.reason === "again" && ++busy >= MAX_TRIES) throw busyError(what, error);
      if (waiting.clock.monotonic() - start >= patienceMs || tries >= MAX_LOST) throw unreachable(what, error);
    }
    await pause(waiting, pauseMs(waiting, tries));
  }
}

export function busyError(what: string, cause?: unknown): RepriseError {
  return new RepriseError(
    "STORE_BUSY",
    `${what}: others were quicker, or the database gave up, ${MAX_TRIES} times in a row. Look for a long transaction on its tables; the call can be repeated.`,
    { cause },
  );
}

export function unreachable(what: string, cause: unknown, details?: Record<string, unknown>): RepriseError {
  return new RepriseError(
    "STORE_UNREACHABLE",
    `${what}: the database could not be reached for ${PATIENCE_MS / 1000} s${lastWords(cause)}. Check that it runs and that this machine reaches it; work goes on by itself when it is back.`,
    { cause, ...(details && { details }) },
  );
}

/** What the last attempt ended with: ` (connect ECONNREFUSED 127.0.0.1:5432)`. */
function lastWords(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error instanceof LinkError) return lastWords(error.cause);
  // Of a name with several addresses, each has its own.
  if (error instanceof AggregateError && error.errors.length > 0) return lastWords(error.errors[0]);
  const words = error.message.replace(/\.$/, "");
  return words === "" ? "" : ` (${words})`;
}
