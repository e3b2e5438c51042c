// The public surface of clients and engines. Types only; runs are in run-api.ts, schedules in schedule-api.ts.

import type { Duration, PayloadCodec, Size } from "../base/index.ts";
import type {
  AnyTask,
  Args,
  BudgetOptions,
  Definition,
  DefinitionKind,
  InputOf,
  Logger,
  LogLevel,
  PayloadOf,
  PortNames,
  PortsOf,
  Queue,
  QueueOptions,
  RedactOptions,
  Retention,
  RunStatus,
  Telemetry,
} from "../kernel/index.ts";
import type { StoreSource } from "../stores/index.ts";
import type { ForeignMemos, OutboxHandler } from "../worker/index.ts";
import type { Webhook } from "./webhook-options.ts";
import type { GuardMode } from "../workflow/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { EvaluateOptions, EvaluationReport } from "./evaluation.ts";
import type { Limits } from "./limits.ts";
import type { Run, RunInfo } from "./run-api.ts";
import type { ScheduleHandle, ScheduleInfo, ScheduleInput, ScheduleOptions } from "./schedule-api.ts";

export type * from "./run-api.ts";
export type * from "./schedule-api.ts";

/** Options of `engine.start`. */
export interface StartOptions extends WaitOptions {
  /** A start with the same id and input returns the same run; with another input it is refused. */
  id?: string;
  /** Tags to find the run by: `engine.list({ tag })`. */
  tags?: readonly string[];
  /** Runs with a higher priority are claimed first; default 0. */
  priority?: number;
  /** After this time the run is canceled and fails with DEADLINE_EXCEEDED. Default: the definition's deadline. */
  deadline?: Duration;
  /** What the run and its children may cost. Default: the definition's budget. */
  budget?: BudgetOptions;
  /** Creates the run now and starts it after this time. */
  delay?: Duration;
  /** While a live run of this definition has the same key, `start` returns that run and starts nothing. */
  singleton?: string;
  /**
   * The trace context of the caller, as W3C texts: the parent of the run's spans. Default: the active context of `telemetry`. Stored
   * with the run, also by a process without `telemetry`. Another context is no other start.
   */
  trace?: { readonly parent: string; readonly state?: string | undefined };
  /** Starts with the same key become one run: it starts `by` after the last of them, with the last input. */
  debounce?: { key: string; by: Duration };
}

/** Signals that are sent together with the start, in the order written. An existing run receives them as well. */
export interface StartSignals<M> {
  signals?: { readonly [K in PortNames<M, "signal">]?: PayloadOf<M[K]> };
}

/** What `engine.findQueue` and `engine.listQueues` say about a queue. */
export interface QueueInfo {
  readonly name: string;
  /** The limits in force, with `rate.per` in milliseconds. */
  readonly limits: QueueOptions;
  readonly paused: boolean;
  /** When the queue was paused. Absent if it is not paused, or if an older version of Reprise paused it. */
  readonly pausedAt?: Date;
  /** Work that can be claimed now, including runs that have not started. */
  readonly ready: number;
  /** Work that workers have claimed, including started runs that have not ended. */
  readonly leased: number;
  /** Work that becomes ready later. */
  readonly delayed: number;
  readonly oldestReadyAt?: Date;
}

/**
 * Controls one queue of the store; from `engine.getQueue`.
 *
 * @example
 * ```ts
 * import type { Client } from "reprise";
 * async function halve(client: Client, name: string): Promise<void> {
 *   const { limits } = (await client.findQueue(name)) ?? {};
 *   if (limits?.concurrency === undefined) return;
 *   await client.getQueue(name).limit({ ...limits, concurrency: Math.ceil(limits.concurrency / 2) });
 * }
 * ```
 */
export interface QueueHandle {
  readonly name: string;
  /** Workers claim no more work from the queue; work in progress continues. */
  pause(options?: WaitOptions): Promise<void>;
  /** Workers claim work from the queue again. */
  resume(options?: WaitOptions): Promise<void>;
  /**
   * Replaces all limits of the queue, for all workers at once, until an engine that declares other limits starts. A limit
   * that is left out is removed: spread `limits` of `engine.findQueue` to keep the others.
   */
  limit(limits: QueueOptions, options?: WaitOptions): Promise<void>;
}

/** A moment: a date, or a duration before now. */
export type TimeOrAge = Date | Duration;

