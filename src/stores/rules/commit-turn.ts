// Commit turn: writes what the holder of a run's turn commits (commit.K1, commit.K4).
//
// commit-turn.T1. Nothing is written before every fence holds: the tokens of the items are checked first, then the run's row moves.
// commit-turn.T2. The statement that moves the row sets `turn_due` from `arrivals`, under the lock that counts them. So no message
//   is missed.

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  commandTypeOf,
  TurnDue,
  type RunNumber,
  type RunRecord,
  type RunStatus,
  type TurnOutcome,
  type TurnWrite,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import type { RowOf } from "../rows/tables.ts";
import { appendToInbox } from "./inbox.ts";
import { dropReservation, endSpending, settle } from "./budgets.ts";
import { deleteCheckpoints, insertCheckpoints } from "./checkpoints.ts";
import { errorCodeOf } from "./error-code.ts";
import { insertEntry } from "./journal-entries.ts";
import { freeSlot } from "./queue-limiter.ts";
import { addRuntime, newestOf, RUN_COLUMNS } from "./run-rows.ts";
import { startNextGeneration } from "./next-generation.ts";
import { insertOutgoing } from "./outbox.ts";
import type { Tx } from "./transaction.ts";
import { insertItem } from "./items.ts";
import { sendSettlements } from "./message.ts";
import { changePromises } from "./promises.ts";
import { notePromiseEvents } from "./run-events.ts";
import { insertRun, type Parent } from "./start.ts";
import { writeEmits } from "./streams.ts";
import { clearEnded, clearOpenPromises } from "./sweep.ts";
import { fenceFailure } from "./fence-failure.ts";

export function applyTurn(tx: Tx, turn: TurnWrite): TurnOutcome {
  const { rows } = tx;
  // commit-turn.T1
  for (const { item, token } of turn.finished)
    if (!rows.is("queue", [turn.run, item], { token })) return fenceFailure(tx, turn);
  const isPaused = turn.next !== undefined && rows.get("runs", [turn.run], STATUS)?.status === "paused";
  if (turn.checkpoints !== undefined) {
    const refused = insertCheckpoints(tx, turn, turn.checkpoints);
    if (refused !== undefined) return refused;
  }
  const arrivals = moveHead(tx, turn);
  if (arrivals === undefined) {
    if (turn.checkpoints !== undefined) deleteCheckpoints(rows, turn.run, turn.checkpoints);
    return fenceFailure(tx, turn);
  }
  if (turn.runtime !== undefined) addRuntime(rows, turn.run, turn.runtime);
  // No invariant `arrivals >= turn.read`: a database that lost history may have fewer. The commit detects that (remote.Y1).

  const { run } = turn;
  let last = turn.head;
  for (const entry of turn.entries) {
    const { seq, type, command, data, at, mark } = entry;
    invariant(seq === ++last, "The entries of a turn must follow the head without a gap.");
    insertEntry(rows, run, seq, type, command, data, at, mark, entry);
    if (entry.charge !== undefined) settle(tx, run, command, entry.charge, entry.execution);
  }
  if (turn.chunks.length > 0) writeEmits(tx, run, turn.chunks);
  if (turn.outgoing.length > 0) insertOutgoing(tx, run, turn.outgoing);
  for (const { item, slot } of turn.finished) {
    rows.drop("queue", [run, item]);
    if (slot !== undefined) freeSlot(tx, "task", slot);
  }
  for (const item of turn.dropped) {
    dropItem(tx, run, item);
    if (turn.budget !== undefined) dropReservation(tx, run, item);
  }
  for (const item of turn.items) insertItem(tx, run, item);
  if (turn.read > 0) rows.clear("inbox", [run], { upTo: turn.read });
  let more = arrivals > turn.read;
  let next: RunRecord | undefined;
  if (turn.then !== "hold" && turn.then !== "release") {
    if (turn.next !== undefined) next = startNextGeneration(tx, run, turn.read, turn.next, isPaused);
    clearEnded(tx, run, { status: turn.then, head: last, arrivals, unread: arrivals - turn.read });
    if (turn.then === "failed") rows.set("runs", [run], { error_code: errorCodeOf(turn.entries) });
    if (turn.budget !== undefined) endSpending(tx, run, turn.budget, turn.then);
    more = false;
    if (turn.promises !== undefined) clearOpenPromises(tx, run);
  } else if (turn.promises !== undefined) {
    changePromises(rows, run, turn.promises);
    notePromiseEvents(tx, run, turn.promises.opened);
  }
  const { children, taken } = startChildren(tx, turn);
  let reached: RunNumber[] | undefined;
  for (const { to, arrival } of turn.messages) {
    const target = typeof to === "number" ? to : findChild(rows, to, run);
    if (target === undefined || !appendToInbox(tx, target, arrival)) continue;
    if (target === run) more = true;
    if (typeof to === "string") (reached ??= []).push(target);
  }
  if (turn.settlements !== undefined) {
    (reached ??= []).push(...sendSettlements(tx, run, turn.settlements));
    // The answers, unless the run has ended.
    if (turn.then === "hold" || turn.then === "release") more = true;
  }
  const committed = { status: "committed", more: more || taken, children } as const;
  if (next === undefined && reached === undefined) return committed;
  return { ...committed, ...(next && { next }), ...(reached && { reached }) };
}

