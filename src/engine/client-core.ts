// ClientCore: starts runs, finds them and hands out their handles. An engine is a client with a worker (engine.ts).
//
// client-core.N1. A call checks all of its arguments before it writes anything.
// client-core.N2. `start` with the same id and input is the same run; with another input it is refused and nothing changes.
// client-core.N3. After `close` every call is refused with ENGINE_CLOSED; a second `close` waits for the first.

import {
  checkName,
  checkOptionNames,
  checkRunId,
  RepriseError,
  toMs,
  type Random,
  type Timers,
} from "../base/index.ts";
import {
  registerSecrets,
  type Definition,
  type EndedRunStatus,
  type EndEntry,
  type Logger,
  type Queue,
  type Redaction,
  type RunEnd,
  type RunNumber,
  type RunRecord,
  type RunStatus,
  type Store,
} from "../kernel/index.ts";
import { executionHostOf, versionOf, type NewRunHost } from "../process/index.ts";
import { Guard, type GuardMode } from "../workflow/index.ts";
import type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  CloseOptions,
  DeleteReport,
  PruneOptions,
  OpenPromiseFilter,
  OpenPromiseInfo,
  RunFilter,
  QueueHandle,
  QueueInfo,
  Run,
  RunInfo,
  ScheduleHandle,
  ScheduleInfo,
  ScheduleOptions,
  StartOptions,
} from "./api.ts";
import {
  abortable,
  AbortableGenerator,
  checkSignal,
  unlessAborted,
  waitFor,
  waitSignal,
  type WaitOptions,
} from "./abort.ts";
import { checkBulk, controlRuns } from "./bulk.ts";
import { checkScheduleName } from "./check-schedule.ts";
import { pruneRuns } from "./delete-runs.ts";
import { listPromises } from "./list-promises.ts";
import { ChangeListeners, type LiveReads } from "./live-reads.ts";
import { listPages } from "./run-pages.ts";
import { checkQueueName, queueHandle, queueInfoOf } from "./queue-handle.ts";
import { ResultWaiters } from "./result-waiters.ts";
import type { Scratch } from "./resume-replay.ts";
import { readInfo } from "./read-info.ts";
import { runAccess, type RunAccess } from "./run-access.ts";
import { RunHandle, settleIfEnded, type RunHandleHost } from "./run-handle.ts";
import { listedInfoOf } from "./run-info.ts";
import { getPort } from "./run-messages.ts";
import { readStreamPages } from "./run-stream.ts";
import { RunWatchers } from "./run-watchers.ts";
import { findSchedule, listSchedules, putSchedule, StoredSchedule, type SchedulesHost } from "./schedule-handle.ts";
import { StartAdmission } from "./start-admission.ts";
import { startRun } from "./start-run.ts";
import type { WorkerEvents, WorkerPort } from "./worker-port.ts";

/** Everything a client is made of. */
export interface ClientParts extends NewRunHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
  readonly redaction: Redaction;
  readonly guardMode: GuardMode;
  /** How the process is called in errors, and the function that creates it. */
  readonly kind: "client" | "engine";
}

/** Runs that are read at once when every waiter may be affected by a change, and the pause between two such batches. */
const READ_BATCH = 200;
const READ_PAUSE_MS = 20;
/** Waiters of a run with such a status have nothing to read. */
const LIVE: ReadonlySet<RunStatus> = new Set(["queued", "running", "waiting"]);
const CLOSE_MS = 10_000;

export class ClientCore implements Client {
  readonly #parts: ClientParts;
  readonly #port: WorkerPort;
  readonly #waiters = new ResultWaiters();
  readonly #watchers = new RunWatchers();
  readonly #listeners = new ChangeListeners();
  readonly #handleHost: RunHandleHost;
  readonly #schedulesHost: SchedulesHost;
  readonly #guard: Guard;
  readonly #forgetSecrets: () => void;
  #access: RunAccess | undefined;
  #closing: Promise<void> | undefined;
  #drained: Promise<void> | undefined;
  /** Waiters whose runs are still to be read after the last change by another process. */
  #unread: readonly string[] = [];
  /** Another change came while they were being read. */
  #readsAgain = false;

