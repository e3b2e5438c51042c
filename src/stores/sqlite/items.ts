// Items: how work gets into the queue.

import type { EpochMs } from "../../base/index.ts";
import { DEADLINE_ITEM, type NewItem, type RunNumber } from "../../kernel/index.ts";
import type { Tx } from "./session.ts";

const DELAYED = 0;
const READY = 1;
const LEASED = 2;

export function insertItem({ sql, now }: Tx, run: number, item: NewItem): void {
  const { claim, availableAt, line } = item;
  // A timer is never claimed, only fired.
  const delayed = availableAt !== undefined || item.kind === "timer";
  if (line !== undefined) {
    const { kind, name, priority, seq } = item;
    const lined = delayed ? DELAYED : READY;
    const at = availableAt ?? now;
    sql.insertLined.run(run, item.item, kind, name, priority, at, seq, lined, line.queue, line.key ?? null);
    return;
  }
  const state = claim !== undefined ? LEASED : delayed ? DELAYED : READY;
  sql.insertItem.run(
    run,
    item.item,
    item.kind,
    item.name,
    item.priority,
    availableAt ?? now,
    item.seq,
    state,
    claim?.token ?? null,
    claim?.worker ?? null,
  );
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
