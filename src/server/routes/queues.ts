// Queues, work that waits, and workers.

import { RepriseError } from "../../base/index.ts";
import type { PendingWork, QueueBody, queueOperations, WorkerBody } from "../../contract/index.ts";
import { queueInfoOf, type QueueInfo } from "../../engine/index.ts";
import { explainBacklog } from "../../explain/index.ts";
import {
  readWorkerActivity,
  readWorkerProfile,
  type QueueOptions,
  type Store,
  type WorkerInfo,
} from "../../kernel/index.ts";
import { isScoped, maySeeDefinition, maySeeQueue } from "../auth/scope.ts";
import type { Call, HandlersOf } from "../host.ts";
import { reasonBody } from "../read/reason-body.ts";
import { isoOf, viewOf } from "../read/view.ts";

/** Counts of queues and of work that waits stop here. */
const UP_TO = 1_000;

export const queueHandlers: HandlersOf<typeof queueOperations> = {
  async listQueues({ host, caller }) {
    const states = await host.store.listQueues(UP_TO);
    return {
      items: states.filter(({ name }) => maySeeQueue(caller, name)).map((state) => queueBody(queueInfoOf(state))),
    };
  },
  getQueue: (call) => readQueue(call),
  pauseQueue: (call) => changeQueue(call, (queue) => queue.pause()),
  resumeQueue: (call) => changeQueue(call, (queue) => queue.resume()),
  limitQueue: (call) => changeQueue(call, (queue) => queue.limit(call.body.limits as QueueOptions)),
  async listPending(call) {
    const { host, caller, query } = call;
    const { store } = host;
    const backlog = await store.readBacklog(UP_TO);
    // A task has no definition: its work is seen by a caller of its queue, or by one without scopes.
    const seen = backlog.filter(
      ({ kind, name, queue }) =>
        (query?.queue === undefined || queue === query.queue) &&
        (queue === undefined || maySeeQueue(caller, queue)) &&
        (kind === "task"
          ? caller?.definitions === undefined && caller?.tags === undefined
          : maySeeDefinition(caller, name)),
    );
    const view = viewOf(call);
    const items = (await explainBacklog(store, seen, await store.listWorkers())).map(
      ({ kind, name, version, queue, label, count, oldestAt, reasons }): PendingWork => ({
        kind: kind === "turn" ? "run" : kind,
        name,
        ...(version !== undefined && { version }),
        ...(queue !== undefined && { queue }),
        ...(label !== undefined && { label }),
        count,
        ...(oldestAt !== undefined && { oldestAt: isoOf(oldestAt) }),
        reasons: reasons.map((reason) => reasonBody(reason, view)),
      }),
    );
    return { items };
  },
  async listWorkers({ host, caller }) {
    const now = host.store.now();
    const isVisible = (name: string): boolean => maySeeDefinition(caller, name);
    const workers = await host.store.listWorkers();
    return {
      items: workers
        .map((worker) => workerBody(worker, now, isVisible))
        .filter(({ definitions }) => !isScoped(caller) || definitions.length > 0),
    };
  },
};

async function readQueue({ host, params, caller }: Pick<Call, "caller" | "host" | "params">): Promise<QueueBody> {
  const name = params["name"] ?? "";
  const info = await host.client.findQueue(name);
  if (info === undefined)
    throw new RepriseError("QUEUE_NOT_FOUND", `The store has no queue ${name}. See \`reprise queue list\`.`);
  // Holders of keys are runs, which a caller with other scopes may not see.
  const isLimited = caller?.definitions !== undefined || caller?.tags !== undefined;
  const fullKeys = isLimited ? [] : await readFullKeys(host.store, info);
  return { ...queueBody(info), ...(fullKeys.length > 0 && { fullKeys }) };
}

async function changeQueue(
  call: Pick<Call, "caller" | "host" | "params">,
  change: (queue: ReturnType<Call["host"]["client"]["getQueue"]>) => Promise<void>,
): Promise<QueueBody> {
  const { name } = await readQueue(call);
  await change(call.host.client.getQueue(name));
  return readQueue(call);
}

function queueBody({ name, limits, paused, pausedAt, ready, leased, delayed, oldestReadyAt }: QueueInfo): QueueBody {
  return {
    name,
    limits: limits as QueueBody["limits"],
    paused,
    ...(pausedAt !== undefined && { pausedAt: isoOf(pausedAt) }),
    ready,
    leased,
    delayed,
    ...(oldestReadyAt !== undefined && { oldestReadyAt: isoOf(oldestReadyAt) }),
  };
}

const MAX_KEYS = 10;

/** Keys of the work that holds slots of the queue, as far as the store lists holders. */
async function readFullKeys(store: Store, { name, limits }: QueueInfo): Promise<NonNullable<QueueBody["fullKeys"]>> {
  const limit = limits.perKey?.concurrency;
  if (limit === undefined) return [];
  const keys = new Set<string>();
  const use = await Promise.all((["task", "start"] as const).map((kind) => store.readQueueUse(kind, name)));
  for (const { run } of use.flatMap((one) => one?.whole.holders ?? [])) {
    const work = await store.readRunWork(run);
    for (const { queue, key } of work?.items ?? []) if (queue === name && key !== undefined) keys.add(key);
  }
  const full: { key: string; held: number; limit: number; holders: string[] }[] = [];
  for (const key of [...keys].slice(0, MAX_KEYS))
    for (const kind of ["task", "start"] as const) {
      const ofKey = (await store.readQueueUse(kind, name, key))?.ofKey;
      if (ofKey === undefined || ofKey.held < limit) continue;
      const holders = ofKey.holders.map(({ id, run }) => id ?? String(run));
      full.push({ key, held: ofKey.held, limit, holders });
    }
  return full;
}

function workerBody(
  { worker, name, startedAt, until, profile: profileText, activity: activityText }: WorkerInfo,
  now: number,
  isVisible: (definition: string) => boolean,
): WorkerBody {
  const profile = readWorkerProfile(profileText);
  const activity = readWorkerActivity(activityText);
  const perSecond = (count: number): number => Math.round((count / activity!.overMs) * 10_000) / 10;
  return {
    worker,
    name,
    ...(profile && { host: profile.host, pid: profile.pid }),
    startedAt: isoOf(startedAt),
    alive: until > now,
    draining: activity?.isDraining ?? false,
    // Each heartbeat renews the lease for its whole length.
    ...(profile && { heartbeatAt: isoOf(until - profile.leaseMs), leaseMs: profile.leaseMs }),
    leaseUntil: isoOf(until),
    ...(profile && { concurrency: profile.concurrency }),
    ...(activity && {
      running: activity.running,
      runsHeld: activity.runsHeld,
      stepsPerSecond: perSecond(activity.steps),
      runsStartedPerSecond: perSecond(activity.runsStarted),
      runsEndedPerSecond: perSecond(activity.runsEnded),
    }),
    definitions: (profile?.definitions ?? [])
      .filter((one) => isVisible(one.name))
      .map(({ name: of, version }) => ({ name: of, version })),
    ...(profile?.queues && { queues: profile.queues }),
    ...(profile?.labels && { labels: profile.labels }),
  };
}
