// Queues from outside: how they stand, pausing, other limits.

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
import type { Worker } from "../worker/index.ts";
import type { QueueHandle, QueueInfo } from "./api.ts";

/** `queue` is a name or what `queue()` made. */
export function queueHandle(worker: Worker, checkOpen: () => void, queue: unknown): QueueHandle {
  const name = checkName(nameOf(queue), "queue name");
  const change = async (changes: Omit<ChangeQueueWrite, "write" | "name">): Promise<void> => {
    checkOpen();
    if (name === DEFAULT_QUEUE)
      throw new RepriseError(
        "USAGE",
        `Queue ${DEFAULT_QUEUE} is where everything waits that names no queue; it can neither be paused nor limited. Give the work a queue of its own.`,
      );
    const { status } = await worker.pump.submit({ write: "change-queue", name, ...changes });
    if (status === "no-queue")
      throw new RepriseError(
        "QUEUE_NOT_FOUND",
        `There is no queue ${name}. A queue exists once an engine whose definitions name it has started; engine.queues() lists them.`,
      );
    worker.wake();
  };
  return {
    name,
    pause: () => change({ paused: true }),
    resume: () => change({ paused: false }),
    limit: async (limits: QueueOptions) => change({ limits: limitsOf(limits, `Queue ${name}`) }),
  };
}

function nameOf(queue: unknown): unknown {
  return typeof queue === "object" && queue !== null && "name" in queue ? queue.name : queue;
}

export function queueInfoOf(state: QueueState): QueueInfo {
  const { name, limits, paused, ready, leased, delayed, oldestReadyAt } = state;
  return {
    name,
    limits: optionsOf(limits),
    paused,
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
