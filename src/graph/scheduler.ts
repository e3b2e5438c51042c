// Scheduler: runs the items of a step, and knows where each of them stands (seed 000).
//
// S1. At most `maxConcurrentNodes` items are at work, smallest order key first, out of a frontier of at most `queueDepth`.
// S2. An item is created, queued once the frontier has room for it, executing, then completed or failed. Between two
//     attempts it is queued again: it keeps its place among those at work and takes none in the frontier.
// S3. Items are admitted one after the other, in the order of the step; each that finds no room counts as one block.
// S4. A completion is always accepted: only admission waits, so no depth can deadlock (G5).
// S5. An item is at work until its function has ended: the next begins then, and need not wait for the commit. The step is
//     over when all of it is durable.
// S6. Nothing is made per item but what running it needs; where each stands is found out when somebody asks.

import { CancelledError, formatMs, type EpochMs } from "../base/index.ts";
import { emit, isObserved, type RepriseEvent, type SchedulerMetrics } from "../kernel/index.ts";
import { callOutside, type Execution, type PauseEvidence } from "../workflow/index.ts";
import type { GraphBody } from "./definition.ts";
import { Frontier } from "./frontier.ts";
import type { Item } from "./item.ts";
import type { NodeResult, StartedNode } from "./node-run.ts";
import type { OrderKey, Path } from "./order-key.ts";

/** Where an item of a step stands; from `failed` it goes back to `queued` when it is tried again. */
export type ItemState = "created" | "queued" | "executing" | "completed" | "failed";

/** An item of a graph's step, as `run.scheduler` gives it. */
export interface SchedulerItem {
  readonly node: string;
  /** 16 hex digits. */
  readonly orderKey: string;
  /** Which item of a spread. */
  readonly index?: number;
  readonly state: ItemState;
  /** 0 for the first; of an item between two attempts the one that comes next. */
  readonly attempt: number;
}

/** What this process knows of a run it holds. */
export interface LiveScheduler {
  readonly step: number;
  readonly activeNodes: number;
  readonly queueDepth: number;
  readonly items: readonly SchedulerItem[];
}

export type Settled = PromiseSettledResult<NodeResult> | undefined;

export interface Running {
  /** `freedAt`: when the item ended whose place it takes. */
  readonly start: (item: Item, index: number, freedAt: EpochMs | undefined) => StartedNode;
  /** One has failed for good; the others are told. */
  readonly stop: (others: readonly StartedNode[], failed: string) => void;
}

const NONE: readonly Item[] = [];

interface Admitted {
  readonly orderKey: OrderKey;
  readonly path: Path;
  readonly index: number;
}

type Trigger = Extract<RepriseEvent, { event: "scheduler" }>["trigger"];

export class Scheduler {
  readonly #execution: Execution;
  readonly #body: GraphBody;
  #step = 0;
  #items: readonly Item[] = NONE;
  #results: Settled[] = [];
  readonly #running = new Map<number, StartedNode>();
  /** S5. By command: what frees the place of one that is at work. */
  readonly #places = new Map<string, (at: EpochMs) => void>();
  #whenNoneRuns: (() => void) | undefined;
  #frontier: Frontier<Admitted> | undefined;
  #admitted = 0;
  /** The item that has found no room. */
  #blockedAt = -1;
  /** One has failed for good: no other begins. */
  #failed = false;
  // Of the metrics.
  #steps = 0;
  #executed = 0;
  #retries = 0;
  #deepest = 0;
  #blocks = 0;
  #latencyMs = 0;

  constructor(execution: Execution, body: GraphBody) {
    this.#execution = execution;
    this.#body = body;
    if (execution.nodes !== undefined) {
      execution.nodes.onRetried = () => this.#retried();
      execution.nodes.onCompleted = (command, at) => this.#free(command, at);
    }
    schedulers.set(execution, this);
  }

  /** S1. Answers in the order of the items, whatever the order they ended in; those that never began are left out. */
  async run(step: number, items: readonly Item[], running: Running): Promise<Settled[]> {
    const begunAt = this.#execution.now().getTime();
    this.#step = step;
    this.#items = items;
    this.#results = Array.from<Settled>({ length: items.length });
    this.#running.clear();
    this.#places.clear();
    this.#failed = false;
    this.#deepest = Math.max(this.#deepest, Math.min(items.length, this.#body.queueDepth));
    if (items.length === 1) void this.#begin(running, 0, undefined);
    else await this.#runAll(running);
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#whenNoneRuns = resolve));
    this.#whenNoneRuns = undefined;
    this.#latencyMs += this.#execution.now().getTime() - begunAt;
    return this.#results;
  }

