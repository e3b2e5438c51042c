// Queues: declares queues and changes their limits.

import { limitsText, type ChangeQueueWrite, type DeclareQueueWrite, type QueueOutcome } from "../../kernel/index.ts";
import { unparkQueue } from "./queue-limiter.ts";
import type { Tx } from "./statements.ts";

export function applyDeclareQueue(tx: Tx, { name, limits }: DeclareQueueWrite): QueueOutcome {
  const text = limitsText(limits);
  const row = tx.sql.declaredQueue.get(name) as { declared: string } | undefined;
  if (row?.declared !== text) {
    tx.sql.declareQueue.run(name, text);
    unparkQueue(tx, name);
  }
  return { status: "committed" };
}

export function applyChangeQueue(tx: Tx, { name, paused, limits }: ChangeQueueWrite): QueueOutcome {
  const { changes } = tx.sql.changeQueue.run(
    name,
    paused === undefined ? null : Number(paused),
    limits === undefined ? null : limitsText(limits),
  );
  if (changes === 0) return { status: "no_queue" };
  if (limits !== undefined) unparkQueue(tx, name);
  return { status: "committed" };
}
