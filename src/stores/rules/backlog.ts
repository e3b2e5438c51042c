// Backlog: builds the public counts of claimable work and of queues from what a store counted. Each store counts in its own way,
// up to the limit of the caller.

import { DEFAULT_QUEUE, readNodeRoute, type Backlog, type QueueLimits, type QueueState } from "../../kernel/index.ts";

/** Rows that are claimed by the same name. Several counts may have the same name: they come from several indexes. */
export interface ClaimableCount {
  /** As on the row, where a node has kind `task`. */
  readonly kind: "turn" | "start" | "task";
  readonly name: string;
  /** Only for a turn. */
  readonly version?: number;
  readonly queue: string | null;
  readonly count: number;
  readonly oldest: number | null;
}

export function backlogOf(counts: readonly ClaimableCount[]): readonly Backlog[] {
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

export interface QueueRow {
  readonly name: string;
  readonly limits: string;
  readonly paused: number;
}

/** How many items of one queue are leased, or delayed. */
export interface QueueCount {
  readonly queue: string | null;
  readonly count: number;
}

/** queue.Q4. The default queue first, then every queue that was declared or has items. */
export function queueStates(
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
