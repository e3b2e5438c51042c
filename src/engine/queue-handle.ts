// QueueHandle: pauses and limits one queue of the store.

import { checkName, RepriseError } from "../base/index.ts";
import {
  DEFAULT_QUEUE,
  limitsOf,
  type ChangeQueueWrite,
  type QueueLimits,
  type QueueOptions,
  type QueueState,
  type StoredLimit,
} from "../kernel/index.ts";
import { waitFor } from "./abort.ts";
import type { WorkerPort } from "./worker-port.ts";
import type { QueueHandle, QueueInfo } from "./api.ts";

/** `queue` is a name or a queue made with `queue()`. */
export function queueHandle(worker: WorkerPort, checkOpen: () => void, queue: unknown): QueueHandle {
  const name = checkQueueName(queue);
  const change = async (changes: Omit<ChangeQueueWrite, "write" | "name">): Promise<void> => {
    checkOpen();
    if (name === DEFAULT_QUEUE)
      throw new RepriseError(
        "USAGE",
        `Queue ${DEFAULT_QUEUE} holds all work without a queue; it cannot be paused or limited. Declare a queue with queue() and set it on the task or workflow.`,
      );
    const { status } = await worker.submit({ write: "change-queue", name, ...changes });
    if (status === "no_queue")
      throw new RepriseError(
        "QUEUE_NOT_FOUND",
        `There is no queue ${name}. A queue exists once an engine whose definitions use it has started. engine.listQueues() lists the existing ones.`,
      );
    worker.wake();
  };
  return {
    name,
    pause: (options) => waitFor(options, "pause", () => change({ paused: true })),
    resume: (options) => waitFor(options, "resume", () => change({ paused: false })),
    limit: async (limits: QueueOptions, options) => {
      const checked = limitsOf(limits, `Queue ${name}`);
      await waitFor(options, "limit", () => change({ limits: checked }));
    },
  };
}

/** The name of a queue given as a definition or as text. */
export function checkQueueName(queue: unknown): string {
  const name = typeof queue === "object" && queue !== null && "name" in queue ? queue.name : queue;
  return checkName(name, "queue name");
}

export function queueInfoOf(state: QueueState): QueueInfo {
  const { name, limits, paused, pausedAt, ready, leased, delayed, oldestReadyAt } = state;
  return {
    name,
    limits: optionsOf(limits),
    paused,
    ...(pausedAt !== undefined && { pausedAt: new Date(pausedAt) }),
    ready,
    leased,
    delayed,
    ...(oldestReadyAt !== undefined && { oldestReadyAt: new Date(oldestReadyAt) }),
  };
}

function optionsOf({ perKey, ...own }: QueueLimits): QueueOptions {
  return { ...limitOf(own), ...(perKey && { perKey: limitOf(perKey) }) };
}

function limitOf({ concurrency, rate }: StoredLimit): Omit<QueueOptions, "perKey"> {
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(rate && { rate: { limit: rate.limit, per: rate.perMs } }),
  };
}
