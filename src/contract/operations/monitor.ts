// Monitoring: for load balancers, scrapers and autoscalers. Their paths have no version, because those programs expect them so.

import { boolean, integer, number, object, oneOf, optional, text } from "../json-schema.ts";
import { operation } from "../operation.ts";

/** How much work a queue has, and how many workers that would take. */
export const scaleBody = object({
  queue: text(),
  paused: boolean(),
  ready: integer({ description: "Work that can be claimed now. Counting stops at 1,000, as for the other counts." }),
  running: integer({ description: "Work that workers have claimed." }),
  delayed: integer({ description: "Work that becomes ready later." }),
  turns: integer({
    description: "Runs whose code can continue. They wait in no queue: 0 except for the default queue.",
  }),
  oldestSeconds: number({ description: "How long the oldest ready work has been waiting." }),
  workers: integer({ description: "Live workers that serve the queue." }),
  slots: integer({ description: "How many user functions these workers run at once." }),
  desired: integer({
    description: "How many workers would have `per` work each: ready, running and turns, divided by `per`, rounded up.",
  }),
});

export const monitorOperations = {
  getHealth: operation({
    role: "public",
    method: "GET",
    path: "/health",
    group: "Monitor",
    summary: "Answers while the process is alive. Reads nothing.",
    answer: object({ status: oneOf(["alive"]) }),
    example: { answer: { status: "alive" } },
  }),
  getReadiness: operation({
    role: "public",
    method: "GET",
    path: "/ready",
    group: "Monitor",
    summary: "Answers if the store does within 2 seconds and the process is neither draining nor closing; else 503.",
    answer: object({ status: oneOf(["ready"]) }),
    example: { answer: { status: "ready" } },
  }),
  getMetrics: operation({
    role: "viewer",
    method: "GET",
    path: "/metrics",
    group: "Monitor",
    summary: "The metrics of this process and of its store, in the OpenMetrics text format.",
    answer: "application/openmetrics-text",
    example: {},
  }),
  getScale: operation({
    role: "viewer",
    method: "GET",
    path: "/scale",
    group: "Monitor",
    summary: "How much work a queue has and how many workers it needs, for autoscalers.",
    query: object({
      queue: optional(text({ description: "Default: the default queue." })),
      per: optional(
        integer({
          minimum: 1,
          maximum: 100_000,
          description:
            "The work that one worker shall have. Default: the mean number of slots of its live workers, else 1.",
        }),
      ),
    }),
    answer: scaleBody,
    scope: "filtered",
    example: { query: { queue: "default", per: 10 } },
  }),
};
