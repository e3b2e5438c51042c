// Commit turn: writes what the holder of a run's turn commits (commit.K1, commit.K4).
//
// commit-turn.T1. Nothing is written before every fence holds: the tokens of the items are checked first, then the run's row moves.
// commit-turn.T2. The statement that moves the row sets `turn_due` from `arrivals`, under the lock that counts them. So no message
//   is missed.

import { invariant } from "../../base/index.ts";
import { commandTypeOf, type RunNumber, type RunRecord, type TurnOutcome, type TurnWrite } from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { insertCheckpoints } from "./checkpoints.ts";
import { freeSlot, type SlotKind } from "./queue-limiter.ts";
import { startNextGeneration } from "./next-generation.ts";
import { insertOutgoing } from "./outbox.ts";
import type { Tx } from "./statements.ts";
import { insertItem } from "./items.ts";
import { insertRun, type Parent } from "./start.ts";
import { writeEmits } from "./streams.ts";
import { clearEnded } from "./sweep.ts";
import { fenceFailure } from "./fence-failure.ts";

export function applyTurn(tx: Tx, turn: TurnWrite): TurnOutcome {
  const { sql } = tx;
  // commit-turn.T1
  for (const { item, token } of turn.finished)
    if (sql.heldItem.get(turn.run, item, token) === undefined) return fenceFailure(tx, turn);
  const isPaused =
    turn.next !== undefined && (sql.turnState.get(turn.run) as { status?: string } | undefined)?.status === "paused";
  if (turn.checkpoints !== undefined) {
    const refused = insertCheckpoints(tx, turn, turn.checkpoints);
    if (refused !== undefined) return refused;
  }
  const arrivals = moveHead(tx, turn);
  if (arrivals === undefined) {
    invariant(
      turn.checkpoints === undefined,
      "The fence of a turn must hold when it held for the turn's checkpoints in the same transaction.",
    );
    return fenceFailure(tx, turn);
  }
  // No invariant `arrivals >= turn.read`: a database that lost history may have fewer. The commit detects that (remote.Y1).

  const { run } = turn;
  let last = turn.head;
  for (const { seq, type, command, data, at, mark, tookMs } of turn.entries) {
    invariant(seq === ++last, "The entries of a turn must follow the head without a gap.");
    sql.insertEntry.run(run, seq, type, command, data, at, mark, tookMs ?? null);
  }
  if (turn.chunks.length > 0) writeEmits(tx, run, turn.chunks);
  if (turn.outgoing.length > 0) insertOutgoing(tx, run, turn.outgoing);
  for (const { item, slot } of turn.finished) {
    sql.deleteItem.run(run, item);
    if (slot !== undefined) freeSlot(tx, "task", slot);
  }
  for (const item of turn.dropped) dropItem(tx, run, item);
  for (const item of turn.items) insertItem(tx, run, item);
  if (turn.read > 0) sql.deleteReadInbox.run(run, turn.read);
  let more = arrivals > turn.read;
  let next: RunRecord | undefined;
  if (turn.then !== "hold" && turn.then !== "release") {
    if (turn.next !== undefined) next = startNextGeneration(tx, run, turn.read, turn.next, isPaused);
    // A failed run may be retried, and its journal holds the messages it read: their dedup ids stay, so that a repeated message
    // is ignored. With unread messages the ids go too: those messages are lost, and the sender may send them again.
    clearEnded(tx, run, arrivals, turn.then === "failed" && !more);
    more = false;
  }
  const { children, taken } = startChildren(tx, turn);
  let reached: RunNumber[] | undefined;
  for (const { to, arrival } of turn.messages) {
    const target = typeof to === "number" ? to : (sql.childById.get(to, run) as { run: number } | undefined)?.run;
    if (target === undefined || !appendToInbox(tx, target, arrival)) continue;
    if (target === run) more = true;
    if (typeof to === "string") (reached ??= []).push(target);
  }
  const committed = { status: "committed", more: more || taken, children } as const;
  if (next === undefined && reached === undefined) return committed;
  return { ...committed, ...(next && { next }), ...(reached && { reached }) };
}

/** commit.K1 and commit.K4 in one statement. Returns the run's `arrivals`, or undefined when the fence does not hold. */
function moveHead({ sql, now }: Tx, turn: TurnWrite): number | undefined {
  const { run, token, head, chain, previousChain: was, read, then } = turn;
  const newHead = head + turn.entries.length;
  if (then === "hold" && turn.entries.length === 0) {
    if (sql.holdEmptyTurn.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.holdEmptyTurnWithUnread.get(newHead, chain, read, run, token, head, was));
  }
  if (then === "hold") {
    if (sql.holdTurn.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.holdTurnWithUnread.get(newHead, chain, read, run, token, head, was));
  }
  if (then === "release") {
    if (sql.releaseTurn.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.releaseTurnWithUnread.get(newHead, chain, read, run, token, head, was));
  }
  const unread = turn.unread ?? 0;
  if (sql.endRun.run(newHead, chain, read, run, token, head, was, then, now, unread).changes === 1) return read;
  return arrivalsOf(sql.endRunWithUnread.get(newHead, chain, read, run, token, head, was, then, now, unread));
}

function arrivalsOf(row: unknown): number | undefined {
  return (row as { arrivals: number } | undefined)?.arrivals;
}

/** Deletes an item in any state. Only tasks can hold a slot of a queue. */
function dropItem(tx: Tx, run: number, item: string): void {
  const isTask = commandTypeOf(item) === "Task";
  const slot = isTask ? (tx.sql.slotOfItem.get(run, item) as DroppedSlot | undefined) : undefined;
  tx.sql.deleteItem.run(run, item);
  if (slot !== undefined) freeSlot(tx, slot.kind, slot);
}

interface DroppedSlot {
  readonly kind: SlotKind;
  readonly queue: string | null;
  readonly key: string | null;
}

/** `taken`: the id of a child belongs to another run, and the parent's inbox holds a message that says so. */
export function startChildren(
  tx: Tx,
  turn: Pick<TurnWrite, "run" | "children">,
): { readonly children: readonly RunRecord[]; readonly taken: boolean } {
  const children: RunRecord[] = [];
  let taken = false;
  if (turn.children.length === 0) return { children, taken };
  const row = tx.sql.rootOf.get(turn.run) as { root: number } | undefined;
  invariant(row !== undefined, "A run that starts children must have a row.");
  for (const child of turn.children) {
    // A detached child is its own family: a chain of them would otherwise never be pruned.
    const parent: Parent | undefined = child.detached
      ? undefined
      : { run: turn.run, command: child.command, root: row.root };
    const made = insertRun(tx, child.run, child.claim, parent);
    if (made !== undefined) children.push(made.record);
    else if (appendToInbox(tx, turn.run, child.taken)) taken = true;
  }
  return { children, taken };
}
