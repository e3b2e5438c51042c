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
  isStartPending,
  markOf,
  QueueItemState,
  TurnDue,
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
} from "./queue-limiter.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { insertDeadline, insertRow } from "./items.ts";
import type { RunRow } from "./run-rows.ts";
import { insertTags } from "./start.ts";
import type { Statements, Tx } from "./statements.ts";

export const START_ITEM = "Start";

/** pending-start.B1 */
export function insertPendingStart(
  { rows, now }: Tx,
  number: RunNumber,
  { slot, definition, version, priority }: NewRun,
  delayMs: number | undefined,
): void {
  const name = startItemName(definition, version);
  const state = delayMs === undefined ? QueueItemState.ready : QueueItemState.delayed;
  insertRow(rows, number, START_ITEM, "start", name, priority, now + (delayMs ?? 0), 1, state, undefined, slot);
}

/** pending-start.B3. Takes a slot for a run that continues, even when the queue has no free one. */
export function insertAdmittedStart(
  { rows, now }: Tx,
  { run, definition, version, priority }: Pick<RunRow, "run" | "definition" | "version" | "priority">,
  slot: QueueSlot,
): void {
  const name = startItemName(definition, version);
  insertRow(rows, run, START_ITEM, "start", name, priority, now, 1, QueueItemState.admitted, undefined, slot);
}

/** Starts a run whose delay is over; false when its queue must still admit it. */
export function startDelayed(tx: Tx, run: RunNumber): boolean {
  const { rows } = tx;
  if (findPendingStart(rows, run)?.queue !== null) {
    rows.set("queue", [run, START_ITEM], { state: QueueItemState.ready });
    return false;
  }
  rows.drop("queue", [run, START_ITEM]);
  makeDue(tx, run);
  return true;
}

/** pending-start.B1. Starts a canceled run so that it can end, without a slot of its queue. False when it has started. */
export function startCancelled(tx: Tx, run: RunNumber): boolean {
  const pending = findPendingStart(tx.rows, run);
  if (pending === undefined) return false;
  tx.rows.drop("queue", [run, START_ITEM]);
  freeSlot(tx, "start", pending);
  makeDue(tx, run);
  return true;
}

const PENDING = ["state", "queue", "key"] as const;

/** The item `Start` of a run that has not started. */
export function findPendingStart(rows: Rows, run: RunNumber): Part<"queue", (typeof PENDING)[number]> | undefined {
  const row = rows.get("queue", [run, START_ITEM], PENDING);
  return row !== undefined && isStartPending(row.state) ? row : undefined;
}

function makeDue({ rows, now }: Tx, run: RunNumber): void {
  rows.change("runs", [run], { turn_due: TurnDue.yes }, { turn_due: TurnDue.notStarted });
  // Times are not hashed: the clock of the run's code starts with the code.
  rows.set("journal", [run, 1], { at: now });
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
  const { rows, now } = tx;
  const pending = findPendingStart(rows, number);
  if (pending === undefined) return undefined;
  const { slot, definition, version, priority, runtime, started } = run;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const mark = markOf(chain);
  rows.set("runs", [number], { version, priority, chain, runtime });
  rows.set("journal", [number, 1], { data: started, at: now, mark });
  rows.set("queue", [number, START_ITEM], {
    state: QueueItemState.delayed,
    available_at: now + delayMs,
    name: startItemName(definition, version),
    priority,
    queue: slot?.queue ?? null,
    key: slot?.key ?? null,
  });
  freeSlot(tx, "start", pending);
  rows.drop("queue", [number, DEADLINE_ITEM]);
  if (run.deadlineMs !== undefined) insertDeadline(tx, number, now + run.deadlineMs);
  rows.clear("tags", [number], {});
  insertTags(rows, number, [...new Set(run.tags)]);
  return { seq: 1, type: "RunStarted", command: "", data: started, at: now, mark };
}
