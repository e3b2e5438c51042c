// Context: the types of `ctx` in durable code. `context-object.ts` implements them.

import type { Duration } from "../base/index.ts";
import type {
  AnyTask,
  AnswerOf,
  Args,
  ArgumentsOf,
  Awaitable,
  BudgetOptions,
  CallCost,
  Data,
  Database,
  Definition,
  InputOf,
  Logger,
  PortNames,
  OutputOf,
  PayloadOf,
  Policy,
  Queue,
  PortsOf,
  Received,
  Retention,
  Schema,
  SyncResult,
  TaskContext,
  TimedResult,
} from "../kernel/index.ts";
import type { Undo } from "./undo.ts";

/** Options of `ctx.task`. */
export interface TaskCallOptions<T = any> extends Policy {
  /** Higher runs first. Default: the priority of the task. */
  priority?: number;
  /** Undoes the step if the workflow fails or is canceled. */
  undo?: Undo<T>;
}

/** Options of `ctx.run`. */
export interface OperationOptions<T = any> extends Policy {
  /** Undoes the step if the workflow fails or is canceled. */
  undo?: Undo<T>;
  /**
   * Calls the function even in a fork with `effects: "recorded"`, unless the fork has an answer for it. For calls of a model that
   * the fork replaces (`ctx.models`).
   */
  live?: boolean;
  /** What an execution costs, in runs with a budget. */
  cost?: CallCost<T>;
}

/** Options of `ctx.run` with an input. */
export interface InputOperationOptions<T = any> extends OperationOptions<T> {
  /**
   * The version of the function, if it is pure: its result depends on its input alone. A known result of the same workflow, name,
   * input and version is reused instead of a call.
   */
  pure?: string;
}

/** Options of `ctx.child`. */
export interface ChildOptions {
  /** Default: derived from the id of this run and the command, so the same on every replay. */
  id?: string;
  /** A detached child outlives its parent, and the parent cannot await it. */
  detached?: boolean;
  /** For the whole child run. Default: the deadline of its definition. */
  deadline?: Duration;
  /**
   * `"share"`: the child and this run pay from one budget. `"none"`: the child has no budget. Caps: a part of this run's budget
   * moves to the child when it starts, and the rest comes back when it ends. Default: `"share"`.
   */
  budget?: "share" | "none" | BudgetOptions;
}

/** Options of `ctx.promise`. */
export interface PromiseOptions {
  /** Each key of a port has its own value: `run.resolve` names the same key. At most 150 characters. */
  key?: string;
  /** Tells people what to decide. */
  show?: unknown;
}

/** Options of `ctx.resolve` and `ctx.reject`. */
export interface PromiseSettleOptions {
  /** The key of the promise, as in `ctx.promise(name, { key })`. At most 150 characters. */
  key?: string;
  /** Who decided. The journals keep it. At most 200 characters. */
  by?: string;
  /** Why. The journals keep it. At most 1,000 characters. */
  reason?: string;
}

/** Options of `ctx.continueAsNew`. */
export interface ContinueOptions {
  /** The version of the workflow for the next generation. Default: the same version. */
  version?: number;
}

/** A child run: await it for its output. */
export interface Child<D> extends Promise<OutputOf<D>> {
  readonly id: string;
  /** Sends a signal with the next commit of this run, once. A child that has ended ignores it. */
  signal<K extends PortNames<PortsOf<D>, "signal">>(
    name: K,
    ...value: [PayloadOf<PortsOf<D>[K]>] extends [void] ? [value?: undefined] : [value: PayloadOf<PortsOf<D>[K]>]
  ): Promise<void>;
  /** Requests that the child stops. */
  cancel(): Promise<void>;
}

/** A task to await or to cancel. */
export interface ScheduledTask<T> extends Promise<T> {
  /**
   * Cancels this one task. It rejects with `CancelledError`, leaves its queue, and a running attempt is aborted. A task with an
   * `undo` finishes and is undone instead. Has no effect on a task that has ended.
   */
  cancel(reason?: string): void;
}

/** Options of `ctx.sleep` and `ctx.sleepUntil`. */
export interface TimerOptions {
  /** Names the timer in the journal and in what the run waits for. Open timers of a run have different ids. */
  id?: string;
}

/** A timer to await or to cancel. */
export interface Timer extends Promise<void> {
  /** Stops the timer. It rejects with `CancelledError`. */
  cancel(): void;
}

