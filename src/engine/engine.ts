// Engine: wires the rooms together and hands out runs.
//
// N1. Everything a caller gives is checked before anything is written.
// N2. `start` with the same id and input is the same run; with another input it is refused and nothing changes.
// N3. A closed engine answers every call with ENGINE_CLOSED; closing twice is closing once.

import { inspect } from "node:util";
import {
  checkName,
  checkOptionNames,
  checkRunId,
  decode,
  encode,
  RepriseError,
  systemClock,
  systemTimers,
  toMs,
  type Duration,
} from "../base/index.ts";
import {
  checkDeadline,
  forkedOf,
  Labels,
  lineOf,
  parse,
  registerSecrets,
  STATUSES,
  type Definition,
  type Logger,
  type Queue,
  type RunRecord,
  type StartOutcome,
  type Status,
  type Store,
  type Redaction,
} from "../kernel/index.ts";
import { storeOf } from "../stores/index.ts";
import { entryData, Guard, type GuardMode } from "../workflow/index.ts";
import { newRun, versionOf, Worker, type WorkerOptions } from "../worker/index.ts";
import type {
  BulkAction,
  BulkOptions,
  BulkReport,
  Client,
  Engine,
  Filter,
  QueueHandle,
  QueueInfo,
  Run,
  RunInfo,
  Schedule,
  ScheduleInfo,
  ScheduleOptions,
} from "./api.ts";
import { checkBulk, steerAll } from "./bulk.ts";
import { readInfo, RunHandle, tellIfOver, type HandleHost } from "./run-handle.ts";
import { queueHandle, queueInfoOf } from "./queue-handle.ts";
import type { Scratch } from "./resume-replay.ts";
import { listedInfoOf } from "./run-info.ts";
import { findSchedule, listSchedules, makeSchedule, ScheduleHandle, type SchedulesHost } from "./schedules.ts";
import { sendAll, signalsOf } from "./run-messages.ts";
import { checkBeginning, checkOptions, checkStart } from "./start-options.ts";
import { Waiters } from "./waiters.ts";
import { Watchers } from "./watchers.ts";

/** Everything an engine is made of; `createEngine` and the test kit fill it in. */
export interface EngineParts extends Omit<
  WorkerOptions,
  "guard" | "log" | "onEnded" | "onMoved" | "onUnheld" | "onChanged"
> {
  readonly logger: Logger;
  readonly redaction: Redaction;
  readonly guardMode: GuardMode;
}

const PAGE = 100;
const DRAIN_MS = 30_000;
const LOOKS_AT_ONCE = 200;
const LOOK_PAUSE_MS = 20;
const CLOSE_MS = 10_000;

export class EngineCore implements Engine {
  readonly worker: Worker;
  readonly #parts: EngineParts;
  readonly #waiters = new Waiters();
  readonly #watchers = new Watchers();
  readonly #handleHost: HandleHost;
  readonly #forgetSecrets: () => void;
  readonly #schedulesHost: SchedulesHost;
  #closing: Promise<void> | undefined;
  /** Waiters not yet looked at since the last change by another process. */
  #rest: readonly string[] = [];
  /** Something changed while they were being looked at. */
  #looksAgain = false;
  #drained: Promise<void> | undefined;
  readonly #guard: Guard;

