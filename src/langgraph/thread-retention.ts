// Thread retention: deletes the threads without activity, a window at a time (prune-threads.A2), while the saver is used.
//
// thread-retention.R1. A checkpoint that is stored starts a window in the background when one is due; no call waits for it. A
//   whole round visits every thread of the store. Rounds are as far apart as a tenth of the retention, at most an hour.
// thread-retention.R2. Several savers may prune the same threads: a removal checks the age again in its transaction.

import { checkOptionNames, formatMs, RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { OpenThreads } from "./open-threads.ts";

/** Options of `RepriseSaver.prune`. */
export interface PruneThreadsOptions {
  /** Deletes threads whose newest checkpoint was stored longer ago than this. */
  readonly olderThan: Duration;
  /** Counts the threads and deletes nothing. */
  readonly dryRun?: boolean | undefined;
  /** Stops after the batch in progress and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const LEAST_MS = 60_000;
const MAX_ROUND_MS = 3_600_000;
/** Between two windows of a round. */
const WINDOW_MS = 1_000;

export function checkThreadRetention(retention: Duration | undefined): number | undefined {
  if (retention === undefined) return undefined;
  const ms = toMs(retention, "RepriseSaver: retention");
  if (ms >= LEAST_MS) return ms;
  throw new RepriseError(
    "BAD_OPTIONS",
    `RepriseSaver: retention: expected at least 1 minute since the newest checkpoint of a thread, got ${formatMs(ms)}.`,
  );
}

export async function pruneThreads(
  open: OpenThreads,
  options: PruneThreadsOptions,
): Promise<{ readonly threads: number }> {
  checkOptionNames(options, ["dryRun", "olderThan", "signal"], "prune");
  const storedBefore = open.now() - toMs(options.olderThan, "prune: olderThan");
  let count = 0;
  for (let after: string | undefined; ;) {
    options.signal?.throwIfAborted();
    const batch = await open.threads.expire({ storedBefore, after, dryRun: options.dryRun === true });
    count += batch.threads;
    if (batch.after === undefined) return { threads: count };
    ({ after } = batch);
  }
}

export class ThreadRetention {
  readonly #keepMs: number;
  #after: string | undefined;
  #dueAt: EpochMs = 0;
  #running: Promise<void> | undefined;

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  /** thread-retention.R1 */
  onPut(open: OpenThreads): void {
    if (this.#running !== undefined || open.now() < this.#dueAt) return;
    this.#running = this.#expire(open)
      // The next window tries again; a put must not fail because of it.
      .catch(() => void (this.#dueAt = open.now() + LEAST_MS))
      .finally(() => (this.#running = undefined));
  }

  async #expire(open: OpenThreads): Promise<void> {
    const { after } = await open.threads.expire({
      storedBefore: open.now() - this.#keepMs,
      after: this.#after,
      dryRun: false,
    });
    this.#after = after;
    this.#dueAt = open.now() + (after === undefined ? Math.min(MAX_ROUND_MS, this.#keepMs / 10) : WINDOW_MS);
  }

  /** Resolves when no window is in progress. */
  async settled(): Promise<void> {
    await this.#running;
  }
}
