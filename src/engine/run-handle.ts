// RunHandle: the handle of one run, by id; it reads the store when a method is called.

import { inspect } from "node:util";
import { checkOptionNames, checkRunId, RepriseError, toMs, type PayloadLimits, type Timers } from "../base/index.ts";
import {
  END_ENTRIES,
  hasEnded,
  AttemptReader,
  journalEntryOf,
  type Cost,
  type Entry,
  type JournalEntry,
  type RunAttempt,
  type RunNumber,
  type RunRecord,
  type Store,
  type Redaction,
  type Telemetry,
} from "../kernel/index.ts";
import type { SchedulerState } from "../graph/index.ts";
import { readSharedAsWritten, type ExecutionHost, type Replay, type WorkflowBody } from "../workflow/index.ts";
import type { Registry } from "../process/index.ts";
import type { WorkerPort } from "./worker-port.ts";
import type {
  GenerationOptions,
  JournalOptions,
  QueryOptions,
  ReplayOptions,
  ResultOptions,
  Run,
  RunInfo,
  SettleOptions,
  SignalOptions,
  StreamChunk,
  StreamOptions,
  UpdateOptions,
  DeleteReport,
} from "./api.ts";
import type { Checkpoint } from "../graph/index.ts";
import { deleteRun } from "./delete-runs.ts";
import { diffRuns, type DiffOptions } from "./diff-runs.ts";
import { checkForkAt, forkAt, type ForkAtOptions } from "./fork-at.ts";
import { forkFlow } from "./fork-flow.ts";
import { forkStepOf, type ForkOptions } from "./fork-run.ts";
import { declineBudget, raiseBudget, readRunBudget, type Budget, type BudgetAnswerOptions } from "./run-budget.ts";
import { abortable, AbortableGenerator, checkSignal, waitFor, type WaitOptions } from "./abort.ts";
import type { CheckpointAt } from "../explain/index.ts";
import { checkpoint, checkpoints, stateAt, type CheckpointsOptions } from "./run-checkpoints.ts";
import { readInfo } from "./read-info.ts";
import { stopOf } from "./run-info.ts";
import { otherDefinition, rejectPort, resolvePort, signalRun, type RunTarget } from "./run-messages.ts";
import { cancelRun, pauseRun, resumeRun, terminateRun, ignoreEnded } from "./run-control.ts";
import { checkMigrateOptions, migrateRun, type MigrateOptions } from "./migrate-run.ts";
import { queryRun } from "./run-queries.ts";
import { checkReplayOptions, replayRun } from "./replay-run.ts";
import type { Scratch } from "./resume-replay.ts";
import { retryRun } from "./retry-run.ts";
import { readScheduler } from "./run-scheduler.ts";
import { readRunStream } from "./run-stream.ts";
import { updateRun } from "./run-updates.ts";
import type { SeenRun } from "./run-subscriptions.ts";
import { ResultWait } from "./result-wait.ts";
import { lostRunError, type ResultWaiters } from "./result-waiters.ts";
import type { RunWatchers } from "./run-watchers.ts";
import type { StartAdmission } from "./start-admission.ts";

/** What a handle needs from its client or engine. */
export interface RunHandleHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly worker: WorkerPort;
  readonly waiters: ResultWaiters;
  readonly watchers: RunWatchers;
  readonly starts: StartAdmission;
  readonly redaction: Redaction;
  readonly runtime: string;
  readonly limits: PayloadLimits | undefined;
  readonly registry: Registry;
  newId(): string;
  readonly executionHost: ExecutionHost;
  /** An engine on a store in memory, with the same definitions. */
  readonly openScratch: () => Promise<Scratch>;
  readonly newSalt: (() => string) | undefined;
  readonly telemetry: Telemetry | undefined;
  checkOpen(): void;
  /** How often this process noticed that the database went back to an earlier state. */
  timesRolledBack(): number;
}

const PAGE = 256;

export class RunHandle implements Run<any> {
  readonly id: string;
  readonly #host: RunHandleHost;
  readonly #body: WorkflowBody;
  /** Set when this process started the run. */
  readonly #seen: SeenRun | undefined;

  constructor(host: RunHandleHost, body: WorkflowBody, id: string, seen?: SeenRun) {
    this.#host = host;
    this.#body = body;
    this.id = checkRunId(id);
    this.#seen = seen;
  }

