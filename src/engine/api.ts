// The public surface of an engine: handles, filters, options. Types only.

import type { Duration, PayloadCodec } from "../base/index.ts";
import type {
  AnyTask,
  Answer,
  Args,
  Asked,
  CatchUp,
  Definition,
  JournalEntry,
  InputOf,
  Logger,
  Named,
  OutputOf,
  Overlap,
  Payload,
  PortsOf,
  Queue,
  QueueOptions,
  StateOf,
  Status,
  RedactOptions,
} from "../kernel/index.ts";
import type { SchedulerState } from "../graph/index.ts";
import type { GuardMode, Replay } from "../workflow/index.ts";
import type { StoreSource } from "../stores/index.ts";
import type { Checkpoint } from "../graph/index.ts";
import type { DiffOptions, RunDiff } from "./diff-runs.ts";
import type { ForkOptions } from "./fork-run.ts";
import type { CheckpointAt } from "./lineage.ts";
import type { CheckpointsOptions } from "./run-checkpoints.ts";
import type { Limits } from "./limits.ts";
import type { OutboxHandler } from "../worker/index.ts";

/** What is known about a run without reading its journal. */
export interface RunInfo {
  readonly id: string;
  readonly definition: string;
  readonly kind: Definition["kind"];
  /** The version of its definition that the run is pinned to. */
  readonly version: number;
  /** 0, and one more for each `ctx.continueAsNew`. */
  readonly generation: number;
  readonly status: Status;
  readonly createdAt: Date;
  readonly endedAt?: Date;
  readonly tags: readonly string[];
  /** How many entries its journal has. */
  readonly entries: number;
  readonly digest: string;
  /** Why it failed or was stopped; only from `info()` and `find()`. */
  readonly error?: Error;
}

/** Options of `run.resolve` and `run.reject`. */
export interface SettleOptions {
  /** The run may not exist yet: it is then expected, and gets the message when it is started. */
  beforeStart?: boolean;
}

/** Options of `run.signal`. */
export interface SignalOptions extends SettleOptions {
  /** A second signal with the same id to the same run is dropped in silence, for a day at least. */
  dedupId?: string;
}

/** Options of `run.update`. */
export interface UpdateOptions {
  /** The same update again: it is handled once, and every sender gets that one answer. */
  dedupId?: string;
}

/** Options of `engine.start`. */
export interface StartOptions {
  /** Starting the same id with the same input again gives the same run; with another input it is refused. */
  id?: string;
  /** To find runs by: `engine.list({ tag })`. */
  tags?: readonly string[];
  /** Higher goes first. */
  priority?: number;
  /** For the whole run: then it is told to stop, and fails with DEADLINE_EXCEEDED. Else that of its definition. */
  deadline?: Duration;
  /** The run exists at once and begins this much later. */
  delay?: Duration;
  /** While a live run of this definition has the same key, that one is given back and nothing is started. */
  singleton?: string;
  /** Starts with the same key become one run: it begins `by` after the last of them, with the last input. */
  debounce?: { key: string; by: Duration };
}

/** A queue as it stands. Runs count as ready until they begin, and as leased until they end. */
export interface QueueInfo {
  readonly name: string;
  /** `rate.per` in milliseconds. */
  readonly limits: QueueOptions;
  readonly paused: boolean;
  readonly ready: number;
  readonly leased: number;
  readonly delayed: number;
  readonly oldestReadyAt?: Date;
}

/** A handle on one queue of the store. */
export interface QueueHandle {
  readonly name: string;
  /** Hands out nothing more; what is at work goes on. */
  pause(): Promise<void>;
  /** Hands out work again. */
  resume(): Promise<void>;
  /** Other limits, at once and for all workers, until an engine that declares new ones starts. */
  limit(limits: QueueOptions): Promise<void>;
}

/** Signals that come with the start, in the order written. To a run that is there already they are sent like any other. */
export interface StartSignals<M> {
  signals?: { readonly [K in Named<M, "signal">]?: Payload<M[K]> };
}

