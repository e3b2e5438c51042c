// Items: how work gets into the queue.

import type { EpochMs } from "../../base/index.ts";
import { DEADLINE_ITEM, type Claim, type NewItem, type NodeItem, type RunNumber } from "../../kernel/index.ts";
import type { Tx } from "./statements.ts";

const DELAYED = 0;
const READY = 1;
const LEASED = 2;
const STOPPED = 3;

/**
 * How a row is handed out. Nodes of flows are, by their route, as tasks are by their name, and share the limits of their
 * queues with them: what a row is, its name says.
 */
type RowKind = "task" | "timer";

/** No task has a name with a line break (`nodeRoute`). */
export function kindOf(name: string): "task" | "node" {
  return name.includes("\n") ? "node" : "task";
}

export function insertItem({ sql, now }: Tx, run: number, item: NewItem): void {
  const { claim, availableAt, line } = item;
  const kind: RowKind = item.kind === "timer" ? "timer" : "task";
  // A timer is never claimed, only fired.
  const delayed = availableAt !== undefined || kind === "timer";
  if (line !== undefined) {
    const { name, priority, seq } = item;
    const lined = delayed ? DELAYED : READY;
    const at = availableAt ?? now;
    sql.insertLined.run(run, item.item, kind, name, priority, at, seq, lined, line.queue, line.key ?? null);
    return;
  }
  const state = claim !== undefined ? LEASED : delayed ? DELAYED : READY;
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

/** A node that is ready. `isStopped`: until its run is resumed. */
export function insertNode(
  { sql, now }: Tx,
  run: RunNumber,
  item: string,
  { name, priority, line }: NodeItem,
  claim: Claim | undefined,
  seq: number,
  isStopped: boolean,
): void {
  const kind: RowKind = "task";
  if (line !== undefined) {
    const state = isStopped ? STOPPED : READY;
    sql.insertLined.run(run, item, kind, name, priority, now, seq, state, line.queue, line.key ?? null);
    return;
  }
  const state = isStopped ? STOPPED : claim === undefined ? READY : LEASED;
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
