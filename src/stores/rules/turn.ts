// Turn: what the holder of a run's turn commits (K1, K4).
//
// T1. Nothing is written before every fence held: items are looked at first, then the run's row is moved.
// T2. The row's statement sets `turn_due` from `arrivals` under the same lock that counts them: no message is missed.

import { InvariantError } from "../../base/index.ts";
import type { RunNumber, RunRecord, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { insertCheckpoints } from "./checkpoints.ts";
import { freeKey, type LineKind } from "./gates.ts";
import { startNext } from "./generation.ts";
import { insertOutgoing } from "./outbox.ts";
import type { Tx } from "./statements.ts";
import { insertItem } from "./items.ts";
import { insertRun, type Parent } from "./start.ts";
import { writeEmits } from "./streams.ts";
import { clearEnded } from "./sweep.ts";
import { voidOutcome } from "./void-outcome.ts";

export function applyTurn(tx: Tx, turn: TurnWrite): TurnOutcome {
  const { sql } = tx;
  for (const { item, token } of turn.finished)
    if (sql.heldItem.get(turn.run, item, token) === undefined) return voidOutcome(tx, turn);
  const isPaused =
    turn.next !== undefined && (sql.pulse.get(turn.run) as { status?: string } | undefined)?.status === "paused";
  if (turn.checkpoints !== undefined) {
    const refused = insertCheckpoints(tx, turn, turn.checkpoints);
    if (refused !== undefined) return refused;
  }
  const arrivals = moveHead(tx, turn);
  if (arrivals === undefined) {
    if (turn.checkpoints !== undefined)
      throw new InvariantError("A fence held for checkpoints and not for their turn.");
    return voidOutcome(tx, turn);
  }

  const { run } = turn;
  for (const { seq, type, command, data, at, mark, tookMs } of turn.entries)
    sql.insertEntry.run(run, seq, type, command, data, at, mark, tookMs ?? null);
  if (turn.emits.length > 0) writeEmits(tx, run, turn.emits);
  if (turn.sends.length > 0) insertOutgoing(tx, run, turn.sends);
  for (const { item, line } of turn.finished) {
    sql.dropItem.run(run, item);
    if (line !== undefined) freeKey(tx, "task", line);
  }
  for (const item of turn.dropped) dropItem(tx, run, item);
  for (const item of turn.items) insertItem(tx, run, item);
  if (turn.read > 0) sql.dropRead.run(run, turn.read);
  let more = arrivals > turn.read;
  let next: RunRecord | undefined;
  if (turn.then !== "hold" && turn.then !== "release") {
    if (turn.next !== undefined) next = startNext(tx, run, turn.read, turn.next, isPaused);
    // A failed run may be retried: what it was told is in its journal, and must not be told twice. With messages that
    // nobody has read the ids go too, since those messages are lost and may be sent again.
    clearEnded(tx, run, arrivals, turn.then === "failed" && !more);
    more = false;
  }
  const { children, taken } = startChildren(tx, turn);
  let reached: RunNumber[] | undefined;
  for (const { to, arrival } of turn.messages) {
    const target = typeof to === "number" ? to : (sql.childById.get(to, run) as { run: number } | undefined)?.run;
    if (target === undefined || !arrive(tx, target, arrival)) continue;
    if (target === run) more = true;
    if (typeof to === "string") (reached ??= []).push(target);
  }
  const committed = { status: "committed", more: more || taken, children } as const;
  if (next === undefined && reached === undefined) return committed;
  return { ...committed, ...(next && { next }), ...(reached && { reached }) };
}

/** K1 and K4 in one statement. Answers the run's `arrivals`, undefined when the fence did not hold. */
function moveHead({ sql, now }: Tx, turn: TurnWrite): number | undefined {
  const { run, token, head, chain, previousChain: was, read, then } = turn;
  const newHead = head + turn.entries.length;
  if (then === "hold" && turn.entries.length === 0) {
    if (sql.stay.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.stayUnread.get(newHead, chain, read, run, token, head, was));
  }
  if (then === "hold") {
    if (sql.hold.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.holdUnread.get(newHead, chain, read, run, token, head, was));
  }
  if (then === "release") {
    if (sql.release.run(newHead, chain, read, run, token, head, was).changes === 1) return read;
    return arrivalsOf(sql.releaseUnread.get(newHead, chain, read, run, token, head, was));
  }
  const unread = turn.unread ?? 0;
  if (sql.end.run(newHead, chain, read, run, token, head, was, then, now, unread).changes === 1) return read;
  return arrivalsOf(sql.endUnread.get(newHead, chain, read, run, token, head, was, then, now, unread));
}

function arrivalsOf(row: unknown): number | undefined {
  return (row as { arrivals: number } | undefined)?.arrivals;
}

/** No longer wanted, wherever it is. Only tasks stand in lines. */
function dropItem(tx: Tx, run: number, item: string): void {
  const line = item.includes("Task(") ? (tx.sql.lineOfItem.get(run, item) as DroppedLine | undefined) : undefined;
  tx.sql.dropItem.run(run, item);
  if (line !== undefined) freeKey(tx, line.kind, line);
}

interface DroppedLine {
  readonly kind: LineKind;
  readonly queue: string | null;
  readonly key: string | null;
}

/** `taken`: an id belonged to another run, and the parent was told. */
export function startChildren(
  tx: Tx,
  turn: Pick<TurnWrite, "run" | "children">,
): { readonly children: readonly RunRecord[]; readonly taken: boolean } {
  const children: RunRecord[] = [];
  let taken = false;
  if (turn.children.length === 0) return { children, taken };
  const { root } = tx.sql.rootOf.get(turn.run) as { root: number };
  for (const child of turn.children) {
    // A detached child is its own family: a chain of them would otherwise never be pruned.
    const parent: Parent | undefined = child.detached ? undefined : { run: turn.run, command: child.command, root };
    const made = insertRun(tx, child.run, child.claim, parent);
    if (made !== undefined) children.push(made.record);
    else if (arrive(tx, turn.run, child.taken)) taken = true;
  }
  return { children, taken };
}
