// Queues, work that waits, and workers.

import { list, object, optional, text } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { pendingWork, queueBody, queueLimits, workerBody } from "../queue.ts";
import { reason, reasonBody } from "./parameters.ts";

export const queueOperations = {
  listQueues: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/queues",
    scope: "filtered",
    group: "Queues",
    summary: "Lists every queue of the store, the default queue first. Counts stop at 1,000.",
    answer: object({ items: list(queueBody) }),
    example: {},
  }),
  getQueue: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/queues/{name}",
    group: "Queues",
    summary: "Reads a queue, with the first keys whose limit is reached.",
    answer: queueBody,
    example: { path: { name: "payments" } },
  }),
  pauseQueue: operation({
    role: "admin",
    method: "POST",
    path: "/v1/queues/{name}/pause",
    group: "Queues",
    summary: "Pauses a queue: workers claim no more work from it.",
    body: reasonBody,
    answer: queueBody,
    example: { path: { name: "payments" }, body: { reason: "the provider is down" } },
  }),
  resumeQueue: operation({
    role: "admin",
    method: "POST",
    path: "/v1/queues/{name}/resume",
    group: "Queues",
    summary: "Resumes a queue.",
    body: reasonBody,
    answer: queueBody,
    example: { path: { name: "payments" }, body: {} },
  }),
  limitQueue: operation({
    role: "admin",
    method: "POST",
    path: "/v1/queues/{name}/limit",
    group: "Queues",
    summary: "Replaces all limits of a queue, until an engine that declares other limits starts.",
    body: object({ limits: queueLimits, reason }),
    answer: queueBody,
    example: { path: { name: "payments" }, body: { limits: { concurrency: 2 } } },
  }),
  listPending: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/pending",
    scope: "filtered",
    group: "Queues",
    summary: "Lists the work that no worker has claimed, grouped by what claims it, and why it waits.",
    query: object({ queue: optional(text()) }),
    answer: object({ items: list(pendingWork) }),
    example: {},
  }),
  listWorkers: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/workers",
    scope: "filtered",
    group: "Queues",
    summary:
      "Lists the workers of the store with what they claim and how busy they are; also those whose lease expired.",
    answer: object({ items: list(workerBody) }),
    example: {},
  }),
};
