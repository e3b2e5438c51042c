// Attempt: one call of user code, with a timeout and an abort signal.

import { readableThrown, isThenable, RepriseError, type EpochMs, type Timers } from "../base/index.ts";
import { emit, isObserved, type Logger, type OpenSpan, stepPath } from "../kernel/index.ts";
import { callInStep, idempotencyKeyOf, type OperationContext } from "../workflow/index.ts";
import type { StepExecution } from "./stream-resets.ts";
import type { ExecutionSlots } from "./execution-slots.ts";
import type { TurnBudget } from "./turn-budget.ts";

export interface AttemptOptions {
  readonly runId: string;
  readonly generation: number;
  /** The command, `Task(3)`. */
  readonly step: string;
  /** retry-record.V3 */
  readonly epoch: number;
  readonly name: string;
  /** Of the run. */
  readonly definition: string;
  readonly kind: "operation" | "node" | "task";
  readonly now: () => EpochMs;
  /** As stored, from 0. */
  readonly attempt: number;
  /** attempts.X1 */
  readonly execution: number;
  readonly timeoutMs: number | undefined;
  /** Of a step of another site, which made the key. */
  readonly idempotencyKey?: string;
  readonly timers: Timers;
  /** Called on first use. */
  readonly logger: (runId: string, step: string) => Required<Logger>;
  /** For a node of a graph: counts running nodes, and stops its timeout while the node waits. */
  readonly node?: { readonly slots: ExecutionSlots } | undefined;
  /** Undefined: the result is handled at once. */
  readonly turn?: TurnBudget | undefined;
  /** Undefined without telemetry. */
  readonly span?: OpenSpan | undefined;
  /** Receives an operation's chunks; tasks have no streams. */
  readonly streams?: { emit(stream: string, chunk: unknown, from: StepExecution): void };
}

export interface AttemptHandlers {
  completed(value: unknown): void;
  failed(error: unknown): void;
  /** Called before either of the others, and alone when the attempt is abandoned. */
  settled(): void;
}

/** The attempt is the context that user code receives. Its costly parts are created on first use. */
export class Attempt implements OperationContext {
  readonly runId: string;
  /** From 1. */
  readonly attempt: number;
  readonly execution: number;
  readonly #options: AttemptOptions;
  #log: Required<Logger> | undefined;
  #abort: AbortController | undefined;
  #cancelTimeout: (() => void) | undefined;
  #handlers: AttemptHandlers | undefined;
  #settled = false;
  /** The remaining time, while the node waits. */
  #suspended: { readonly leftMs: number | undefined } | undefined;
  #timeoutAt = 0;
  /** Undefined while nothing observes events. */
  #startedAt: EpochMs | undefined;
  #stoppedBy: RepriseError | undefined;
  #abandoned: { readonly reason: unknown } | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.runId = options.runId;
    this.attempt = options.attempt + 1;
    this.execution = options.execution;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /** From 0. */
  get storedAttempt(): number {
    return this.#options.attempt;
  }

  get log(): Required<Logger> {
    this.#log ??= this.#options.logger(this.runId, this.#options.step);
    return this.#log;
  }

  get idempotencyKey(): string {
    const { generation, step, epoch, idempotencyKey } = this.#options;
    return idempotencyKey ?? idempotencyKeyOf(this.runId, generation, stepPath(step, epoch));
  }

  get emit(): (stream: string, chunk: unknown) => void {
    return (stream, chunk) => {
      if (!this.#settled) this.#options.streams?.emit(stream, chunk, this.#options);
    };
  }

  get abortSignal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // The attempt was abandoned before the function first read its signal.
      if (this.#abandoned !== undefined) this.#abort.abort(this.#abandoned.reason);
    }
    return this.#abort.signal;
  }

