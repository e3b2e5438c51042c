// Control: pause, resume, terminate, retry (C1, C2, V1).

import {
  chainAfter,
  hasEnded,
  markOf,
  type EntryType,
  type PauseOutcome,
  type PauseWrite,
  type ResumeOutcome,
  type ResumeWrite,
  type RetryOutcome,
  type RetryWrite,
  type RunNumber,
  type RunRecord,
  type Status,
  type TerminateOutcome,
  type TerminateWrite,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { insertPlace } from "./begin.ts";
import { insertDeadline, insertItem } from "./items.ts";
import { isStopped, recordOf, type RunRow } from "./rows.ts";
import type { Tx } from "./statements.ts";
import { findByKey } from "./start.ts";
import { clearEnded, clearLeftover } from "./sweep.ts";
import { tellChildren } from "./tell-children.ts";

interface Newest {
  readonly run: number;
  readonly status: Status;
  readonly kind: RunRecord["kind"];
}

/** C1 */
export function applyPause({ sql }: Tx, { id, own }: PauseWrite): PauseOutcome {
  const newest = sql.newestStatus.get(id) as unknown as Newest | undefined;
  if (newest === undefined) return { status: "no-run" };
  const { run, status, kind } = newest;
  if (status === "paused") return { status: "committed", run };
  const { changes } = own === undefined ? sql.pause.run(run) : sql.pauseOwn.run(own.evidence, run, own.token ?? "");
  if (changes === 0) return { status: "not-pausable", as: status };
  // Tasks of a workflow are answers its code waits for; nodes are the flow's own code.
  if (kind === "flow") sql.stopNodes.run(run);
  return { status: "committed", run };
}

export function applyResume({ sql }: Tx, { id }: ResumeWrite): ResumeOutcome {
  const newest = sql.newestStatus.get(id) as unknown as Newest | undefined;
  if (newest === undefined) return { status: "no-run" };
  const { run, status } = newest;
  if (!isStopped(status)) return { status: "not-stopped", as: status };
  sql.resume.run(run);
  sql.resumeItems.run(run);
  return { status: "committed", run };
}

/** C2 */
export function applyTerminate(tx: Tx, { id, data, answer, cancel }: TerminateWrite): TerminateOutcome {
  const { sql, now } = tx;
  const row = sql.newestRun.get(id) as unknown as RunRow | undefined;
  // A run that is only expected has no journal to end.
  if (row === undefined || row.status === "expected") return { status: "no-run" };
  if (hasEnded(row.status)) return { status: "ended", as: row.status };
  const { run } = row;
  const chain = appendEntry(tx, row, "RunCancelled", data);
  sql.terminate.run(row.head + 1, chain, now, run);
  clearEnded(tx, run, row.arrivals);
  const told: RunNumber[] = [];
  if (row.parent !== null && row.parentCommand !== null) {
    const failed = { type: "ChildWorkflowFailed", target: row.parentCommand, data: answer } as const;
    if (arrive(tx, row.parent, failed)) told.push(row.parent);
  }
  told.push(...tellChildren(tx, run, cancel));
  return { status: "committed", record: recordOf(sql, sql.run.get(run) as unknown as RunRow), told };
}

/** V1. What is checked first is all that the plan relied on. */
export function applyRetry(tx: Tx, write: RetryWrite): RetryOutcome {
  const { sql, now } = tx;
  const { run } = write;
  const row = sql.run.get(run) as unknown as RunRow | undefined;
  if (row?.status !== "failed" || row.head !== write.head) return { status: "moved" };
  for (const child of write.children) {
    const found = sql.statusOf.get(child) as { status: Status } | undefined;
    if (found === undefined || hasEnded(found.status)) return { status: "moved" };
  }
  const { line, singleton } = write;
  if (singleton !== undefined) {
    const holder = findByKey(tx, row.definition, "singleton", singleton);
    if (holder !== undefined && holder.id !== row.id && !hasEnded(holder.status))
      return { status: "taken", by: holder.id };
    sql.keepStartKey.run(row.definition, "singleton", singleton, row.id);
  }
  clearLeftover(tx, run);
  if (line !== undefined) insertPlace(tx, row, line);
  const chain = appendEntry(tx, row, "RunRetried", write.data);
  sql.retry.run(row.head + 1, chain, run);
  for (const item of write.items) insertItem(tx, run, item);
  for (const port of write.reopened ?? []) sql.dropOnce.run(run, port);
  if (write.deadlineMs !== undefined) insertDeadline(tx, run, now + write.deadlineMs);
  for (const answer of write.answers) arrive(tx, run, answer);
  return { status: "committed" };
}

/** Adds an entry without the holder of the turn; answers the chain after it, for the run's row. */
export function appendEntry({ sql, now }: Tx, row: RunRow, type: EntryType, data: string): string {
  const chain = chainAfter(row.chain, type, "", data);
  sql.insertEntry.run(row.run, row.head + 1, type, "", data, now, markOf(chain), null);
  return chain;
}
