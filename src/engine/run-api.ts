// The handle of a run and the options of its methods. Types only.

import type { Duration } from "../base/index.ts";
import type { Checkpoint, SchedulerState } from "../graph/index.ts";
import type {
  AnswerOf,
  Args,
  ArgumentsOf,
  Cost,
  DefinitionKind,
  JournalEntry,
  OutputOf,
  PayloadOf,
  PortNames,
  PortsOf,
  RunAttempt,
  Runtime,
  RunStatus,
  StateOf,
} from "../kernel/index.ts";
import type { PromiseSettleOptions, Replay } from "../workflow/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { HoldingWorker, WaitReason } from "../explain/index.ts";
import type { DiffOptions, RunDiffOf } from "./diff-runs.ts";
import type { ForkAtOptions } from "./fork-at.ts";
import type { ForkOptions } from "./fork-run.ts";
import type { Budget, BudgetAnswerOptions } from "./run-budget.ts";
import type { DeleteReport } from "./api.ts";
import type { MigrateOptions } from "./migrate-run.ts";
import type { CheckpointAt } from "../explain/index.ts";
import type { CheckpointsOptions } from "./run-checkpoints.ts";

/**
 * What `run.info`, `engine.find` and `engine.list` say about a run, without its journal. `engine.list` reads only rows: the
 * fields from `error` on are absent there.
 *
 * @example
 * ```ts
 * import type { Client } from "reprise";
 * async function report(client: Client, id: string): Promise<void> {
 *   const info = await client.find(id);
 *   if (info?.status === "failed") console.log(info.input, info.error, info.attempts?.failed);
 *   for (const { text, next } of info?.waitsFor ?? []) console.log(text, next.join("\n"));
 * }
 * ```
 */
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
  /** The `code` of the error that the run failed with, or its name; absent if it has none, or an older version wrote it. */
  readonly errorCode?: string;
  /** Why the run failed or was stopped. */
  readonly error?: Error;
  readonly input?: unknown;
  /** Of a completed run. */
  readonly output?: unknown;
  /** The id of the run that started this one as its child. */
  readonly parent?: string;
  /**
   * The processes that started and moved the run, in the order of their first commits: processor, versions and `code`. At most
   * 16; later ones are not recorded.
   */
  readonly runtimes?: readonly Runtime[];
  /** How many children it has started, also ended ones; counting stops at 10,000. */
  readonly children?: number;
  /** The worker that holds the run's turn. */
  readonly worker?: HoldingWorker;
  /** Why the run does not move, the most decisive reason first; empty for a run that has ended. */
  readonly waitsFor?: readonly WaitReason[];
  readonly attempts?: AttemptCounts;
}

/** Executions of a run's code that ended without an entry of the journal. `run.attempts` lists every execution. */
export interface AttemptCounts {
  /** Attempts of tasks and of a flow's nodes that failed and were retried. A retried operation has its own journal entry. */
  readonly failed: number;
  /** Executions whose worker lost its lease; a turn counts once. */
  readonly lost: number;
  /** Executions that a worker gave up before they ended, because it shut down. */
  readonly returned: number;
  /** The last failed one. */
  readonly lastFailure?: {
    /** The command or node. */
    readonly step: string;
    /** Counted from 1. */
    readonly attempt: number;
    readonly at: Date;
    /** The name of the worker. */
    readonly worker?: string;
    readonly error: unknown;
  };
}

interface EarlyOptions extends WaitOptions {
  /** Accepts a message for a run that does not exist yet; the run receives it when it is started. */
  beforeStart?: boolean;
}

/** Options of `run.resolve` and `run.reject`. */
export interface SettleOptions extends EarlyOptions, PromiseSettleOptions {}

