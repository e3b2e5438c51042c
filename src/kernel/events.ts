// Events: what happened, for whoever subscribes to the `reprise` diagnostics channel. Nothing is built when nobody does.

import { channel } from "node:diagnostics_channel";
import type { EndedRunStatus, RunStatus } from "./run.ts";
import type { SchedulerMetrics } from "./scheduler.ts";
import { dataWithoutSecrets } from "./secrets.ts";

/** A structured event; `event` says which. Subscribe with `diagnostics_channel.subscribe("reprise", handler)`. */
export type RepriseEvent =
  | { readonly event: "run.started"; readonly run: string; readonly definition: string }
  | { readonly event: "run.resumed"; readonly run: string; readonly definition: string; readonly entries: number }
  | { readonly event: "run.ended"; readonly run: string; readonly definition: string; readonly status: EndedRunStatus }
  /** Its code goes no further in this process. */
  | { readonly event: "run.paused"; readonly run: string }
  | { readonly event: "run.stopped"; readonly run: string; readonly status: RunStatus; readonly message: string }
  | {
      readonly event: "attempt.started";
      readonly run: string;
      readonly step: string;
      readonly name: string;
      readonly attempt: number;
    }
  | {
      readonly event: "attempt.failed";
      readonly run: string;
      readonly step: string;
      readonly name: string;
      readonly attempt: number;
      readonly error: unknown;
      readonly retryInMs: number | undefined;
    }
  | {
      readonly event: "message.delivered";
      readonly run: string;
      readonly message: string;
      readonly destination: string;
      readonly attempt: number;
    }
  | {
      readonly event: "message.failed";
      readonly run: string;
      readonly message: string;
      readonly destination: string;
      readonly attempt: number;
      readonly error: unknown;
      readonly retryInMs: number;
    }
  /** Of a graph: after each step, when an item has to wait for room, when an attempt will be repeated, and at the end. */
  | {
      readonly event: "scheduler";
      readonly run: string;
      readonly trigger: "step" | "backpressure" | "retry" | "end";
      readonly step: number;
      readonly activeNodes: number;
      readonly queueDepth: number;
      readonly completedSteps: number;
      /** Counted since this process took the run up; `run.scheduler()` has them since the run began. */
      readonly metrics: SchedulerMetrics;
    }
  | { readonly event: "commit"; readonly writes: number; readonly entries: number }
  | { readonly event: "lease.lost"; readonly worker: number | undefined; readonly run: string | undefined }
  | { readonly event: "lease.taken_over"; readonly workers: number; readonly turns: number; readonly items: number }
  | { readonly event: "schedule.fired"; readonly schedule: string; readonly run: string }
  | { readonly event: "schedule.skipped"; readonly schedule: string; readonly at: Date }
  | { readonly event: "store.failed"; readonly error: unknown }
  /** The database lacks what it had acknowledged: a standby without it was promoted, or a backup restored. */
  | { readonly event: "store.rolled_back"; readonly at: Date; readonly detail: string }
  /** Another server answers, or the same one after a restart; it lacks nothing that this process wrote. */
  | { readonly event: "store.failed_over"; readonly at: Date };

const events = channel("reprise");

export function isObserved(): boolean {
  return events.hasSubscribers;
}

export function emit(event: RepriseEvent): void {
  events.publish("error" in event || "message" in event ? dataWithoutSecrets(event) : event);
}
