// Queues: declares queues, pauses them and changes their limits.
//
// queues.Q1. A queue that is paused again keeps the time of the first pause. A process of a version without `paused_at` changes only
//   `paused`: the time counts only while `paused` is set, and may be missing.

import { limitsText, type ChangeQueueWrite, type DeclareQueueWrite, type QueueOutcome } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import { unparkQueue } from "./queue-limiter.ts";
import type { Tx } from "./transaction.ts";

const DECLARED = ["declared"] as const;

export function applyDeclareQueue(tx: Tx, { name, limits }: DeclareQueueWrite): QueueOutcome {
  const { rows } = tx;
  const text = limitsText(limits);
  const row = rows.get("queues", [name], DECLARED);
  if (row?.declared !== text) {
    if (row === undefined) rows.insert("queues", { name, declared: text, limits: text, paused: 0, paused_at: null });
    else rows.set("queues", [name], { declared: text, limits: text });
    unparkQueue(tx, name);
  }
  return { status: "committed" };
}

export function applyChangeQueue(tx: Tx, { name, paused, limits }: ChangeQueueWrite): QueueOutcome {
  const { rows, now } = tx;
  const values: Partial<RowOf<"queues">> = {};
  // queues.Q1
  if (paused !== undefined && !rows.is("queues", [name], { paused: Number(paused) })) {
    values.paused = Number(paused);
    values.paused_at = paused ? now : null;
  }
  if (limits !== undefined) values.limits = limitsText(limits);
  const isEmpty = values.paused === undefined && limits === undefined;
  const exists = isEmpty ? rows.is("queues", [name], {}) : rows.change("queues", [name], values);
  if (!exists) return { status: "no_queue" };
  if (limits !== undefined) unparkQueue(tx, name);
  return { status: "committed" };
}
