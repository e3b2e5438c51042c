// Backlog: counts claimable work by the names that claims use, and the items of queues. Seeks from name to name in the indexes that
// claims read, and counts up to a limit, so that a million runs cost as much as ten thousand.
//
// backlog.B1. As long as all rows of a name are counted, `oldest` comes from the first row of every priority, and is exact for items.
//   Otherwise only the first row of the highest and of the lowest priority is read. A turn has a known start of its wait only while
//   its run has not executed: a run behind an executed one is not seen.

import { DEFAULT_QUEUE, readNodeRoute, type Backlog, type QueueLimits, type QueueState } from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import type { SlotKind } from "../rows/tables.ts";

/** Rows that are claimed by the same name. Several counts may have the same name: they come from several indexes. */
interface ClaimableCount {
  /** As on the row, where a node has kind `task`. */
  readonly kind: "turn" | SlotKind;
  readonly name: string;
  /** Only for a turn. */
  readonly version?: number;
  readonly queue: string | null;
  readonly count: number;
  readonly oldest: number | null;
}

/** More priorities than these are not read one by one. */
const MAX_PRIORITIES = 100;

const VERSION = ["definition", "version"] as const;
const NAME = ["name"] as const;
const NAME_AND_QUEUE = ["name", "queue"] as const;
const SLOT = ["kind", "queue"] as const;
const SLOT_AND_NAME = ["kind", "queue", "name"] as const;
const QUEUE = ["queue"] as const;
const QUEUE_ROW = ["name", "limits", "paused", "paused_at"] as const;
const PRIORITY = ["priority"] as const;
const STARTED = ["head", "created_at"] as const;
const AVAILABLE = ["available_at"] as const;
const BACKWARDS = { backwards: true } as const;

export function readBacklog(rows: Rows, upTo: number): readonly Backlog[] {
  return backlogOf([
    ...dueTurns(rows, upTo),
    ...suspectTurns(rows, upTo),
    ...readyItems(rows, upTo),
    ...queuedItems(rows, upTo),
    ...suspectItems(rows, upTo),
    ...parkedItems(rows, upTo),
  ]);
}

function dueTurns(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows.distinct("runs_due", [], VERSION).map(({ definition, version }) => {
    const of = [definition, version];
    const count = rows.count("runs_due", of, upTo);
    const firsts = prioritiesOf(rows, "runs_due", of, count < upTo).map((priority) =>
      rows.first("runs_due", [...of, priority], STARTED),
    );
    // Only a run that has not executed yet has a known start of its wait.
    const times = firsts.flatMap((row) => (row?.head === 1 ? [row.created_at] : []));
    return { kind: "turn", name: definition, version, queue: null, count, oldest: leastOf(times) };
  });
}

function suspectTurns(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows.distinct("runs_suspect", [], VERSION).map(({ definition, version }) => {
    const count = rows.count("runs_suspect", [definition, version], upTo);
    return { kind: "turn", name: definition, version, queue: null, count, oldest: null };
  });
}

function readyItems(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows.distinct("queue_ready", [], NAME).map(({ name }) => {
    const count = rows.count("queue_ready", [name], upTo);
    return { kind: "task", name, queue: null, count, oldest: oldestItem(rows, "queue_ready", [name], count < upTo) };
  });
}

function queuedItems(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows.distinct("queue_lined", [], SLOT_AND_NAME).flatMap(({ kind, queue, name }): readonly ClaimableCount[] => {
    if (kind === "timer" || queue === null) return [];
    const of = [kind, queue, name];
    const count = rows.count("queue_lined", of, upTo);
    return [{ kind, name, queue, count, oldest: oldestItem(rows, "queue_lined", of, count < upTo) }];
  });
}

function oldestItem(
  rows: Rows,
  path: "queue_ready" | "queue_lined",
  prefix: readonly string[],
  isExact: boolean,
): number | null {
  const firsts = prioritiesOf(rows, path, prefix, isExact).map((priority) =>
    rows.first(path, [...prefix, priority], AVAILABLE),
  );
  return leastOf(firsts.flatMap((row) => (row === undefined ? [] : [row.available_at])));
}

/** backlog.B1. The priorities of these rows, as far as they are read. */
function prioritiesOf(
  rows: Rows,
  path: "runs_due" | "queue_ready" | "queue_lined",
  prefix: readonly (string | number)[],
  isExact: boolean,
): readonly number[] {
  if (isExact) {
    const all = rows.distinct(path, prefix, PRIORITY).map(({ priority }) => priority);
    return all.length <= MAX_PRIORITIES ? all : [...all.slice(0, MAX_PRIORITIES), ...all.slice(-1)];
  }
  const ends = [rows.first(path, prefix, PRIORITY), rows.first(path, prefix, PRIORITY, BACKWARDS)];
  return [...new Set(ends.flatMap((row) => (row === undefined ? [] : [row.priority])))];
}

function leastOf(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}