/** Which generation of a run is meant. */
export interface GenerationOptions {
  /** Of a run that continued as new; default: the newest. */
  generation?: number;
}
/** How `run.replay` compares. */
export interface ReplayOptions extends GenerationOptions {
  /**
   * `full` (default): recordings only. `resume`, of a graph: recordings up to a checkpoint, then live, on a copy in memory:
   * calls and tasks are done, nothing is written to the store and no message is delivered.
   */
  mode?: "full" | "resume";
  /** Where `resume` goes on: a step, or the newest step with this label. Default: the newest. */
  from?: CheckpointAt;
  /** Default true: the first difference is the verdict. False: differences are `warnings`, and what was recorded goes on. */
  strict?: boolean;
  /** Nodes of a graph whose `ctx.run` calls are made again: an answer other than the recorded one is a difference. */
  live?: readonly string[];
}
/** Which entries `run.journal` gives. */
export interface JournalOptions extends GenerationOptions {
  /** Only entries after this one. */
  after?: number;
}

/** A handle on one run, typed by its definition. */
export interface Run<D> {
  readonly id: string;
  /** Waits for the end: gives the output, or throws what went wrong. */
  result(options?: { timeout?: Duration }): Promise<OutputOf<D>>;
  /** How the run stands; throws RUN_NOT_FOUND where there is none. */
  info(): Promise<RunInfo>;
  /** Sends a signal: the run takes it when it is ready for it, in the order signals came. */
  signal<K extends Named<PortsOf<D>, "signal">>(
    name: K,
    ...value: Args<Payload<PortsOf<D>[K]>, SignalOptions>
  ): Promise<void>;
  /** Gives a promise port its value; a second value is refused. */
  resolve<K extends Named<PortsOf<D>, "promise">>(
    name: K,
    ...value: Args<Payload<PortsOf<D>[K]>, SettleOptions>
  ): Promise<void>;
  /** Gives a promise port an error: the code that waits for it gets it thrown. */
  reject(name: Named<PortsOf<D>, "promise">, error: Error, options?: SettleOptions): Promise<void>;
  /**
   * The chunks of a stream behind the offset `after`, those to come included; ends with the run. Offsets are dense from 1:
   * whoever keeps the last one it has seen goes on from there, in any process.
   */
  stream<K extends Named<PortsOf<D>, "stream">>(
    name: K,
    options?: { after?: number },
  ): AsyncIterable<{ readonly offset: number; readonly value: Payload<PortsOf<D>[K]> }>;
  /** Asks the run's code, also when it has ended; nothing is written. Throws what the answering code throws. */
  query<K extends Named<PortsOf<D>, "query">>(
    name: K,
    ...args: Args<Asked<PortsOf<D>[K]>, {}>
  ): Promise<Answer<PortsOf<D>[K]>>;
  /** Sends a message the run's code handles, and waits for its answer: what it gives, or throws. */
  update<K extends Named<PortsOf<D>, "update">>(
    name: K,
    ...args: Args<Asked<PortsOf<D>[K]>, UpdateOptions>
  ): Promise<Answer<PortsOf<D>[K]>>;
  /** Asks the run to stop: what it waits for rejects with `CancelledError`. */
  cancel(reason?: string): Promise<void>;
  /** Ends the run at once, without asking its code: no cleanup, no undo. Its live children are asked to stop. */
  terminate(reason?: string): Promise<void>;
  /** Lets no further code go on; what is at work may finish, messages keep arriving. */
  pause(): Promise<void>;
  /** Lets a failed run go on from where it failed: the step that failed is done again, everything committed stays. */
  retry(): Promise<void>;
  /** Lets a run that was stopped (`blocked`, `determinism_violation`, `paused`) go on with today's code. */
  resume(): Promise<void>;
  /** Of a graph: what is at work, what waits, and the figures of the run so far. A moment's look, from any process. */
  scheduler(): Promise<SchedulerState>;
  /** Its entries, in order, with their values decoded. */
  journal(options?: JournalOptions): AsyncIterable<JournalEntry>;
  /** The steps a graph has committed, in order; of a fork, those before it began are the origin's. */
  checkpoints(options?: CheckpointsOptions): AsyncIterable<Checkpoint<StateOf<D>>>;
  /** One of them with everything it holds, recorded calls included. */
  checkpoint(at: CheckpointAt): Promise<Checkpoint<StateOf<D>>>;
  /** The state of a graph after a step, or after the newest step with this label. */
  stateAt(at: CheckpointAt): Promise<StateOf<D>>;
  /**
   * Another run from a committed step of this one, with a changed state where that is wanted. It has the steps before in
   * common with this run, draws the same chance, and goes on by itself under its own id. The same id with the same step
   * and patch again is the same fork.
   */
  fork(options: ForkOptions<StateOf<D>>): Promise<Run<D>>;
  /** Where this run and another one of the same graph part, step by step. */
  diff(other: Run<D>, options?: DiffOptions): Promise<RunDiff>;
  /**
   * Runs today's code against the journal; nothing outside is called, nothing is written. The nodes of a graph are run
   * again, attempt by attempt, with every call of `ctx` answered from the journal.
   */
  replay(options?: ReplayOptions): Promise<Replay>;
  /** `replay`, and the journal against its own hash chain. */
  verify(options?: GenerationOptions): Promise<Replay>;
}

