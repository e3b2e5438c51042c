// Control: pause, resume, terminate and retry a run (control.C1, control.C2, retry-record.V1).

import { invariant } from "../../base/index.ts";
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
  type RunStatus,
  type TerminateOutcome,
  type TerminateWrite,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { insertAdmittedStart } from "./pending-start.ts";
import { insertDeadline, insertItem } from "./items.ts";
import { isStopped, recordOf, type RunRow } from "./run-rows.ts";
import type { Tx } from "./statements.ts";
import { findByKey } from "./start.ts";
import { clearEnded, clearLeftover } from "./sweep.ts";
import { cancelChildren } from "./cancel-children.ts";

interface Newest {
  readonly run: number;
  readonly status: RunStatus;
  readonly kind: RunRecord["kind"];
}

/** control.C1 */
export function applyPause({ sql }: Tx, { id, own }: PauseWrite): PauseOutcome {
  const newest = sql.newestStatus.get(id) as unknown as Newest | undefined;
  if (newest === undefined) return { status: "no_run" };
  const { run, status, kind } = newest;
  if (status === "paused") return { status: "committed", run };
  const { changes } = own === undefined ? sql.pauseRun.run(run) : sql.pauseSelf.run(own.evidence, run, own.token ?? "");
  if (changes === 0) return { status: "not_pausable", as: status };
  // The tasks of a paused workflow still run. The nodes of a flow are the flow's code, so they stop.
  if (kind === "flow") sql.stopNodes.run(run);
  return { status: "committed", run };
}

export function applyResume({ sql }: Tx, { id }: ResumeWrite): ResumeOutcome {
  const newest = sql.newestStatus.get(id) as unknown as Newest | undefined;
  if (newest === undefined) return { status: "no_run" };
  const { run, status } = newest;
  if (!isStopped(status)) return { status: "not_stopped", as: status };
  sql.resumeRun.run(run);
  sql.resumeItems.run(run);
  return { status: "committed", run };
}

/** control.C2 */
export function applyTerminate(tx: Tx, { id, data, answer, cancel }: TerminateWrite): TerminateOutcome {
  const { sql, now } = tx;
  const row = sql.newestRun.get(id) as unknown as RunRow | undefined;
  // An expected run has no journal that could end.
  if (row === undefined || row.status === "expected") return { status: "no_run" };
  if (hasEnded(row.status)) return { status: "ended", as: row.status };
  const { run } = row;
  const chain = appendEntry(tx, row, "RunCancelled", data);
  sql.terminateRun.run(row.head + 1, chain, now, run);
  clearEnded(tx, run, row.arrivals);
  const notified: RunNumber[] = [];
  if (row.parent !== null && row.parentCommand !== null) {
    const failed = { type: "ChildWorkflowFailed", target: row.parentCommand, data: answer } as const;
    if (appendToInbox(tx, row.parent, failed)) notified.push(row.parent);
  }
  notified.push(...cancelChildren(tx, run, cancel));
  return { status: "committed", record: recordOf(sql, sql.run.get(run) as unknown as RunRow), notified };
}

/** retry-record.V1. First checks everything that the plan of the retry depends on. */
export function applyRetry(tx: Tx, write: RetryWrite): RetryOutcome {
  const { sql, now } = tx;
  const { run } = write;
  const row = sql.run.get(run) as unknown as RunRow | undefined;
  if (row?.status !== "failed" || row.head !== write.head) return { status: "moved" };
  for (const child of write.children) {
    const found = sql.statusOf.get(child) as { status: RunStatus } | undefined;
    if (found === undefined || hasEnded(found.status)) return { status: "moved" };
  }
  const { slot, singleton } = write;
  if (singleton !== undefined) {
    const holder = findByKey(tx, row.definition, "singleton", singleton);
    if (holder !== undefined && holder.id !== row.id && !hasEnded(holder.status))
      return { status: "taken", by: holder.id };
    sql.saveStartKey.run(row.definition, "singleton", singleton, row.id);
  }
  clearLeftover(tx, run);
  if (slot !== undefined) insertAdmittedStart(tx, row, slot);
  const chain = appendEntry(tx, row, "RunRetried", write.data);
  sql.retryRun.run(row.head + 1, chain, run);
  for (const item of write.items) insertItem(tx, run, item);
  for (const port of write.reopened ?? []) sql.deleteDedupKey.run(run, port);
  if (write.deadlineMs !== undefined) insertDeadline(tx, run, now + write.deadlineMs);
  for (const answer of write.answers) appendToInbox(tx, run, answer);
  return { status: "committed" };
}

/** Appends an entry outside of a turn and returns the chain after it. The caller moves the head. */
export function appendEntry({ sql, now }: Tx, row: RunRow, type: EntryType, data: string): string {
  invariant(row.head > 0, "An entry can only be appended to a journal that has its first entry.");
  const chain = chainAfter(row.chain, type, "", data);
  sql.insertEntry.run(row.run, row.head + 1, type, "", data, now, markOf(chain), null);
  return chain;
}