/** Suspects are few. */
function suspectItems(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows
    .countBy("queue_suspect", [], NAME_AND_QUEUE, "available_at", upTo)
    .map(({ name, queue, count, least }) => ({
      kind: "task",
      name,
      queue,
      count: Math.min(count, upTo),
      oldest: least,
    }));
}

function parkedItems(rows: Rows, upTo: number): readonly ClaimableCount[] {
  return rows.distinct("queue_parked", [], SLOT).flatMap(({ kind, queue }) => {
    if (kind === "timer" || queue === null) return [];
    return rows
      .countBy("queue_parked", [kind, queue], NAME, "available_at", upTo)
      .map(({ name, count, least }) => ({ kind, name, queue, count: Math.min(count, upTo), oldest: least }));
  });
}

export function listQueues(rows: Rows, upTo: number): readonly QueueState[] {
  const declared = rows.select("queues", [], QUEUE_ROW);
  const leased: QueueCount[] = rows
    .distinct("queue_busy", [], SLOT)
    .flatMap(({ kind, queue }) =>
      queue === null ? [] : [{ queue, count: rows.count("queue_busy", [kind, queue], upTo) }],
    );
  const delayed: QueueCount[] = rows
    .distinct("queue_later", [], QUEUE)
    .flatMap(({ queue }) => (queue === null ? [] : [{ queue, count: rows.count("queue_later", [queue], upTo) }]));
  leased.push({ queue: null, count: rows.count("queue_leased", [], upTo, { queue: null }) });
  delayed.push({ queue: null, count: rows.count("queue_later", [], upTo, { queue: null, kind: "task" }) });
  return queueStates(declared, readBacklog(rows, upTo), leased, delayed);
}

function backlogOf(counts: readonly ClaimableCount[]): readonly Backlog[] {
  const rows = new Map<string, Backlog>();
  for (const counted of counts) {
    if (counted.count === 0) continue;
    const row = rowOf(counted);
    // The key is also the sort order: work without a queue comes first.
    const key = [row.kind, row.name, row.version ?? 0, row.queue ?? "", row.label ?? ""].join("\n");
    const known = rows.get(key);
    rows.set(key, known === undefined ? row : merged(known, row));
  }
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function merged(a: Backlog, b: Backlog): Backlog {
  return { ...a, count: a.count + b.count, oldestAt: older(a.oldestAt, b.oldestAt) };
}

function older(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

function rowOf({ kind, name, version, queue, count, oldest }: ClaimableCount): Backlog {
  const counted = { queue: queue ?? undefined, label: undefined, count, oldestAt: oldest ?? undefined };
  if (kind === "turn") return { kind, name, version, ...counted };
  if (kind === "start") return { kind, ...parseStartItemName(name), ...counted };
  const route = readNodeRoute(name);
  if (route === undefined) return { kind, name, version: undefined, ...counted };
  return { kind: "node", ...counted, name: route.definition, version: route.version, label: route.label };
}

/** The name of an item `Start`: definition and version, because a worker has some versions and not others. */
export function startItemName(definition: string, version: number): string {
  return `${definition}@${version}`;
}

function parseStartItemName(name: string): { readonly name: string; readonly version: number } {
  const at = name.lastIndexOf("@");
  return { name: name.slice(0, at), version: Number(name.slice(at + 1)) };
}

type QueueRow = Part<"queues", (typeof QUEUE_ROW)[number]>;

/** How many items of one queue are leased, or delayed. */
interface QueueCount {
  readonly queue: string | null;
  readonly count: number;
}

/** queue.Q4. The default queue first, then every queue that was declared or has items. */
function queueStates(
  declared: readonly QueueRow[],
  backlog: readonly Backlog[],
  leased: readonly QueueCount[],
  delayed: readonly QueueCount[],
): readonly QueueState[] {
  const known = new Map(declared.map((row) => [row.name, row]));
  const ready = backlog.filter(({ kind }) => kind !== "turn");
  const nameOf = (queue: string | null | undefined): string => queue ?? DEFAULT_QUEUE;
  const sum = (counts: readonly QueueCount[], name: string): number =>
    counts.reduce((total, { queue, count }) => (nameOf(queue) === name ? total + count : total), 0);
  const names = new Set([
    ...known.keys(),
    ...[...ready, ...leased, ...delayed].flatMap(({ queue, count }) => (count > 0 ? [nameOf(queue)] : [])),
  ]);
  names.delete(DEFAULT_QUEUE);
  return [DEFAULT_QUEUE, ...[...names].sort()].map((name) => {
    const row = known.get(name);
    const here = ready.filter(({ queue }) => nameOf(queue) === name);
    return {
      name,
      limits: JSON.parse(row?.limits ?? "{}") as QueueLimits,
      paused: row?.paused === 1,
      // queues.Q1
      pausedAt: row?.paused === 1 ? (row.paused_at ?? undefined) : undefined,
      ready: sum(
        here.map(({ queue, count }) => ({ queue: queue ?? null, count })),
        name,
      ),
      leased: sum(leased, name),
      delayed: sum(delayed, name),
      oldestReadyAt: here.reduce<number | undefined>((oldest, { oldestAt }) => older(oldest, oldestAt), undefined),
    };
  });
}