  get #target(): RunTarget {
    return { host: this.#host, body: this.#body, id: this.id };
  }

  async #record(generation?: number): Promise<RunRecord> {
    this.#host.checkOpen();
    const record = await this.#host.store.findRun(this.id, checkGeneration(generation));
    if (record === undefined && generation !== undefined)
      throw new RepriseError("RUN_NOT_FOUND", `There is no generation ${generation} of run ${this.id}.`);
    if (record === undefined && this.#seen !== undefined) {
      await this.#host.store.checkHistory?.();
      if (this.#host.timesRolledBack() > 0) throw lostRunError(this.id, false);
    }
    if (record === undefined)
      throw new RepriseError(
        "RUN_NOT_FOUND",
        `There is no run ${this.id}. Start it first, or check the id and the store.`,
      );
    if (record.definition !== this.#body.name) throw otherDefinition(this.id, record.definition, this.#body.name);
    return record;
  }

  info(options?: WaitOptions): Promise<RunInfo> {
    return waitFor(options, "info", async () => readInfo(this.#host, await this.#record()));
  }

  result(options: ResultOptions = {}): Promise<any> {
    return new Promise((resolve, reject) => {
      checkOptionNames(options, ["signal", "timeout"], "result");
      const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, "result: timeout");
      const signal = checkSignal(options.signal, "result");
      signal?.throwIfAborted();
      this.#host.checkOpen();
      const wait = new ResultWait(this.#host, this.id, resolve, reject);
      wait.begin(timeoutMs, signal);
      this.#settleIfEnded(wait);
    });
  }

  #settleIfEnded(wait: ResultWait): void {
    const { worker, waiters } = this.#host;
    if (this.#seen !== undefined) waiters.noteSeen(this.id, this.#seen);
    // The worker of this process reports the end of a run it holds; any other run may have ended already.
    if (this.#seen !== undefined && worker.holds(this.#seen.run)) return;
    const noteRun = waiters.beginRead(this.id);
    this.#record()
      .then((record) => settleIfEnded(this.#host, record, noteRun))
      .catch((error: unknown) => wait.fail(error));
  }

  signal(name: string, ...args: readonly unknown[]): Promise<void> {
    return signalRun(this.#target, name, args[0], args[1] as SignalOptions | undefined);
  }

  resolve(name: string, ...args: readonly unknown[]): Promise<void> {
    return resolvePort(this.#target, name, args[0], args[1] as SettleOptions | undefined);
  }

  reject(name: string, error: Error, options?: SettleOptions): Promise<void> {
    return rejectPort(this.#target, name, error, options);
  }

  query(name: string, ...args: readonly unknown[]): Promise<never> {
    const options = args[1] as QueryOptions | undefined;
    return queryRun(this.#target, () => this.#record(), name, args[0], options) as Promise<never>;
  }

  update(name: string, ...args: readonly unknown[]): Promise<never> {
    const options = args[1] as UpdateOptions | undefined;
    return updateRun(this.#target, (generation) => this.#record(generation), name, args[0], options) as Promise<never>;
  }

  cancel(reason?: string, options?: WaitOptions): Promise<void> {
    return waitFor(options, "cancel", () => this.#cancel(reason));
  }

  async #cancel(reason: string | undefined): Promise<void> {
    const record = await this.#record();
    if (hasEnded(record.status)) return;
    await cancelRun(this.#target, reason);
    if (record.status !== "expected" || (await this.#host.store.findRun(this.id)) !== undefined) return;
    this.#host.waiters.settle(this.id, { record: { ...record, status: "cancelled" }, last: undefined });
  }

  terminate(reason?: string, options?: WaitOptions): Promise<void> {
    return waitFor(options, "terminate", async () => {
      await this.#record();
      await ignoreEnded(terminateRun(this.#target, reason));
    });
  }

  retry(options?: WaitOptions): Promise<void> {
    return waitFor(options, "retry", async () => {
      await this.#record();
      await retryRun(this.#target);
    });
  }

  budget(options?: WaitOptions): Promise<Budget | undefined> {
    return waitFor(options, "budget", async () => readRunBudget(this.#host.store, await this.#record()));
  }

  raise(add: Cost, options: BudgetAnswerOptions = {}): Promise<void> {
    return this.#answerBudget("raise", options, () => raiseBudget(this.#target, add, options));
  }

  declineBudget(options: BudgetAnswerOptions = {}): Promise<void> {
    return this.#answerBudget("declineBudget", options, () => declineBudget(this.#target, options));
  }

  #answerBudget(what: string, options: BudgetAnswerOptions, answer: () => Promise<void>): Promise<void> {
    return abortable(signalIn(options, what), async () => {
      checkOptionNames(options, ["by", "reason", "signal"], what);
      await this.#record();
      await answer();
    });
  }

  pause(options?: WaitOptions): Promise<void> {
    return waitFor(options, "pause", async () => {
      await this.#record();
      await pauseRun(this.#target);
    });
  }

  resume(options?: WaitOptions): Promise<void> {
    return waitFor(options, "resume", () => resumeRun(this.#target));
  }

  async migrate(options: MigrateOptions): Promise<void> {
    const checked = checkMigrateOptions(options);
    return abortable(signalIn(checked, "migrate"), async () => {
      await this.#record();
      await migrateRun(this.#target, checked);
    });
  }

  delete(options?: WaitOptions): Promise<DeleteReport> {
    return waitFor(options, "delete", async () => {
      await this.#record();
      return deleteRun(this.#host.store, this.id);
    });
  }

  scheduler(options?: WaitOptions): Promise<SchedulerState> {
    return waitFor(options, "scheduler", async () => readScheduler(this.#host, await this.#record()));
  }

  stream(name: string, options?: StreamOptions): AsyncGenerator<StreamChunk<never>, void, undefined> {
    return readRunStream(this.#target, () => this.#record(), name, options);
  }

  attempts(options: GenerationOptions = {}): AsyncIterable<RunAttempt> {
    return new AbortableGenerator(signalIn(options, "attempts"), () => this.#attempts(options));
  }

  async *#attempts(options: GenerationOptions): AsyncGenerator<RunAttempt, void, undefined> {
    checkOptionNames(options, ["generation", "signal"], "attempts");
    const { run } = await this.#record(options.generation);
    const reader = new AttemptReader(await this.#host.store.readAttempts(run));
    for await (const entry of this.journal(options)) if (entry.run === undefined) yield* reader.read(entry);
    yield* reader.rest();
  }

  journal(options: JournalOptions = {}): AsyncIterable<JournalEntry> {
    return new AbortableGenerator(signalIn(options, "journal"), () => this.#journal(options));
  }

  async *#journal(options: JournalOptions): AsyncGenerator<JournalEntry, void, undefined> {
    checkOptionNames(options, ["after", "generation", "signal"], "journal");
    const { run, kind } = await this.#record(options.generation);
    let { after = 0 } = options;
    if (!Number.isSafeInteger(after) || after < 0)
      throw new RepriseError("BAD_OPTIONS", `journal: expected a seq of 0 or more as after, got ${inspect(after)}.`);
    if (after === 0 && kind === "workflow")
      for (const { run: by, entries } of await readSharedAsWritten(this.#host.store, await this.#first(run)))
        for (const entry of entries) yield { ...journalEntryOf(entry), run: by };
    for (;;) {
      const page = await this.#host.store.readJournal(run, after, PAGE);
      for (const entry of page) yield journalEntryOf(entry);
      if (page.length < PAGE) return;
      after = page.at(-1)?.seq ?? after;
    }
  }

  async #first(run: RunNumber): Promise<Entry | undefined> {
    return (await this.#host.store.readJournal(run, 0, 1))[0];
  }

  checkpoints(options?: CheckpointsOptions): AsyncIterable<Checkpoint<any>> {
    return new AbortableGenerator(signalIn(options, "checkpoints"), () => this.#checkpoints(options));
  }

  async *#checkpoints(options?: CheckpointsOptions): AsyncGenerator<Checkpoint<any>, void, undefined> {
    yield* checkpoints(this.#host.store, await this.#record(), options);
  }

  checkpoint(at: CheckpointAt, options?: WaitOptions): Promise<Checkpoint<any>> {
    return waitFor(options, "checkpoint", async () => checkpoint(this.#host.store, await this.#record(), at));
  }

  stateAt(at: CheckpointAt, options?: WaitOptions): Promise<any> {
    return waitFor(options, "stateAt", async () => stateAt(this.#host.store, await this.#record(), at));
  }

  fork(options: ForkOptions<any> | ForkAtOptions): Promise<Run<any>> {
    return abortable(signalIn(options, "fork"), async () => {
      const { id, run } = await this.#fork(options);
      return new RunHandle(this.#host, this.#body, id, { run, generation: 0 });
    });
  }

  async #fork(options: ForkOptions<any> | ForkAtOptions): Promise<RunRecord> {
    const newest = await this.#record();
    if (newest.kind === "graph") return forkStepOf(this.#host, newest, options);
    const checked = checkForkAt(options);
    if (newest.kind === "flow") return forkFlow(this.#host, newest, checked);
    return forkAt(this.#host, await this.#record(checked.generation), checked);
  }

  async diff(other: Run<any>, options?: DiffOptions): Promise<any> {
    const run: unknown = (other as { "~handle"?(): unknown } | undefined)?.["~handle"]?.() ?? other;
    if (!(run instanceof RunHandle))
      throw new RepriseError("BAD_OPTIONS", `diff: expected the handle of a run, got ${inspect(other, { depth: 0 })}.`);
    return abortable(signalIn(options, "diff"), async () => {
      const [here, there] = await Promise.all([this.#record(), run.#record()]);
      const sides = [
        { store: this.#host.store, record: here },
        { store: run.#host.store, record: there },
      ] as const;
      return diffRuns(...sides, options, ({ definition, version }) =>
        this.#host.registry.findFlow(definition, version),
      );
    });
  }

  async replay(options: ReplayOptions = {}): Promise<Replay> {
    checkReplayOptions(options, "replay");
    return abortable(signalIn(options, "replay"), () => this.#replay(options, false));
  }

  async verify(options: GenerationOptions = {}): Promise<Replay> {
    return abortable(signalIn(options, "verify"), () => this.#replay(options, true));
  }

  async #replay(options: ReplayOptions, verified: boolean): Promise<Replay> {
    const record = await this.#record(options.generation);
    // The version the run is pinned to, not the one of the handle.
    const { store, timers, registry, openScratch } = this.#host;
    const body = registry.getWorkflow(record.definition, record.version);
    const execution = { ...this.#host.executionHost, log: () => {} };
    const host = { store, timers: timersUntil(options.signal, timers), execution, openScratch };
    return replayRun(host, record, body, options, verified);
  }
}

/** The signal of options that are checked later. */
function signalIn(options: WaitOptions | undefined, what: string): AbortSignal | undefined {
  return checkSignal(options?.signal, what);
}

/** A replay whose caller has stopped waiting does not continue. */
function timersUntil(signal: AbortSignal | undefined, timers: Timers): Timers {
  if (signal === undefined) return timers;
  return { set: timers.set.bind(timers), soon: (fn) => timers.soon(() => signal.aborted || fn()) };
}

function checkGeneration(generation: unknown): number | undefined {
  if (generation === undefined || (Number.isSafeInteger(generation) && (generation as number) >= 0))
    return generation as number | undefined;
  throw new RepriseError(
    "BAD_OPTIONS",
    `generation: expected a whole number of 0 or more, got ${inspect(generation)}.`,
  );
}

/**
 * Settles the waiters of a run that has ended or was stopped; otherwise notes the number of the run they wait for. `read`: the last
 * entry, if it was read with the record.
 */
export async function settleIfEnded(
  host: RunHandleHost,
  record: RunRecord,
  noteRun: (run: RunNumber) => void,
  read?: Entry,
): Promise<void> {
  const { store, waiters } = host;
  if (waiters.settleIfLost(record.id, record)) return;
  // An expected run has not been started: it is removed when it is cancelled.
  if (record.status !== "expected") waiters.noteSeen(record.id, record);
  if (stopOf(record) !== undefined) return waiters.settle(record.id, { record, last: undefined });
  if (!hasEnded(record.status)) return noteRun(record.run);
  if (record.status === "continued") return;
  const last = read ?? (await store.readJournal(record.run, record.head - 1, 1))[0];
  // Without its end entry the row is out of date: the database went back, or the run was retried. Read it again.
  if (record.head > 0 && !(last !== undefined && END_ENTRIES.includes(last.type))) {
    const now = await store.findRun(record.id);
    if (now === undefined) return void waiters.settleIfLost(record.id, undefined);
    if (now.run !== record.run || now.head !== record.head || now.chain !== record.chain)
      return settleIfEnded(host, now, noteRun);
  }
  waiters.settle(record.id, { record, last });
}