/** The first argument of an operation's function. */
export interface OperationContext<M = {}> extends TaskContext {
  /** Emits a chunk immediately, before the operation ends. If the operation is executed again, readers get a `reset`. */
  emit<K extends PortNames<M, "stream">>(name: K, chunk: PayloadOf<M[K]>): void;
}

/** The methods that all durable code has. */
export interface DurableContext<M = {}> extends Omit<TaskContext, "heartbeat" | "attempt" | "execution"> {
  /**
   * The models that this run replaces, by their name in the code: `models: { fast: "strong" }` of a fork. Its children, its later
   * generations and its forks inherit them. Empty in other runs.
   */
  readonly models: Readonly<Record<string, string>>;
  /** Enqueues a task for any worker. Await it for its result, or cancel it. */
  task<T extends AnyTask>(task: T, ...args: Args<InputOf<T>, TaskCallOptions<OutputOf<T>>>): ScheduledTask<OutputOf<T>>;
  /** Runs a step in this process and records its result. A replay returns the recorded result without a call. */
  run<T>(
    name: string,
    call: (op: OperationContext<M>) => Awaitable<T & Data<T>>,
    options?: OperationOptions<T>,
  ): Promise<T>;
  /** Runs a step with an input, which is recorded and compared on replay. */
  run<I, T>(
    name: string,
    input: I,
    call: (op: OperationContext<M>, input: I) => Awaitable<T & Data<T>>,
    options?: InputOperationOptions<T>,
  ): Promise<T>;
  /**
   * Runs your SQL in the transaction that records the step, so exactly once. The function may run again after a rollback, so
   * use it for SQL only. On SQLite it is synchronous. An error rolls the SQL back and is recorded as the result of the step.
   */
  tx<Db, T, Sync extends boolean>(
    name: string,
    database: Database<Db, Sync>,
    call: (db: Db) => T & SyncResult<T, Sync> & Data<Awaited<T>>,
  ): Promise<Awaited<T>>;
  /** Starts another run. It runs even if you do not await it. */
  child<D extends Definition>(definition: D, ...args: Args<InputOf<D>, ChildOptions>): Child<D>;
  /** Waits for a value that `run.resolve` provides once. */
  promise<K extends PortNames<M, "promise">>(name: K, options?: PromiseOptions): Promise<PayloadOf<M[K]>>;
  /** Waits for a value that `run.resolve` provides once. Returns `undefined` after `timeout`. */
  promise<K extends PortNames<M, "promise">>(
    name: K,
    options: PromiseOptions & { timeout: Duration },
  ): Promise<TimedResult<PayloadOf<M[K]>>>;
  /**
   * Resolves a promise of another run with the next commit of this run, once. Throws RUN_NOT_FOUND, RUN_ENDED,
   * UNKNOWN_DEFINITION or, if the promise has another value, PROMISE_ALREADY_RESOLVED.
   */
  resolve<D extends Definition, K extends PortNames<PortsOf<D>, "promise">>(
    definition: D,
    runId: string,
    name: K,
    ...value: Args<PayloadOf<PortsOf<D>[K]>, PromiseSettleOptions>
  ): Promise<void>;
  /** Rejects a promise of another run, as `resolve` resolves one: the code that awaits it throws this error. */
  reject<D extends Definition>(
    definition: D,
    runId: string,
    name: PortNames<PortsOf<D>, "promise">,
    error: Error,
    options?: PromiseSettleOptions,
  ): Promise<void>;
  /** Emits a chunk of a stream, once, even if the code is replayed. Does not wait for readers. */
  emit<K extends PortNames<M, "stream">>(name: K, chunk: PayloadOf<M[K]>): void;
  /**
   * Writes a message to the outbox, in the commit that records it. A worker with a handler for the destination in its
   * `outbox` delivers it at least once, in order, with a stable key, also after the run has ended.
   */
  send(destination: string, payload?: unknown): void;
  /** The time of the last journal entry that the code received. */
  now(): Date;
  /** A number in [0, 1), the same on every replay. Not for secrets. */
  random(): number;
  /** A UUID, the same on every replay. Not for secrets. */
  uuid(): string;
  /**
   * Calls library code, synchronous or not: its clock, random numbers and ids come from `ctx`, so they are the same on every
   * replay, and weak references are allowed. Network and timers are refused, also after an `await`.
   */
  deterministic<T>(call: () => T): T;
}