const STATUS = ["status"] as const;
const FENCE = ["turn_token", "head", "chain", "arrivals", "status"] as const;

/**
 * commit.K1 and commit.K4. Returns the run's `arrivals`, or undefined when the fence does not hold. One change is enough for a run
 * without unread messages that is not paused; otherwise the row is read first.
 */
function moveHead({ rows, now }: Tx, turn: TurnWrite): number | undefined {
  const { run, token, head, previousChain, read } = turn;
  if (rows.moveHead === undefined ? changeHead(rows, turn, now) : rows.moveHead(turn, now)) return read;
  const row = rows.get("runs", [run], FENCE);
  if (row?.turn_token !== token || row.head !== head || row.chain !== previousChain) return undefined;
  rows.set("runs", [run], moved(turn, now, row.arrivals, row.status));
  return row.arrivals;
}

/** False: the fence does not hold, or the run has unread messages or is paused. */
export function changeHead(rows: Rows, turn: TurnWrite, now: EpochMs): boolean {
  const { run, token, head, previousChain, read } = turn;
  const fence = { turn_token: token, head, chain: previousChain, arrivals: read };
  // The status matters only for a turn that is released.
  const expected = turn.then === "release" ? ({ ...fence, status: "running" } as const) : fence;
  return rows.change("runs", [run], moved(turn, now, read, "running"), expected);
}

/** commit-turn.T2. The columns that a turn sets. */
function moved(turn: TurnWrite, now: EpochMs, arrivals: number, status: RunStatus): Partial<RowOf<"runs">> {
  const { chain, read, then } = turn;
  const head = turn.head + turn.entries.length;
  if (then === "hold")
    // Without entries the run made no progress, so a suspect stays a suspect.
    return turn.entries.length === 0 ? { head, chain, read } : { head, chain, read, takeovers: 0 };
  if (then === "release") {
    // control.C1. A paused run stays paused, and its turn does not become due.
    const isPaused = status === "paused";
    return {
      head,
      chain,
      read,
      takeovers: 0,
      status: isPaused ? "paused" : "waiting",
      turn_due: !isPaused && arrivals > read ? TurnDue.yes : TurnDue.no,
      turn_token: null,
      turn_worker: null,
    };
  }
  return {
    head,
    chain,
    read,
    takeovers: 0,
    status: then,
    ended_at: now,
    unread: arrivals - read + (turn.unread ?? 0),
    turn_due: TurnDue.no,
    turn_token: null,
    turn_worker: null,
  };
}

const SLOT = ["kind", "queue", "key"] as const;

/** Deletes an item in any state. Only tasks can hold a slot of a queue. */
function dropItem(tx: Tx, run: RunNumber, item: string): void {
  const slot = commandTypeOf(item) === "Task" ? tx.rows.get("queue", [run, item], SLOT) : undefined;
  tx.rows.drop("queue", [run, item]);
  if (slot !== undefined && slot.kind !== "timer") freeSlot(tx, slot.kind, slot);
}

/** The newest generation of a child. */
function findChild(rows: Rows, id: string, parent: RunNumber): RunNumber | undefined {
  const child = rows.first("runs_by_id", [id], RUN_COLUMNS, { backwards: true, also: { parent } });
  return newestOf(rows, id, child)?.run;
}

const ROOT = ["root", "budget"] as const;

/** `taken`: the id of a child belongs to another run, and the parent's inbox holds a message that says so. */
export function startChildren(
  tx: Tx,
  turn: Pick<TurnWrite, "run" | "children">,
): { readonly children: readonly RunRecord[]; readonly taken: boolean } {
  const children: RunRecord[] = [];
  let taken = false;
  if (turn.children.length === 0) return { children, taken };
  const row = tx.rows.get("runs", [turn.run], ROOT);
  invariant(row !== undefined, "A run that starts children must have a row.");
  for (const child of turn.children) {
    // A detached child is its own family: a chain of them would otherwise never be pruned.
    const parent: Parent | undefined = child.detached
      ? undefined
      : { run: turn.run, command: child.command, root: row.root, budget: row.budget };
    const made = insertRun(tx, child.run, child.claim, parent);
    if (made !== undefined) children.push(made.record);
    else if (appendToInbox(tx, turn.run, child.taken)) taken = true;
  }
  return { children, taken };
}
