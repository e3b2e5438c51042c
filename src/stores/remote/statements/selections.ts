// @ts-nocheck
// Selections: queries that several row statements and the prefetch share. Conditions of partial indexes are `fixed`.

import { ISOLATED_AFTER, QueueItemState, TurnDue, OutboxState } from "../../../kernel/index.ts";
import type { Condition, Distinct, Lock, Select } from "../query.ts";

export const equal = (column: string, value: number | string): Condition => ({ column, is: "=", value });
export const fixed = (column: string, value: number | string): Condition => ({ column, is: "=", value, fixed: true });
export const none = (column: string): Condition => ({ column, is: "null" });
export const some = (column: string): Condition => ({ column, is: "not null" });

/** A negative limit means no limit, as in SQLite. */
export function atMost(limit: number): { readonly limit?: number } {
  return limit < 0 ? {} : { limit };
}

// ── runs ──

export function newestOfId(lock: Lock, id: string): Select<"runs"> {
  return {
    kind: "select",
    table: "runs",
    where: [equal("id", id)],
    order: [["generation", "desc"]],
    limit: 1,
    lock,
  };
}

export function newestChild(lock: Lock, id: string, parent: number): Select<"runs"> {
  const query = newestOfId(lock, id);
  return { ...query, where: [...query.where, equal("parent", parent)] };
}

const LIVE = ["expected", "queued", "running", "waiting", "paused", "blocked", "determinism_violation"] as const;

export function liveChildren(lock: Lock, root: number, parent: number): Select<"runs"> {
  return {
    kind: "select",
    table: "runs",
    where: [equal("root", root), equal("parent", parent), { column: "status", is: "in", values: LIVE }],
    order: [["run", "asc"]],
    lock,
  };
}

const DUE: readonly Condition[] = [fixed("turn_due", TurnDue.yes), none("turn_token")];
const SUSPECT: readonly Condition[] = [fixed("turn_due", TurnDue.suspect), none("turn_token")];

export function dueTurns(lock: Lock, definition: string, version: number, limit: number): Select<"runs"> {
  return {
    kind: "select",
    table: "runs",
    where: [...DUE, equal("definition", definition), equal("version", version)],
    order: [
      ["priority", "desc"],
      ["run", "asc"],
    ],
    limit,
    lock,
  };
}

/** Unordered: the index for suspects has a different order in each database, and a sort would read all of them. */
export function suspectTurns(definition: string, version: number, limit: number): Select<"runs"> {
  const where = [...SUSPECT, equal("definition", definition), equal("version", version)];
  return { kind: "select", table: "runs", where, limit, lock: "none" };
}

/** Suspects of one level. */
export function suspectTurnGroup(
  lock: Lock,
  definition: string,
  version: number,
  level: number,
  limit: number,
): Select<"runs"> {
  const { where } = suspectTurns(definition, version, limit);
  return { kind: "select", table: "runs", where: [...where, equal("takeovers", level)], limit, lock };
}

export const DUE_DEFINITIONS: Distinct<"runs"> = {
  kind: "distinct",
  table: "runs",
  columns: ["definition"],
  where: DUE,
};
export const SUSPECT_DEFINITIONS: Distinct<"runs"> = {
  kind: "distinct",
  table: "runs",
  columns: ["definition"],
  where: [fixed("turn_due", TurnDue.suspect)],
};

/** suspects.S3 */
export function heldIsolated(worker: number): Select<"runs"> {
  return {
    kind: "select",
    table: "runs",
    where: [
      some("turn_worker"),
      equal("turn_worker", worker),
      { column: "takeovers", is: ">=", value: ISOLATED_AFTER },
    ],
    limit: 1,
    lock: "none",
  };
}

// ── the queue ──

export function itemsOfRun(lock: Lock, run: number, limit: number): Select<"queue"> {
  return { kind: "select", table: "queue", where: [equal("run", run)], order: [["item", "asc"]], limit, lock };
}

const IN_TURN = [
  ["priority", "desc"],
  ["available_at", "asc"],
  ["run", "asc"],
  ["item", "asc"],
] as const;

export function readyItems(lock: Lock, name: string, limit: number): Select<"queue"> {
  const where = [fixed("state", QueueItemState.ready), none("queue"), equal("name", name)];
  return { kind: "select", table: "queue", where, order: IN_TURN, limit, lock };
}