/** Named values in the journal, for queries, dashboards and long-lived runs. */
export interface DurableState<State> {
  /** The last value set, also before a crash. */
  get<K extends keyof State>(key: K): State[K] | undefined;
  /** Records a value with the next commit. */
  set<K extends keyof State>(key: K, value: State[K]): void;
  /** Clears one key, or all of them. */
  clear(key?: keyof State): void;
  /** The keys that have a value. */
  keys(): (keyof State)[];
}

/** The first argument of a workflow's function. */
export interface WorkflowContext<M = {}, Input = any, State = Record<string, unknown>> extends DurableContext<M> {
  readonly "~input"?: (input: Input) => void;
  /** Waits for a duration, of milliseconds or months. No process has to stay up meanwhile. */
  sleep(duration: Duration, options?: TimerOptions): Timer;
  /** Waits until a moment. A moment in the past does not wait. */
  sleepUntil(date: Date, options?: TimerOptions): Timer;
  // The most frequent overload is the last one, because TypeScript shows its errors.
  /** Receives the next of several signals, in order of arrival: `{ name, value }`. */
  receive<K extends PortNames<M, "signal">>(names: readonly K[]): Promise<Received<M, K>>;
  /** Receives the next of several signals. Returns `undefined` after `timeout`, and then takes none. */
  receive<K extends PortNames<M, "signal">>(
    names: readonly K[],
    options: { timeout: Duration },
  ): Promise<Received<M, K> | undefined>;
  /** Receives the next signal, first in, first out. Instead of a race of two `receive` calls, pass both names or a timeout. */
  receive<K extends PortNames<M, "signal">>(name: K): Promise<PayloadOf<M[K]>>;
  /** Receives the next signal. Returns `undefined` after `timeout`, and then takes none. */
  receive<K extends PortNames<M, "signal">>(
    name: K,
    options: { timeout: Duration },
  ): Promise<TimedResult<PayloadOf<M[K]>>>;
  /** Registers the handler of a query. Call it before the first wait. The handler is synchronous and changes nothing. */
  onQuery<K extends PortNames<M, "query">>(name: K, answer: (args: ArgumentsOf<M[K]>) => AnswerOf<M[K]>): void;
  /** Registers the handler of an update, which may run steps and wait. Its result or error is the answer. */
  onUpdate<K extends PortNames<M, "update">>(
    name: K,
    handle: (args: ArgumentsOf<M[K]>) => Awaitable<AnswerOf<M[K]>>,
  ): void;
  /** Named values of the run, in its journal. */
  readonly state: DurableState<State>;
  /** Steps requested inside continue when the run is canceled, so that cleanup can finish. */
  shield<T>(call: () => Promise<T>): Promise<T>;
  /** Whether this run follows the changed code: false if it passed this point before the change, otherwise true. */
  patched(id: string): boolean;
  /**
   * Ends this generation of the run and starts the next one, with the same id and a new journal. Use it as
   * `return ctx.continueAsNew(input)`: the promise never settles.
   */
  continueAsNew(...args: Args<Input, ContinueOptions>): Promise<never>;
}

/** How strictly a replay is compared with the journal. An input that differs stops a strict run, and is noted otherwise. */
export type Determinism = "strict" | "per-type";

/** Options of `workflow`. */
export interface WorkflowOptions<Input, Parsed, M, State> {
  /** A Standard Schema (zod, valibot, arktype). The start of a run parses the input, and the parsed value is stored. */
  input?: Schema<Input, Parsed>;
  /** The messages and streams of a run, by name: `signal()`, `promise()`, `query()`, `update()`, `stream()`. */
  ports?: M;
  /** The type of `ctx.state`. Values are not checked. */
  state?: Schema<any, State>;
  /** A whole number, default 1. A run stays with the version that started it. */
  version?: number;
  /** The queue of its runs. A run occupies a slot from its start to its end. */
  queue?: Queue;
  /** The key for limits per key of the queue. */
  key?: (input: Parsed) => string;
  /** Only workers with this label run it. Default: any worker. */
  label?: string;
  /** For the whole run, from its start. The options of `start` take precedence. */
  deadline?: Duration;
  /** How long ended runs are kept, from their end; workers then delete them. Default: that of the engine. */
  retention?: Retention;
  /** What a run and its children may cost. The options of `start` take precedence. Default: no budget. */
  budget?: BudgetOptions;
  /** Default: strict, except with NODE_ENV=production. `verify` and `replay` are always strict. */
  determinism?: Determinism;
}

export type { Logger };
