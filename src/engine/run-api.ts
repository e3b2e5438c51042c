// The handle of a run and the options of its methods. Types only.

import type { Duration } from "../base/index.ts";
import type { Checkpoint, SchedulerState } from "../graph/index.ts";
import type {
  AnswerOf,
  Args,
  ArgumentsOf,
  DefinitionKind,
  JournalEntry,
  OutputOf,
  PayloadOf,
  PortNames,
  PortsOf,
  RunStatus,
  StateOf,
} from "../kernel/index.ts";
import type { Replay } from "../workflow/index.ts";
import type { DiffOptions, RunDiff } from "./diff-runs.ts";
import type { ForkOptions } from "./fork-run.ts";
import type { CheckpointAt } from "./lineage.ts";
import type { CheckpointsOptions } from "./run-checkpoints.ts";

/** What `run.info`, `engine.find` and `engine.list` say about a run, without its journal. */
export interface RunInfo {
  readonly id: string;
  /** The name of its definition. */
  readonly definition: string;
  readonly kind: DefinitionKind;
  /** The version of its definition that the run is pinned to. */
  readonly version: number;
  /** Counts from 0; every `ctx.continueAsNew` adds one. */
  readonly generation: number;
  readonly status: RunStatus;
  readonly createdAt: Date;
  readonly endedAt?: Date;
  readonly tags: readonly string[];
  /** The number of entries in its journal. */
  readonly entries: number;
  /** The hash of its journal. */
  readonly digest: string;
  /** Why the run failed or was stopped; only `info()` and `find()` read it. */
  readonly error?: Error;
}

/** Options of `run.resolve` and `run.reject`. */
export interface SettleOptions {
  /** Accepts a message for a run that does not exist yet; the run receives it when it is started. */
  beforeStart?: boolean;
}

/** Options of `run.signal`. */
export interface SignalOptions extends SettleOptions {
  /** A repeated `dedupId` is ignored for at least 24 hours. */
  dedupId?: string;
}

/** Options of `run.update`. */
export interface UpdateOptions {
  /** A repeated update with the same id is handled once; every caller gets the same answer. */
  dedupId?: string;
  /** Ends the wait for the answer. The run still receives an update that was sent. */
  signal?: AbortSignal;
}

/** Options of `run.query`. */
export interface QueryOptions {
  /** Ends the wait for the answer. */
  signal?: AbortSignal;
}

/** Options of `run.result`. */
export interface ResultOptions {
  /** Rejects with RESULT_TIMEOUT after this time. The run continues. */
  timeout?: Duration;
  /** Ends the wait and rejects with the signal's reason. The run continues. */
  signal?: AbortSignal;
}

