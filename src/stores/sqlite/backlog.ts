// Backlog: counts claimable work by the names that claims use. Seeks from name to name and counts up to a limit, so that a
// million runs cost as much as ten thousand.

import type { Backlog, QueueState } from "../../kernel/index.ts";
import { backlogOf, queueStates, type QueueCount, type QueueRow, type ClaimableCount } from "../rules/backlog.ts";
import type { StatementSync as Statement } from "node:sqlite";
import type { Statements } from "./statements.ts";

const KINDS = ["task", "start"] as const;

export function readBacklog(sql: Statements, upTo: number): readonly Backlog[] {
  return backlogOf([
    ...dueTurns(sql, upTo),
    ...readyItems(sql, upTo),
    ...KINDS.flatMap((kind) => [...namedQueueItems(sql, kind, upTo), ...parkedItems(sql, kind, upTo)]),
  ]);
}

export function listQueues(sql: Statements, upTo: number): readonly QueueState[] {
  const declared = sql.queues.all() as unknown as QueueRow[];
  const leased = KINDS.flatMap((kind) =>
    [...seekValues(sql.nextBusyQueue, "queue", kind)].map((queue) =>
      countOf(queue, sql.busyUpTo.get(kind, queue, upTo)),
    ),
  );
  const delayed = [...seekValues(sql.nextDelayedQueue, "queue")].map((queue) =>
    countOf(queue, sql.delayedInQueueUpTo.get(queue, upTo)),
  );
  return queueStates(
    declared,
    readBacklog(sql, upTo),
    [countOf(null, sql.leasedUpTo.get(upTo)), ...leased],
    [countOf(null, sql.delayedUpTo.get(upTo)), ...delayed],
  );
}

function countOf(queue: string | null, row: unknown): QueueCount {
  return { queue, count: (row as { count: number }).count };
}

/** The distinct values of a column in order, one seek each. */
function* seekValues<T extends string | number = string>(
  next: Statement,
  column: string,
  ...before: readonly (string | number)[]
): Iterable<T> {
  const isNumber = column === "version";
  let at: string | number = isNumber ? -1 : "";
  for (;;) {
    const row = next.get(...before, at) as Record<string, T> | undefined;
    if (row === undefined) return;
    at = row[column] as T;
    yield at as T;
  }
}

function dueTurns(sql: Statements, upTo: number): readonly ClaimableCount[] {
  const suspects = sql.suspectTurnsUpTo.all(upTo) as unknown as { name: string; version: number; count: number }[];
  const due = (sql.dueDefinitions.all() as unknown as { value: string }[]).flatMap(({ value: name }) =>
    [...seekValues<number>(sql.nextDueVersion, "version", name)].map((version) => {
      const row = sql.dueUpTo.get(name, version, upTo) as { count: number; oldest: number | null };
      return { kind: "turn", name, version, queue: null, ...row } as const;
    }),
  );
  return [...due, ...suspects.map((row) => ({ kind: "turn", queue: null, oldest: null, ...row }) as const)];
}

type CountRow = { readonly count: number; readonly oldest: number | null; readonly least: number | null };

function countedRow(kind: ClaimableCount["kind"], name: string, queue: string | null, row: unknown): ClaimableCount {
  const { count, oldest, least } = row as CountRow;
  return { kind, name, queue, count, oldest: oldest === null || least === null ? oldest : Math.min(oldest, least) };
}

function readyItems(sql: Statements, upTo: number): readonly ClaimableCount[] {
  const names = (sql.readyNames.all() as unknown as { value: string }[]).map(({ value }) => value);
  const suspects = sql.suspectItemsUpTo.all(upTo) as unknown as Omit<ClaimableCount, "kind">[];
  return [
    ...names.map((name) => countedRow("task", name, null, sql.readyUpTo.get(name, upTo))),
    ...suspects.map((row) => ({ kind: "task", ...row }) as const),
  ];
}

function namedQueueItems(sql: Statements, kind: "task" | "start", upTo: number): readonly ClaimableCount[] {
  return [...seekValues(sql.nextQueue, "queue", kind)].flatMap((queue) =>
    [...seekValues(sql.nextNameInQueue, "name", kind, queue)].map((name) =>
      countedRow(kind, name, queue, sql.readyInQueueUpTo.get(kind, queue, name, upTo)),
    ),
  );
}

function parkedItems(sql: Statements, kind: "task" | "start", upTo: number): readonly ClaimableCount[] {
  return [...seekValues(sql.nextParkedQueue, "queue", kind)].flatMap((queue) => {
    const rows = sql.parkedUpTo.all(kind, queue, upTo) as unknown as { name: string; count: number; oldest: number }[];
    return rows.map((row) => ({ kind, queue, ...row }));
  });
}
