// Attempt texts: what people read about executions of user code: on which worker, how long, how they ended.

import { clip, formatMs, plain, showValue, userFrames } from "../base/index.ts";
import type { JournalEntry, RunAttempt } from "../kernel/index.ts";

/** An event that is not in the journal: a crash, a new worker. */
export interface TimelineMark {
  readonly at: Date;
  readonly text: string;
  readonly bad: boolean;
}

/** The lines below a failed step: where it threw. */
export function thrownAt(stack: unknown): readonly string[] {
  return typeof stack === "string" ? userFrames(stack).slice(0, 1) : [];
}

/** `attempt 1 on shop-1, took 12 ms: Error: no answer`, and where it threw. */
export function failedAttemptLines({ attempt = 1, worker, tookMs, error }: RunAttempt): readonly string[] {
  const place = worker === undefined ? "" : ` on ${plain(worker)}`;
  const time = tookMs === undefined ? "" : `, took ${formatMs(tookMs)}`;
  const stack = error instanceof Error ? error.stack : undefined;
  return [`attempt ${attempt}${place}${time}: ${showValue(error)}`, ...thrownAt(stack)];
}

/** Undefined for an execution that ended with a result or an error: its entry has a line. */
export function markOf({ step, name, execution, outcome, worker, endedAt }: RunAttempt): TimelineMark | undefined {
  if (outcome !== "lost" && outcome !== "returned") return undefined;
  const who = `worker ${worker === undefined ? "unknown" : plain(worker)}`;
  const what = step === undefined ? "the run" : `${plain(clip(name ?? step, 40))}, execution ${execution}`;
  const text =
    outcome === "lost"
      ? `${who} was lost; another worker takes over ${what}`
      : `${who} stopped or restarted, and returned ${what}`;
  return { at: endedAt, text, bad: outcome === "lost" };
}

/** What is notable about the execution that an entry ends: lost executions before it, a long duration, another worker. */
export function executionText(entry: JournalEntry, attempt: number, workerBefore: string | undefined): string {
  const { execution, worker } = entry;
  const repeated = execution !== undefined && execution > attempt ? `, execution ${execution}` : "";
  const isMoved = worker !== undefined && workerBefore !== undefined && worker !== workerBefore;
  return `${repeated}${isMoved ? ` on ${plain(worker)}` : ""}`;
}
