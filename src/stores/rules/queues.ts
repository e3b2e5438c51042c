// Queues: declares queues and changes their limits.

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
    if (row === undefined) rows.insert("queues", { name, declared: text, limits: text, paused: 0 });
    else rows.set("queues", [name], { declared: text, limits: text });
    unparkQueue(tx, name);
  }
  return { status: "committed" };
}

export function applyChangeQueue(tx: Tx, { name, paused, limits }: ChangeQueueWrite): QueueOutcome {
  const values: Partial<RowOf<"queues">> = {};
  if (paused !== undefined) values.paused = Number(paused);
  if (limits !== undefined) values.limits = limitsText(limits);
  const { rows } = tx;
  const isEmpty = paused === undefined && limits === undefined;
  const exists = isEmpty ? rows.is("queues", [name], {}) : rows.change("queues", [name], values);
  if (!exists) return { status: "no_queue" };
  if (limits !== undefined) unparkQueue(tx, name);
  return { status: "committed" };
}
