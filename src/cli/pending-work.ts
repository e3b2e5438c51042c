// Pending work: the backlog of the store, and whether a live worker can claim it.

import { formatMs } from "../base/index.ts";
import {
  hasEnded,
  readWorkerProfile,
  canClaim,
  type Backlog,
  type UnclaimedDefinition,
  type RunRecord,
  type Store,
  type WorkerInfo,
} from "../kernel/index.ts";
import { withStoreOption } from "./next-command.ts";
import { openSteps } from "./run-view.ts";
import { isoOf } from "./run-format.ts";
import type { Step } from "./steps.ts";
import { pluralize, plain } from "./text.ts";

/** A part of the backlog, and whether a worker can claim it. */
export interface PendingWork extends Backlog {
  /**
   * `claimable`: a live worker claims such work. `unclaimable`: no live worker does. `unknown`: a live worker of an older
   * version does not report what it claims, and no other one does. `no_workers`: no worker is live.
   */
  readonly claim: "claimable" | "unclaimable" | "unknown" | "no_workers";
  /** What a live worker with the definition lacks: a label or a queue. */
  readonly unclaimed: UnclaimedDefinition | undefined;
}

export function judgePendingWork(
  backlog: readonly Backlog[],
  workers: readonly WorkerInfo[],
  now: number,
): readonly PendingWork[] {
  const profiles = workers.filter(({ until }) => until > now).map(({ profile }) => readWorkerProfile(profile));
  const hasUnknown = profiles.includes(undefined);
  const known = profiles.filter((profile) => profile !== undefined);
  return backlog.map((one) => {
    if (profiles.length === 0) return { ...one, claim: "no_workers", unclaimed: undefined };
    if (known.some((profile) => canClaim(profile, one))) return { ...one, claim: "claimable", unclaimed: undefined };
    const found = known.flatMap(({ unclaimed }) => unclaimed).find((other) => isSameDefinition(other, one));
    return { ...one, claim: hasUnknown ? "unknown" : "unclaimable", unclaimed: found };
  });
}

function isSameDefinition(unclaimed: UnclaimedDefinition, { kind, name, version }: Backlog): boolean {
  const isTask = unclaimed.version === undefined;
  return unclaimed.name === name && (kind === "task") === isTask && unclaimed.version === version;
}

const NOUNS: Readonly<Record<Backlog["kind"], readonly [string, string]>> = {
  turn: ["due run of", "due runs of"],
  start: ["run not started of", "runs not started of"],
  task: ["task", "tasks"],
  node: ["due node of flow", "due nodes of flow"],
};

/** `2 due runs of order, version 3`, `1 task charge, queue mail, oldest 3 s` */
export function pendingText({ kind, name, version, queue, label, count, oldestAt }: Backlog, now: number): string {
  const [one, several] = NOUNS[kind];
  const parts = [
    `${pluralize(count, one, several)} ${plain(name)}`,
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(queue === undefined ? [] : [`queue ${plain(queue)}`]),
    ...(label === undefined ? [] : [`label ${plain(label)}`]),
    ...(oldestAt === undefined ? [] : [`oldest ${formatMs(Math.max(0, now - oldestAt))}`]),
  ];
  return parts.join(", ");
}

/** The pending work of a run that no live worker can claim. */
export async function readUnclaimable(
  store: Store,
  record: RunRecord,
  steps: readonly Step[],
): Promise<readonly PendingWork[]> {
  const pending = pendingWorkOf(record, steps, store.now());
  if (record.kind === "flow" && !hasEnded(record.status)) {
    const { definition, version } = record;
    const nodes = (await store.readBacklog(1)).filter(({ kind }) => kind === "node");
    pending.push(...nodes.filter((node) => node.name === definition && node.version === version));
  }
  if (pending.length === 0) return [];
  return judgePendingWork(pending, await store.listWorkers(), store.now()).filter(isUnclaimable);
}

export function isUnclaimable({ claim }: PendingWork): boolean {
  return claim === "unclaimable" || claim === "no_workers";
}

/** `task charge: no live worker can run it; …` */
export function unclaimableText(one: PendingWork): string {
  const what = one.kind === "task" ? `task ${plain(one.name)}` : `${plain(one.name)}, version ${one.version}`;
  return one.kind === "node" ? `nodes of ${what}: ${claimText({ ...one, count: 2 })}` : `${what}: ${claimText(one)}`;
}

function pendingWorkOf(record: RunRecord, steps: readonly Step[], now: number): Backlog[] {
  const { definition: name, version, status, arrivals, read } = record;
  const none = { version: undefined, queue: undefined, label: undefined, count: 1, oldestAt: undefined };
  const open = openSteps(record, steps);
  const isOverdue = open.some(({ until }) => until !== undefined && until.getTime() <= now);
  const isDue = status === "queued" || status === "running" || (status === "waiting" && (arrivals > read || isOverdue));
  const tasks = open.filter(({ kind }) => kind === "task");
  return [
    ...(isDue ? [{ ...none, kind: "turn", name, version } as const] : []),
    ...[...new Set(tasks.map((task) => task.name))].map((task) => ({ ...none, kind: "task", name: task }) as const),
  ];
}

/** Why no worker has claimed it, and the command that starts one that can. */
export function claimText({ claim, unclaimed, count, label }: PendingWork): string {
  const it = count === 1 ? "it" : "them";
  if (claim === "claimable" || claim === "unknown") return `no worker has claimed ${it} yet`;
  const neededLabel = label ?? unclaimed?.label;
  if (claim === "unclaimable" && neededLabel !== undefined)
    return `no live worker has the label ${plain(neededLabel)}; ${startText(`--labels ${plain(neededLabel)}`)}`;
  if (claim === "unclaimable" && unclaimed?.queue !== undefined)
    return `no live worker claims from the queue ${plain(unclaimed.queue)}; ${startText(`--queues ${plain(unclaimed.queue)}`)}`;
  return `no live worker can run ${it}; ${startText()}`;
}

function startText(...options: readonly string[]): string {
  return withStoreOption(`start one with \`${["reprise worker <file>", ...options].join(" ")}\``);
}

export function pendingJson(pending: PendingWork): object {
  const { kind, name, version, queue, label, unclaimed, count, oldestAt } = pending;
  return {
    kind,
    name,
    version: version ?? null,
    queue: queue ?? unclaimed?.queue ?? null,
    label: label ?? unclaimed?.label ?? null,
    count,
    oldestAt: isoOf(oldestAt),
    reason: isUnclaimable(pending) ? claimText(pending) : null,
  };
}
