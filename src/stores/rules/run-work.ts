// Run work: the open work of a run, and the use of a queue's limits. For people; no decision of a store depends on it.

import type { EpochMs } from "../../base/index.ts";
import {
  hasEnded,
  RUN_STATUSES,
  isNodeRoute,
  MAX_COUNTED,
  MAX_OPEN_CHILDREN,
  MAX_OPEN_ITEMS,
  MAX_OPEN_MESSAGES,
  MAX_OPEN_NODES,
  MAX_OPEN_PROMISES,
  MAX_SLOT_HOLDERS,
  QueueItemState,
  TurnDue,
  type LimitUse,
  type OpenBudgetRequest,
  type OpenChild,
  type OpenItem,
  type OpenMessage,
  type NewPromise,
  type QueueLimits,
  type QueueUse,
  type RunNumber,
  type RunTurn,
  type RunWork,
  type SlotUser,
  type StoredLimit,
  type WaitingNode,
} from "../../kernel/index.ts";
import type { Part, Rows, Span } from "../rows/rows.ts";
import { findRequest } from "./budgets.ts";
import { slotLeasesOf, takenSlots } from "./leased-slots.ts";
import { firstGeneration } from "./streams.ts";

const RUN = ["root", "parent", "turn_due", "turn_worker", "turn_at", "takeovers"] as const;
const ID = ["id"] as const;

const DUE: Readonly<Record<TurnDue, RunTurn["due"]>> = {
  [TurnDue.no]: "no",
  [TurnDue.yes]: "yes",
  [TurnDue.suspect]: "suspect",
  [TurnDue.notStarted]: "not_started",
};

export function readRunWork(rows: Rows, run: RunNumber): RunWork | undefined {
  const row = rows.get("runs", [run], RUN);
  const items = openItems(rows, run);
  const itemCount = rows.count("queue", [run], MAX_COUNTED);
  const promises = openPromises(rows, run);
  const budgetRequests = openRequests(rows, run);
  const messages = openMessages(rows, run);
  const nodes = waitingNodes(rows, run);
  if (row === undefined) return undefined;
  const parent = row.parent === null ? undefined : rows.get("runs", [row.parent], ID)?.id;
  const children = openChildren(rows, run, row.root);
  const turn: RunTurn = {
    due: DUE[row.turn_due],
    worker: row.turn_worker ?? undefined,
    since: row.turn_worker === null ? undefined : (row.turn_at ?? undefined),
    takeovers: row.takeovers,
  };
  return { turn, parent, items, itemCount, promises, budgetRequests, children, messages, nodes };
}

const ITEM = [
  "item",
  "kind",
  "name",
  "state",
  "attempt",
  "available_at",
  "worker",
  "leased_at",
  "takeovers",
  "queue",
  "key",
  "failures",
] as const;
const LEASED = { also: { state: QueueItemState.leased }, limit: MAX_OPEN_ITEMS } as const satisfies Span<"queue">;
const OTHER = {
  also: { state: { not: QueueItemState.leased } },
  limit: MAX_OPEN_ITEMS,
} as const satisfies Span<"queue">;

const STATES: Readonly<Record<QueueItemState, OpenItem["state"]>> = {
  [QueueItemState.delayed]: "delayed",
  [QueueItemState.ready]: "ready",
  [QueueItemState.leased]: "leased",
  [QueueItemState.stopped]: "stopped",
  [QueueItemState.suspect]: "suspect",
  [QueueItemState.parked]: "parked",
  [QueueItemState.admitted]: "admitted",
};

function openItems(rows: Rows, run: RunNumber): readonly OpenItem[] {
  const leased = rows.select("queue", [run], ITEM, LEASED);
  const others = rows.select("queue", [run], ITEM, OTHER);
  return [...leased, ...others].map(openItem);
}

function openItem(row: Part<"queue", (typeof ITEM)[number]>): OpenItem {
  const isLeased = row.state === QueueItemState.leased;
  return {
    item: row.item,
    kind: row.kind === "task" && isNodeRoute(row.name) ? "node" : row.kind,
    name: row.name,
    state: STATES[row.state],
    attempt: row.attempt,
    availableAt: row.available_at,
    worker: row.worker ?? undefined,
    since: isLeased ? (row.leased_at ?? undefined) : undefined,
    takeovers: row.takeovers,
    queue: row.queue ?? undefined,
    key: row.key ?? undefined,
    failures: row.failures ?? undefined,
  };
}

const PROMISE = ["command", "name", "key", "seq", "at"] as const;

function openPromises(rows: Rows, run: RunNumber): readonly NewPromise[] {
  return rows
    .select("run_promises", [run], PROMISE, { limit: MAX_OPEN_PROMISES })
    .filter(({ seq }) => seq > 0)
    .map(({ command, name, key, seq, at }) => ({ command, name, key: key ?? undefined, seq, at }))
    .toSorted((a, b) => a.seq - b.seq);
}

/** open-promise.P3 */
function openRequests(rows: Rows, run: RunNumber): readonly OpenBudgetRequest[] {
  const waiting = rows.select("run_promises", [run], PROMISE, { limit: MAX_OPEN_PROMISES }).filter(isRequest);
  const found = waiting.map(({ command }) => findRequest(rows, run, command));
  return waiting
    .flatMap(({ command, at }, index) => (found[index] === undefined ? [] : [{ command, at, budget: found[index] }]))
    .toSorted((a, b) => a.at - b.at);
}

