// Scheduler: runs the items of a step and knows the state of each (seed 000).
//
// graph.S1. At most `maxConcurrentNodes` items execute, smallest order key first, from a frontier of at most `queueDepth`.
// graph.S2. An item is created, queued once the frontier has room for it, executing, then completed or failed. Between two
//   attempts it is queued again: it keeps its slot and takes no place in the frontier.
// graph.S3. Items are admitted one at a time, in the order of the step. Each that finds no room counts as one block.
// graph.S4. A completion is always accepted: only admission waits, so no depth can cause a deadlock (rules.G5).
// graph.S5. An item holds its slot until its function has ended. The next item starts then, without waiting for the
//   commit. The step ends when every result is durable.
// graph.S6. An item allocates only what running it needs. The state of an item is computed when it is read.

import { CancelledError, formatMs, type EpochMs } from "../base/index.ts";
import { emit, isObserved, type RepriseEvent, type SchedulerMetrics } from "../kernel/index.ts";
import { callOutside, type Execution, type PauseEvidence } from "../workflow/index.ts";
import type { GraphBody } from "./definition.ts";
import { Frontier } from "./frontier.ts";
import type { StepItem } from "./step-item.ts";
import { placeOfCommand, type StartedNode, type startNode } from "./node-run.ts";
import type { OrderKey, Path } from "./order-key.ts";
import type { GraphState } from "./state.ts";

/** The state of an item of a step; between two attempts it is `queued`. */
export type SchedulerItemState = "created" | "queued" | "executing" | "completed" | "failed";

/** An item of a graph's step, as `run.scheduler` returns it. */
export interface SchedulerItem {
  readonly node: string;
  /** 16 hex digits. */
  readonly orderKey: string;
  /** The index in a spread. */
  readonly index?: number;
  readonly state: SchedulerItemState;
  /** 1 for the first; between two attempts, the next one. */
  readonly attempt: number;
}

/** The state of a run that this process holds. */
export interface LiveScheduler {
  readonly step: number;
  readonly activeNodes: number;
  readonly queueDepth: number;
  readonly items: readonly SchedulerItem[];
}

/** With the stored result (`resultOf`). */
export type ItemResult = PromiseSettledResult<unknown> | undefined;

/** Starts an item; a replay has its own. */
export type StartNode = typeof startNode;

export interface SchedulerHandlers {
  readonly start: StartNode;
  /** Aborts the other items after one has failed its last attempt. */
  readonly stop: (others: readonly StartedNode[], failed: string) => void;
}

const NONE: readonly StepItem[] = [];
const nothing = (): void => {};
const none = (): undefined => undefined;

interface AdmittedItem {
  readonly orderKey: OrderKey;
  readonly path: Path;
  readonly index: number;
}

type Trigger = Extract<RepriseEvent, { event: "scheduler" }>["trigger"];

export class Scheduler {
  readonly #execution: Execution;
  readonly #body: GraphBody;
  readonly #handlers: SchedulerHandlers;
  #step = 0;
  /** Before the step; undefined before the first. */
  #state: GraphState | undefined;
  #items: readonly StepItem[] = NONE;
  // By the index of the item.
  #results: ItemResult[] = [];
  #running: (StartedNode | undefined)[] = [];
  /** graph.S5. Frees the slot of an executing item. */
  #places: (((at: EpochMs) => void) | undefined)[] = [];
  #runningCount = 0;
  #whenNoneRuns: (() => void) | undefined;
  #frontier: Frontier<AdmittedItem> | undefined;
  #admitted = 0;
  /** The item that found no room; -1 without one. */
  #blockedAt = -1;
  /** An item has failed its last attempt, so no other item starts. */
  #failed = false;
  // Metrics.
  #begunAt: EpochMs = 0;
  #steps = 0;
  #executed = 0;
  #retries = 0;
  #deepest = 0;
  #blocks = 0;
  #latencyMs = 0;

  constructor(execution: Execution, body: GraphBody, handlers: SchedulerHandlers) {
    this.#execution = execution;
    this.#body = body;
    this.#handlers = handlers;
    if (execution.nodes !== undefined) {
      execution.nodes.onRetried = () => this.#retried();
      execution.nodes.onCompleted = (command, at) => this.#completed(command, at);
    }
    schedulers.set(execution, this);
  }

