// Control: pause, resume, terminate and retry a run (control.C1, control.C2, retry-record.V1).

import { invariant } from "../../base/index.ts";
import {
  chainAfter,
  hasEnded,
  isNodeRoute,
  markOf,
  QueueItemState,
  TurnDue,
  type EntryType,
  type PauseOutcome,
  type PauseWrite,
  type ResumeOutcome,
  type ResumeWrite,
  type RetryOutcome,
  type RetryWrite,
  type RunNumber,
  type TerminateOutcome,
  type TerminateWrite,
} from "../../kernel/index.ts";
import { endSpending } from "./budgets.ts";
import { appendToInbox } from "./inbox.ts";
import type { Rows, Span } from "../rows/rows.ts";
import { findPendingStart, insertAdmittedStart } from "./pending-start.ts";
import { insertDeadline, insertItem } from "./items.ts";
import { insertEntry } from "./journal-entries.ts";
import {
  findNewest,
  isMovable,
  isStopped,
  newestStatus,
  NO_TURN,
  recordOf,
  RUN_COLUMNS,
  type RunRow,
} from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { findByKey, saveStartKey } from "./start.ts";
import { clearEnded, clearLeftover, clearOpenPromises } from "./sweep.ts";
import { sendSettlements } from "./message.ts";
import { insertPromises } from "./promises.ts";
import { cancelChildren } from "./cancel-children.ts";

/** control.C1 */
export function applyPause(tx: Tx, { id, own }: PauseWrite): PauseOutcome {
  const { rows } = tx;
  const newest = newestStatus(rows, id);
  if (newest === undefined) return { status: "no_run" };
  const { run, status, kind } = newest;
  // The tasks of a paused workflow still run. The nodes of a flow are the flow's code, so they stop.
  const nodes = kind === "flow" ? waitingNodes(rows, run) : [];
  if (status === "paused") return { status: "committed", run };
  if (!isMovable(status) || (own !== undefined && !isOwn(rows, run, own.token ?? "")))
    return { status: "not_pausable", as: status };
  rows.set(
    "runs",
    [run],
    own === undefined
      ? { status: "paused", turn_due: TurnDue.no }
      : { status: "paused", turn_due: TurnDue.no, evidence: own.evidence },
  );
  stopItems(rows, run, nodes);
  return { status: "committed", run };
}

const TOKEN = ["turn_token"] as const;

/** Whether the turn is free, or held under this token. */
function isOwn(rows: Rows, run: RunNumber, token: string): boolean {
  const held = rows.get("runs", [run], TOKEN)?.turn_token ?? null;
  return held === null || held === token;
}

const WAITING = {
  also: {
    kind: "task",
    state: { in: [QueueItemState.ready, QueueItemState.suspect, QueueItemState.parked] },
  },
} as const satisfies Span<"queue">;
const ITEM_NAME = ["item", "name"] as const;

/** Nodes of a flow that wait for a worker. */
function waitingNodes(rows: Rows, run: RunNumber): readonly string[] {
  return rows.select("queue", [run], ITEM_NAME, WAITING).flatMap(({ item, name }) => (isNodeRoute(name) ? [item] : []));
}

function stopItems(rows: Rows, run: RunNumber, items: readonly string[]): void {
  for (const item of items) rows.set("queue", [run, item], { state: QueueItemState.stopped });
}

/** Stops the nodes of a flow that wait for a worker. Only nodes: the code of a workflow waits for the results of its tasks. */
export function stopNodes(rows: Rows, run: RunNumber): void {
  stopItems(rows, run, waitingNodes(rows, run));
}

/** Stops an item that a worker held. */
export function stopItem(rows: Rows, run: RunNumber, item: string): void {
  rows.set("queue", [run, item], { state: QueueItemState.stopped, token: null, worker: null });
}

const STOPPED = { also: { state: QueueItemState.stopped } } as const satisfies Span<"queue">;
const ITEM = ["item"] as const;

export function applyResume({ rows }: Tx, { id }: ResumeWrite): ResumeOutcome {
  const newest = newestStatus(rows, id);
  if (newest === undefined) return { status: "no_run" };
  const { run, status } = newest;
  // A run that has not started keeps waiting for its start.
  const isNotStarted = findPendingStart(rows, run) !== undefined;
  const items = rows.select("queue", [run], ITEM, STOPPED);
  if (!isStopped(status)) return { status: "not_stopped", as: status };
  const isHeld = (rows.get("runs", [run], TOKEN)?.turn_token ?? null) !== null;
  rows.set("runs", [run], {
    status: isHeld ? "running" : "queued",
    takeovers: 0,
    evidence: null,
    turn_due: isNotStarted ? TurnDue.notStarted : isHeld ? TurnDue.no : TurnDue.yes,
  });
  for (const { item } of items) rows.set("queue", [run, item], { state: QueueItemState.ready, takeovers: 0 });
  return { status: "committed", run };
}