export const READY_NAMES: Distinct<"queue"> = {
  kind: "distinct",
  table: "queue",
  columns: ["name"],
  where: [fixed("state", QueueItemState.ready), none("queue")],
};

export function suspectItems(name: string, limit: number): Select<"queue"> {
  const where = [fixed("state", QueueItemState.suspect), equal("name", name)];
  return { kind: "select", table: "queue", where, limit, lock: "none" };
}

/** Suspects of one level. */
export function suspectItemGroup(lock: Lock, name: string, level: number, limit: number): Select<"queue"> {
  const where = [fixed("state", QueueItemState.suspect), equal("name", name), equal("takeovers", level)];
  return { kind: "select", table: "queue", where, limit, lock };
}

export const SUSPECT_NAMES: Distinct<"queue"> = {
  kind: "distinct",
  table: "queue",
  columns: ["name"],
  where: [fixed("state", QueueItemState.suspect)],
};

/** suspects.S3 */
export function leasedIsolated(worker: number): Select<"queue"> {
  return {
    kind: "select",
    table: "queue",
    where: [
      fixed("state", QueueItemState.leased),
      equal("worker", worker),
      { column: "takeovers", is: ">=", value: ISOLATED_AFTER },
    ],
    limit: 1,
    lock: "none",
  };
}

export function leasedItems(lock: Lock, worker: number): Select<"queue"> {
  return {
    kind: "select",
    table: "queue",
    where: [fixed("state", QueueItemState.leased), equal("worker", worker)],
    order: [
      ["run", "asc"],
      ["item", "asc"],
    ],
    lock,
  };
}

/** Nodes and tasks that wait. */
export function waitingTasks(lock: Lock, run: number): Select<"queue"> {
  const where: Condition[] = [
    equal("run", run),
    equal("kind", "task"),
    { column: "state", is: "in", values: [QueueItemState.ready, QueueItemState.suspect, QueueItemState.parked] },
  ];
  return { kind: "select", table: "queue", where, lock };
}

export function stoppedItems(lock: Lock, run: number): Select<"queue"> {
  return { kind: "select", table: "queue", where: [equal("run", run), equal("state", QueueItemState.stopped)], lock };
}

/** Whether the run has a task; its items do not change while the run is locked. */
export function anyTask(run: number): Select<"queue"> {
  const where = [equal("run", run), equal("kind", "task")];
  return { kind: "select", table: "queue", where, limit: 1, lock: "none" };
}

/** Not only due items: the next one determines the next poll. */
export function delayedItems(limit: number): Select<"queue"> {
  return {
    kind: "select",
    table: "queue",
    where: [fixed("state", QueueItemState.delayed)],
    order: [
      ["available_at", "asc"],
      ["run", "asc"],
      ["item", "asc"],
    ],
    limit,
    lock: "none",
  };
}

// ── named queues ──

export const LINED: readonly Condition[] = [fixed("state", QueueItemState.ready), some("queue")];

export function linesOf(kind: string): Distinct<"queue"> {
  return { kind: "distinct", table: "queue", columns: ["queue", "name"], where: [...LINED, equal("kind", kind)] };
}

export function linedItems(lock: Lock, kind: string, queue: string, name: string, limit: number): Select<"queue"> {
  const where = [...LINED, equal("kind", kind), equal("queue", queue), equal("name", name)];
  return { kind: "select", table: "queue", where, order: IN_TURN, limit, lock };
}

export function parkedItems(lock: Lock, kind: string, queue: string, key: string, limit: number): Select<"queue"> {
  const where = [fixed("state", QueueItemState.parked), equal("kind", kind), equal("queue", queue), equal("key", key)];
  return { kind: "select", table: "queue", where, order: IN_TURN, limit, lock };
}

export function parkedOfQueue(lock: Lock, kind: string, queue: string): Select<"queue"> {
  const where = [fixed("state", QueueItemState.parked), equal("kind", kind), equal("queue", queue)];
  return { kind: "select", table: "queue", where, lock };
}

export function rateGatesOf(kind: string, queue: string): Select<"lanes"> {
  return { kind: "select", table: "lanes", where: [equal("kind", kind), equal("queue", queue)], lock: "none" };
}

