// Step row: what a row of the timeline says besides its bars: attempts, durations, failures.

import type { TimelineRow, TimelineSpan } from "../../../../src/contract/timeline.ts";

const EXECUTIONS = new Set<TimelineSpan["kind"]>(["work", "failed", "lost", "returned", "running"]);

export interface Execution {
  readonly span: TimelineSpan;
  /** The wait for a worker before it. */
  readonly queued: TimelineSpan | undefined;
  /** The wait after it, before the next attempt. */
  readonly backoff: TimelineSpan | undefined;
  /** Counted from 1. */
  readonly attempt: number;
}

/** The executions of a step, oldest first. */
export function executionsOf(row: TimelineRow): readonly Execution[] {
  const executions: Execution[] = [];
  let attempt = 0;
  row.spans.forEach((span, index) => {
    if (!EXECUTIONS.has(span.kind)) return;
    const before = row.spans[index - 1];
    const after = row.spans[index + 1];
    const last = executions.at(-1);
    // An execution that was lost or returned is repeated as the same attempt.
    if (last === undefined || last.span.kind === "failed") attempt += 1;
    executions.push({
      span,
      queued: before?.kind === "queue" ? before : undefined,
      backoff: after?.kind === "backoff" ? after : undefined,
      attempt: span.attempt ?? attempt,
    });
  });
  return executions;
}

/** Whether anything went wrong in it. */
export function hasTrouble(row: TimelineRow): boolean {
  return (
    row.state === "failed" ||
    row.state === "timed_out" ||
    row.spans.some(({ kind }) => kind === "failed" || kind === "lost") ||
    (row.progress?.failed ?? 0) > 0
  );
}

export function startOf(row: TimelineRow): number | undefined {
  const first = row.spans[0];
  return first === undefined ? undefined : Date.parse(first.from);
}

/** Undefined: it has not ended. */
export function endOf(row: TimelineRow): number | undefined {
  const last = row.spans.at(-1);
  return last?.to === undefined ? undefined : Date.parse(last.to);
}

const sum = (spans: readonly TimelineSpan[], now: number): number =>
  spans.reduce((total, span) => total + (span.to === undefined ? now : Date.parse(span.to)) - Date.parse(span.from), 0);

/** How long it waited for a worker, and how long its code ran, in ms. */
export function timesOf(row: TimelineRow, now: number): { readonly queued: number; readonly worked: number } {
  return {
    queued: sum(
      row.spans.filter(({ kind }) => kind === "queue"),
      now,
    ),
    worked: sum(
      row.spans.filter(({ kind }) => EXECUTIONS.has(kind)),
      now,
    ),
  };
}

export const lengthOf = (span: TimelineSpan, now: number): number =>
  (span.to === undefined ? now : Date.parse(span.to)) - Date.parse(span.from);

/** How long its code ran, in ms; undefined: no execution has ended. */
export function tookOf({ spans }: TimelineRow): number | undefined {
  const done = spans.filter(({ kind, to }) => (kind === "work" || kind === "failed") && to !== undefined);
  return done.length === 0 ? undefined : sum(done, 0);
}
