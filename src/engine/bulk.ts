// Bulk: one action on every run that a filter selects.
//
// bulk.B1. Runs are visited by number, newest first: changes by the action or by other processes neither repeat a run nor
//   leave one out.
// bulk.B2. A run the action does not apply to, or no longer applies to when it is reached, is skipped and counted.

import { checkOptionNames, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord, type RunStatus } from "../kernel/index.ts";
import { checkSignal } from "./abort.ts";
import type { BulkAction, BulkOptions, BulkReport } from "./api.ts";
import { cancelRun, pauseRun, resumeRun, terminateRun } from "./run-control.ts";
import { retryRun } from "./retry-run.ts";
import type { RunHandleHost } from "./run-handle.ts";

interface RunAction {
  readonly appliesTo: (status: RunStatus) => boolean;
  readonly apply: (run: { host: RunHandleHost; id: string }) => Promise<void>;
}

const isLive = (status: RunStatus): boolean => !hasEnded(status) && status !== "expected";

const ACTIONS: Readonly<Record<BulkAction, RunAction>> = {
  cancel: { appliesTo: isLive, apply: (run) => cancelRun(run, undefined) },
  terminate: { appliesTo: isLive, apply: (run) => terminateRun(run, undefined) },
  retry: { appliesTo: (status) => status === "failed", apply: retryRun },
  pause: { appliesTo: (status) => ["queued", "running", "waiting"].includes(status), apply: pauseRun },
  resume: { appliesTo: (status) => ["paused", "blocked", "determinism_violation"].includes(status), apply: resumeRun },
};

export function checkBulk(action: unknown, options: BulkOptions): RunAction {
  checkOptionNames(options, ["onProgress", "signal"], "bulk");
  checkSignal(options.signal, "bulk")?.throwIfAborted();
  if (typeof action === "string" && Object.hasOwn(ACTIONS, action)) return ACTIONS[action as BulkAction];
  const known = Object.keys(ACTIONS).join(", ");
  throw new RepriseError("BAD_OPTIONS", `bulk: there is no action ${String(action)}; expected one of: ${known}.`);
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
    // At the same time, so that their writes share a batch.
    const done = await Promise.all(
      page.map(async ({ id, status }) => action.appliesTo(status) && hasApplied(action.apply({ host, id }))),
    );
    for (const one of done)
      if (one) count += 1;
      else skipped += 1;
    onProgress?.({ count, skipped });
  }
  return { count, skipped };
}

/** bulk.B2. False when the run refuses the action; any other error is thrown. */
async function hasApplied(applying: Promise<void>): Promise<boolean> {
  try {
    await applying;
    return true;
  } catch (error) {
    if (error instanceof RepriseError && error.family === "usage" && error.code !== "ENGINE_CLOSED") return false;
    throw error;
  }
}
