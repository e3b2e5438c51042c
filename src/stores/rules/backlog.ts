// Backlog: what a store has counted, put together for people. Each store counts in its own way, never further than it is asked.

import { DEFAULT_QUEUE, readNodeRoute, type Backlog, type QueueLimits, type QueueState } from "../../kernel/index.ts";

/** Rows that are claimed by the same name; the same may come several times, from several indexes. */
export interface Waiting {
  /** As on the row: nodes are tasks there. */
  readonly kind: "turn" | "start" | "task";
  readonly name: string;
  /** Of a turn. */
  readonly version?: number;
  readonly queue: string | null;
  readonly count: number;
  readonly oldest: number | null;
}

export function backlogOf(waiting: readonly Waiting[]): readonly Backlog[] {
  const rows = new Map<string, Backlog>();
  for (const one of waiting) {
    if (one.count === 0) continue;
    const row = rowOf(one);
    // In this order; what has no queue comes before what has one.
    const key = [row.kind, row.name, row.version ?? 0, row.queue ?? "", row.label ?? ""].join("\n");
    const known = rows.get(key);
    rows.set(key, known === undefined ? row : together(known, row));
  }
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

function together(a: Backlog, b: Backlog): Backlog {
  return { ...a, count: a.count + b.count, oldestAt: older(a.oldestAt, b.oldestAt) };
}

function older(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}

function rowOf({ kind, name, version, queue, count, oldest }: Waiting): Backlog {
  const waits = { queue: queue ?? undefined, label: undefined, count, oldestAt: oldest ?? undefined };
  if (kind === "turn") return { kind, name, version, ...waits };
  if (kind === "start") return { kind, ...readLineName(name), ...waits };
  const route = readNodeRoute(name);
  if (route === undefined) return { kind, name, version: undefined, ...waits };
  return { kind: "node", ...waits, name: route.definition, version: route.version, label: route.label };
}

/** What stands in line: a definition's runs by version, as workers have some and not others. */
export function lineName(definition: string, version: number): string {
  return `${definition}@${version}`;
}

function readLineName(name: string): { readonly name: string; readonly version: number } {
  const at = name.lastIndexOf("@");
  return { name: name.slice(0, at), version: Number(name.slice(at + 1)) };
}

export interface QueueRow {
  readonly name: string;
  readonly limits: string;
  readonly paused: number;
}

/** Items of one queue that are at work, or that wait for their time. */
export interface QueueCount {
  readonly queue: string | null;
  readonly count: number;
}

/** Q4. Every queue that was declared or that something is in, after the default one. */
export function queueStates(
  declared: readonly QueueRow[],
  backlog: readonly Backlog[],
  leased: readonly QueueCount[],
  delayed: readonly QueueCount[],
): readonly QueueState[] {
  const known = new Map(declared.map((row) => [row.name, row]));
  const waiting = backlog.filter(({ kind }) => kind !== "turn");
  const nameOf = (queue: string | null | undefined): string => queue ?? DEFAULT_QUEUE;
  const sum = (counts: readonly QueueCount[], name: string): number =>
    counts.reduce((total, { queue, count }) => (nameOf(queue) === name ? total + count : total), 0);
  const names = new Set([
    ...known.keys(),
    ...[...waiting, ...leased, ...delayed].flatMap(({ queue, count }) => (count > 0 ? [nameOf(queue)] : [])),
  ]);
  names.delete(DEFAULT_QUEUE);
  return [DEFAULT_QUEUE, ...[...names].sort()].map((name) => {
    const row = known.get(name);
    const here = waiting.filter(({ queue }) => nameOf(queue) === name);
    return {
      name,
      limits: JSON.parse(row?.limits ?? "{}") as QueueLimits,
      paused: row?.paused === 1,
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