/** control.C2 */
export function applyTerminate(tx: Tx, { id, data, answer, cancel }: TerminateWrite): TerminateOutcome {
  const { rows, now } = tx;
  const row = findNewest(rows, id);
  // An expected run has no journal that could end.
  if (row === undefined || row.status === "expected") return { status: "no_run" };
  if (hasEnded(row.status)) return { status: "ended", as: row.status };
  const { run } = row;
  const chain = appendEntry(tx, row, "RunCancelled", data);
  rows.set("runs", [run], {
    ...NO_TURN,
    head: row.head + 1,
    chain,
    status: "cancelled",
    ended_at: now,
    unread: row.arrivals - row.read,
    evidence: null,
  });
  const { arrivals, read } = row;
  clearEnded(tx, run, { status: "cancelled", head: row.head + 1, arrivals, unread: arrivals - read });
  if (row.budget !== null) endSpending(tx, run, row.budget, "cancelled");
  clearOpenPromises(tx, run);
  const notified: RunNumber[] = [];
  if (row.parent !== null && row.parent_command !== null) {
    const failed = { type: "ChildWorkflowFailed", target: row.parent_command, data: answer } as const;
    if (appendToInbox(tx, row.parent, failed)) notified.push(row.parent);
  }
  notified.push(...cancelChildren(tx, run, cancel));
  const ended = rows.get("runs", [run], RUN_COLUMNS);
  invariant(ended !== undefined, "A terminated run must have a row.");
  return { status: "committed", record: recordOf(rows, ended), notified };
}

const STATUS = ["status"] as const;

/** retry-record.V1. First checks everything that the plan of the retry depends on. */
export function applyRetry(tx: Tx, write: RetryWrite): RetryOutcome {
  const { rows, now } = tx;
  const { run, slot, singleton } = write;
  const row = rows.get("runs", [run], RUN_COLUMNS);
  const children = write.children.map((child) => rows.get("runs", [child], STATUS));
  const holder = row && singleton !== undefined ? findByKey(tx, row.definition, "singleton", singleton) : undefined;
  if (!rows.isGuess && (row?.status !== "failed" || row.head !== write.head)) return { status: "moved" };
  if (row === undefined || children.some((child) => child === undefined || hasEnded(child.status)))
    return { status: "moved" };
  if (singleton !== undefined) {
    if (holder !== undefined && holder.id !== row.id && !hasEnded(holder.status))
      return { status: "taken", by: holder.id };
    saveStartKey(tx, row.definition, "singleton", singleton, row.id);
  }
  clearLeftover(tx, run);
  if (slot !== undefined) insertAdmittedStart(tx, row, slot);
  const chain = appendEntry(tx, row, "RunRetried", write.data);
  rows.set("runs", [run], {
    head: row.head + 1,
    chain,
    status: "queued",
    ended_at: null,
    unread: 0,
    read: row.arrivals,
    turn_due: TurnDue.yes,
    takeovers: 0,
    evidence: null,
    error_code: null,
  });
  for (const item of write.items) insertItem(tx, run, item);
  insertPromises(rows, run, write.promises ?? []);
  for (const port of write.reopened ?? []) rows.drop("once", [run, port]);
  if (write.deadlineMs !== undefined) insertDeadline(tx, run, now + write.deadlineMs);
  for (const answer of write.answers) appendToInbox(tx, run, answer);
  sendSettlements(tx, run, write.settlements ?? []);
  return { status: "committed" };
}

/** Appends an entry outside of a turn and returns the chain after it. The caller moves the head. */
export function appendEntry(
  { rows, now }: Tx,
  row: Pick<RunRow, "run" | "head" | "chain">,
  type: EntryType,
  data: string,
): string {
  invariant(row.head > 0, "An entry can only be appended to a journal that has its first entry.");
  const chain = chainAfter(row.chain, type, "", data);
  insertEntry(rows, row.run, row.head + 1, type, "", data, now, markOf(chain));
  return chain;
}
