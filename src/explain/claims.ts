// Claims: why work that can be claimed is not claimed: its queue is paused or full, no live worker can run it, or none has yet.

import {
  canClaim,
  groupSize,
  readWorkerActivity,
  readWorkerProfile,
  type Backlog,
  type LimitUse,
  type QueueOptions,
  type QueueUse,
  type SlotUser,
  type StoredLimit,
  type UnclaimedDefinition,
  type WorkerInfo,
  type WorkerProfile,
} from "../kernel/index.ts";
import type { LiveWorker, PendingItems, SlotHolding, WaitFacts } from "./reasons.ts";

/** Work that a worker could claim, and what a worker needs for it. */
export interface ClaimableWork {
  readonly work: PendingItems;
  /** A task's name; for the others the definition's name and version. */
  readonly claimed: Pick<Backlog, "kind" | "name" | "version" | "queue" | "label">;
  /** Undefined: the queue has no limits. */
  readonly use: QueueUse | undefined;
  /** How often it was taken over in a row without a commit. */
  readonly takeovers: number;
  readonly unread: number;
}

/** Every reason that holds: a paused queue whose work no live worker can run needs both remedies. */
export function claimReasons(
  given: ClaimableWork,
  workers: readonly WorkerInfo[],
  now: number,
): readonly [WaitFacts, ...WaitFacts[]] {
  const { work, claimed, use, takeovers, unread } = given;
  const judged = judgeWorkers(claimed, workers, now);
  const blocks: WaitFacts[] = use === undefined ? [] : queueReasons(work, use);
  if (judged.isUnclaimable) {
    const { label, queue, live } = judged;
    blocks.push({
      reason: "no_worker",
      work,
      ...(unread > 0 && { unread }),
      ...(label !== undefined && { label }),
      ...(queue !== undefined && { queue }),
      workers: live,
    });
  }
  const size = groupSize(takeovers);
  if (size > 0) blocks.push({ reason: "suspect", work, takeovers, groupSize: size });
  const [first, ...others] = blocks;
  if (first !== undefined) return [first, ...others];
  const hasKeys = work.run === undefined && use?.limits.perKey !== undefined;
  return [{ reason: "unclaimed", work, unread, ...(hasKeys && { perKey: true }), workers: judged.live }];
}

interface JudgedWorkers {
  readonly live: readonly LiveWorker[];
  readonly isUnclaimable: boolean;
  /** What a live worker that has the definition lacks. */
  readonly label: string | undefined;
  readonly queue: string | undefined;
}

function judgeWorkers(claimed: ClaimableWork["claimed"], workers: readonly WorkerInfo[], now: number): JudgedWorkers {
  const alive = liveWorkers(workers, now);
  const judged = alive.map((info) => ({ info, profile: readWorkerProfile(info.profile) }));
  const live = judged.map(({ info, profile }): LiveWorker => {
    const activity = readWorkerActivity(info.activity);
    const lacks = profile === undefined ? "does not publish what it claims" : lacksOf(profile, claimed);
    return {
      worker: info.worker,
      name: info.name,
      ...(lacks !== undefined && { lacks }),
      ...(activity !== undefined && { running: activity.running }),
      ...(profile !== undefined && { concurrency: profile.concurrency }),
      draining: activity?.isDraining ?? false,
    };
  });
  const missed = judged
    .map(({ profile }) => profile && findUnclaimed(profile, claimed))
    .find((one) => one !== undefined);
  // A worker of an older version may claim it.
  const isUnclaimable = judged.every(({ profile }) => profile !== undefined && lacksOf(profile, claimed) !== undefined);
  const label = claimed.label ?? missed?.label;
  return {
    live,
    isUnclaimable,
    label,
    queue: label === undefined ? missed?.queue : undefined,
  };
}

export function liveWorkers(workers: readonly WorkerInfo[], now: number): readonly WorkerInfo[] {
  return workers.filter(({ until }) => until > now);
}

/** Undefined: the worker claims it. */
function lacksOf(profile: WorkerProfile, claimed: ClaimableWork["claimed"]): string | undefined {
  const { kind, name, version, queue, label } = claimed;
  if (canClaim(profile, { ...claimed, count: 1, oldestAt: undefined })) return undefined;
  const missed = findUnclaimed(profile, claimed);
  if (missed !== undefined) {
    const needed = label ?? missed.label;
    const hasLabel = needed === undefined || profile.labels?.includes(needed) !== false;
    if (!hasLabel) return `lacks the label ${needed}`;
    return `does not claim from queue ${missed.queue ?? queue ?? "default"}`;
  }
  // The worker has the flow, but not the route of the node.
  if (kind === "node" && profile.definitions.some((one) => one.name === name && one.version === version))
    return label === undefined ? `does not claim from queue ${queue ?? "default"}` : `lacks the label ${label}`;
  if (kind === "task") return "does not have it";
  const versions = profile.definitions.filter((one) => one.name === name).map((one) => one.version);
  return versions.length === 0 ? "does not have it" : `has ${name} version ${versions.join(" and ")}`;
}

function findUnclaimed(
  { unclaimed }: WorkerProfile,
  { kind, name, version }: ClaimableWork["claimed"],
): UnclaimedDefinition | undefined {
  return unclaimed.find(
    (one) => one.name === name && (kind === "task") === (one.version === undefined) && one.version === version,
  );
}

// ── queues ──

/** The kind of slot that such work takes. */
export function slotUserOf(kind: PendingItems["kind"]): SlotUser {
  return kind === "start" || kind === "run" ? "start" : "task";
}

function queueReasons(work: PendingItems, use: QueueUse): WaitFacts[] {
  const { queue = "", key } = work;
  const { limits, paused, pausedAt, whole, ofKey } = use;
  const reasons: WaitFacts[] = [];
  if (paused)
    reasons.push({
      reason: "queue_paused",
      queue,
      ...(pausedAt !== undefined && { since: new Date(pausedAt) }),
      work,
    });
  reasons.push(...limitReasons(work, { queue }, limits, whole, use));
  if (ofKey !== undefined && key !== undefined && limits.perKey !== undefined)
    reasons.push(...limitReasons(work, { queue, key }, limits.perKey, ofKey, use));
  return reasons;
}

function limitReasons(
  work: PendingItems,
  place: { readonly queue: string; readonly key?: string },
  { concurrency, rate }: StoredLimit,
  { held, holders, admitted = 0, opensAt }: LimitUse,
  { limits }: QueueUse,
): readonly WaitFacts[] {
  const reasons: WaitFacts[] = [];
  const given = { ...place, limits: queueOptionsOf(limits), work };
  if (concurrency !== undefined && held >= concurrency) {
    const named = holders.flatMap(({ id, item }): readonly SlotHolding[] =>
      id === undefined ? [] : [{ run: id, ...(work.kind !== "start" && { command: item }) }],
    );
    reasons.push({ reason: "concurrency_limit", ...given, limit: concurrency, held, holders: named });
  }
  if (rate !== undefined && admitted >= rate.limit)
    reasons.push({
      reason: "rate_limit",
      ...given,
      limit: rate.limit,
      perMs: rate.perMs,
      ...(opensAt !== undefined && { opensAt: new Date(opensAt) }),
    });
  return reasons;
}

function queueOptionsOf({ perKey, ...own }: QueueUse["limits"]): QueueOptions {
  return { ...limitOf(own), ...(perKey && { perKey: limitOf(perKey) }) };
}

function limitOf({ concurrency, rate }: StoredLimit): QueueOptions {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate !== undefined && { rate: { limit: rate.limit, per: rate.perMs } }),
  };
}
