// Pending start: runs that exist and have not started, because their start is delayed or their queue has no free slot.
//
// pending-start.B1. Such a run has `turn_due` `notStarted` and an item `Start`. Only a cancel or its deadline wakes it.
// pending-start.B2. Until the run starts, a later start may replace its first entry (debounce). Afterwards no entry changes.
// pending-start.B3. When the run starts from a queue, its item `Start` stays until the run ends: the item holds the run's slot.

import {
  CHAIN_START,
  chainAfter,
  DEADLINE_ITEM,
  hasEnded,
  markOf,
  QueueItemState,
  type AdmitOutcome,
  type AdmitWrite,
  type DefinitionVersion,
  type Entry,
  type QueueSlot,
  type NewRun,
  type RunNumber,
  type RunStatus,
} from "../../kernel/index.ts";
import { startItemName } from "./backlog.ts";
import {
  freeSlot,
  QueueLimiter,
  hasDueRateGates,
  openRateGates,
  type QueuedItem,
  type SlotKind,
} from "./queue-limiter.ts";
import { insertDeadline } from "./items.ts";
import type { RunRow } from "./run-rows.ts";
import type { Statements, Tx } from "./statements.ts";

export const START_ITEM = "Start";

/** pending-start.B1 */
export function insertPendingStart(
  { sql, now }: Tx,
  number: RunNumber,
  run: NewRun,
  delayMs: number | undefined,
): void {
  const { slot, definition, version, priority } = run;
  const at = now + (delayMs ?? 0);
  const state = delayMs === undefined ? QueueItemState.ready : QueueItemState.delayed;
  sql.insertItemInQueue.run(
    number,
    START_ITEM,
    "start" satisfies SlotKind,
    startItemName(definition, version),
    priority,
    at,
    1,
    state,
    slot?.queue ?? null,
    slot?.key ?? null,
  );
}

/** pending-start.B3. Takes a slot for a run that continues, even when the queue has no free one. */
export function insertAdmittedStart(
  { sql, now }: Tx,
  { run, definition, version, priority }: RunRow,
  slot: QueueSlot,
): void {
  const name = startItemName(definition, version);
  const kind: SlotKind = "start";
  sql.insertItemInQueue.run(
    run,
    START_ITEM,
    kind,
    name,
    priority,
    now,
    1,
    QueueItemState.admitted,
    slot.queue,
    slot.key ?? null,
  );
}

/** Starts a run whose delay is over; false when its queue must still admit it. */
export function startDelayed(tx: Tx, run: RunNumber): boolean {
  if (findPendingStart(tx, run)?.queue !== null) {
    tx.sql.markItemReady.run(run, START_ITEM);
    return false;
  }
  tx.sql.deleteItem.run(run, START_ITEM);
  makeDue(tx, run);
  return true;
}

/** pending-start.B1. Starts a canceled run so that it can end, without a slot of its queue. False when it has started. */
export function startCancelled(tx: Tx, run: RunNumber): boolean {
  const pending = findPendingStart(tx, run);
  if (pending === undefined) return false;
  tx.sql.deleteItem.run(run, START_ITEM);
  freeSlot(tx, "start", pending);
  makeDue(tx, run);
  return true;
}

interface PendingStart {
  readonly queue: string | null;
  readonly key: string | null;
}

function findPendingStart({ sql }: Tx, run: RunNumber): PendingStart | undefined {
  return sql.pendingStart.get(run) as PendingStart | undefined;
}

function makeDue({ sql, now }: Tx, run: RunNumber): void {
  sql.makeStartDue.run(run);
  sql.setStartTime.run(now, run);
}

interface Candidate extends QueuedItem {
  readonly priority: number;
  readonly availableAt: number;
}

export function applyAdmit(tx: Tx, { definitions, limit }: AdmitWrite): AdmitOutcome {
  const { sql, now } = tx;
  openRateGates(tx);
  const limiter = new QueueLimiter(sql, now, "start");
  const names = startItemNames(definitions);
  const runs: RunNumber[] = [];
  for (let mayFindMore = true; mayFindMore && runs.length < limit;) {
    const candidates = limiter
      .findOpenQueues(names)
      .flatMap(({ queue, name }) => {
        const most = Math.min(limit - runs.length, limiter.room(queue));
        return sql.readyItemsInQueue.all("start", queue, name, most) as unknown as Candidate[];
      })
      .sort((a, b) => b.priority - a.priority || a.availableAt - b.availableAt || a.run - b.run)
      .slice(0, limit - runs.length);
    mayFindMore = candidates.length > 0;
    for (const candidate of candidates) {
      const { run } = candidate;
      const row = sql.runSummary.get(run) as { status: RunStatus } | undefined;
      if (row === undefined || hasEnded(row.status)) sql.deleteItem.run(run, START_ITEM);
      else if (limiter.admit(candidate)) {
        sql.admitRun.run(run);
        makeDue(tx, run);
        runs.push(run);
      }
    }
  }
  return { runs, ...limiter.heldBack() };
}

function startItemNames(definitions: readonly DefinitionVersion[]): readonly string[] {
  return definitions.map(({ name, version }) => startItemName(name, version));
}

/** Runs without a transaction. Undefined when there may be a run to admit. */
export function idleAdmit(sql: Statements, now: number, write: AdmitWrite): AdmitOutcome | undefined {
  const limiter = new QueueLimiter(sql, now, "start");
  if (hasDueRateGates(sql, now) || limiter.findOpenQueues(startItemNames(write.definitions)).length > 0)
    return undefined;
  return { runs: [], ...limiter.heldBack() };
}

/** pending-start.B2. Returns the new first entry, or undefined when the run has started. */
export function rewritePendingStart(tx: Tx, number: RunNumber, run: NewRun, delayMs: number): Entry | undefined {
  const { sql, now } = tx;
  const pending = findPendingStart(tx, number);
  if (pending === undefined) return undefined;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
  const mark = markOf(chain);
  sql.rewriteRun.run(run.version, run.priority, chain, run.runtime, number);
  sql.rewriteFirstEntry.run(run.started, now, mark, number);
  const { slot, definition, version, priority } = run;
  const name = startItemName(definition, version);
  sql.postponeStart.run(now + delayMs, name, priority, slot?.queue ?? null, slot?.key ?? null, number);
  freeSlot(tx, "start", pending);
  sql.deleteItem.run(number, DEADLINE_ITEM);
  if (run.deadlineMs !== undefined) insertDeadline(tx, number, now + run.deadlineMs);
  sql.deleteTags.run(number);
  for (const tag of run.tags) sql.insertTag.run(number, tag);
  return { seq: 1, type: "RunStarted", command: "", data: run.started, at: now, mark };
}
