// Who takes what: what waits in the store, held against what the workers that are alive say they take.

import { formatMs } from "../base/index.ts";
import {
  hasEnded,
  readAbout,
  servesBacklog,
  type Backlog,
  type LeftToOthers,
  type RunRecord,
  type Store,
  type WorkerInfo,
} from "../kernel/index.ts";
import { waitsFor } from "./run-view.ts";
import { isoOf } from "./shown-run.ts";
import type { Step } from "./steps.ts";
import { countOf, plain } from "./text.ts";

/** Something that waits, and what became of looking for somebody who takes it. */
export interface Waiting extends Backlog {
  /**
   * `served`: somebody who is alive takes such work. `unserved`: nobody who is alive does. `unknown`: not that we know, but
   * there is a worker that says nothing about itself. `alone`: nobody is alive at all.
   */
  readonly taker: "served" | "unserved" | "unknown" | "alone";
  /** Why those who know it leave it. */
  readonly left: LeftToOthers | undefined;
}

export function waitingOf(
  backlog: readonly Backlog[],
  workers: readonly WorkerInfo[],
  now: number,
): readonly Waiting[] {
  const abouts = workers.filter(({ until }) => until > now).map(({ about }) => readAbout(about));
  const silent = abouts.includes(undefined);
  const known = abouts.filter((about) => about !== undefined);
  return backlog.map((one) => {
    if (abouts.length === 0) return { ...one, taker: "alone", left: undefined };
    if (known.some((about) => servesBacklog(about, one))) return { ...one, taker: "served", left: undefined };
    const left = known.flatMap(({ leaves }) => leaves).find((other) => isSame(other, one));
    return { ...one, taker: silent ? "unknown" : "unserved", left };
  });
}

function isSame(left: LeftToOthers, { kind, name, version }: Backlog): boolean {
  return left.name === name && (kind === "task") === (left.version === undefined) && left.version === version;
}

const NOUNS: Readonly<Record<Backlog["kind"], readonly [string, string]>> = {
  turn: ["due run of", "due runs of"],
  start: ["run that has not begun of", "runs that have not begun of"],
  task: ["task", "tasks"],
  node: ["due node of flow", "due nodes of flow"],
};

/** `2 due runs of order, version 3`, `1 task charge, queue mail, the oldest for 3 s` */
export function waitingText({ kind, name, version, queue, label, count, oldestAt }: Backlog, now: number): string {
  const [one, several] = NOUNS[kind];
  const parts = [
    `${countOf(count, one, several)} ${plain(name)}`,
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(queue === undefined ? [] : [`queue ${plain(queue)}`]),
    ...(label === undefined ? [] : [`label ${plain(label)}`]),
    ...(oldestAt === undefined ? [] : [`the oldest for ${formatMs(Math.max(0, now - oldestAt))}`]),
  ];
  return parts.join(", ");
}

/** What a run could go on with if somebody who is alive took it. */
export async function unservedOf(store: Store, record: RunRecord, steps: readonly Step[]): Promise<readonly Waiting[]> {
  const wanted = wantedBy(record, steps, store.now());
  if (record.kind === "flow" && !hasEnded(record.status)) {
    const { definition, version } = record;
    const nodes = (await store.readBacklog(1)).filter(({ kind }) => kind === "node");
    wanted.push(...nodes.filter((node) => node.name === definition && node.version === version));
  }
  if (wanted.length === 0) return [];
  return waitingOf(wanted, await store.listWorkers(), store.now()).filter(isUnserved);
}

export function isUnserved({ taker }: Waiting): boolean {
  return taker === "unserved" || taker === "alone";
}

/** `task charge: no worker is alive to take it` */
export function unservedText(one: Waiting): string {
  const what = one.kind === "task" ? `task ${plain(one.name)}` : `${plain(one.name)}, version ${one.version}`;
  return `${one.kind === "node" ? `nodes of ${what}` : what}: ${takerText(one)}`;
}

function wantedBy(record: RunRecord, steps: readonly Step[], now: number): Backlog[] {
  const { definition: name, version, status, arrivals, read } = record;
  const none = { version: undefined, queue: undefined, label: undefined, count: 1, oldestAt: undefined };
  const open = waitsFor(record, steps);
  const isOverdue = open.some(({ until }) => until !== undefined && until.getTime() <= now);
  const isDue = status === "queued" || status === "running" || (status === "waiting" && (arrivals > read || isOverdue));
  const tasks = open.filter(({ kind }) => kind === "task");
  return [
    ...(isDue ? [{ ...none, kind: "turn", name, version } as const] : []),
    ...[...new Set(tasks.map((task) => task.name))].map((task) => ({ ...none, kind: "task", name: task }) as const),
  ];
}

/** Who does not take it, and what would have to be there. */
export function takerText({ taker, left, count, label }: Waiting): string {
  const it = count === 1 ? "it" : "them";
  if (taker === "alone") return `no worker is alive to take ${it}`;
  if (taker !== "unserved") return `no worker that is alive has taken ${it}`;
  const needed = label ?? left?.label;
  if (needed !== undefined)
    return `no worker that is alive takes ${it}; that needs one with the label ${plain(needed)}`;
  if (left?.queue !== undefined) return `no worker that is alive works on the queue ${plain(left.queue)}`;
  return `no worker that is alive takes ${it}`;
}

export function waitingJson(waiting: Waiting): object {
  const { kind, name, version, queue, label, left, count, oldestAt } = waiting;
  return {
    kind,
    name,
    version: version ?? null,
    queue: queue ?? left?.queue ?? null,
    label: label ?? left?.label ?? null,
    count,
    oldestAt: isoOf(oldestAt),
    why: isUnserved(waiting) ? takerText(waiting) : null,
  };
}
