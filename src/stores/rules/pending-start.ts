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
} from "../../kernel/index.ts";
import { replaceBudget } from "./budgets.ts";
import { startItemName } from "./backlog.ts";
import { dueRateGates, freeSlot, hasDueRateGates, LIMITS, openRateGates, QueueLimiter } from "./queue-limiter.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { insertDeadline, insertRow } from "./items.ts";
import type { RunRow } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { insertTags } from "./tags.ts";

export const START_ITEM = "Start";
const PEEK = { peek: true } as const;

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

const CANDIDATE = ["run", "item", "priority", "available_at", "queue", "key"] as const;
const STATUS = ["status"] as const;

export function applyAdmit(tx: Tx, { definitions, limit }: AdmitWrite): AdmitOutcome {
  const { rows, now } = tx;
  const limiter = new QueueLimiter(rows, now, "start");
  const names = startItemNames(definitions);
  const gates = dueRateGates(tx);
  if (rows.isConcurrent) lockCandidates(rows, limiter, names, limit);
  openRateGates(tx, gates);
  const runs: RunNumber[] = [];
  for (let mayFindMore = true; mayFindMore && runs.length < limit;) {
    const candidates = limiter
      .findOpenQueues(names)
      .flatMap(({ queue, name }) => readyStarts(rows, queue, name, Math.min(limit - runs.length, limiter.room(queue))))
      .sort((a, b) => b.priority - a.priority || a.available_at - b.available_at || a.run - b.run)
      .slice(0, limit - runs.length);
    // A guess may not change the item, which is then found again.
    mayFindMore = candidates.length > 0 && !rows.isGuess;
    for (const { run, item, queue, key } of candidates) {
      lockStart(rows, run);
      const row = rows.get("runs", [run], STATUS);
      if (row === undefined || hasEnded(row.status)) rows.drop("queue", [run, START_ITEM]);
      else if (queue !== null && limiter.admit({ run, item, queue, key })) {
        rows.set("queue", [run, START_ITEM], { state: QueueItemState.admitted });
        makeDue(tx, run);
        runs.push(run);
      }
    }
  }
  return { runs, ...limiter.heldBack() };
}

function readyStarts(
  rows: Rows,
  queue: string,
  name: string,
  limit: number,
): readonly Part<"queue", (typeof CANDIDATE)[number]>[] {
  return rows.select("queue_lined", ["start", queue, name], CANDIDATE, { limit, peek: true });
}

/** Locks the runs of all candidates before their queues (remote.L1); the limits decide which of them are admitted. */
function lockCandidates(rows: Rows, limiter: QueueLimiter, names: readonly string[], limit: number): void {
  const candidates = limiter.findQueues(names).flatMap(({ queue, name }) => {
    rows.first("queues", [queue], LIMITS, PEEK);
    return readyStarts(rows, queue, name, limit);
  });
  rows.barrier();
  for (const { run } of candidates) lockStart(rows, run);
}

function lockStart(rows: Rows, run: RunNumber): void {
  rows.own("runs", [run]);
  rows.own("queue", [run, START_ITEM]);
}

function startItemNames(definitions: readonly DefinitionVersion[]): readonly string[] {
  return definitions.map(({ name, version }) => startItemName(name, version));
}

/** Runs without a transaction. Undefined when there may be a run to admit. */
export function idleAdmit(rows: Rows, now: number, write: AdmitWrite): AdmitOutcome | undefined {
  const limiter = new QueueLimiter(rows, now, "start", "poll");
  if (hasDueRateGates(rows, now) || limiter.findOpenQueues(startItemNames(write.definitions)).length > 0)
    return undefined;
  return { runs: [], ...limiter.heldBack() };
}

const HEAD = ["head"] as const;

/** pending-start.B2. Returns the new first entry, or undefined when the run has started. */
export function rewritePendingStart(tx: Tx, number: RunNumber, run: NewRun, delayMs: number): Entry | undefined {
  const { rows, now } = tx;
  const pending = findPendingStart(rows, number);
  if (pending === undefined) return undefined;
  const { slot, definition, version, priority, runtime, started } = run;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const mark = markOf(chain);
  // migrate.M1. The new start names its own version.
  const head = rows.get("runs", [number], HEAD)?.head ?? 1;
  for (let seq = 2; seq <= head; seq += 1) rows.drop("journal", [number, seq]);
  rows.set("runs", [number], { version, priority, head: 1, chain, runtime });
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
  replaceBudget(tx, number, run);
  return { seq: 1, type: "RunStarted", command: "", data: started, at: now, mark };
}