  constructor(parts: EngineParts) {
    const { store, timers, redaction } = parts;
    const logger = redaction.logger(parts.logger);
    this.#parts = { ...parts, logger };
    this.#forgetSecrets = redaction.values === undefined ? () => undefined : registerSecrets(redaction.values);
    this.#guard = new Guard(parts.guardMode, (message) => logger.warn(message));
    this.worker = new Worker({
      ...parts,
      guard: this.#guard,
      log: (level, message, data) => logger[level](message, data),
      onEnded: (record, status, last) => {
        // Whoever waits for the id waits for the generation that goes on.
        if (status !== "continued") this.#waiters.tell(record.id, { record: { ...record, status }, last });
      },
      onMoved: (record) => this.#watchers.moved(record.id),
      onUnheld: (record) => {
        this.#look([record.id]);
        this.#watchers.moved(record.id);
      },
      onChanged: (runs) => {
        if (runs === undefined) this.#lookAtAll();
        else this.#look(this.#waiters.idsAmong(runs));
        this.#watchers.allMoved();
      },
    });
    this.#handleHost = {
      store,
      timers,
      worker: this.worker,
      waiters: this.#waiters,
      watchers: this.#watchers,
      redaction,
      runtime: parts.runtime,
      registry: parts.registry,
      limits: parts.payloadLimit === undefined ? undefined : { maxBytes: parts.payloadLimit },
      newId: () => parts.random.id(),
      newSalt: parts.newSalt,
      openScratch: () => this.#openScratch(),
      checkOpen: () => this.#checkOpen(),
      timesRolledBack: () => this.worker.timesRolledBack,
    };
    this.#schedulesHost = { ...parts, worker: this.worker, checkOpen: () => this.#checkOpen() };
  }

  /** For what stands on the same store without being part of an engine. */
  get "~store"(): Store {
    return this.#parts.store;
  }

  async #openScratch(): Promise<Scratch> {
    const { random } = this.#parts;
    const parts = { clock: systemClock, timers: systemTimers, random, durability: "relaxed" } as const;
    const store = await storeOf("sqlite::memory:")["~open"](parts);
    const scratch = { ...this.#parts, store, timers: systemTimers, works: true, polls: false, heartbeats: true };
    const everything = { queues: undefined, labels: Labels.any };
    const core = new EngineCore({ ...scratch, ...everything, outbox: new Map(), newSalt: undefined });
    return Object.assign(core, { store });
  }

  #checkOpen(): void {
    if (this.#closing !== undefined)
      throw new RepriseError("ENGINE_CLOSED", "The engine is closed. Make a new one with createEngine.");
  }

  /** Another process wrote: whatever is waited for may be over. Thousands of waiters are looked at some at a time. */
  #lookAtAll(): void {
    this.#looksAgain = this.#rest.length > 0;
    if (this.#looksAgain) return;
    // Of those at work here news comes by itself.
    const held = this.worker.runs.heldIds();
    this.#rest = this.#waiters.ids.filter((id) => !held.has(id));
    this.#lookOn();
  }

  #lookOn(): void {
    this.#look(this.#rest.slice(0, LOOKS_AT_ONCE));
    this.#rest = this.#rest.slice(LOOKS_AT_ONCE);
    if (this.#rest.length > 0) this.#parts.timers.set(LOOK_PAUSE_MS, () => this.#lookOn(), { ref: false });
    else if (this.#looksAgain && this.#closing === undefined) this.#lookAtAll();
  }

  /** Reads how the runs stand that somebody waits for. */
  #look(ids: readonly string[]): void {
    for (const id of ids) {
      if (!this.#waiters.has(id)) continue;
      const note = this.#waiters.look(id);
      this.#parts.store
        .findRun(id)
        .then((record) => {
          if (record !== undefined) return tellIfOver(this.#handleHost, record, note);
          this.#waiters.tellIfGone(id, undefined);
          return undefined;
        })
        .catch((error: unknown) => {
          // An answer that comes after the end is nobody's.
          if (this.#closing === undefined) this.#parts.logger.error(String(error), { run: id });
        });
    }
  }

  /** Begins to work. */
  async begin(): Promise<void> {
    await this.worker.start();
    if (this.#parts.works) await this.#warnOfPinned();
  }

  /** Runs that wait for a version nobody here has are waiting for somebody who may never come. */
  async #warnOfPinned(): Promise<void> {
    const { registry, store, logger } = this.#parts;
    for (const { name, version, live } of await store.countVersions()) {
      if (registry.findWorkflow(name) === undefined || registry.findWorkflow(name, version) !== undefined) continue;
      const runs = live === 1 ? "1 live run of" : `${live} live runs of`;
      logger.warn(
        `${runs} ${name} ${live === 1 ? "is" : "are"} pinned to version ${version}, which is not registered here. Add it to \`definitions\` beside the newer one, or let another worker finish ${live === 1 ? "it" : "them"}.`,
        { definition: name, version, live },
      );
    }
  }

  start: Client["start"] = async (what: Definition | string, ...args: readonly unknown[]): Promise<any> => {
    this.#checkOpen();
    if (this.#drained !== undefined)
      throw new RepriseError("ENGINE_CLOSED", "The engine is draining and starts nothing new.");
    const { registry, random, runtime, payloadLimit, newSalt } = this.#parts;
    const body = registry.getWorkflow(nameOf(what), versionOf(what));
    const options = checkOptions(args[1]);
    const { tags, priority } = checkStart(options);
    const beginning = checkBeginning(options);
    const id = options.id === undefined ? random.id() : checkRunId(options.id);
    const parsed = await parse(body.schema, args[0], `${body.kind} ${body.name}`);
    const input = entryData.encodeNamed(`The input of ${body.kind} ${body.name}`, parsed, this.#handleHost.limits);
    const line = lineOf(body.line, parsed, `${body.kind} ${body.name}`);
    const messages = await signalsOf(body, options.signals, this.#handleHost.limits);
    const beginsLater = line !== undefined || beginning.delayMs !== undefined;
    const claim = beginsLater ? undefined : this.worker.preclaim(body);
    const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, "start");
    const salt = newSalt?.();
    const { singleton } = beginning;
    const run = newRun(body, { id, input, tags, priority, line, singleton, runtime, payloadLimit, salt, deadlineMs });
    const outcome = await this.worker.pump.submit({
      write: "start",
      run,
      ...(claim && { claim }),
      ...(messages.length > 0 && { messages }),
      ...beginning,
    });
    const { record } = outcome;
    if (outcome.status === "started" && claim !== undefined) this.worker.runs.adopt(record, outcome.first, claim.token);
    else this.worker.wake();
    if (outcome.status === "exists" || outcome.status === "expected-otherwise")
      checkSameStart(outcome, body.name, input, this.#parts.redaction);
    if (outcome.status !== "started") await sendAll({ host: this.#handleHost, body, id: record.id }, messages);
    if (run.deadlineMs !== undefined) this.worker.dueAt(record.createdAt + run.deadlineMs);
    return new RunHandle(this.#handleHost, body, record.id, record);
  };

  run: Client["run"] = (what: Definition | string, id: string): Run<any> => {
    this.#checkOpen();
    return new RunHandle(this.#handleHost, this.#parts.registry.getWorkflow(nameOf(what), versionOf(what)), id);
  };

  async queues(): Promise<readonly QueueInfo[]> {
    this.#checkOpen();
    return (await this.#parts.store.listQueues()).map(queueInfoOf);
  }

  queue(queue: Queue | string): QueueHandle {
    this.#checkOpen();
    return queueHandle(this.worker, () => this.#checkOpen(), queue);
  }

  async find(id: string): Promise<RunInfo | undefined> {
    this.#checkOpen();
    const record = await this.#parts.store.findRun(checkRunId(id));
    return record && readInfo(this.#handleHost, record);
  }

  async *list(filter: Filter = {}): AsyncIterable<RunInfo> {
    for await (const page of this.#pages(filter)) for (const record of page) yield listedInfoOf(record);
  }

  async bulk(action: BulkAction, filter: Filter, options: BulkOptions = {}): Promise<BulkReport> {
    const checked = checkBulk(action, options);
    return steerAll(this.#handleHost, checked, this.#pages(filter), options);
  }

  async *#pages(filter: Filter): AsyncIterable<readonly RunRecord[]> {
    this.#checkOpen();
    const { statuses, limit } = checkFilter(filter);
    let before = filter.after === undefined ? undefined : (await this.#getRecord(filter.after)).run;
    for (let left = limit; left > 0;) {
      const page = await this.#parts.store.listRuns({
        ...(filter.definition !== undefined && { definition: filter.definition }),
        ...(statuses && { statuses }),
        ...(filter.tag !== undefined && { tag: filter.tag }),
        ...(before !== undefined && { before }),
        limit: Math.min(PAGE, left),
      });
      yield page;
      left -= page.length;
      before = page.at(-1)?.run;
      if (page.length < PAGE) return;
    }
  }

  schedule: Client["schedule"] = async (
    name: string,
    options: ScheduleOptions,
    what: Definition | string,
    ...args: readonly unknown[]
  ): Promise<Schedule> => {
    this.#checkOpen();
    return makeSchedule(this.#schedulesHost, name, options, this.#parts.registry.getWorkflow(nameOf(what)), args[0]);
  };

  findSchedule(name: string): Promise<Schedule | undefined> {
    return findSchedule(this.#schedulesHost, name);
  }

  /** Of a schedule that need not exist any more. */
  scheduleHandle(name: string): Schedule {
    return new ScheduleHandle(this.#schedulesHost, name);
  }

  schedules(): AsyncIterable<ScheduleInfo> {
    return listSchedules(this.#schedulesHost);
  }

  async #getRecord(id: string): Promise<RunRecord> {
    const record = await this.#parts.store.findRun(checkRunId(id));
    if (record === undefined) throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id} to list from.`);
    return record;
  }

  async drain(options: { grace?: Duration } = {}): Promise<void> {
    this.#checkOpen();
    await this.#drain(options.grace === undefined ? DRAIN_MS : toMs(options.grace, "drain: grace"));
  }

  #drain(graceMs: number): Promise<void> {
    this.#drained ??= this.#drainWorker(graceMs);
    return this.#drained;
  }

  async #drainWorker(graceMs: number): Promise<void> {
    const finished = await this.worker.drain(graceMs);
    if (!finished)
      this.#parts.logger.warn("Work was still going on when the grace time was over; another worker will repeat it.", {
        graceMs,
      });
  }

  close(options: { grace?: Duration } = {}): Promise<void> {
    const graceMs = options.grace === undefined ? CLOSE_MS : toMs(options.grace, "close: grace");
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  /** Also when the store could not be told: nothing may keep the process alive after this. */
  async #close(graceMs: number): Promise<void> {
    try {
      await this.#drain(graceMs);
    } finally {
      this.worker.close();
      this.#waiters.close();
      this.#watchers.allMoved();
      await this.#parts.store.close();
      this.#forgetSecrets();
      this.#guard.close();
    }
  }

  /** As if the process had died. */
  crash(): void {
    this.worker.crash();
    this.#guard.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function nameOf(what: unknown): string {
  if (typeof what === "string") return what;
  if (typeof what === "object" && what !== null && "name" in what && typeof what.name === "string") return what.name;
  throw new RepriseError("UNKNOWN_DEFINITION", `Expected a definition or its name, got ${typeof what}.`);
}

function checkFilter(filter: Filter): { statuses: readonly Status[] | undefined; limit: number } {
  checkOptionNames(filter, ["definition", "status", "tag", "after", "limit"], "list");
  const { status, limit = Number.POSITIVE_INFINITY } = filter;
  const statuses = status === undefined || typeof status !== "string" ? status : [status];
  if (statuses !== undefined && !Array.isArray(statuses))
    throw new RepriseError("BAD_OPTIONS", `list: expected a status or an array of them, got ${inspect(status)}.`);
  if (filter.tag !== undefined) checkName(filter.tag, "list: tag");
  if (filter.definition !== undefined) checkName(filter.definition, "list: definition");
  for (const one of statuses ?? [])
    if (!STATUSES.includes(one))
      throw new RepriseError(
        "BAD_OPTIONS",
        `list: no status is called ${String(one)}; there are: ${STATUSES.join(", ")}.`,
      );
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(limit) && limit >= 0))
    throw new RepriseError("BAD_OPTIONS", `list: expected a whole number of 0 or more as limit, got ${String(limit)}.`);
  return { statuses, limit };
}

/** N2 */
function checkSameStart(
  outcome: StartOutcome,
  definition: string,
  input: string | undefined,
  redaction: Redaction,
): void {
  const { record } = outcome;
  const started = (outcome.status === "expected-otherwise" ? {} : decode(outcome.first.data)) as { input?: unknown };
  const there = entryData.encodeInput(started.input);
  const forked = forkedOf(started);
  if (record.definition === definition && there === input && forked === undefined) return;
  const [expected, actual] =
    forked !== undefined
      ? [`a fork from step ${forked.step} of run ${forked.run}`, "an input of its own"]
      : record.definition === definition
        ? [`input ${shorten(redacted(there, redaction))}`, `input ${shorten(redacted(input, redaction))}`]
        : [`definition ${record.definition}`, `definition ${definition}`];
  throw new RepriseError(
    "START_CONFLICT",
    `Run ${record.id} exists ${forked === undefined ? "with" : "as"} ${expected}; it cannot be started again with ${actual}. Use another id, or engine.run to get the one that is there.`,
    { details: { run: record.id, expected, actual } },
  );
}

function redacted(text: string | undefined, redaction: Redaction): string | undefined {
  return text === undefined ? undefined : encode(redaction.data(decode(text)));
}

function shorten(text = encode(undefined)): string {
  return text.length <= 80 ? text : `${text.slice(0, 77)}…`;
}