function isRequest({ seq }: { readonly seq: number }): boolean {
  return seq === 0;
}

const LIVE = RUN_STATUSES.filter((status) => !hasEnded(status));
const CHILD = ["id", "definition", "status", "parent_command"] as const;

/** A child has a higher number than its parent. */
function openChildren(rows: Rows, run: RunNumber, root: RunNumber): readonly OpenChild[] {
  // Not by `ended_at`: PostgreSQL would choose the index of all live runs.
  const span = { after: run, also: { parent: run, status: { in: LIVE } }, limit: MAX_OPEN_CHILDREN } as const;
  return rows
    .select("runs_by_root", [root], CHILD, span)
    .map(({ id, definition, status, parent_command: command }) => ({
      id,
      definition,
      status,
      command: command ?? undefined,
    }));
}

const ROOT = ["root"] as const;
const NUMBER = ["run"] as const;

/** The children of a run, also ended ones; counting stops at `MAX_COUNTED`. */
export function countChildren(rows: Rows, run: RunNumber): number {
  const row = rows.get("runs", [run], ROOT);
  if (row === undefined) return 0;
  const span = { after: run, also: { parent: run }, limit: MAX_COUNTED } as const;
  return rows.select("runs_by_root", [row.root], NUMBER, span).length;
}

const MESSAGE = ["destination", "sent_at", "available_at", "attempt", "worker"] as const;

function openMessages(rows: Rows, run: RunNumber): readonly OpenMessage[] {
  return rows
    .select("outbox", [firstGeneration(rows, run)], MESSAGE, { limit: MAX_OPEN_MESSAGES })
    .map(({ destination, sent_at: sentAt, available_at: availableAt, attempt, worker }) => ({
      destination,
      sentAt,
      availableAt,
      attempt,
      worker: worker ?? undefined,
    }));
}

const READINESS = ["node", "required", "completed"] as const;
const EDGE = ["edge"] as const;
/** Readiness rows that are read: those of nodes that have started stay. */
const MAX_READINESS = 1_000;

function waitingNodes(rows: Rows, run: RunNumber): readonly WaitingNode[] {
  return rows
    .select("readiness", [run], READINESS, { limit: MAX_READINESS })
    .filter(({ required, completed }) => completed < required)
    .slice(0, MAX_OPEN_NODES)
    .map(({ node, required, completed }) => {
      const arrivals = rows.select("arrivals", [run, node], EDGE, { limit: MAX_OPEN_NODES });
      return { node, required, completed, arrived: [...new Set(arrivals.map(({ edge }) => edge))] };
    });
}

// ── queues ──

const QUEUE = ["limits", "paused", "paused_at"] as const;
/** The key of rows about a queue as a whole. */
const WHOLE_QUEUE = "";

/** Undefined: the queue has no row, so it has no limits and is not paused. */
export function readQueueUse(
  rows: Rows,
  now: EpochMs,
  kind: SlotUser,
  queue: string,
  key?: string,
): QueueUse | undefined {
  const row = rows.get("queues", [queue], QUEUE);
  if (row === undefined) return undefined;
  const limits = JSON.parse(row.limits) as QueueLimits;
  const paused = row.paused === 1;
  return {
    limits,
    paused,
    // queues.Q1
    pausedAt: paused ? (row.paused_at ?? undefined) : undefined,
    whole: limitUse(rows, now, kind, queue, WHOLE_QUEUE, limits),
    ofKey: key === undefined ? undefined : limitUse(rows, now, kind, queue, key, limits.perKey ?? {}),
  };
}

const HOLDER = ["run", "item"] as const;

function limitUse(
  rows: Rows,
  now: EpochMs,
  kind: SlotUser,
  queue: string,
  key: string,
  { rate }: StoredLimit,
): LimitUse {
  const used = key === WHOLE_QUEUE ? [kind, queue] : [kind, queue, key];
  const leases = kind === "task" && key === WHOLE_QUEUE ? slotLeasesOf(rows, queue) : [];
  // queue.Q6. Items that a worker has leased ahead hold no slot.
  const held = leases.length === 0 ? rows.count("queue_busy", used, MAX_COUNTED) : takenSlots(rows, queue, leases);
  const holders = rows
    .select("queue_busy", used, HOLDER, { limit: MAX_SLOT_HOLDERS, unordered: true })
    .map(({ run, item }) => ({ run, id: rows.get("runs", [run], ID)?.id, item }));
  if (rate === undefined) return { held, holders, admitted: undefined, opensAt: undefined };
  const admitted = rows.sum("begun", [kind, queue, key], "count", now);
  return { held, holders, admitted, opensAt: opensAt(rows, now, [kind, queue, key], admitted, rate.limit) };
}

const USE = ["until", "count"] as const;
/** A limit that was lowered may be exceeded by more admissions than are read: then nothing is said about the time. */
const MAX_USES = 1_000;

/** When so many admissions are older than the period that the rate admits one more. */
function opensAt(
  rows: Rows,
  now: EpochMs,
  slot: readonly string[],
  admitted: number,
  limit: number,
): EpochMs | undefined {
  if (admitted < limit) return undefined;
  let left = admitted;
  for (const { until, count } of rows.select("begun", slot, USE, { after: now, limit: MAX_USES })) {
    left -= count;
    if (left < limit) return until;
  }
  return undefined;
}