  constructor(parts: ClientParts, connect: (events: WorkerEvents) => WorkerPort) {
    const { store, timers, redaction, registry } = parts;
    const logger = redaction.logger(parts.logger);
    this.#parts = { ...parts, logger };
    this.#forgetSecrets = redaction.values === undefined ? () => undefined : registerSecrets(redaction.values);
    this.#guard = new Guard(parts.guardMode, (message) => logger.warn(message));
    const { telemetry } = parts;
    const log: WorkerEvents["log"] =
      telemetry === undefined
        ? (level, message, data) => logger[level](message, data)
        : (level, message, data) => logger[level](message, telemetry.correlate(data));
    this.#port = connect({
      guard: this.#guard,
      log,
      onEnded: (record, status, last) => this.#onEnded(record, status, last),
      onCommitted: (record) => {
        this.#watchers.notify(record.id);
        if (!this.#listeners.isEmpty) this.#listeners.run(record.run, false);
      },
      onUnheld: (record) => {
        this.#readWaited([record.id]);
        this.#watchers.notify(record.id);
        this.#listeners.run(record.run, true);
      },
      onWritten: (outcome) => this.#listeners.written(outcome),
      onChanged: (runs) => this.#onChanged(runs),
    });
    this.#handleHost = {
      store,
      timers,
      worker: this.#port,
      waiters: this.#waiters,
      watchers: this.#watchers,
      starts: new StartAdmission(),
      redaction,
      runtime: parts.runtime,
      registry,
      limits: parts.payloadLimit === undefined ? undefined : { maxBytes: parts.payloadLimit },
      newId: () => parts.random.id(),
      newSalt: parts.newSalt,
      telemetry,
      executionHost: executionHostOf({ storeKind: store.kind, registry, guard: this.#guard, log }),
      openScratch: () => this.#openScratch(),
      checkOpen: () => this.#checkOpen(),
      timesRolledBack: () => this.#port.timesRolledBack,
    };
    this.#schedulesHost = { ...parts, worker: this.#port, checkOpen: () => this.#checkOpen() };
  }

  get "~isClosing"(): boolean {
    return this.#closing !== undefined || this.#drained !== undefined;
  }

  /** For rooms that work on the same store without being part of an engine. */
  get "~store"(): Store {
    return this.#parts.store;
  }