/** Rows that no rate counts any more. */
export function forgettable(now: number): Select<"begun"> {
  return {
    kind: "select",
    table: "begun",
    where: [{ column: "until", is: "<=", value: now }],
    order: [
      ["until", "asc"],
      ["kind", "asc"],
      ["queue", "asc"],
      ["key", "asc"],
    ],
    limit: 20,
    lock: "skip",
  };
}

/** A parked item of this kind. */
export function parkedOfKind(kind: string): Select<"queue"> {
  return {
    kind: "select",
    table: "queue",
    where: [fixed("state", QueueItemState.parked), equal("kind", kind)],
    limit: 1,
    lock: "none",
  };
}

export function busyItems(kind: string, queue: string, key?: string): readonly Condition[] {
  return [
    { column: "state", is: "in", values: [QueueItemState.leased, QueueItemState.admitted], fixed: true },
    some("queue"),
    equal("kind", kind),
    equal("queue", queue),
    ...(key === undefined ? [] : [equal("key", key)]),
  ];
}

export function begunAt(kind: string, queue: string, key: string, now: number): Select<"begun"> {
  const where = [equal("kind", kind), equal("queue", queue), equal("key", key), after("until", now)];
  return { kind: "select", table: "begun", where, lock: "none" };
}

function after(column: string, value: number): Condition {
  return { column, is: ">", value };
}

export function dueRateGates(lock: Lock, now: number, limit: number): Select<"lanes"> {
  return {
    kind: "select",
    table: "lanes",
    where: [{ column: "opens_at", is: "<=", value: now }],
    order: [["opens_at", "asc"]],
    limit,
    lock,
  };
}

export const NEXT_RATE_GATE: Select<"lanes"> = {
  kind: "select",
  table: "lanes",
  where: [some("opens_at")],
  order: [["opens_at", "asc"]],
  limit: 1,
  lock: "none",
};

// ── the outbox ──

/** The last message of a run, locked so that it cannot be delivered before the next one is inserted. */
export function lastOfLine(lock: Lock, line: number): Select<"outbox"> {
  return {
    kind: "select",
    table: "outbox",
    where: [equal("line", line)],
    order: [
      ["run", "desc"],
      ["seq", "desc"],
    ],
    limit: 1,
    lock,
  };
}

export function firstOfLine(lock: Lock, line: number): Select<"outbox"> {
  return {
    kind: "select",
    table: "outbox",
    where: [equal("line", line)],
    order: [
      ["run", "asc"],
      ["seq", "asc"],
    ],
    limit: 1,
    lock,
  };
}

export function outgoingTo(lock: Lock, destination: string, now: number, limit: number): Select<"outbox"> {
  return {
    kind: "select",
    table: "outbox",
    where: [
      fixed("state", OutboxState.next),
      equal("destination", destination),
      { column: "available_at", is: "<=", value: now },
    ],
    order: [
      ["available_at", "asc"],
      ["line", "asc"],
    ],
    limit,
    lock,
  };
}

export function outgoingAfter(destination: string, now: number): Select<"outbox"> {
  return {
    kind: "select",
    table: "outbox",
    where: [fixed("state", OutboxState.next), equal("destination", destination), after("available_at", now)],
    order: [["available_at", "asc"]],
    limit: 1,
    lock: "none",
  };
}

// ── rows of a run ──

export function lastChunkOf(run: number, stream: string): Select<"chunks"> {
  return {
    kind: "select",
    table: "chunks",
    where: [equal("run", run), equal("stream", stream)],
    order: [["position", "desc"]],
    limit: 1,
    lock: "none",
  };
}

export function onceOfRun(run: number, limit: number): Select<"once"> {
  return { kind: "select", table: "once", where: [equal("run", run)], order: [["target", "asc"]], limit, lock: "none" };
}

/** Deduplication ids of messages, which the next generation keeps. */
export function idsOfRun(run: number): Select<"once"> {
  const where: Condition[] = [equal("run", run), { column: "at", is: ">", value: 0, fixed: true }];
  return { kind: "select", table: "once", where, lock: "none" };
}

export function inboxFrom(run: number, arrival: number): Select<"inbox"> {
  return {
    kind: "select",
    table: "inbox",
    where: [equal("run", run), after("arrival", arrival)],
    order: [["arrival", "asc"]],
    lock: "none",
  };
}