  async #runAll(running: Running): Promise<void> {
    const frontier = new Frontier<Admitted>(this.#body.queueDepth);
    this.#frontier = frontier;
    this.#admitted = 0;
    this.#blockedAt = -1;
    const work = async (): Promise<void> => {
      for (let freedAt: EpochMs | undefined; ;) {
        const next = this.#failed ? undefined : frontier.tryTake();
        if (next === undefined) return;
        this.#admit();
        const ended = this.#begin(running, next.index, freedAt);
        // Nothing was delivered that would make the worker look.
        if (freedAt !== undefined) callOutside(() => this.#execution.host.asked?.());
        freedAt = await ended;
      }
    };
    this.#admit();
    const workers = Math.min(this.#body.maxConcurrentNodes, this.#items.length);
    await Promise.all(Array.from({ length: workers }, work));
    // What a failure kept from beginning waits no more.
    this.#unblocked();
    this.#frontier = undefined;
  }

  /** S3 */
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
    this.#tell("backpressure");
  }

  #unblocked(): void {
    if (this.#blockedAt === -1) return;
    this.#blockedAt = -1;
    this.#limitWait();
  }

  /** G5. Counted anew for every item that waits: something was admitted meanwhile. */
  #limitWait(): void {
    const { name, backpressureTimeoutMs: ms, queueDepth, maxConcurrentNodes } = this.#body;
    if (ms === undefined) return;
    const evidence = (): PauseEvidence => ({
      code: "BACKPRESSURE_TIMEOUT",
      where: `step ${this.#step}`,
      message: `Graph ${name}: ${this.#items.length - this.#admitted} items of step ${this.#step} wait for room, and none came within ${formatMs(ms)}: ${maxConcurrentNodes} may be at work, ${queueDepth} may wait in memory. Find out what its nodes wait for, then resume the run`,
    });
    this.#execution.asks.push({ ask: "limit-wait", limit: this.#blockedAt === -1 ? undefined : { ms, evidence } });
  }

  /** S5. Resolves when the place is free again, with the time of the entry that says so. */
  #begin(running: Running, index: number, freedAt: EpochMs | undefined): Promise<EpochMs> {
    const node = running.start(this.#items[index]!, index, freedAt);
    this.#running.set(index, node);
    return new Promise((resolve) => {
      this.#places.set(node.command, resolve);
      node.result.then(
        (value) => this.#settled(running, index, { status: "fulfilled", value }),
        (reason: unknown) => this.#settled(running, index, { status: "rejected", reason }),
      );
    });
  }

  /** S5. Once per item. */
  #free(command: string, at: EpochMs): void {
    const free = this.#places.get(command);
    this.#places.delete(command);
    free?.(at);
  }

  #settled({ stop }: Running, index: number, result: PromiseSettledResult<NodeResult>): void {
    const { command, name } = this.#running.get(index)!;
    this.#running.delete(index);
    this.#results[index] = result;
    this.#executed += 1;
    if (result.status === "rejected" && !this.#failed) {
      this.#failed = true;
      if (this.#running.size > 0 && !(result.reason instanceof CancelledError)) stop([...this.#running.values()], name);
    }
    this.#free(command, this.#execution.time);
    if (this.#running.size === 0) this.#whenNoneRuns?.();
  }

  #retried(): void {
    this.#retries += 1;
    this.#executed += 1;
    this.#tell("retry");
  }

  /** The step's checkpoint is made. */
  completed(): void {
    this.#steps += 1;
    this.#tell("step");
  }

  ended(): void {
    this.#tell("end");
  }

  #tell(trigger: Trigger): void {
    // What a replay repeats has been told.
    if (!isObserved() || this.#execution.replaying) return;
    const event = {
      event: "scheduler",
      run: this.#execution.facts.id,
      trigger,
      step: this.#step,
      activeNodes: this.#activeNodes,
      queueDepth: this.#frontier?.length ?? 0,
      completedSteps: this.#steps,
      metrics: this.metrics,
    } as const;
    // Whoever listens is no code of the graph's.
    callOutside(() => emit(event));
  }

  /** Since this process took the run up. */
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

  /** S6 */
  state(): LiveScheduler {
    return {
      step: this.#step,
      activeNodes: this.#activeNodes,
      queueDepth: this.#frontier?.length ?? 0,
      items: this.#items.map((item, index) => this.#itemState(item, index)),
    };
  }

  /** S2 */
  #itemState({ node, orderKey, spread }: Item, index: number): SchedulerItem {
    const result = this.#results[index];
    const started = this.#running.get(index);
    const { nodes } = this.#execution;
    const command = started?.command ?? "";
    const attempt = nodes?.attemptOf(command) ?? started?.attempt ?? 0;
    const state = (): ItemState => {
      if (result !== undefined) return result.status === "fulfilled" ? "completed" : "failed";
      // One that has ended is not known to be durable yet.
      const isExecuting = nodes?.isAtWork(command) === true || !this.#places.has(command);
      if (started !== undefined) return isExecuting ? "executing" : "queued";
      return index < this.#admitted ? "queued" : "created";
    };
    return { node, orderKey, ...(spread !== undefined && { index: spread }), state: state(), attempt };
  }
}

const schedulers = new WeakMap<Execution, Scheduler>();

/** Of a graph that is in memory. */
export function schedulerOf(execution: Execution): Scheduler | undefined {
  return schedulers.get(execution);
}
