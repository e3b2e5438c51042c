// Items: inserts tasks, nodes, timers and starts into the table `queue`.

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  DEADLINE_ITEM,
  isNodeRoute,
  QueueItemState,
  type Claim,
  type NewItem,
  type NodeItem,
  type QueueSlot,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import type { ItemKind } from "../rows/tables.ts";
import type { Tx } from "./transaction.ts";

export function kindOf(name: string): "task" | "node" {
  return isNodeRoute(name) ? "node" : "task";
}

export function insertItem({ rows, now }: Tx, run: number, item: NewItem): void {
  const { claim, availableAt, slot, name, priority, seq } = item;
  // A node is claimed as a task is, and shares the limits of its queue with tasks.
  const kind: ItemKind = item.kind === "timer" ? "timer" : "task";
  // Workers fire timers and never claim them.
  const isDelayed = availableAt !== undefined || kind === "timer";
  invariant(
    slot === undefined || claim === undefined,
    "An item of a named queue must not be leased by the write that inserts it.",
  );
  const state = claim !== undefined ? QueueItemState.leased : isDelayed ? QueueItemState.delayed : QueueItemState.ready;
  insertRow(rows, run, item.item, kind, name, priority, availableAt ?? now, seq, state, claim, slot, item.executions);
}

/** Queues a node that is ready. `isStopped`: its run is stopped, and the node waits until the run is resumed. */
export function insertNode(
  { rows, now }: Tx,
  run: RunNumber,
  item: string,
  { name, priority, slot }: NodeItem,
  claim: Claim | undefined,
  seq: number,
  isStopped: boolean,
): void {
  // An item of a named queue is never leased by the write that inserts it: the queue's limits decide.
  const lease = slot === undefined ? claim : undefined;
  invariant(!isStopped || lease === undefined, "A node of a stopped run must not be leased.");
  const state = isStopped ? QueueItemState.stopped : lease === undefined ? QueueItemState.ready : QueueItemState.leased;
  insertRow(rows, run, item, "task", name, priority, now, seq, state, lease, slot);
}

export function insertRow(
  rows: Rows,
  run: RunNumber,
  item: string,
  kind: ItemKind,
  name: string,
  priority: number,
  availableAt: EpochMs,
  seq: number,
  state: QueueItemState,
  claim: Claim | undefined,
  slot: QueueSlot | undefined,
  executions = claim === undefined ? 0 : 1,
): void {
  rows.insert("queue", {
    run,
    item,
    kind,
    name,
    priority,
    available_at: availableAt,
    seq,
    attempt: 0,
    state,
    token: claim?.token ?? null,
    worker: claim?.worker ?? null,
    takeovers: 0,
    failures: null,
    queue: slot?.queue ?? null,
    key: slot?.key ?? null,
    executions,
    leased_at: claim === undefined ? null : availableAt,
  });
}

export function insertDeadline(tx: Tx, run: RunNumber, at: EpochMs): void {
  insertRow(
    tx.rows,
    run,
    DEADLINE_ITEM,
    "timer",
    "DeadlineExceeded",
    0,
    at,
    1,
    QueueItemState.delayed,
    undefined,
    undefined,
  );
}
