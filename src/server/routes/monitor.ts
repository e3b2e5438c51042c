// Monitoring: whether the process lives and is ready, its metrics, and the work of a queue for autoscalers.

import { RepriseError, type Timers } from "../../base/index.ts";
import type { AnswerOf, monitorOperations } from "../../contract/index.ts";
import { isClosing } from "../../engine/index.ts";
import { sizedResponse } from "../../http/index.ts";
import { DEFAULT_QUEUE, readWorkerActivity, readWorkerProfile, type Store } from "../../kernel/index.ts";
import { maySeeQueue } from "../auth/scope.ts";
import type { HandlersOf } from "../host.ts";

/** How long the store may take to answer. */
const READY_MS = 2_000;
/** Counts stop here. */
const COUNTED = 1_000;

export const monitorHandlers: HandlersOf<typeof monitorOperations> = {
  getHealth: () => ({ status: "alive" }) as const,
  async getReadiness({ host }) {
    if (isClosing(host.client) || host.closing.aborted) throw notReady("The process is draining or closing.");
    await answersInTime(host.store, host.timers);
    return { status: "ready" } as const;
  },
  async getMetrics({ host }) {
    const { metrics } = host;
    if (metrics === undefined)
      throw new RepriseError("USAGE", "This server counts nothing: it was made with `metrics: false`.", {
        details: { status: 404 },
      });
    const headers = { "content-type": metrics.contentType, "cache-control": "no-store" };
    return sizedResponse(await metrics.text(), { headers });
  },
  async getScale({ host, caller, query }) {
    const name = query?.queue ?? DEFAULT_QUEUE;
    const found = maySeeQueue(caller, name)
      ? (await host.store.listQueues(COUNTED)).find((queue) => queue.name === name)
      : undefined;
    if (found === undefined)
      throw new RepriseError("QUEUE_NOT_FOUND", `There is no queue ${name}. \`reprise queue list\` shows all queues.`);
    return scaleOf(host.store, found, query?.per);
  },
};

type Queue = Awaited<ReturnType<Store["listQueues"]>>[number];

async function scaleOf(
  store: Store,
  { name: queue, paused, ready, leased: running, delayed, oldestReadyAt }: Queue,
  per: number | undefined,
): Promise<AnswerOf<(typeof monitorOperations)["getScale"]>> {
  const turns = queue === DEFAULT_QUEUE ? await countTurns(store) : 0;
  const { workers, slots } = await countSlots(store, queue);
  const share = per ?? (workers === 0 ? 1 : Math.max(1, Math.round(slots / workers)));
  const oldestSeconds = oldestReadyAt === undefined ? 0 : Math.max(0, store.now() - oldestReadyAt) / 1_000;
  // A paused queue hands out nothing: only what runs needs its worker.
  const work = (paused ? 0 : ready) + running + turns;
  const desired = Math.ceil(work / share);
  return { queue, paused, ready, running, delayed, turns, oldestSeconds, workers, slots, desired };
}

async function countTurns(store: Store): Promise<number> {
  const backlog = await store.readBacklog(COUNTED);
  return backlog.reduce((sum, { kind, count }) => sum + (kind === "turn" ? count : 0), 0);
}

/** The live workers that claim from a queue and do not drain. */
async function countSlots(store: Store, queue: string): Promise<{ readonly workers: number; readonly slots: number }> {
  const infos = await store.listWorkers();
  const now = store.now();
  let [workers, slots] = [0, 0];
  for (const { until, profile, activity } of infos) {
    const { queues, concurrency = 0 } = readWorkerProfile(profile) ?? {};
    const serves = until >= now && queues?.includes(queue) !== false;
    if (!serves || readWorkerActivity(activity)?.isDraining === true) continue;
    workers += 1;
    slots += concurrency;
  }
  return { workers, slots };
}

/** One read of one row, by its id. */
async function answersInTime(store: Store, timers: Timers): Promise<void> {
  let cancel: (() => void) | undefined;
  const late = new Promise<"late">((resolve) => (cancel = timers.set(READY_MS, () => resolve("late"))));
  try {
    const answer = await Promise.race([store.findRun("reprise/ready"), late]);
    if (answer === "late") throw notReady(`The store did not answer within ${READY_MS} ms.`);
  } catch (error) {
    // Its text may name hosts and files, and this operation needs no token.
    if (error instanceof RepriseError && error.details?.["status"] === 503) throw error;
    throw notReady("The store does not answer.");
  } finally {
    cancel?.();
  }
}

function notReady(why: string): RepriseError {
  return new RepriseError("USAGE", why, { details: { status: 503 } });
}
