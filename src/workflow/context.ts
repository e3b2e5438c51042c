// The durable context: what workflow code may ask for. Types only; `execution.ts` answers.

import type { Duration } from "../base/index.ts";
import type {
  AnyTask,
  AnswerOf,
  Args,
  ArgumentsOf,
  Awaitable,
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
  Schema,
  SyncResult,
  TaskContext,
  TimedResult,
} from "../kernel/index.ts";
import type { Undo } from "./undo.ts";

/** Options of `ctx.task`. */
export interface TaskCallOptions<T = any> extends Policy {
  /** Higher goes first; the task's own priority where it is not given. */
  priority?: number;
  /** Takes the step back when the workflow fails or is cancelled. */
  undo?: Undo<T>;
}

/** Options of `ctx.run`. */
export interface OperationOptions<T = any> extends Policy {
  /** Takes the step back when the workflow fails or is cancelled. */
  undo?: Undo<T>;
}

/** Options of `ctx.child`. */
export interface ChildOptions {
  /** Default: derived from this run's id and the command, the same on every replay. */
  id?: string;
  /** A detached child outlives its parent and does not answer it. */
  detached?: boolean;
  /** For the whole child run; else that of its definition. */
  deadline?: Duration;
}

/** Options of `ctx.continueAsNew`. */
export interface ContinueOptions {
  /** The version of the workflow the next generation follows; default: the same. */
  version?: number;
}

/** A child run: await it for its output. */
export interface Child<D> extends Promise<OutputOf<D>> {
  readonly id: string;
  /** Sends a signal with this run's next commit, once; a child that has ended does not hear it. */
  signal<K extends PortNames<PortsOf<D>, "signal">>(
    name: K,
    ...value: [PayloadOf<PortsOf<D>[K]>] extends [void] ? [value?: undefined] : [value: PayloadOf<PortsOf<D>[K]>]
  ): Promise<void>;
  /** Asks the child to stop. */
  cancel(): Promise<void>;
}

/** A running timer: await it, or cancel it; a cancelled one rejects with `CancelledError`. */
export interface Timer extends Promise<void> {
  /** Stops it; whoever awaits it gets `CancelledError`. */
  cancel(): void;
}

/** What an operation's function is given. */
export interface OperationContext<M = {}> extends TaskContext {
  /** Shows a chunk at once, before the operation has ended; what a failed or repeated attempt emitted stays. */
  emit<K extends PortNames<M, "stream">>(name: K, chunk: PayloadOf<M[K]>): void;
}

/** What durable code of any kind can ask for. */
export interface DurableContext<M = {}> extends Omit<TaskContext, "heartbeat" | "attempt"> {
  /** Queues a task for any worker and gives its result. */
  task<T extends AnyTask>(task: T, ...args: Args<InputOf<T>, TaskCallOptions<OutputOf<T>>>): Promise<OutputOf<T>>;
  /** Calls the outside here and now and keeps the answer; on replay the kept answer is given, nothing is called. */
  run<T>(
    name: string,
    call: (op: OperationContext<M>) => Awaitable<T & Data<T>>,
    options?: OperationOptions<T>,
  ): Promise<T>;
  /** The same with an input, which is kept and compared on replay. */
  run<I, T>(
    name: string,
    input: I,
    call: (op: OperationContext<M>, input: I) => Awaitable<T & Data<T>>,
    options?: OperationOptions<T>,
  ): Promise<T>;
  /**
   * Your SQL in the entry's own transaction: exactly once. Nothing but SQL belongs in the function, which may run again
   * after it was rolled back; on SQLite it is synchronous. What it throws rolls everything back and is kept as its end.
   */
  tx<Db, T, Sync extends boolean>(
    name: string,
    database: Database<Db, Sync>,
    call: (db: Db) => T & SyncResult<T, Sync> & Data<Awaited<T>>,
  ): Promise<Awaited<T>>;
  /** Starts another run; it goes on even if it is never awaited, and this run waits only if it is. */
  child<D extends Definition>(definition: D, ...args: Args<InputOf<D>, ChildOptions>): Child<D>;
  /** Waits for a value from outside: `run.resolve` gives it, once. `show` says to people what is asked of them. */
  promise<K extends PortNames<M, "promise">>(name: K, options?: { show?: unknown }): Promise<PayloadOf<M[K]>>;
  /** Waits for a value from outside, no longer than `timeout`: a wait that runs out gives `undefined`. */
  promise<K extends PortNames<M, "promise">>(
    name: K,
    options: { timeout: Duration; show?: unknown },
  ): Promise<TimedResult<PayloadOf<M[K]>>>;
  /** Shows a chunk of a stream, once however often the code is replayed; never waits for a reader. */
  emit<K extends PortNames<M, "stream">>(name: K, chunk: PayloadOf<M[K]>): void;
  /**
   * Sends a message to the outside, in the commit that records it. Delivered at least once, in order, with the same key
   * every time, by a worker that has a handler for the destination in its `outbox`; also after the run has ended.
   */
  send(destination: string, payload?: unknown): void;
  /** The time of the journal entry the code has got to. */
  now(): Date;
  /** In [0, 1), the same on every replay. Not for secrets. */
  random(): number;
  /** A UUID, the same on every replay. Not for secrets. */
  uuid(): string;
}

