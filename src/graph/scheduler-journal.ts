// Scheduler journal: the scheduler's state and metrics from a run's journal, whichever process holds the run.
//
// scheduler-journal.J1. A run that this process holds adds what no journal has: which items execute now, and how many wait
//   in memory.

import {
  decodeData,
  type Entry,
  type FrontierItemData,
  type SchedulerMetrics,
  type StepCommittedData,
} from "../kernel/index.ts";
import type { GraphBody } from "./definition.ts";
import { commandOf } from "./node-run.ts";
import type { SchedulerItemState, LiveScheduler, SchedulerItem } from "./scheduler.ts";

/** The items of a graph's current step, and the metrics of the whole run. */
export interface SchedulerState {
  /** The current step; of a run that has ended, the last one. */
  readonly step: number;
  readonly completedSteps: number;
  /** Nodes that execute now; never above `maxConcurrentNodes`. */
  readonly activeNodes: number;
  readonly maxConcurrentNodes: number;
  /** Items that are queued for a free slot; never above the `queueDepth` of the graph. */
  readonly queueDepth: number;
  /**
   * Whether this process holds the run. If not, only its journal is known: no node counts as active, and an item that has
   * not ended counts as queued.
   */
  readonly held: boolean;
  /** The items of the step, in the order written. */
  readonly items: readonly SchedulerItem[];
  readonly metrics: SchedulerMetrics;
}

type SchedulerLimits = Pick<GraphBody, "maxConcurrentNodes" | "queueDepth">;

/** Takes the entries of a run, in order. */
export class SchedulerFold {
  readonly #limits: SchedulerLimits;
  #step = 0;
  #checkpoints = 0;
  #firstAt = 0;
  #lastAt = 0;
  #frontier: readonly FrontierItemData[] = [];
  /** Items of the step after the last checkpoint, by command. */
  readonly #ended = new Map<string, "completed" | "failed">();
  readonly #attempts = new Map<string, number>();
  #executed = 0;
  #retries = 0;
  #deepest = 0;
  #blocks = 0;

  constructor(limits: SchedulerLimits) {
    this.#limits = limits;
  }

  add({ type, command, data, at }: Entry): void {
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
        return this.#addStep(decodeData(type, data), at);
      case "RunRetried":
        // rules.G12. Items with a result keep it; the others start again with attempt 1.
        for (const [ended, how] of this.#ended) if (how === "failed") this.#ended.delete(ended);
        this.#attempts.clear();
        return;
      default:
    }
  }

  #addStep({ step, frontier }: StepCommittedData, at: number): void {
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
    // The first checkpoint is step 0, the input.
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

  /** scheduler-journal.J1 */
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
      // The run in memory may be ahead of the journal that was read.
      items: now !== undefined && now.step > step ? now.items : this.#items(step, now),
      metrics,
    };
  }

  #items(step: number, live: LiveScheduler | undefined): readonly SchedulerItem[] {
    return this.#frontier.map(({ node, orderKey, spread }, position) => {
      const command = commandOf(step, position);
      const known = live?.items[position];
      const ended = this.#ended.get(command);
      const state: SchedulerItemState = ended ?? known?.state ?? "queued";
      const attempt = (ended === undefined ? known?.attempt : undefined) ?? (this.#attempts.get(command) ?? 0) + 1;
      return { node, orderKey, ...(spread !== undefined && { index: spread }), state, attempt };
    });
  }
}