/** Options of `run.signal`. */
export interface SignalOptions extends EarlyOptions {
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

/**
 * One frame of a stream: a value, or a reset. Check `reset` first.
 *
 * @example
 * ```ts
 * import type { StreamChunk } from "reprise";
 * function shownAfter(shown: readonly StreamChunk<string>[], chunk: StreamChunk<string>): readonly StreamChunk<string>[] {
 *   return chunk.reset ? shown.filter(({ step }) => step !== chunk.reset.step) : [...shown, chunk];
 * }
 * ```
 */
export type StreamChunk<T> = StreamValue<T> | StreamReset;

/** A value that a run emitted. */
export interface StreamValue<T> {
  /** Counts from 1 without gaps. */
  readonly offset: number;
  readonly value: T;
  /** The operation or node that emitted it, as in the journal. Absent for a value from workflow code, which is emitted once. */
  readonly step?: string;
  /** Which execution of the step emitted it, counted from 1. */
  readonly execution?: number;
  readonly reset?: undefined;
}

/** An execution of a step is repeated: the values of that step that were emitted before are void. */
export interface StreamReset {
  /** Counts from 1 without gaps. */
  readonly offset: number;
  readonly reset: {
    /** The step whose earlier values are void. */
    readonly step: string;
    /** The execution that started, of this step or of its node. */
    readonly execution: number;
  };
  readonly value?: undefined;
  readonly step?: undefined;
  readonly execution?: undefined;
}

/** Selects one generation of a run. */
export interface GenerationOptions extends WaitOptions {
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

/** Options of `run.fork` for a definition: of a graph where to fork by step, of others by command. */
export type ForkOptionsOf<D> = [StateOf<D>] extends [never] ? ForkAtOptions : ForkOptions<StateOf<D>>;

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
  /**
   * Reads the run's status, input, output or error, its worker and why it does not move; throws RUN_NOT_FOUND if the store has no
   * such run. Costs a bounded number of reads, whatever the length of the journal.
   */
  info(options?: WaitOptions): Promise<RunInfo>;
  /** Sends a signal. The run receives signals in the order they were sent. */
  signal<K extends PortNames<PortsOf<D>, "signal">>(
    name: K,
    ...value: Args<PayloadOf<PortsOf<D>[K]>, SignalOptions>
  ): Promise<void>;
  /** Resolves a promise. The same value again changes nothing; another value is refused. */
  resolve<K extends PortNames<PortsOf<D>, "promise">>(
    name: K,
    ...value: Args<PayloadOf<PortsOf<D>[K]>, SettleOptions>
  ): Promise<void>;
  /** Rejects a promise: the code that awaits it throws this error. */
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
  cancel(reason?: string, options?: WaitOptions): Promise<void>;
  /** Ends the run immediately, without cleanup or undo, and requests cancellation of its live children. */
  terminate(reason?: string, options?: WaitOptions): Promise<void>;
  /** Reads the budget that the run pays from; undefined: it has none. */
  budget(options?: WaitOptions): Promise<Budget | undefined>;
  /** Adds to the cap of the budget that the run pays from. The calls that wait for it try again. */
  raise(add: Cost, options?: BudgetAnswerOptions): Promise<void>;
  /** Declines to raise the budget: the calls that wait for it throw BUDGET_REACHED. */
  declineBudget(options?: BudgetAnswerOptions): Promise<void>;
  /** Pauses the run: no new steps start, steps already running may finish, messages are still accepted. */
  pause(options?: WaitOptions): Promise<void>;
  /** Retries a failed run: the failed step runs again, committed results are kept. */
  retry(options?: WaitOptions): Promise<void>;
  /**
   * Continues a live run with another version of its definition, which this engine or client has registered. Replays the journal with
   * that version first; refused with MIGRATION_REFUSED and the first difference if it does not fit. A paused run stays paused.
   */
  migrate(options: MigrateOptions): Promise<void>;
  /** Deletes the run and its children. Refused with RUN_IN_USE until they have ended, and while a fork of them exists. */
  delete(options?: WaitOptions): Promise<DeleteReport>;
  /** Resumes a `paused`, `blocked` or `determinism_violation` run with the current code. */
  resume(options?: WaitOptions): Promise<void>;
  /** Reads which nodes of a graph are running or waiting, and the metrics of the run so far. */
  scheduler(options?: WaitOptions): Promise<SchedulerState>;
  /** Iterates over the journal's entries, in order, with decoded values; first those that a workflow's fork shares. */
  journal(options?: JournalOptions): AsyncIterable<JournalEntry>;
  /**
   * Iterates over the executions of the run's steps in the order in which they ended: completed, failed, and lost with their
   * worker. A run that a worker lost has one without a step.
   */
  attempts(options?: GenerationOptions): AsyncIterable<RunAttempt>;
  /** Iterates over the committed steps of a graph, in order; those before a fork belong to its origin. */
  checkpoints(options?: CheckpointsOptions): AsyncIterable<Checkpoint<StateOf<D>>>;
  /** Reads one checkpoint with everything it holds, including recorded calls. */
  checkpoint(at: CheckpointAt, options?: WaitOptions): Promise<Checkpoint<StateOf<D>>>;
  /** Reads the state of a graph after a step, or after the newest step with a label. */
  stateAt(at: CheckpointAt, options?: WaitOptions): Promise<StateOf<D>>;
  /**
   * Starts a new run from this one. A graph forks from a committed step, optionally with patched state; a workflow at one of
   * its commands, which is answered again. The fork shares what is before that with this run. The same id with the same
   * options is the same fork.
   */
  fork(options: ForkOptionsOf<D>): Promise<Run<D>>;
  /**
   * Compares this run with another run of the same definition, of any version: a graph step by step, a workflow command by
   * command, a flow node by node. What a fork shares with the other run is not read.
   */
  diff(other: Run<D>, options?: DiffOptions): Promise<RunDiffOf<D>>;
  /**
   * Runs the current code against the journal. It calls nothing outside and writes nothing: every call of `ctx` is
   * answered from the journal, in graphs for every recorded attempt of every node.
   */
  replay(options?: ReplayOptions): Promise<Replay>;
  /** Replays the run and checks the journal against its hash chain. */
  verify(options?: GenerationOptions): Promise<Replay>;
}