  /** graph.S1. Settles when all items have ended. */
  run(step: number, items: readonly StepItem[], state: GraphState): Promise<void> {
    this.#begunAt = this.#execution.deliveries.time;
    this.#step = step;
    this.#state = state;
    this.#items = items;
    this.#results = items.map(none);
    this.#running = items.map(none);
    this.#places = items.map(none);
    this.#runningCount = 0;
    this.#failed = false;
    this.#deepest = Math.max(this.#deepest, Math.min(items.length, this.#body.queueDepth));
    return items.length === 1 ? this.#begin(0, undefined, nothing) : this.#runAll();
  }

  /** Called when all items have ended. In the order of the items; an item that never started has no result. */
  takeResults(): readonly ItemResult[] {
    this.#latencyMs += this.#execution.deliveries.time - this.#begunAt;
    return this.#results;
  }

  async #runAll(): Promise<void> {
    const frontier = new Frontier<AdmittedItem>(this.#body.queueDepth);
    this.#frontier = frontier;
    this.#admitted = 0;
    this.#blockedAt = -1;
    const work = async (): Promise<void> => {
      for (let freedAt: EpochMs | undefined; ;) {
        const next = this.#failed ? undefined : frontier.tryTake();
        if (next === undefined) return;
        this.#admit();
        const begunAfter = freedAt;
        const ended = new Promise<EpochMs>((resolve) => void this.#begin(next.index, begunAfter, resolve));
        // No delivery wakes the worker here.
        if (freedAt !== undefined) callOutside(() => this.#execution.host.onNodeRequest?.());
        freedAt = await ended;
      }
    };
    this.#admit();
    const workers = Math.min(this.#body.maxConcurrentNodes, this.#items.length);
    await Promise.all(Array.from({ length: workers }, work));
    // After a failure the remaining items no longer wait for room.
    this.#unblocked();
    this.#frontier = undefined;
    if (this.#runningCount > 0) await new Promise<void>((resolve) => (this.#whenNoneRuns = resolve));
    this.#whenNoneRuns = undefined;
  }

  /** graph.S3 */
  #admit(): void {
    const items = this.#items;
    const frontier = this.#frontier!;
    while (this.#admitted < items.length) {
      const index = this.#admitted;
      const { orderKey, path } = items[index]!;
      if (!frontier.tryAdd({ orderKey, path, index })) return this.#blocked(index);
      this.#admitted += 1;
    }
    this.#unblocked();
  }

  #blocked(index: number): void {
    if (this.#blockedAt === index) return;
    this.#blockedAt = index;
    this.#blocks += 1;
    this.#limitWait();
    this.#emit("backpressure");
  }

  #unblocked(): void {
    if (this.#blockedAt === -1) return;
    this.#blockedAt = -1;
    this.#limitWait();
  }

  /** rules.G5. The limit restarts for every blocked item, because one was admitted in between. */
  #limitWait(): void {
    const { name, backpressureTimeoutMs: ms, queueDepth, maxConcurrentNodes } = this.#body;
    if (ms === undefined) return;
    const evidence = (): PauseEvidence => ({
      code: "BACKPRESSURE_TIMEOUT",
      where: `step ${this.#step}`,
      message: `Graph ${name}: ${this.#items.length - this.#admitted} items of step ${this.#step} found no room within the backpressureTimeout of ${formatMs(ms)}: at most ${maxConcurrentNodes} execute and ${queueDepth} are queued. Find out what its nodes wait for.`,
    });
    this.#execution.requests.push({ kind: "limit-wait", limit: this.#blockedAt === -1 ? undefined : { ms, evidence } });
  }

  /** graph.S5. Settles when the result is durable. `onFree` gets the time of the entry that freed the slot. */
  #begin(index: number, freedAt: EpochMs | undefined, onFree: (freedAt: EpochMs) => void): Promise<void> {
    const { start } = this.#handlers;
    const item = this.#items[index]!;
    const node = start(this.#execution, this.#body, this.#step, index, item, this.#state!, freedAt);
    this.#running[index] = node;
    this.#runningCount += 1;
    this.#places[index] = onFree;
    return node.result.then(
      (value) => this.#settled(index, { status: "fulfilled", value }),
      (reason: unknown) => this.#settled(index, { status: "rejected", reason }),
    );
  }

  #completed(command: string, at: EpochMs): void {
    const { step, position } = placeOfCommand(command);
    if (step === this.#step) this.#free(position, at);
  }

  /** graph.S5. Once per item. */
  #free(index: number, at: EpochMs): void {
    const free = this.#places[index];
    if (free === undefined) return;
    this.#places[index] = undefined;
    free(at);
  }

  #settled(index: number, result: PromiseSettledResult<unknown>): void {
    const { name } = this.#running[index]!;
    this.#running[index] = undefined;
    this.#runningCount -= 1;
    this.#results[index] = result;
    this.#executed += 1;
    if (result.status === "rejected" && !this.#failed) {
      this.#failed = true;
      if (this.#runningCount > 0 && !(result.reason instanceof CancelledError))
        this.#handlers.stop(
          this.#running.filter((node) => node !== undefined),
          name,
        );
    }
    this.#free(index, this.#execution.deliveries.time);
    if (this.#runningCount === 0) this.#whenNoneRuns?.();
  }

  #retried(): void {
    this.#retries += 1;
    this.#executed += 1;
    this.#emit("retry");
  }