/** Options of `run.stream`. */
export interface StreamOptions {
  /** Skips the chunks up to this offset; default 0. */
  after?: number;
  /** Ends the read: the iteration rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** One value of a stream. */
export interface StreamChunk<T> {
  /** Counts from 1 without gaps. */
  readonly offset: number;
  readonly value: T;
}

/** Selects one generation of a run. */
export interface GenerationOptions {
  /** The generation of a run that called `ctx.continueAsNew`; default: the latest. */
  generation?: number;
}

/** Options of `run.replay`. */
export interface ReplayOptions extends GenerationOptions {
  /**
   * `"full"` (default) answers everything from the journal. `"resume"` replays a graph up to a checkpoint and then executes
   * it on a copy in memory: it makes calls and runs tasks, but writes nothing to the store and delivers no message.
   */
  mode?: "full" | "resume";
  /** Where `"resume"` starts to execute: a step, or the newest step with a label. Default: the newest step. */
  from?: CheckpointAt;
  /** True (default) stops at the first difference. False collects differences as `warnings` and continues as recorded. */
  strict?: boolean;
  /** Nodes of a graph whose `ctx.run` calls are made again; an answer that differs from the journal is a difference. */
  live?: readonly string[];
}

/** Options of `run.journal`. */
export interface JournalOptions extends GenerationOptions {
  /** Skips the entries up to this `seq`. */
  after?: number;
}

/**
 * The handle of one run, typed by its definition; from `engine.start` or `engine.get`.
 *
 * @example
 * ```ts
 * import { signal, workflow, type Run } from "reprise";
 * const order = workflow("order", { ports: { paid: signal<number>() } }, async (ctx) => (await ctx.receive("paid")) / 100);
 * async function pay(run: Run<typeof order>, cents: number): Promise<number> {
 *   await run.signal("paid", cents);
 *   return run.result({ timeout: "1 minute" });
 * }
 * ```
 */
export interface Run<D> {
  readonly id: string;
  /** Waits for the end of the run: returns its output, or throws why it failed, was canceled or was stopped. */
  result(options?: ResultOptions): Promise<OutputOf<D>>;
  /** Reads the run's status; throws RUN_NOT_FOUND if the store has no such run. */
  info(): Promise<RunInfo>;
  /** Sends a signal. The run receives signals in the order they were sent. */
  signal<K extends PortNames<PortsOf<D>, "signal">>(
    name: K,
    ...value: Args<PayloadOf<PortsOf<D>[K]>, SignalOptions>
  ): Promise<void>;
  /** Resolves a promise port; a second value is refused. */
  resolve<K extends PortNames<PortsOf<D>, "promise">>(
    name: K,
    ...value: Args<PayloadOf<PortsOf<D>[K]>, SettleOptions>
  ): Promise<void>;
  /** Rejects a promise port: the code that awaits it throws this error. */
  reject(name: PortNames<PortsOf<D>, "promise">, error: Error, options?: SettleOptions): Promise<void>;
  /**
   * Reads the chunks of a stream after the offset `after`, including those to come; ends with the run. A reader that
   * stores the last offset it has read can continue from there in any process.
   */
  stream<K extends PortNames<PortsOf<D>, "stream">>(
    name: K,
    options?: StreamOptions,
  ): AsyncGenerator<StreamChunk<PayloadOf<PortsOf<D>[K]>>, void, undefined>;
  /** Asks the run's code, also after the run has ended. Writes nothing; throws what the query handler throws. */
  query<K extends PortNames<PortsOf<D>, "query">>(
    name: K,
    ...args: Args<ArgumentsOf<PortsOf<D>[K]>, QueryOptions>
  ): Promise<AnswerOf<PortsOf<D>[K]>>;
  /** Sends a message and waits until the run's code has handled it: returns its answer, or throws its error. */
  update<K extends PortNames<PortsOf<D>, "update">>(
    name: K,
    ...args: Args<ArgumentsOf<PortsOf<D>[K]>, UpdateOptions>
  ): Promise<AnswerOf<PortsOf<D>[K]>>;
  /** Requests cancellation: what the run's code awaits rejects with `CancelledError`. */
  cancel(reason?: string): Promise<void>;
  /** Ends the run immediately, without cleanup or undo, and requests cancellation of its live children. */
  terminate(reason?: string): Promise<void>;
  /** Pauses the run: no new steps start, steps already running may finish, messages are still accepted. */
  pause(): Promise<void>;
  /** Retries a failed run: the failed step runs again, committed results are kept. */
  retry(): Promise<void>;
  /** Resumes a `paused`, `blocked` or `determinism_violation` run with the current code. */
  resume(): Promise<void>;
  /** Reads which nodes of a graph are running or waiting, and the metrics of the run so far. */
  scheduler(): Promise<SchedulerState>;
  /** Iterates over the journal's entries, in order, with decoded values. */
  journal(options?: JournalOptions): AsyncIterable<JournalEntry>;
  /** Iterates over the committed steps of a graph, in order; those before a fork belong to its origin. */
  checkpoints(options?: CheckpointsOptions): AsyncIterable<Checkpoint<StateOf<D>>>;
  /** Reads one checkpoint with everything it holds, including recorded calls. */
  checkpoint(at: CheckpointAt): Promise<Checkpoint<StateOf<D>>>;
  /** Reads the state of a graph after a step, or after the newest step with a label. */
  stateAt(at: CheckpointAt): Promise<StateOf<D>>;
  /**
   * Starts a new run from a committed step, optionally with patched state. The fork shares the steps before it with this
   * run and uses the same random seed. The same id with the same step and patch is the same fork.
   */
  fork(options: ForkOptions<StateOf<D>>): Promise<Run<D>>;
  /** Compares this run with another run of the same graph, step by step. */
  diff(other: Run<D>, options?: DiffOptions): Promise<RunDiff>;
  /**
   * Runs the current code against the journal. It calls nothing outside and writes nothing: every call of `ctx` is
   * answered from the journal, in graphs for every recorded attempt of every node.
   */
  replay(options?: ReplayOptions): Promise<Replay>;
  /** Replays the run and checks the journal against its hash chain. */
  verify(options?: GenerationOptions): Promise<Replay>;
}
