// Attempt: one call of user code, with a time limit and a way to be told that nobody waits any more.

import { approachable, isThenable, RepriseError, type EpochMs, type Timers } from "../base/index.ts";
import { emit, isObserved, type Logger, stepPath } from "../kernel/index.ts";
import { callInStep, idempotencyKeyOf, type OperationContext } from "../workflow/index.ts";
import type { Slots } from "./slots.ts";

export interface AttemptOptions {
  readonly runId: string;
  readonly generation: number;
  /** The command, `Task(3)`. */
  readonly step: string;
  /** V3 */
  readonly life: number;
  readonly name: string;
  readonly attempt: number;
  readonly timeoutMs: number | undefined;
  readonly timers: Timers;
  /** Made when it is first used. */
  readonly logger: (runId: string, step: string) => Logger;
  /** Of a node: what tells when it is at work, and the clock its time is measured by while it waits for what may take days. */
  readonly node?: { readonly slots: Slots; now(): EpochMs } | undefined;
  /** Where an operation's chunks go; a task has no streams. */
  readonly streams?: { emit(stream: string, chunk: unknown): void };
}

export interface AttemptHandlers {
  done(value: unknown): void;
  failed(error: unknown): void;
  /** Always, before the other two, and alone when the attempt is abandoned. */
  over(): void;
}

/** The context user code gets is the attempt itself: made once per call, its costly parts only when they are used. */
export class Attempt implements OperationContext {
  readonly runId: string;
  readonly attempt: number;
  readonly #options: AttemptOptions;
  #log: Logger | undefined;
  #abort: AbortController | undefined;
  #cancelTimeout: (() => void) | undefined;
  #handlers: AttemptHandlers | undefined;
  #settled = false;
  /** What is left of its time while it waits; and when it is up, while it does not. */
  #suspended: { readonly leftMs: number | undefined } | undefined;
  #upAt = 0;
  #stoppedBy: RepriseError | undefined;
  #abandoned: { readonly reason: unknown } | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.runId = options.runId;
    this.attempt = options.attempt;
  }

  get log(): Logger {
    this.#log ??= this.#options.logger(this.runId, this.#options.step);
    return this.#log;
  }

  get idempotencyKey(): string {
    const { generation, step, life } = this.#options;
    return idempotencyKeyOf(this.runId, generation, stepPath(step, life));
  }

  get emit(): (stream: string, chunk: unknown) => void {
    return (stream, chunk) => {
      if (!this.#settled) this.#options.streams?.emit(stream, chunk);
    };
  }

  get abortSignal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // Asked for when it is over already: the function must still learn that nobody waits.
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

  /** Its code waits for what may take days: that time does not count. */
  suspend(): void {
    const { node, timeoutMs } = this.#options;
    if (this.#settled || this.#suspended !== undefined || node === undefined) return;
    this.#cancelTimeout?.();
    this.#suspended = { leftMs: timeoutMs === undefined ? undefined : this.#upAt - node.now() };
    node.slots.give();
  }

  goOn(): void {
    if (this.#settled || this.#suspended === undefined) return;
    const { leftMs } = this.#suspended;
    this.#suspended = undefined;
    this.#options.node?.slots.take();
    if (leftMs !== undefined) this.#limitTime(Math.max(0, leftMs));
  }

  /** G12. Its function is told, and has a while to finish: what it answers until then counts. */
  stop(error: RepriseError, graceMs: number): void {
    if (this.#settled || this.#stoppedBy !== undefined) return;
    this.#stoppedBy = error;
    this.#tellFunction(error);
    const cancelLimit = this.#cancelTimeout;
    const cancelGrace = this.#options.timers.set(graceMs, () => this.#fail(error), { ref: false });
    this.#cancelTimeout = () => {
      cancelLimit?.();
      cancelGrace();
    };
  }

  /** Calls at once, and answers at once when `call` does. */
  start(call: () => unknown, handlers: AttemptHandlers): void {
    const { name, step, attempt, timeoutMs } = this.#options;
    if (isObserved()) emit({ event: "attempt.started", run: this.runId, step, name, attempt });
    this.#handlers = handlers;
    this.#options.node?.slots.take();
    if (timeoutMs !== undefined) this.#limitTime(timeoutMs);
    let result: unknown;
    let later: boolean;
    try {
      result = callInStep(name, call);
      // Looking at it may run user code too: a getter, a proxy.
      later = isThenable(result);
    } catch (error) {
      return this.#fail(error);
    }
    if (!later) return this.#complete(result);
    Promise.resolve(result).then(
      (value: unknown) => this.#complete(value),
      (error: unknown) => this.#fail(error),
    );
  }

  /** Nobody waits any more; whatever the function still does is not heard. */
  abandon(reason: unknown): void {
    if (this.#settle()) this.#tellFunction(reason);
  }

  #tellFunction(reason: unknown): void {
    this.#abandoned = { reason };
    this.#abort?.abort(reason);
  }

  #complete(value: unknown): void {
    if (this.#settle()) this.#handlers?.done(value);
  }

  #fail(error: unknown): void {
    if (this.#settle()) this.#handlers?.failed(approachable(error));
  }

  /** True once. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#cancelTimeout?.();
    if (this.#suspended === undefined) this.#options.node?.slots.give();
    this.#handlers?.over();
    return true;
  }

  #limitTime(ms: number): void {
    const { node, timers, timeoutMs } = this.#options;
    if (node !== undefined) this.#upAt = node.now() + ms;
    this.#cancelTimeout = timers.set(ms, () => {
      const { name, step, attempt } = this.#options;
      const error = new RepriseError(
        "ATTEMPT_TIMEOUT",
        `Attempt ${attempt + 1} of ${name} (${step}) took longer than ${timeoutMs} ms.`,
      );
      if (!this.#settle()) return;
      this.#tellFunction(error);
      this.#handlers?.failed(error);
    });
  }
}