  /** Called after the step's checkpoint. */
  completed(): void {
    this.#steps += 1;
    this.#emit("step");
  }

  ended(): void {
    this.#emit("end");
  }

  #emit(trigger: Trigger): void {
    // The run emitted these events before the replay.
    if (!isObserved() || this.#execution.replaying) return;
    const event = {
      event: "scheduler",
      run: this.#execution.identity.id,
      trigger,
      step: this.#step,
      activeNodes: this.#activeNodes,
      queueDepth: this.#frontier?.length ?? 0,
      completedSteps: this.#steps,
      metrics: this.metrics,
    } as const;
    // Listeners run outside the graph's code.
    callOutside(() => emit(event));
  }

  /** Since this process claimed the run. */
  get metrics(): SchedulerMetrics {
    return {
      totalSteps: this.#steps,
      totalNodesExecuted: this.#executed,
      avgStepLatencyMs: this.#steps === 0 ? 0 : this.#latencyMs / this.#steps,
      maxQueueDepth: this.#deepest,
      totalRetries: this.#retries,
      totalBackpressureBlocks: this.#blocks,
    };
  }

  get #activeNodes(): number {
    return this.#execution.nodes?.count ?? 0;
  }

  /** graph.S6 */
  state(): LiveScheduler {
    return {
      step: this.#step,
      activeNodes: this.#activeNodes,
      queueDepth: this.#frontier?.length ?? 0,
      items: this.#items.map((item, index) => this.#itemState(item, index)),
    };
  }

  /** graph.S2 */
  #itemState({ node, orderKey, spread }: StepItem, index: number): SchedulerItem {
    const result = this.#results[index];
    const started = this.#running[index];
    const { nodes } = this.#execution;
    const command = started?.command ?? "";
    const attempt = (nodes?.attemptOf(command) ?? started?.attempt ?? 0) + 1;
    const state = (): SchedulerItemState => {
      if (result !== undefined) return result.status === "fulfilled" ? "completed" : "failed";
      // A function that has ended still counts as executing until its entry is durable.
      const isExecuting = nodes?.isRunning(command) === true || this.#places[index] === undefined;
      if (started !== undefined) return isExecuting ? "executing" : "queued";
      return index < this.#admitted ? "queued" : "created";
    };
    return { node, orderKey, ...(spread !== undefined && { index: spread }), state: state(), attempt };
  }
}

const schedulers = new WeakMap<Execution, Scheduler>();

/** Undefined for an execution that is not a graph's. */
export function schedulerOf(execution: Execution): Scheduler | undefined {
  return schedulers.get(execution);
}