  /** For rooms that work on runs whose definitions they do not know. */
  get "~access"(): RunAccess {
    return (this.#access ??= runAccess(this.#handleHost));
  }

  /** For rooms that follow runs without their code. */
  get "~live"(): LiveReads {
    const findStream = async (id: string, name: string): Promise<RunRecord> => {
      const record = await this.#getRecord(checkRunId(id));
      const body = this.#parts.registry.findWorkflow(record.definition, record.version);
      if (body === undefined) checkName(name, "stream name");
      else getPort(body, name, "stream");
      return record;
    };
    return {
      findStream,
      readStream: (id, name, options) =>
        readStreamPages({ host: this.#handleHost, id }, () => this.#getRecord(id), name, options),
      listen: (listener) => this.#listeners.add(listener),
    };
  }

  async #getRecord(id: string): Promise<RunRecord> {
    this.#checkOpen();
    const record = await this.#parts.store.findRun(id);
    if (record !== undefined) return record;
    throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store.`);
  }

  begin(): Promise<void> {
    return this.#port.start();
  }

  /** Only a replay in the mode `resume` executes anything, so only that loads a worker. */
  async #openScratch(): Promise<Scratch> {
    const { openScratch } = await import("./scratch-engine.ts");
    return openScratch(this.#parts);
  }

  #checkOpen(): void {
    const { kind } = this.#parts;
    if (this.#closing !== undefined)
      throw new RepriseError(
        "ENGINE_CLOSED",
        `The ${kind} is closed. Create a new one with ${kind === "client" ? "createClient" : "createEngine"}.`,
      );
  }

  // ── what the executing side reports ──

  #onEnded(record: RunRecord, status: EndedRunStatus, last: EndEntry): void {
    this.#listeners.run(record.run, true);
    // A waiter of the id waits for the end of the last generation.
    if (status !== "continued") this.#waiters.settle(record.id, { record: { ...record, status }, last });
  }

  #onChanged(runs: ReadonlySet<RunNumber> | undefined): number {
    const affected = runs === undefined ? this.#waiters.ids : this.#waiters.idsAffectedBy(runs);
    if (runs === undefined) this.#readAllWaited();
    else this.#readWaited(affected);
    this.#watchers.notifyAll();
    this.#listeners.others(runs);
    return affected.length + this.#watchers.ids.length;
  }

  /** Any run may have ended. Thousands of waiters are read in batches. */
  #readAllWaited(): void {
    this.#readsAgain = this.#unread.length > 0;
    if (this.#readsAgain) return;
    // The worker of this process reports the end of the runs it holds.
    const held = this.#port.heldIds();
    this.#unread = this.#waiters.ids.filter((id) => !held.has(id));
    this.#readNextBatch();
  }

  #readNextBatch(): void {
    void this.#readUnlessLive(this.#unread.slice(0, READ_BATCH));
    this.#unread = this.#unread.slice(READ_BATCH);
    if (this.#unread.length > 0) this.#parts.timers.set(READ_PAUSE_MS, () => this.#readNextBatch(), { ref: false });
    else if (this.#readsAgain && this.#closing === undefined) this.#readAllWaited();
  }

  /** Most of these runs have not changed: one query of their rows finds those to read. */
  async #readUnlessLive(ids: readonly string[]): Promise<void> {
    const numbers = ids.map((id) => this.#waiters.numberOf(id)).filter((run) => run !== undefined);
    const read = numbers.length === 0 ? [] : this.#parts.store.readProgress(numbers);
    const live = new Set<string>();
    try {
      for (const { id, status } of await read) if (LIVE.has(status)) live.add(id);
    } catch (error) {
      if (this.#closing === undefined) this.#parts.logger.error(String(error));
      return;
    }
    this.#readWaited(ids.filter((id) => !live.has(id)));
  }

  #readWaited(ids: readonly string[]): void {
    for (const id of ids) {
      if (!this.#waiters.has(id)) continue;
      const known = this.#waiters.numberOf(id);
      const noteRun = this.#waiters.beginRead(id);
      this.#readEnd(id, known)
        .then((end) => {
          if (end !== undefined) return settleIfEnded(this.#handleHost, end.record, noteRun, end.last);
          this.#waiters.settleIfLost(id, undefined);
          return undefined;
        })
        .catch((error: unknown) => {
          // After `close` no caller waits for the answer.
          if (this.#closing === undefined) this.#parts.logger.error(String(error), { run: id });
        });
    }
  }

  /** By its number the run and its end are read together. Its id may have another run, or a newer generation. */
  async #readEnd(id: string, known: RunNumber | undefined): Promise<RunEnd | undefined> {
    const { store } = this.#parts;
    const end = known === undefined ? undefined : await store.readEnd(known);
    if (end !== undefined && end.record.id === id && end.record.status !== "continued") return end;
    const record = await store.findRun(id);
    return record && { record, last: undefined };
  }

  // ── runs ──

  /** Not an async function: thousands of starts may wait for their turn, and each would keep one more suspended call. */
  start: Client["start"] = (what: Definition | string, ...args: readonly unknown[]): Promise<any> => {
    try {
      return this.#start(what, args[0], args[1]);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  };

  #start(what: Definition | string, input: unknown, options: unknown): Promise<RunHandle> {
    this.#checkOpen();
    if (this.#drained !== undefined)
      throw new RepriseError("ENGINE_CLOSED", `The ${this.#parts.kind} is draining and starts no new runs.`);
    const host = this.#handleHost;
    const body = this.#parts.registry.getWorkflow(nameOf(what, "start(definition, input, { id })"), versionOf(what));
    const signal = checkSignal((options as StartOptions | undefined)?.signal, "start");
    const started = abortable(signal, () => startRun(host, body, input, options));
    return started.then((record) => new RunHandle(host, body, record.id, record));
  }

  get: Client["get"] = (what: Definition | string, id: string): Run<any> => {
    this.#checkOpen();
    return new RunHandle(
      this.#handleHost,
      this.#parts.registry.getWorkflow(nameOf(what, "get(definition, id)"), versionOf(what)),
      id,
    );
  };

  find(id: string, options?: WaitOptions): Promise<RunInfo | undefined> {
    return waitFor(options, "find", async () => {
      this.#checkOpen();
      const record = await this.#parts.store.findRun(checkRunId(id));
      return record && readInfo(this.#handleHost, record);
    });
  }

  list(filter: RunFilter = {}, options?: WaitOptions): AsyncIterable<RunInfo> {
    return new AbortableGenerator(waitSignal(options, "list"), () => this.#list(filter));
  }

  async *#list(filter: RunFilter): AsyncGenerator<RunInfo, void, undefined> {
    this.#checkOpen();
    for await (const page of listPages(this.#parts.store, filter))
      for (const record of page) yield listedInfoOf(record);
  }

  promises(filter: OpenPromiseFilter = {}, options?: WaitOptions): AsyncIterable<OpenPromiseInfo> {
    return new AbortableGenerator(waitSignal(options, "promises"), () => this.#promises(filter));
  }

  async *#promises(filter: OpenPromiseFilter): AsyncGenerator<OpenPromiseInfo, void, undefined> {
    this.#checkOpen();
    yield* listPromises(this.#parts.store, filter);
  }

  async bulk(action: BulkAction, filter: RunFilter, options: BulkOptions = {}): Promise<BulkReport> {
    const checked = checkBulk(action, options);
    this.#checkOpen();
    const work = controlRuns(this.#handleHost, checked, listPages(this.#parts.store, filter), options);
    return unlessAborted(options.signal, work);
  }

  async prune(options: PruneOptions): Promise<DeleteReport> {
    this.#checkOpen();
    return pruneRuns(this.#parts.store, options);
  }

  // ── schedules ──

  schedule: Client["schedule"] = async (
    name: string,
    what: Definition | string,
    input: unknown,
    options: ScheduleOptions & WaitOptions,
  ): Promise<ScheduleHandle> => {
    this.#checkOpen();
    const body = this.#parts.registry.getWorkflow(nameOf(what, "schedule(name, definition, input, { cron })"));
    const signal = checkSignal((options as WaitOptions | undefined)?.signal, "schedule");
    return abortable(signal, () => putSchedule(this.#schedulesHost, name, body, input, options));
  };

  getSchedule(name: string): ScheduleHandle {
    this.#checkOpen();
    return new StoredSchedule(this.#schedulesHost, checkScheduleName(name));
  }

  findSchedule(name: string, options?: WaitOptions): Promise<ScheduleInfo | undefined> {
    return waitFor(options, "findSchedule", () => findSchedule(this.#schedulesHost, name));
  }

  listSchedules(options?: WaitOptions): AsyncIterable<ScheduleInfo> {
    return new AbortableGenerator(waitSignal(options, "listSchedules"), () => listSchedules(this.#schedulesHost));
  }

  // ── queues ──

  getQueue(queue: Queue | string): QueueHandle {
    this.#checkOpen();
    return queueHandle(this.#port, () => this.#checkOpen(), queue);
  }

  findQueue(queue: Queue | string, options?: WaitOptions): Promise<QueueInfo | undefined> {
    return waitFor(options, "findQueue", async () => {
      this.#checkOpen();
      const name = checkQueueName(queue);
      const state = (await this.#parts.store.listQueues()).find((one) => one.name === name);
      return state && queueInfoOf(state);
    });
  }

  listQueues(options?: WaitOptions): AsyncIterable<QueueInfo> {
    return new AbortableGenerator(waitSignal(options, "listQueues"), () => this.#listQueues());
  }

  async *#listQueues(): AsyncGenerator<QueueInfo, void, undefined> {
    this.#checkOpen();
    for (const state of await this.#parts.store.listQueues()) yield queueInfoOf(state);
  }

  // ── the end ──

  protected drainOnce(graceMs: number, signal: AbortSignal | undefined): Promise<void> {
    this.#checkOpen();
    return abortable(signal, () => this.#drain(graceMs));
  }

  #drain(graceMs: number): Promise<void> {
    this.#handleHost.starts.admitAll();
    this.#drained ??= this.#port.drain(graceMs).then((finished) => {
      if (finished) return;
      const message = "Work was still running when the grace period ended; another worker will repeat it.";
      this.#parts.logger.warn(message, { graceMs });
    });
    return this.#drained;
  }

  close(options: CloseOptions = {}): Promise<void> {
    checkOptionNames(options, ["grace", "signal"], "close");
    const graceMs = options.grace === undefined ? CLOSE_MS : toMs(options.grace, "close: grace");
    const signal = checkSignal(options.signal, "close");
    this.#closing ??= this.#close(graceMs);
    return unlessAborted(signal, this.#closing);
  }

  /** Also when the store fails: after this nothing keeps the process alive. */
  async #close(graceMs: number): Promise<void> {
    try {
      await this.#drain(graceMs);
    } finally {
      this.#port.close();
      this.#waiters.close();
      this.#watchers.notifyAll();
      await this.#parts.store.close();
      this.#forgetSecrets();
      this.#guard.close();
    }
  }

  /** As if the process had died. */
  crash(): void {
    this.#port.crash();
    this.#guard.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export function nameOf(what: unknown, call: string): string {
  if (typeof what === "string") return what;
  if (typeof what === "object" && what !== null && "name" in what && typeof what.name === "string") return what.name;
  throw new RepriseError("UNKNOWN_DEFINITION", `Expected a definition or its name, got ${typeof what}. Call ${call}.`);
}