/** Selects the runs of `engine.list` and `engine.bulk`. */
export interface RunFilter {
  /** The name of a definition. */
  definition?: string;
  /** A status, or several; default: every status. */
  status?: RunStatus | readonly RunStatus[];
  /** The kind of its definition. */
  kind?: DefinitionKind;
  /** A tag of the run, or several: all of them. */
  tag?: string | readonly string[];
  /** Selects runs that were created at this time or later: a date, or an age such as `"1 hour"`. */
  createdAfter?: TimeOrAge;
  /** Selects runs that were created before this time. */
  createdBefore?: TimeOrAge;
  /** Selects runs that ended at this time or later. */
  endedAfter?: TimeOrAge;
  /** Selects runs that ended before this time. */
  endedBefore?: TimeOrAge;
  /** The `code` of the error that a failed run ended with, or its name if it has no code: `"TypeError"`. */
  errorCode?: string;
  /** A part of the run's id, with the same case. */
  idContains?: string;
  /** The id of a run: selects the runs that it started as children. */
  parent?: string;
  /** The id of a run: selects only runs older than that one. */
  after?: string;
  /** At most this many runs. */
  limit?: number;
}

/** Selects the promises of `engine.promises`. */
export interface OpenPromiseFilter {
  /** The name of a port. */
  name?: string;
  /** The name of a definition. */
  definition?: string;
  /** The `cursor` of a promise: continues the list after that one. */
  after?: string;
  /** At most this many promises. */
  limit?: number;
}

/** A promise that a live run waits for, as `engine.promises` lists it. */
export interface OpenPromiseInfo {
  readonly runId: string;
  /** The name of the run's definition. */
  readonly definition: string;
  /** `budget`: a call waits until the budget of its run is raised; `run.raise` and `run.declineBudget` answer it. */
  readonly kind: "promise" | "budget";
  /** The name of its port. */
  readonly name: string;
  /** Of a budget: the command that waits. */
  readonly key?: string;
  /** What the code shows to the person who decides. */
  readonly show?: unknown;
  readonly createdAt: Date;
  /** When the wait times out. */
  readonly deadline?: Date;
  /** Its position in the list. */
  readonly cursor: string;
}

/** What `engine.bulk` can do to every run that a filter selects. */
export type BulkAction = "cancel" | "pause" | "resume" | "retry" | "terminate";

/** Options of `engine.bulk`. */
export interface BulkOptions {
  /** Called after each page of runs with the counts so far. */
  onProgress?: (done: BulkReport) => void;
  /** Ends the wait and rejects with the signal's reason. The action may still be applied to the page in progress. */
  signal?: AbortSignal;
}

/** What `engine.bulk` did. */
export interface BulkReport {
  /** Runs the action was applied to. */
  readonly count: number;
  /** Runs the action does not apply to, such as runs that have ended. */
  readonly skipped: number;
}

/** Options of `engine.close`, `engine.drain` and `client.close`. */
export interface CloseOptions extends WaitOptions {
  /** How long work in progress may take to finish. */
  grace?: Duration;
}