/** Which runs `engine.list` and `engine.bulk` take. */
export interface Filter {
  /** The name of a workflow. */
  definition?: string;
  /** One of several; default: any. */
  status?: Status | readonly Status[];
  /** A tag the run carries. */
  tag?: string;
  /** The id of a run: only older ones. */
  after?: string;
  /** CheckpointAt most so many. */
  limit?: number;
}

/** When a schedule starts its definition, and what happens when it cannot be on time. */
export interface ScheduleOptions {
  /** Five fields, `"0 9 * * MON-FRI"`, six with seconds in front, or `"@daily"`. Either this or `every`. */
  cron?: string;
  /** An interval, counted from the moment the schedule is made; at least a second. */
  every?: Duration;
  /** Of `cron`; default `"UTC"`, never that of the machine. */
  timeZone?: string;
  /** When the run before has not ended: default `"skip"` this time; `"queue"` until it has; `"cancel"` it; or `"allow"` both. */
  overlap?: Overlap;
  /** After nobody was there to fire: `"none"` of the missed times, the `"last"` (default), or `"all"`, at most 1,000. */
  catchUp?: CatchUp;
  /** Each run is started up to this much later, by a time drawn from the name and the planned time. */
  jitter?: Duration;
}

/** A schedule as it stands. */
export interface ScheduleInfo {
  readonly name: string;
  readonly definition: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly everyMs?: number;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitterMs: number;
  readonly paused: boolean;
  /** The next planned time; none when the pattern has no more, or while paused. */
  readonly nextAt?: Date;
  /** The last planned time that started a run, and the run. */
  readonly lastAt?: Date;
  readonly lastRun?: string;
  readonly lastStatus?: Status;
  /** Planned times that wait for the run before them to end. */
  readonly waiting: readonly Date[];
  readonly createdAt: Date;
}

/**
 * A handle on one schedule, from `engine.schedule` or `engine.findSchedule`.
 *
 * @example
 * ```ts
 * import type { Schedule } from "reprise";
 * async function makeUpFor(schedule: Schedule, day: Date): Promise<number> {
 *   const next = new Date(day.getTime() + 86_400_000);
 *   return (await schedule.backfill(day, next)).count;
 * }
 * ```
 */
export interface Schedule {
  readonly name: string;
  /** Its options, its next time and its last run. */
  info(): Promise<ScheduleInfo>;
  /** Fires nothing more; runs that were started go on. */
  pause(): Promise<void>;
  /** Goes on with the first planned time from now; what was planned meanwhile is not made up for. */
  resume(): Promise<void>;
  /** Starts one run now, beside the planned ones and whatever `overlap` says. */
  trigger(): Promise<RunInfo>;
  /** Starts every planned time from `from` to before `to` that has no run yet; answers how many. CheckpointAt most 1,000. */
  backfill(from: Date, to: Date): Promise<{ readonly count: number }>;
  /** Forgets the schedule; its runs stay. */
  remove(): Promise<void>;
}

/** What `engine.bulk` can do to many runs at once. */
export type BulkAction = "cancel" | "pause" | "resume" | "retry" | "terminate";

/** Options of `engine.bulk`. */
export interface BulkOptions {
  /** Called now and then with how far it is. */
  onProgress?: (done: BulkReport) => void;
}

/** What `engine.bulk` did. */
export interface BulkReport {
  readonly count: number;
  /** Runs the action does not fit, such as ended ones. */
  readonly skipped: number;
}

/** A definition of the engine, or its name. */
export type Picked<Defs, W> = W extends string ? Extract<Defs, { name: W }> : W;

