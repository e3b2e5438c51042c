// Items: inserts tasks, nodes and timers into the table `queue`.

import type { EpochMs } from "../../base/index.ts";
import { invariant } from "../../base/index.ts";
import {
  DEADLINE_ITEM,
  isNodeRoute,
  QueueItemState,
  type Claim,
  type NewItem,
  type NodeItem,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Tx } from "./statements.ts";

/**
 * The column `kind`. A node is claimed as a task is, and shares the limits of its queue with tasks: its row has kind `task` and
 * its route as name.
 */
type RowKind = "task" | "timer";

export function kindOf(name: string): "task" | "node" {
  return isNodeRoute(name) ? "node" : "task";
}

export function insertItem({ sql, now }: Tx, run: number, item: NewItem): void {
  const { claim, availableAt, slot } = item;
  const kind: RowKind = item.kind === "timer" ? "timer" : "task";
  // Workers fire timers and never claim them.
  const isDelayed = availableAt !== undefined || kind === "timer";
  const unclaimed = isDelayed ? QueueItemState.delayed : QueueItemState.ready;
  if (slot !== undefined) {
    invariant(claim === undefined, "An item of a named queue must not be leased by the write that inserts it.");
    const { name, priority, seq } = item;
    const at = availableAt ?? now;
    sql.insertItemInQueue.run(run, item.item, kind, name, priority, at, seq, unclaimed, slot.queue, slot.key ?? null);
    return;
  }
  const state = claim === undefined ? unclaimed : QueueItemState.leased;
  sql.insertItem.run(
    run,
    item.item,
    kind,
    item.name,
    item.priority,
    availableAt ?? now,
    item.seq,
    state,
    claim?.token ?? null,
    claim?.worker ?? null,
  );
}

/** Queues a node that is ready. `isStopped`: its run is stopped, and the node waits until the run is resumed. */
export function insertNode(
  { sql, now }: Tx,
  run: RunNumber,
  item: string,
  { name, priority, slot }: NodeItem,
  claim: Claim | undefined,
  seq: number,
  isStopped: boolean,
): void {
  const kind: RowKind = "task";
  if (slot !== undefined) {
    const state = isStopped ? QueueItemState.stopped : QueueItemState.ready;
    sql.insertItemInQueue.run(run, item, kind, name, priority, now, seq, state, slot.queue, slot.key ?? null);
    return;
  }
  invariant(!isStopped || claim === undefined, "A node of a stopped run must not be leased.");
  const state = isStopped ? QueueItemState.stopped : claim === undefined ? QueueItemState.ready : QueueItemState.leased;
  sql.insertItem.run(run, item, kind, name, priority, now, seq, state, claim?.token ?? null, claim?.worker ?? null);
}

export function insertDeadline(tx: Tx, run: RunNumber, at: EpochMs): void {
  insertItem(tx, run, {
    item: DEADLINE_ITEM,
    kind: "timer",
    name: "DeadlineExceeded",
    priority: 0,
    availableAt: at,
    seq: 1,
  });
}