/** Options of `engine.prune`. */
export interface PruneOptions {
  /** Deletes runs that ended longer ago than this. */
  olderThan: Duration;
  /** Counts the runs and deletes nothing. */
  dryRun?: boolean;
  /** Called from time to time with how much of the store was read; the last call may have less than `total`. */
  onProgress?: (done: number, total: number) => void;
  /** Stops after the batch in progress and rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** What `engine.prune` and `run.delete` did. */
export interface DeleteReport {
  /** How many runs were deleted, children included. */
  readonly runs: number;
}

/** The definition that a caller passes as a value or by its name. */
export type Picked<Defs, W> = W extends string ? Extract<Defs, { name: W }> : W;

/**
 * Starts, finds and controls runs; from `createClient`. An engine is a client that also executes runs.
 *
 * @example
 * ```ts
 * import type { Client } from "reprise";
 * async function countFailed(client: Client): Promise<number> {
 *   return (await Array.fromAsync(client.list({ status: "failed" }))).length;
 * }
 * ```
 */
export interface Client<Defs extends Definition = Definition> extends AsyncDisposable {
  /** Starts a run and returns when the start is durable. The same id with the same input returns the same run. */
  start<W extends Defs | Defs["name"]>(
    what: W,
    ...args: Args<InputOf<Picked<Defs, W>>, StartOptions & StartSignals<PortsOf<Picked<Defs, W>>>>
  ): Promise<Run<Picked<Defs, W>>>;
  /** Returns the handle of a run without reading the store; the run may be started later. */
  get<W extends Defs | Defs["name"]>(what: W, id: string): Run<Picked<Defs, W>>;
  /** Reads a run's status and facts; `undefined` if there is no such run. */
  find(id: string, options?: WaitOptions): Promise<RunInfo | undefined>;
  /** Iterates over the runs that a filter selects, newest first. */
  list(filter?: RunFilter, options?: WaitOptions): AsyncIterable<RunInfo>;
  /**
   * Iterates over the promises that live runs wait for, of the oldest runs first.
   *
   * @example
   * ```ts
   * import type { Client } from "reprise";
   * async function printInbox(client: Client): Promise<void> {
   *   for await (const { runId, name, key, show } of client.promises({ definition: "release" })) console.log(runId, name, key, show);
   * }
   * ```
   */
  promises(filter?: OpenPromiseFilter, options?: WaitOptions): AsyncIterable<OpenPromiseInfo>;
  /** Applies an action to every run that a filter selects; runs it does not apply to are skipped. */
  bulk(action: BulkAction, filter: RunFilter, options?: BulkOptions): Promise<BulkReport>;
  /**
   * Deletes runs that ended long ago, with their journals and children, in small batches. A run stays while a run of its
   * family lives or is younger, while it has messages to deliver, and while a fork of it exists.
   *
   * @example
   * ```ts
   * import type { Client } from "reprise";
   * async function pruneMonthly(client: Client): Promise<void> {
   *   const { runs } = await client.prune({ olderThan: "30 days" });
   *   console.log(`deleted ${runs} runs`);
   * }
   * ```
   */
  prune(options: PruneOptions): Promise<DeleteReport>;
  /**
   * Creates a schedule, or updates the one with this name. A schedule whose timing stays the same keeps its next time.
   *
   * @example
   * ```ts
   * import { createEngine, workflow } from "reprise";
   * const report = workflow("report", async (ctx, to: string) => ctx.run("send", () => `sent to ${to}`));
   * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [report] });
   * await engine.schedule("morning", report, "ann", { cron: "0 9 * * MON-FRI", timeZone: "Europe/Berlin" });
   * ```
   */
  schedule<W extends Defs | Defs["name"]>(
    name: string,
    what: W,
    input: ScheduleInput<InputOf<Picked<Defs, W>>>,
    options: ScheduleOptions & WaitOptions,
  ): Promise<ScheduleHandle>;
  /** Returns the handle of a schedule without reading the store. */
  getSchedule(name: string): ScheduleHandle;
  /** Reads a schedule's options, its next time and its last run; `undefined` if there is no such schedule. */
  findSchedule(name: string, options?: WaitOptions): Promise<ScheduleInfo | undefined>;
  /** Iterates over every schedule of the store, by name. */
  listSchedules(options?: WaitOptions): AsyncIterable<ScheduleInfo>;
  /** Returns the handle of a queue without reading the store. */
  getQueue(queue: Queue | string): QueueHandle;
  /** Reads a queue's limits and how much work it holds; `undefined` if the store has no such queue. */
  findQueue(queue: Queue | string, options?: WaitOptions): Promise<QueueInfo | undefined>;
  /** Iterates over every queue of the store, the default queue first. */
  listQueues(options?: WaitOptions): AsyncIterable<QueueInfo>;
  /**
   * Waits for work in progress, at most `grace` (default 10 seconds), and closes the store. An aborted `signal` ends only the
   * wait: the process continues to close.
   */
  close(options?: CloseOptions): Promise<void>;
}

/**
 * A client with a worker that executes runs; from `createEngine`.
 *
 * @example
 * ```ts
 * import type { Engine } from "reprise";
 * function closeOnSignal(engine: Engine): void {
 *   process.once("SIGTERM", () => void engine.close({ grace: "20 s" }));
 * }
 * ```
 */
export interface Engine<Defs extends Definition = Definition> extends Client<Defs> {
  /**
   * Forks recorded runs, by default with the answers that they recorded, and compares each fork with its run: with changed code, other
   * models or other answers. The same `id` again continues an evaluation. The store keeps the report.
   *
   * @example
   * ```ts
   * import { createEngine, workflow } from "reprise";
   * const answer = workflow("answer", async (ctx, question: string) => ctx.run("think", { question }, () => `about ${question}`));
   * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [answer] });
   * await (await engine.start(answer, "tea", { tags: ["prod"] })).result();
   * const { scores } = await engine.evaluate(answer, {
   *   runs: { tag: "prod", limit: 200 },
   *   score: { same: (was, is) => Number(was.output === is.output) },
   * });
   * console.log(scores["same"]?.mean);
   * ```
   */
  evaluate<W extends Defs | Defs["name"]>(
    what: W,
    options: EvaluateOptions<Picked<Defs, NoInfer<W>>>,
  ): Promise<EvaluationReport<Picked<Defs, W>>>;
  /** Starts no new work, waits at most `grace` (default 30 seconds) for work in progress, and releases the rest. */
  drain(options?: CloseOptions): Promise<void>;
}

/** How the worker of an engine executes runs. */
export interface WorkerSettings {
  /** How many tasks and operations run at once; default 256. */
  concurrency?: number;
  /** Claims work only from these queues; `queue("default")` holds all work without a queue. Default: every queue. */
  queues?: readonly Queue[];
  /** The labels of this worker. It claims work with a label only if it has that label; `"any"` claims all. Default: none. */
  labels?: readonly string[] | "any";
  /** Lease duration: how long before another worker takes over the work of a dead one; default 10 seconds. */
  lease?: Duration;
  /**
   * About how much memory the runs that the worker keeps between their steps may take; default 256 MiB. A run that does not fit is replayed
   * from its journal when it continues. Work in progress is not limited: its runs stay in memory.
   *
   * @example
   * ```ts
   * import { createEngine, workflow } from "reprise";
   * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
   * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello], worker: { memory: "256 MiB" } });
   * ```
   */
  memory?: Size;
}

/** Options of `createClient`. */
export interface ClientOptions<Defs> {
  /**
   * The address of the database: `"sqlite:shop.db"`, `"sqlite::memory:"`, `"postgres://…"`, `"mysql://…"`; or a source from
   * `reprise/sqlite`, `reprise/postgres` or `reprise/mysql`.
   */
  store: string | StoreSource;
  /**
   * The workflows, graphs, flows and tasks this process knows. A worker claims only runs and tasks of these. A client that
   * starts, signals and awaits runs needs their definitions alone; to query, replay or verify runs it also needs the tasks
   * and children that they call.
   */
  definitions: readonly Defs[];
  /** `"full"` (default), or `"relaxed"`, which may lose the last commits in a power failure but keeps their order. */
  durability?: "full" | "relaxed";
  /**
   * Names the deployed code: a commit, or the digest of an image. The row of every run that this process starts or moves records
   * it (`run.info().runtimes`). Default: not recorded.
   */
  code?: string;
  /** Limits below the maximum of the store. */
  limits?: Limits;
  /** Encodes payloads before they are stored, such as `aesGcm({ keys, current })`; default: they are stored as they are. */
  codec?: PayloadCodec;
  /**
   * Where payloads from 64 KB on are stored: `"file:./contents"`, or `"s3://bucket/prefix?region=eu-central-1"`. The store remembers it,
   * so other processes need not name it. Default: where the store says, or in the store itself.
   */
  contents?: string;
  /** Names and values to redact in log lines and errors, in addition to the usual names; `false` redacts nothing. */
  redact?: false | RedactOptions;
  /**
   * What happens when workflow code reads the clock, randomness or the network without `ctx`: it throws (`"error"`), logs a
   * warning once per place (`"warn"`), or nothing (`"off"`). Default: `"error"`, and `"off"` with NODE_ENV=production.
   */
  guard?: GuardMode;
  /**
   * Receives the lines of `ctx.log` and of the engine. A level writes the lines of that level and above to standard error;
   * default `"info"`. `false` drops all lines.
   */
  logger?: Logger | LogLevel | false;
  /**
   * Sends events of runs to other systems. The commit of this process that ends a run, stops it or opens a promise also writes the
   * event, and the engine of a process with the webhook delivers it. So pass the same webhooks to every process of the store.
   */
  webhooks?: readonly Webhook[];
  /** Receives the spans of runs that this process starts and executes: `openTelemetry()` of `reprise/opentelemetry`. */
  telemetry?: Telemetry;
  /** Ends the wait for the store to open; no effect afterwards. */
  signal?: AbortSignal;
}

/** Options of `createEngine`. */
export interface EngineOptions<Defs> extends ClientOptions<Defs> {
  /** How the engine's worker executes runs. To start runs without executing them, use `createClient`. */
  worker?: WorkerSettings;
  /**
   * Delivers the messages of `ctx.send`, by destination. A message is delivered until its handler returns without throwing,
   * the messages of one run in order. Pass `dedupKey` to the receiver, so that it recognizes a repeated message.
   */
  outbox?: Readonly<Record<string, OutboxHandler>>;
  /**
   * Results of pure steps that other sites computed: `memos` of a federation. A step whose result a trusted peer has published is not
   * executed; its entry says `reused`.
   */
  memos?: ForeignMemos;
  /** How long ended runs of definitions without a `retention` of their own are kept. Default: until they are pruned. */
  retention?: Retention;
}

/** The definitions among workflows, graphs, flows and tasks. */
export type DefinitionsIn<Defs> = Extract<Defs, Definition>;
export type { AnyTask };