/** Named values the journal keeps, for queries, dashboards and long-lived runs. */
export interface DurableState<State> {
  /** What was set last, here or before a crash. */
  get<K extends keyof State>(key: K): State[K] | undefined;
  /** Keeps a value with the next commit. */
  set<K extends keyof State>(key: K, value: State[K]): void;
  /** One key, or all of them. */
  clear(key?: keyof State): void;
  /** Those that have a value. */
  keys(): (keyof State)[];
}

/** The first argument of a workflow's function. */
export interface WorkflowContext<M = {}, Input = void, State = Record<string, unknown>> extends DurableContext<M> {
  readonly "~input"?: (input: Input) => void;
  /** Waits, for milliseconds or months: no process has to stay up for it. */
  sleep(duration: Duration): Timer;
  /** Waits for a moment; one that is past is over at once. */
  sleepUntil(date: Date): Timer;
  // The usual form is the last: its errors are the ones TypeScript shows.
  /** Takes the next signal of several names, in the order they came: `{ name, value }`. */
  receive<K extends PortNames<M, "signal">>(names: readonly K[]): Promise<Received<M, K>>;
  /** Takes the next signal of several names; a wait that runs out gives `undefined` and takes nothing. */
  receive<K extends PortNames<M, "signal">>(
    names: readonly K[],
    options: { timeout: Duration },
  ): Promise<Received<M, K> | undefined>;
  /** Takes the next signal, first in first out. Never race two `receive`: name both, or give a timeout. */
  receive<K extends PortNames<M, "signal">>(name: K): Promise<PayloadOf<M[K]>>;
  /** Takes the next signal; a wait that runs out gives `undefined` and takes nothing. */
  receive<K extends PortNames<M, "signal">>(
    name: K,
    options: { timeout: Duration },
  ): Promise<TimedResult<PayloadOf<M[K]>>>;
  /** Says what the run answers to a query; call it before the first wait. The answer is given at once, and changes nothing. */
  onQuery<K extends PortNames<M, "query">>(name: K, answer: (args: ArgumentsOf<M[K]>) => AnswerOf<M[K]>): void;
  /** Says what the run does with an update: it may wait, and ask for steps; what it gives, or throws, is the answer. */
  onUpdate<K extends PortNames<M, "update">>(
    name: K,
    handle: (args: ArgumentsOf<M[K]>) => Awaitable<AnswerOf<M[K]>>,
  ): void;
  /** Named values of the run, kept in its journal. */
  readonly state: DurableState<State>;
  /** What is asked for inside goes on when the run is cancelled, so that cleanup can do its work. */
  shield<T>(call: () => Promise<T>): Promise<T>;
  /** Whether this run follows the changed code: true where it gets here for the first time, false where an older version went past. */
  patched(id: string): boolean;
  /**
   * `return ctx.continueAsNew(input)`: ends this generation of the run and starts the next, under the same id and with a new
   * journal. Never settles, never throws through your code.
   */
  continueAsNew(...args: Args<Input, ContinueOptions>): Promise<never>;
}

/** How closely a replay is compared with the journal. */
export type Determinism = "strict" | "per-type";

/** Options of `workflow`. */
export interface WorkflowOptions<Input, Parsed, M, State> {
  /** A Standard Schema (zod, valibot, arktype): inputs are checked at the door, the parsed value is stored. */
  input?: Schema<Input, Parsed>;
  /** What runs take from outside and show: `signal()`, `promise()`, `query()`, `update()`, `stream()` by name. */
  ports?: M;
  /** Carries the type of `ctx.state`; values are not checked against it. */
  state?: Schema<any, State>;
  /** A whole number, default 1: a run is pinned to the version that started it. */
  version?: number;
  /** Where its runs wait; a run has its place from when it begins until it ends. */
  queue?: Queue;
  /** What the queue's limits per key count by. */
  key?: (input: Parsed) => string;
  /** Only workers that have this label take it; default: any worker. */
  label?: string;
  /** For the whole run, from its start; a start may say otherwise. */
  deadline?: Duration;
  /** Default: strict, except with NODE_ENV=production. `verify` and `replay` are always strict. */
  determinism?: Determinism;
}

export type { Logger };
