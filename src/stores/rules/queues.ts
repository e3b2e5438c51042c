// Queues: declaring, changing and looking at them.

import {
  DEFAULT_QUEUE,
  limitsText,
  type ChangeQueueWrite,
  type DeclareQueueWrite,
  type QueueLimits,
  type QueueOutcome,
  type QueueState,
} from "../../kernel/index.ts";
import { openQueue } from "./gates.ts";
import type { Statements, Tx } from "./statements.ts";

export function applyDeclareQueue(tx: Tx, { name, limits }: DeclareQueueWrite): QueueOutcome {
  const text = limitsText(limits);
  const row = tx.sql.declaredQueue.get(name) as { declared: string } | undefined;
  if (row?.declared !== text) {
    tx.sql.declareQueue.run(name, text);
    openQueue(tx, name);
  }
  return { status: "committed" };
}

export function applyChangeQueue(tx: Tx, { name, paused, limits }: ChangeQueueWrite): QueueOutcome {
  const { changes } = tx.sql.changeQueue.run(
    name,
    paused === undefined ? null : Number(paused),
    limits === undefined ? null : limitsText(limits),
  );
  if (changes === 0) return { status: "no-queue" };
  if (limits !== undefined) openQueue(tx, name);
  return { status: "committed" };
}

interface Count {
  readonly name: string;
  readonly state: number;
  readonly count: number;
  readonly oldest: number;
}

const DELAYED = 0;
const LEASED: ReadonlySet<number> = new Set([2, 6]);
/** Until its run is resumed, it is nobody's to take. */
const STOPPED = 3;

export function listQueues(sql: Statements): readonly QueueState[] {
  const rows = sql.queues.all() as unknown as { name: string; limits: string; paused: number }[];
  const counts = new Map<string, Count[]>();
  for (const row of sql.countLines.all() as unknown as Count[])
    counts.set(row.name, [...(counts.get(row.name) ?? []), row]);
  const known = new Map(rows.map((row) => [row.name, row]));
  const names = [...new Set([...known.keys(), ...counts.keys()])].filter((name) => name !== DEFAULT_QUEUE).sort();
  return [DEFAULT_QUEUE, ...names].map((name) => {
    const row = known.get(name);
    const limits = JSON.parse(row?.limits ?? "{}") as QueueLimits;
    return { name, limits, paused: row?.paused === 1, ...countsOf(counts.get(name) ?? []) };
  });
}

function countsOf(counts: readonly Count[]): Pick<QueueState, "ready" | "leased" | "delayed" | "oldestReadyAt"> {
  let ready = 0;
  let leased = 0;
  let delayed = 0;
  let oldestReadyAt: number | undefined;
  for (const { state, count, oldest } of counts)
    if (LEASED.has(state)) leased += count;
    else if (state === DELAYED) delayed += count;
    else if (state !== STOPPED) {
      ready += count;
      oldestReadyAt = Math.min(oldestReadyAt ?? oldest, oldest);
    }
  return { ready, leased, delayed, oldestReadyAt };
}
