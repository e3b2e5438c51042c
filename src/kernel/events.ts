// Events: published on the `reprise` diagnostics channel. Without a subscriber no event is built. Attempts count from 1.

import { channel } from "node:diagnostics_channel";
import type { EpochMs } from "../base/index.ts";
import type { EndedRunStatus, RunRecord, RunStatus } from "./run.ts";
import type { SchedulerMetrics } from "./scheduler.ts";
import { dataWithoutSecrets } from "./secrets.ts";

/** A structured event; `event` says which. Subscribe with `diagnostics_channel.subscribe("reprise", handler)`. */
export type RepriseEvent =
  | { readonly event: "run.started"; readonly run: string; readonly definition: string }
  | { readonly event: "run.resumed"; readonly run: string; readonly definition: string; readonly entries: number }
  /** `tookMs`: since the run was created. */
  | {
      readonly event: "run.ended";
      readonly run: string;
      readonly definition: string;
      readonly status: EndedRunStatus;
      readonly tookMs: number;
    }
  /** Its code does not continue in this process. */
  | { readonly event: "run.paused"; readonly run: string }
  | { readonly event: "run.stopped"; readonly run: string; readonly status: RunStatus; readonly message: string }
  /** The code returned before this command had ended, and never awaited it. `place`: the line of the call, if known. */
  | {
      readonly event: "command.unawaited";
      readonly run: string;
      readonly definition: string;
      readonly command: string;
      readonly name: string;
      readonly place: string | undefined;
    }
  /** On replay, the code passed another input than the journal recorded. The run continues with its recorded results. */
  | {
      readonly event: "input.changed";
      readonly run: string;
      readonly definition: string;
      readonly step: string;
      readonly message: string;
    }
  | {
      readonly event: "attempt.started";
      readonly run: string;
      readonly step: string;
      readonly name: string;
      readonly attempt: number;
      readonly execution: number;
    }
  /** A call did not fit into the budget of its run. `waits`: it waits for a raise; otherwise it failed. */
  | {
      readonly event: "budget.reached";
      readonly run: string;
      readonly definition: string;
      readonly step: string;
      readonly waits: boolean;
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
  /** The function of a step has returned or thrown. The commit that records it may still be refused. */
  | {
      readonly event: "attempt.ended";
      readonly run: string;
      readonly definition: string;
      readonly step: string;
      readonly name: string;
      readonly kind: "operation" | "node" | "task";
      readonly attempt: number;
      readonly outcome: "completed" | "failed";
      readonly tookMs: number;
    }
  /** A model has answered. The commit that records the answer may still be refused. `usd` is absent without a price. */
  | {
      readonly event: "model.answered";
      readonly run: string;
      readonly name: string;
      readonly model: string;
      readonly inputTokens: number;
      /** A part of `inputTokens`. */
      readonly cachedTokens: number;
      readonly outputTokens: number;
      readonly usd: number | undefined;
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
  /** For a graph: after each step, when an item waits for a slot, when an attempt will be retried, and at the end. */
  | {
      readonly event: "scheduler";
      readonly run: string;
      readonly trigger: "step" | "backpressure" | "retry" | "end";
      readonly step: number;
      readonly activeNodes: number;
      readonly queueDepth: number;
      readonly completedSteps: number;
      /** Since this process resumed the run; `run.scheduler()` has the figures since the start of the run. */
      readonly metrics: SchedulerMetrics;
    }
  /** A retention policy deleted runs of a definition, with their families. */
  | {
      readonly event: "runs.expired";
      readonly definition: string;
      readonly status: EndedRunStatus;
      readonly runs: number;
    }
  | { readonly event: "commit"; readonly writes: number; readonly entries: number; readonly tookMs: number }
  | { readonly event: "lease.lost"; readonly worker: number | undefined; readonly run: string | undefined }
  | { readonly event: "lease.taken_over"; readonly workers: number; readonly turns: number; readonly items: number }
  | { readonly event: "schedule.fired"; readonly schedule: string; readonly run: string }
  | { readonly event: "schedule.skipped"; readonly schedule: string; readonly at: Date }
  | { readonly event: "store.failed"; readonly error: unknown }
  /** The database lost acknowledged commits: a standby without them was promoted, or a backup was restored. */
  | { readonly event: "store.rolled_back"; readonly at: Date; readonly detail: string }
  /** Another server responds, or the same one after a restart; it has every commit of this process. */
  | { readonly event: "store.failed_over"; readonly at: Date };

const events = channel("reprise");

export function isObserved(): boolean {
  return events.hasSubscribers;
}

export function emit(event: RepriseEvent): void {
  events.publish("error" in event || "message" in event ? dataWithoutSecrets(event) : event);
}

/** Publishes that a run has ended. */
export function emitEnded({ id, definition, createdAt }: RunRecord, status: EndedRunStatus, now: EpochMs): void {
  emit({ event: "run.ended", run: id, definition, status, tookMs: Math.max(0, now - createdAt) });
}