/** What starts and finds runs; an engine is one that also works on them. */
export interface Client<Defs extends Definition = Definition> {
  /** Starts a run; the same id with the same input again is the same run. Answers when the start is durable. */
  start<W extends Defs | Defs["name"]>(
    what: W,
    ...args: Args<InputOf<Picked<Defs, W>>, StartOptions & StartSignals<PortsOf<Picked<Defs, W>>>>
  ): Promise<Run<Picked<Defs, W>>>;
  /** The handle of a run that exists, or will. */
  run<W extends Defs | Defs["name"]>(what: W, id: string): Run<Picked<Defs, W>>;
  /** What is known about a run, if there is one. */
  find(id: string): Promise<RunInfo | undefined>;
  /** The runs a filter finds, newest first. */
  list(filter?: Filter): AsyncIterable<RunInfo>;
  /**
   * Makes a schedule, or brings the one of this name up to date: with the same timing it keeps its next time.
   *
   * @example
   * ```ts
   * import { createEngine, workflow } from "reprise";
   * const report = workflow("report", async (ctx, to: string) => ctx.run("send", () => `sent to ${to}`));
   * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [report] });
   * await engine.schedule("morning", { cron: "0 9 * * MON-FRI", timeZone: "Europe/Berlin" }, report, "ann");
   * ```
   */
  schedule<W extends Defs | Defs["name"]>(
    name: string,
    options: ScheduleOptions,
    what: W,
    ...input: Args<InputOf<Picked<Defs, W>>, never>
  ): Promise<Schedule>;
  /** The handle of a schedule that exists. */
  findSchedule(name: string): Promise<Schedule | undefined>;
  /** Every schedule of the store, by name. */
  schedules(): AsyncIterable<ScheduleInfo>;
  /** Does something to every run the filter finds; those it does not fit are skipped. */
  bulk(action: BulkAction, filter: Filter, options?: BulkOptions): Promise<BulkReport>;
  /** Every queue of the store, the default one first. */
  queues(): Promise<readonly QueueInfo[]>;
  /** The handle of a queue: pause, resume, other limits. */
  queue(queue: Queue | string): QueueHandle;
}

/** What `createEngine` gives: starts runs, finds them, and works on them unless it was told not to. */
export interface Engine<Defs extends Definition = Definition> extends Client<Defs>, AsyncDisposable {
  /** Starts nothing new, lets what is at work finish, gives the rest back. */
  drain(options?: { grace?: Duration }): Promise<void>;
  /** Drains and closes the store. */
  close(options?: { grace?: Duration }): Promise<void>;
}

/** How an engine works on runs. */
export interface WorkerSettings {
  /** How many tasks and operations run at once; default 256. */
  concurrency?: number;
  /** Works only on tasks and workflows of these queues; `queue("default")` is everything without one. Default: all. */
  queues?: readonly Queue[];
  /** The labels it has: work with a label is taken only by workers that have it. `"any"`: all there are. Default: none. */
  labels?: readonly string[] | "any";
  /** How long a dead worker's work stays its own; default 10 seconds. */
  lease?: Duration;
}

/** Options of `createEngine`. */
export interface EngineOptions<Defs> {
  /** `"sqlite:shop.db"`, `"sqlite::memory:"`, or what `sqlite(path)` from `reprise/sqlite` gives. */
  store: string | StoreSource;
  /** Workflows and tasks; a worker claims only what it has. */
  definitions: readonly Defs[];
  /** `false`: a client that starts and asks, and runs nothing. */
  worker?: false | WorkerSettings;
  /**
   * What `ctx.send` is delivered with, by destination. A message comes until its handler answers without throwing, those
   * of one run one after the other; hand `dedupKey` to the outside, so that a repeated message is recognised.
   */
  outbox?: Readonly<Record<string, OutboxHandler>>;
  /** `"relaxed"` may lose the last commits in a power cut, never their order. */
  durability?: "full" | "relaxed";
  /** Less than what can be kept at most. */
  limits?: Limits;
  /** What payloads are written and read with, such as `aesGcm({ keys, current })`; default: kept as they are. */
  codec?: PayloadCodec;
  /** What is a secret in log lines and errors, besides the usual names; `false`: nothing is. */
  redact?: false | RedactOptions;
  /**
   * What happens when workflow code asks the machine for the time, for chance or for the network instead of `ctx`: it
   * throws (`"error"`), a warning is logged once per place, or nothing. Default: `"error"`, with NODE_ENV=production `"off"`.
   */
  guard?: GuardMode;
  /** Where `ctx.log` and the engine's own messages go; default: one line each on standard error. */
  logger?: Logger;
}

export type DefinitionsIn<Defs> = Extract<Defs, Definition>;
export type { AnyTask };
