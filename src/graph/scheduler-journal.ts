// The scheduler's state and figures as the journal has them: of any run, in whichever process it is at work.
//
// SJ1. A run in memory adds what no journal can tell: what is at work right now, and what waits in memory.

import { decode } from "../base/index.ts";
import type { Entry, SchedulerMetrics } from "../kernel/index.ts";
import type { GraphBody } from "./definition.ts";
import { commandOf } from "./node-run.ts";
import type { ItemState, LiveScheduler, SchedulerItem } from "./scheduler.ts";

/** Where a graph's run stands within its step, with the figures of its whole life. */
export interface SchedulerState {
  /** The step at work; of a run that has come to its end the last one. */
  readonly step: number;
  readonly completedSteps: number;
  /** Nodes at work; never above `maxConcurrentNodes`. */
  readonly activeNodes: number;
  readonly maxConcurrentNodes: number;
  /** Items that wait in memory for a free place; never above the `queueDepth` of the graph. */
  readonly queueDepth: number;
  /**
   * Whether the run is in memory here. Elsewhere nothing is known but its journal: then no node counts as active, and an
   * item that has not ended as queued.
   */
  readonly held: boolean;
  /** The items of the step, in the order written. */
  readonly items: readonly SchedulerItem[];
  readonly metrics: SchedulerMetrics;
}

type Limits = Pick<GraphBody, "maxConcurrentNodes" | "queueDepth">;

interface StoredItem {
  readonly node: string;
  readonly orderKey: string;
  readonly spread?: number;
}

/** Sees the entries of a run, in order. */
export class SchedulerFold {
  readonly #limits: Limits;
  #step = 0;
  #checkpoints = 0;
  #firstAt = 0;
  #lastAt = 0;
  #frontier: readonly StoredItem[] = [];
  /** Of the step after the last checkpoint, by command. */
  readonly #ended = new Map<string, "completed" | "failed">();
  readonly #attempts = new Map<string, number>();
  #executed = 0;
  #retries = 0;
  #deepest = 0;
  #blocks = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  see({ type, command, data, at }: Entry): void {
    switch (type) {
      case "NodeCompleted":
      case "NodeFailed":
        this.#executed += 1;
        this.#ended.set(command, type === "NodeCompleted" ? "completed" : "failed");
        return;
      case "NodeRetried":
        this.#executed += 1;
        this.#retries += 1;
        this.#attempts.set(command, (this.#attempts.get(command) ?? 0) + 1);
        return;
      case "StepCommitted":
        return this.#seeStep(decode(data) as { step: number; frontier: readonly StoredItem[] }, at);
      case "RunRetried":
        // G12. What has a result keeps it, the others are tried from the beginning.
        for (const [ended, how] of this.#ended) if (how === "failed") this.#ended.delete(ended);
        this.#attempts.clear();
        return;
      default:
    }
  }

  #seeStep({ step, frontier }: { readonly step: number; readonly frontier: readonly StoredItem[] }, at: number): void {
    const { queueDepth } = this.#limits;
    if (this.#checkpoints === 0) this.#firstAt = at;
    this.#checkpoints += 1;
    this.#lastAt = at;
    this.#step = step;
    this.#frontier = frontier;
    this.#ended.clear();
    this.#attempts.clear();
    this.#deepest = Math.max(this.#deepest, Math.min(frontier.length, queueDepth));
    this.#blocks += Math.max(0, frontier.length - queueDepth);
  }

  get #metrics(): SchedulerMetrics {
    // The first is where the run began.
    const totalSteps = Math.max(0, this.#checkpoints - 1);
    return {
      totalSteps,
      totalNodesExecuted: this.#executed,
      avgStepLatencyMs: totalSteps === 0 ? 0 : (this.#lastAt - this.#firstAt) / totalSteps,
      maxQueueDepth: this.#deepest,
      totalRetries: this.#retries,
      totalBackpressureBlocks: this.#blocks,
    };
  }

  /** SJ1 */
  state(live: LiveScheduler | undefined): SchedulerState {
    const metrics = this.#metrics;
    const step = this.#frontier.length === 0 ? this.#step : this.#step + 1;
    const now = live !== undefined && live.step >= step ? live : undefined;
    return {
      step: now?.step ?? step,
      completedSteps: metrics.totalSteps,
      activeNodes: now?.activeNodes ?? 0,
      maxConcurrentNodes: this.#limits.maxConcurrentNodes,
      queueDepth: now?.queueDepth ?? 0,
      held: live !== undefined,
      // Meanwhile it may have gone further than what was read of its journal.
      items: now !== undefined && now.step > step ? now.items : this.#items(step, now),
      metrics,
    };
  }

  #items(step: number, live: LiveScheduler | undefined): readonly SchedulerItem[] {
    return this.#frontier.map(({ node, orderKey, spread }, position) => {
      const command = commandOf(step, position);
      const known = live?.items[position];
      const ended = this.#ended.get(command);
      const state: ItemState = ended ?? known?.state ?? "queued";
      const attempt = (ended === undefined ? known?.attempt : undefined) ?? this.#attempts.get(command) ?? 0;
      return { node, orderKey, ...(spread !== undefined && { index: spread }), state, attempt };
    });
  }
}
