// Bulk: one action on every run a filter finds.
//
// B1. Runs are gone through by number, newest first: what the action does to them, or anybody else meanwhile, neither
//     brings one twice nor lets one be missed.
// B2. A run the action does not fit, or no longer fits when its turn comes, is skipped and counted.

import { checkOptionNames, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord, type RunStatus } from "../kernel/index.ts";
import { checkSignal } from "./abort.ts";
import type { BulkAction, BulkOptions, BulkReport } from "./api.ts";
import { cancelRun, pauseRun, resumeRun, terminateRun } from "./run-control.ts";
import { retryRun } from "./retry-run.ts";
import type { RunHandleHost } from "./run-handle.ts";

interface RunAction {
  readonly fits: (status: RunStatus) => boolean;
  readonly apply: (steered: { host: RunHandleHost; id: string }) => Promise<void>;
}

const isLive = (status: RunStatus): boolean => !hasEnded(status) && status !== "expected";

const ACTIONS: Readonly<Record<BulkAction, RunAction>> = {
  cancel: { fits: isLive, apply: (run) => cancelRun(run, undefined) },
  terminate: { fits: isLive, apply: (run) => terminateRun(run, undefined) },
  retry: { fits: (status) => status === "failed", apply: retryRun },
  pause: { fits: (status) => ["queued", "running", "waiting"].includes(status), apply: pauseRun },
  resume: { fits: (status) => ["paused", "blocked", "determinism_violation"].includes(status), apply: resumeRun },
};

export function checkBulk(action: unknown, options: BulkOptions): RunAction {
  checkOptionNames(options, ["onProgress", "signal"], "bulk");
  checkSignal(options.signal, "bulk")?.throwIfAborted();
  if (typeof action === "string" && Object.hasOwn(ACTIONS, action)) return ACTIONS[action as BulkAction];
  const known = Object.keys(ACTIONS).join(", ");
  throw new RepriseError("BAD_OPTIONS", `bulk: no action is called ${String(action)}; there are: ${known}.`);
}

export async function controlRuns(
  host: RunHandleHost,
  action: RunAction,
  pages: AsyncIterable<readonly RunRecord[]>,
  { onProgress, signal }: BulkOptions,
): Promise<BulkReport> {
  let count = 0;
  let skipped = 0;
  for await (const page of pages) {
    signal?.throwIfAborted();
    // Together, so that their writes share a batch.
    const done = await Promise.all(
      page.map(async ({ id, status }) => action.fits(status) && isDone(action.apply({ host, id }))),
    );
    for (const one of done)
      if (one) count += 1;
      else skipped += 1;
    onProgress?.({ count, skipped });
  }
  return { count, skipped };
}

/** B2. False when the run itself is in the way; anything else is thrown. */
async function isDone(applying: Promise<void>): Promise<boolean> {
  try {
    await applying;
    return true;
  } catch (error) {
    if (error instanceof RepriseError && error.family === "usage" && error.code !== "ENGINE_CLOSED") return false;
    throw error;
  }
}
