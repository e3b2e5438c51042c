// Sweep: deletes the rows of ended and pruned runs, a bounded number per transaction.
//
// sweep.D1. An ended run whose rows one transaction cannot delete, and every deleted run, has a row in `leftovers` until a sweep
//   has deleted the rest. The rows cannot be used in the meantime: the token of the run is gone.
// sweep.D2. A number of a run is never used again, also when the newest run is deleted.
// sweep.D3. A failed run may be retried, and its journal holds the messages it read: the promises they settled stay settled, and
//   their dedup ids stay, so that a repeated message is ignored. The messages it has not read are lost, and their senders may send
//   them again. No row says which dedup ids those had, so all of them go.

import type { EpochMs } from "../../base/index.ts";
import { DEDUP_MS, eventLineOf, QueueItemState, type EndedRunStatus, type RunNumber } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { RUN_TABLES, type RunTable } from "../rows/tables.ts";
import { LOST_ITEM, recordLostItem, workerName } from "./attempts.ts";
import { dropNote, noteEnd } from "./run-log.ts";
import { freeSlots, slotKeysOf } from "./queue-limiter.ts";
import { noteEndEvent } from "./run-events.ts";
import type { Tx } from "./transaction.ts";

/** How many rows of one table a transaction deletes. `sweepLeftovers` deletes the rest. */
const SWEEP_LIMIT = 1_000;
const SOME = { limit: SWEEP_LIMIT } as const;

/** A run without rows costs as much as ten rows. */
const RUN_COST = 10;
const MAX_RUNS = SWEEP_LIMIT / RUN_COST;

const ITEM = ["item", "kind", "queue", "key"] as const;
const LEASED = [...LOST_ITEM, "kind", "state", "worker"] as const;
const TARGET = ["target"] as const;
const TARGET_AND_TIME = ["target", "at"] as const;
const MESSAGE = ["type", "target"] as const;
const NUMBER = ["run"] as const;
const STATUS = ["status"] as const;
const ID = ["run", "target"] as const;

/** What the rows of a run that ends depend on. */
export interface RunEnd {
  readonly status: EndedRunStatus;
  readonly head: number;
  /** How many messages the run received, and how many of them it has not read. */
  readonly arrivals: number;
  readonly unread: number;
}

/** Deletes the rows of a run that ends, and notes the end for the log (log.L2) and for webhooks (run-event.E1). */
export function clearEnded(tx: Tx, run: RunNumber, { status, head, arrivals, unread }: RunEnd): void {
  const { rows } = tx;
  noteEnd(tx, run, head);
  noteEndEvent(tx, run, status, head);
  // The run may be retried, and then executes them again (attempts.X1).
  if (status === "failed") recordRunning(tx, run);
  let isFull = clearItems(tx, run) === SWEEP_LIMIT;
  // A run that received no message has no rows in `inbox` and `once`.
  if (arrivals > 0 || rows.isGuess) {
    // sweep.D3
    if (status === "failed" && unread > 0) clearUnreadIds(rows, run);
    if (rows.clear("inbox", [run], SOME) === SWEEP_LIMIT) isFull = true;
    if (status !== "failed" && clearIds(rows, run) === SWEEP_LIMIT) isFull = true;
  }
  if (isFull) rows.add("leftovers", { run });
}

/** Records the executions that the end of their run stops. */
function recordRunning(tx: Tx, run: RunNumber): void {
  for (const { worker, kind, state, ...item } of tx.rows.select("queue", [run], LEASED, SOME))
    if (state === QueueItemState.leased && kind === "task")
      recordLostItem(tx, item, "returned", workerName(tx.rows, worker));
}

/** Deletes items of a run and frees their slots (queue-limiter.G2). */
function clearItems(tx: Tx, run: RunNumber): number {
  const { rows } = tx;
  // Most runs end without rows: the select takes a fraction of a µs, a bounded delete that finds nothing 2.
  const items = rows.select("queue", [run], ITEM, SOME);
  if (items.length === 0) return 0;
  for (const { item } of items) rows.drop("queue", [run, item]);
  freeSlots(tx, slotKeysOf(items));
  return items.length;
}