  readonly heartbeat = (): void => {
    if (this.#settled || this.#options.timeoutMs === undefined) return;
    this.#cancelTimeout?.();
    this.#limitTime(this.#options.timeoutMs);
  };

  // ── nodes of graphs ──

  get isSuspended(): boolean {
    return this.#suspended !== undefined;
  }
  get stoppedBy(): RepriseError | undefined {
    return this.#stoppedBy;
  }

  /** The node's code waits for a durable command: the timeout stops. */
  suspend(): void {
    const { node, timeoutMs, now } = this.#options;
    if (this.#settled || this.#suspended !== undefined || node === undefined) return;
    this.#cancelTimeout?.();
    this.#suspended = { leftMs: timeoutMs === undefined ? undefined : this.#timeoutAt - now() };
    node.slots.release();
  }

  resume(): void {
    if (this.#settled || this.#suspended === undefined) return;
    const { leftMs } = this.#suspended;
    this.#suspended = undefined;
    this.#options.node?.slots.acquire();
    if (leftMs !== undefined) this.#limitTime(Math.max(0, leftMs));
  }

  /** rules.G12. Aborts the function's signal; a result within `graceMs` still counts. */
  stop(error: RepriseError, graceMs: number): void {
    if (this.#settled || this.#stoppedBy !== undefined) return;
    this.#stoppedBy = error;
    this.#abortFunction(error);
    const cancelLimit = this.#cancelTimeout;
    const cancelGrace = this.#options.timers.set(graceMs, () => this.#fail(error), { ref: false });
    this.#cancelTimeout = () => {
      cancelLimit?.();
      cancelGrace();
    };
  }

  /** Publishes that the function is called. */
  announce(): void {
    if (!isObserved()) return;
    const { name, step, now } = this.#options;
    this.#startedAt = now();
    const { runId: run, attempt, execution } = this;
    emit({ event: "attempt.started", run, step, name, attempt, execution });
  }

  /**
   * Calls synchronously. When `call` returns no promise, the attempt settles at once, or in a later turn (turn-budget.B1). `recalls`:
   * `call` may not call the function.
   */
  start(call: () => unknown, handlers: AttemptHandlers, recalls = false): void {
    const { name, node, timeoutMs, span } = this.#options;
    if (!recalls) this.announce();
    this.#handlers = handlers;
    node?.slots.acquire();
    if (timeoutMs !== undefined) this.#limitTime(timeoutMs);
    let result: unknown;
    let later: boolean;
    try {
      const traced = span === undefined ? call : (): unknown => span.call(call);
      // The code of a graph's node gets its own scope (running-nodes.ts).
      result = node === undefined ? callInStep(name, traced) : traced();
      // May run user code: a getter or a proxy.
      later = isThenable(result);
    } catch (error) {
      return this.#fail(error);
    }
    if (!later) return this.#onReturned(result);
    Promise.resolve(result).then(
      (value: unknown) => this.#onReturned(value),
      (error: unknown) => this.#fail(error),
    );
  }

  /** Aborts the function's signal and ignores its result. */
  abandon(reason: unknown): void {
    if (this.#settle()) this.#abortFunction(reason);
  }

  #abortFunction(reason: unknown): void {
    this.#abandoned = { reason };
    this.#abort?.abort(reason);
  }

  /** turn-budget.B1 */
  #onReturned(value: unknown): void {
    const { turn } = this.#options;
    if (turn === undefined) return this.#complete(value);
    turn.run(() => this.#complete(value));
    // The function returned in time, whenever its result is handled.
    if (!this.#settled) this.#cancelTimeout?.();
  }

  #complete(value: unknown): void {
    if (!this.#settle()) return;
    this.#options.span?.finish();
    this.#emitEnded("completed");
    this.#handlers?.completed(value);
  }

  #fail(error: unknown): void {
    if (this.#settle()) this.#failed(readableThrown(error));
  }

  #emitEnded(outcome: "completed" | "failed"): void {
    if (this.#startedAt === undefined || !isObserved()) return;
    const { definition, step, name, kind, now } = this.#options;
    const { runId: run, attempt } = this;
    const tookMs = Math.max(0, now() - this.#startedAt);
    emit({ event: "attempt.ended", run, definition, step, name, kind, attempt, outcome, tookMs });
  }

  /** True for the first call. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#cancelTimeout?.();
    if (this.#suspended === undefined) this.#options.node?.slots.release();
    this.#handlers?.settled();
    return true;
  }

  #limitTime(ms: number): void {
    const { node, timers, timeoutMs, now } = this.#options;
    if (node !== undefined) this.#timeoutAt = now() + ms;
    this.#cancelTimeout = timers.set(ms, () => {
      const { name, step } = this.#options;
      const error = new RepriseError(
        "ATTEMPT_TIMEOUT",
        `Attempt ${this.attempt} of ${name} (${step}) took longer than ${timeoutMs} ms.`,
      );
      if (!this.#settle()) return;
      this.#abortFunction(error);
      this.#failed(error);
    });
  }

  #failed(error: unknown): void {
    this.#options.span?.finish({ error });
    this.#emitEnded("failed");
    this.#handlers?.failed(error);
  }
}