/** Deletes the rows of the promises of a run that has ended. */
export function clearOpenPromises({ rows }: Tx, run: RunNumber): void {
  if (rows.clear("run_promises", [run], SOME) === SWEEP_LIMIT) rows.add("leftovers", { run });
}

/** sweep.D3 */
function clearUnreadIds(rows: Rows, run: RunNumber): void {
  const unread = rows.select("inbox", [run], MESSAGE).filter(({ type }) => isSettlement(type));
  const targets = new Set(unread.map(({ target }) => target));
  for (const { target, at } of rows.select("once", [run], TARGET_AND_TIME))
    if (at > 0 || targets.has(target)) rows.drop("once", [run, target]);
}

function isSettlement(type: string): boolean {
  return type === "PromiseResolved" || type === "PromiseRejected";
}

function clearIds(rows: Rows, run: RunNumber): number {
  const ids = rows.select("once", [run], TARGET, SOME);
  for (const { target } of ids) rows.drop("once", [run, target]);
  return ids.length;
}

/** Deletes all rows of an ended run that is about to be retried. Its journal holds the messages it read. */
export function clearLeftover(tx: Tx, run: RunNumber): void {
  while (clearItems(tx, run) === SWEEP_LIMIT);
  tx.rows.clear("inbox", [run], {});
  tx.rows.clear("run_promises", [run], {});
  tx.rows.drop("leftovers", [run]);
  // log.L6
  dropNote(tx, run);
}

/** Deletes a run's row. Its other rows are leftovers (sweep.D1). */
export function deleteRun({ rows, runNumbers }: Tx, run: RunNumber): void {
  // sweep.D2
  runNumbers?.keep();
  rows.add("leftovers", { run });
  rows.clear("tags", [run], {});
  rows.drop("forks", [run]);
  rows.drop("ended_runs", [run]);
  rows.drop("run_budgets", [run]);
  rows.drop("runs", [run]);
}

/** Tables whose rows are deleted by name: with the row of the run, or after its end. */
const DELETED_BY_NAME: ReadonlySet<RunTable> = new Set<RunTable>([
  "runs",
  "tags",
  "forks",
  "ended_runs",
  "queue",
  "inbox",
  "once",
  "run_promises",
  "leftovers",
]);
/** An ended run keeps its rows in all other tables, and a pruned run does not. */
const KEPT_TABLES = RUN_TABLES.filter((table) => !DELETED_BY_NAME.has(table));

/** Deletes some thousand rows of ended runs, as many as one transaction should; false when there were none. */
export function sweepLeftovers(tx: Tx): boolean {
  const { rows } = tx;
  const runs = rows.select("leftovers", [], NUMBER, { limit: MAX_RUNS });
  // Locks all runs before their rows are read.
  const statuses = runs.map(({ run }) => rows.get("runs", [run], STATUS)?.status);
  let cost = 0;
  for (const [index, { run }] of runs.entries()) {
    if (cost >= SWEEP_LIMIT) break;
    const status = statuses[index];
    const counts = [clearItems(tx, run), rows.clear("inbox", [run], SOME), rows.clear("run_promises", [run], SOME)];
    // A failed run may be retried, and then rejects the messages that it received before.
    if (status !== "failed") counts.push(clearIds(rows, run));
    if (status === undefined) {
      for (const table of KEPT_TABLES) counts.push(rows.clear(table, [run], SOME));
      // run-event.E4
      counts.push(rows.clear("outbox", [eventLineOf(run)], SOME));
    }
    if (counts.every((count) => count < SWEEP_LIMIT)) rows.drop("leftovers", [run]);
    cost += counts.reduce((sum, count) => sum + count, RUN_COST);
  }
  return runs.length > 0;
}

const AT = ["at"] as const;

/** Whether there are dedup ids that `sweepOldIds` deletes. */
export function hasOldIds(rows: Rows, now: EpochMs): boolean {
  return rows.first("once_by_time", [], AT, { before: now - DEDUP_MS }) !== undefined;
}

/** Deletes dedup ids that are older than their guarantee: a run that lasts for years would keep all of them. */
export function sweepOldIds({ rows, now }: Tx): void {
  const old = rows.select("once_by_time", [], ID, { before: now - DEDUP_MS, limit: SWEEP_LIMIT });
  for (const { run, target } of old) rows.drop("once", [run, target]);
}
