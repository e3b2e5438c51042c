// LiveRun: one run over `Execution`, without a database. It acts as the worker in replay tests.
//
// Only `entries` are durable: `LiveRun.resume` continues from them after a cut at any commit.
//
// live-run.L1. An arrival is appended only while the run waits for it; later ones are dropped (execution.E4).
// live-run.L2. The code receives an arrival after its commit (rules.W11), decoded from the stored text (rules.A4).
// live-run.L3. Arrivals are delivered one at a time. After each, the code runs until it waits and its requests are appended
//   (rules.W1).
// live-run.L4. Further arrivals may be appended before all arrivals of a commit are delivered.
// live-run.L5. Nothing is delivered after the code has ended, and nothing is appended after it was stopped.

import { decode, encode, systemTimers, type EpochMs } from "../../src/base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  commandTypeOf,
  decodeData,
  decodeEntry,
  isCancel,
  markOf,
  parseNow,
  taskBody,
  type AnyTask,
  type DecodedEntry,
  type Definition,
  type Entry,
  type EntryData,
  type EntryType,
} from "../../src/kernel/index.ts";
import {
  CURRENT_FLAGS,
  driveThrough,
  entryData,
  startedData,
  Execution,
  idempotencyKeyOf,
  indexJournal,
  isWorkflow,
  workflowBody,
  type CommandRequest,
  type Determinism,
  type ExecutionHost,
  type OperationRequest,
  type OperationContext,
  type RecordedJournal,
  type Stop,
} from "../../src/workflow/index.ts";

/** A completion or message that is not in the journal yet. */
export interface Arrival {
  readonly type: EntryType;
  readonly command: string;
  readonly data: string;
  readonly at: EpochMs;
}

/** Arrivals of one commit, and those of another one made after the first arrival was delivered. */
export interface Commit {
  readonly arrivals: readonly Arrival[];
  readonly late: readonly Arrival[];
}

export type Answer = { readonly value?: unknown } | { readonly error: unknown };

/** Delivers a journal to an execution; tests can pass a wrong one. */
export type Drive = (execution: Execution, recorded: RecordedJournal) => Promise<void>;

export interface LiveRunOptions {
  readonly id?: string;
  readonly determinism?: Determinism;
  readonly drive?: Drive;
  /** The names of unregistered definitions. */
  readonly unregistered?: readonly string[];
}

export const STARTED_AT: EpochMs = 1_900_000_000_000;
const RUN_ID = "run-1";

/** Resolves when the code has run until it waits. */
export function drained(): Promise<void> {
  return new Promise((resolve) => systemTimers.soon(resolve));
}

const realDrive: Drive = (execution, recorded) => driveThrough(execution, recorded, systemTimers);

/** A host that accepts every task and child except those in `unregistered`, and collects log lines. */
export function testHost(logs: string[], unregistered: readonly string[] = []): ExecutionHost {
  return {
    log: (_run, level, message) => void logs.push(`${level}: ${message}`),
    acceptTask: (task, input) => {
      if (unregistered.includes(task.name)) return undefined;
      const { schema } = taskBody(task);
      return { input: parseNow(schema, input, `task ${task.name}`), parsed: schema !== undefined };
    },
    hasTask: (task) => !unregistered.includes(task.name),
    portsOf: (definition) => (isWorkflow(definition) ? workflowBody(definition).ports : {}),
    acceptNext: (_name, _version, input) => ({ input }),
    acceptChild: (definition, input) => {
      if (unregistered.includes(definition.name)) return undefined;
      const schema = isWorkflow(definition) ? workflowBody(definition).schema : undefined;
      return { input: parseNow(schema, input, `workflow ${definition.name}`), parsed: schema !== undefined };
    },
  };
}

export class LiveRun {
  readonly entries: Entry[] = [];
  chain: string = CHAIN_START;
  now: EpochMs = STARTED_AT;
  readonly logs: string[] = [];
  /** Commands that the code has requested since the start or resume, in order; a timer cancel is `Timer(0) cancel`. */
  readonly requested: string[] = [];
  /** The arrivals since the start or resume, by commit. */
  readonly commits: Commit[] = [];
  /** Journal lengths at which a crash may cut: not in the middle of a commit. */
  readonly cuts: number[] = [];
  readonly execution: Execution;
  /** The messages of the differences that did not stop the run. */
  get warnings(): readonly string[] {
    return this.execution.warnings.map(({ message }) => message);
  }
  readonly #operations = new Map<string, OperationRequest>();
  readonly #created = new Map<string, DecodedEntry>();
  readonly #tasks = new Map<string, AnyTask>();
  readonly #settledPorts = new Set<string>();
  #ended = false;

  private constructor(
    definition: Definition,
    entries: readonly Entry[],
    options: LiveRunOptions,
    recorded: RecordedJournal,
  ) {
    for (const entry of entries) this.#keep(entry);
    this.now = entries.at(-1)?.at ?? STARTED_AT;
    this.#ended = recorded.end !== undefined;
    this.execution = new Execution(
      workflowBody(definition),
      { id: options.id ?? RUN_ID, generation: 0 },
      recorded,
      options.determinism ?? "strict",
      testHost(this.logs, options.unregistered),
    );
  }

  /** A new run, up to its first wait. */
  static async start(definition: Definition, input?: unknown, options: LiveRunOptions = {}): Promise<LiveRun> {
    return LiveRun.resume(definition, [startedEntry(definition, input)], options);
  }

  /** A run resumed from its journal. */
  static async resume(
    definition: Definition,
    entries: readonly Entry[],
    options: LiveRunOptions = {},
  ): Promise<LiveRun> {
    const recorded = indexJournal(entries);
    const run = new LiveRun(definition, entries, options, recorded);
    await (options.drive ?? realDrive)(run.execution, recorded);
    if (run.stop === undefined) run.execution.caughtUp();
    run.#afterDrain();
    return run;
  }

  get stop(): Stop | undefined {
    return this.execution.stop;
  }
  get isOver(): boolean {
    return this.#ended || this.stop !== undefined;
  }
  get types(): EntryType[] {
    return this.entries.map(({ type }) => type);
  }

  /** Commands that wait for an arrival, oldest first. */
  open(): readonly string[] {
    return this.execution.waits.open().flatMap(({ command }) => (this.execution.isOpen(command) ? [command] : []));
  }

  /** The request of `ctx.run`. */
  operation(command: string): OperationRequest | undefined {
    return this.#operations.get(command);
  }

  // ── arrivals ──

  /** The end of a task, operation or child. */
  answerOf(command: string, answer: Answer): Arrival {
    const failed = "error" in answer;
    const result = failed ? undefined : entryData.encodeInput(answer.value);
    const make = (name: EntryType, data: string): Arrival => ({ type: name, command, data, at: this.now });
    switch (commandTypeOf(command)) {
      case "Task":
        return failed
          ? make("TaskFailed", entryData.taskFailedData(0, answer.error, undefined))
          : make("TaskCompleted", entryData.taskCompletedData(0, result, undefined));
      case "ChildWorkflow": {
        const created = this.#created.get(command);
        const id = created?.type === "ChildWorkflowInitiated" ? created.data.childExecutionId : "";
        return failed
          ? make("ChildWorkflowFailed", entryData.childFailedData(id, answer.error))
          : make("ChildWorkflowCompleted", entryData.childCompletedData(id, result));
      }
      case "Operation": {
        const fields = this.#operationFields(command);
        return failed
          ? make("OperationFailed", entryData.operationFailedData(fields, answer.error))
          : make("OperationCompleted", entryData.operationCompletedData(fields, result));
      }
      default:
        throw new Error(`Nobody answers ${command}.`);
    }
  }

  fires(command: string): Arrival {
    return { type: "TimerFired", command, data: "{}", at: this.now };
  }
  timesOut(command: string): Arrival {
    return { type: "PromiseTimedOut", command, data: "{}", at: this.now };
  }
  /** The append fills in the command: the wait that it settles. */
  settles(port: string, answer: Answer): Arrival {
    if ("error" in answer)
      return {
        type: "PromiseRejected",
        command: "",
        data: entryData.promiseRejectedData(port, answer.error),
        at: this.now,
      };
    const data = entryData.promiseResolvedData(port, entryData.encodeInput(answer.value));
    return { type: "PromiseResolved", command: "", data, at: this.now };
  }
  /** The store's answer to a settlement of a promise of another run. */
  answersSettlement(command: string, status: EntryData["SettleAnswered"]["status"]): Arrival {
    const request = this.entries.find((entry) => entry.type === "SettleRequested" && entry.command === command);
    const { runId, promiseId } = decodeData("SettleRequested", request?.data ?? "{}");
    return { type: "SettleAnswered", command, data: encode({ promiseId, runId, status }), at: this.now };
  }
  /** As `settles`. */
  signals(name: string, value?: unknown): Arrival {
    const data = entryData.signalReceivedData(name, entryData.encodeInput(value));
    return { type: "SignalReceived", command: "", data, at: this.now };
  }
  requestsUpdate(name: string, id: string, args: unknown): Arrival {
    const data = entryData.updateRequestedData(id, name, entryData.encodeInput(args));
    return { type: "UpdateRequested", command: entryData.updateCommand(id), data, at: this.now };
  }
  cancels(reason?: string): Arrival {
    return { type: "CancelRequested", command: "", data: entryData.cancelRequestedData(reason), at: this.now };
  }

  missesDeadline(): Arrival {
    return { type: "DeadlineExceeded", command: "", data: "{}", at: this.now };
  }

  /** Runs the function of a task or operation, as a worker does. */
  async perform(command: string): Promise<Arrival> {
    const operation = this.#operations.get(command);
    const created = this.#created.get(command);
    const scheduled = created?.type === "TaskScheduled" ? created.data : undefined;
    const task = this.#tasks.get(scheduled?.taskType ?? "");
    try {
      if (operation !== undefined) {
        const input = operation.input === undefined ? undefined : decode(operation.input);
        return this.answerOf(command, { value: await operation.call(this.#callContext(command), input) });
      }
      if (task === undefined) throw new Error(`No function is known for ${command}.`);
      return this.answerOf(command, {
        value: await taskBody(task).run(this.#callContext(command), scheduled?.input),
      });
    } catch (error) {
      return this.answerOf(command, { error });
    }
  }

  /** A failed attempt of an operation that will be repeated: nothing is delivered. */
  retryOperation(command: string, error: unknown, delayMs: number): void {
    this.#append(
      "OperationRetried",
      command,
      entryData.operationFailedData(this.#operationFields(command), error, delayMs),
    );
    this.cuts.push(this.entries.length);
  }

  // ── commits ──

  /** Appends the accepted arrivals in one commit and delivers them; returns their number. */
  async commit(...arrivals: readonly Arrival[]): Promise<number> {
    return this.commitBoth(arrivals, () => []);
  }

  /** live-run.L4. `late` is called after the first arrival was delivered. */
  async commitBoth(arrivals: readonly Arrival[], late: () => readonly Arrival[]): Promise<number> {
    if (this.isOver) return 0;
    const cutsBefore = this.cuts.length;
    const taken = this.#takeAll(arrivals);
    if (taken.length === 0) return 0;
    this.cuts.push(this.entries.length);
    await this.#deliver(taken[0]!);
    const further = this.isOver ? [] : this.#takeAll(late());
    if (further.length > 0) {
      // A run that is cut in between would receive the rest of the first commit before the second one.
      this.cuts.splice(cutsBefore);
      this.cuts.push(this.entries.length);
    }
    this.commits.push({ arrivals: taken.map(arrivalOf), late: further.map(arrivalOf) });
    for (const entry of [...taken.slice(1), ...further]) {
      if (this.isOver) break;
      await this.#deliver(entry);
    }
    return taken.length + further.length;
  }

  async #deliver(entry: Entry): Promise<void> {
    this.execution.deliveries.deliver(decodeEntry(entry));
    await drained();
    this.#afterDrain();
  }

  #takeAll(arrivals: readonly Arrival[]): Entry[] {
    return arrivals.flatMap((arrival) => this.#take(arrival) ?? []);
  }

  /** Runs the functions of these commands in order, with one commit each. */
  async finish(...commands: readonly string[]): Promise<void> {
    for (const command of commands) await this.commit(await this.perform(command));
  }

  /** live-run.L1 */
  #take(arrival: Arrival): Entry | undefined {
    const { type, data } = arrival;
    let { command } = arrival;
    this.now = Math.max(this.now, arrival.at);
    if (type === "PromiseResolved" || type === "PromiseRejected") {
      const port = String((decode(data) as { promiseId?: unknown }).promiseId);
      if (this.#settledPorts.has(port)) return undefined;
      const waits = this.execution.waits.openOn(port);
      command = waits[0]?.command ?? "";
      for (const wait of waits) this.execution.close(wait.command);
    } else if (type === "SignalReceived") {
      const { name, value } = decode(data) as { name: string; value?: unknown };
      command = this.execution.signals.announce(this.execution, name, value)?.command ?? "";
      this.execution.close(command);
    } else if (isCancel(type)) {
      if (this.execution.cancellation.error !== undefined || this.execution.cancellation.announced) return undefined;
      this.execution.cancellation.announced = true;
      for (const { command: open } of this.execution.waits.cancellable()) this.execution.close(open);
    } else if (type === "UpdateRequested") {
      if (!this.execution.updates.announce(command)) return undefined;
    } else if (this.execution.isOpen(command)) this.execution.close(command);
    else return undefined;
    return this.#append(type, command, data);
  }

  #append(type: EntryType, command: string, data: string): Entry {
    const chain = chainAfter(this.chain, type, command, data);
    return this.#keep({ seq: this.entries.length + 1, type, command, data, at: this.now, mark: markOf(chain) });
  }

  #keep(entry: Entry): Entry {
    const { type, command, data } = entry;
    this.entries.push(entry);
    this.chain = chainAfter(this.chain, type, command, data);
    if (type === "PromiseResolved" || type === "PromiseRejected")
      this.#settledPorts.add(String((decode(data) as { promiseId?: unknown }).promiseId));
    else if (type === "TaskScheduled" || type === "ChildWorkflowInitiated")
      this.#created.set(command, decodeEntry(entry));
    return entry;
  }

  /** live-run.L3, live-run.L5 */
  #afterDrain(): void {
    if (this.isOver) return;
    const { requests } = this.execution;
    this.execution.requests = [];
    for (const request of requests) this.#handleRequest(request);
    if (this.execution.outcome !== undefined) this.#end();
  }

  #handleRequest(request: CommandRequest): void {
    if (
      request.kind === "emit" ||
      request.kind === "step" ||
      request.kind === "stop-nodes" ||
      request.kind === "limit-wait"
    )
      return;
    this.requested.push(labelOf(request));
    if (request.kind === "operation") {
      this.#operations.set(request.command, request);
      return;
    }
    if (request.kind === "task") this.#tasks.set(request.task.name, request.task);
    this.#append("type" in request ? request.type : REQUEST_ENTRIES[request.kind], request.command, request.data);
    this.cuts.push(this.entries.length);
  }

  #end(): void {
    const { outcome, endStatus } = this.execution;
    if (outcome?.status === "continued")
      this.#append("RunContinued", "", entryData.runContinuedData(outcome.version, outcome.given));
    else if (endStatus === "cancelled") this.#append("RunCancelled", "", "{}");
    else if (outcome?.status === "returned") this.#endWith(outcome.value);
    else this.#append("RunFailed", "", entryData.runFailedData(outcome?.error));
    this.#ended = true;
  }

  #endWith(value: unknown): void {
    let output: string | undefined;
    try {
      output = entryData.encodeInput(value);
    } catch (notData) {
      this.#append("RunFailed", "", entryData.runFailedData(notData));
      return;
    }
    this.#append("RunCompleted", "", entryData.runCompletedData(output));
  }

  #operationFields(command: string): { index: number; name: string; input: string | undefined; attempt: number } {
    const request = this.#operations.get(command);
    if (request === undefined) throw new Error(`${command} was not requested.`);
    return { index: request.index, name: request.name, input: request.input, attempt: request.attempt };
  }

  #callContext(command: string): OperationContext {
    const { id, generation } = this.execution.identity;
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
    return {
      runId: id,
      attempt: 1,
      execution: 1,
      idempotencyKey: idempotencyKeyOf(id, generation, command),
      abortSignal: new AbortController().signal,
      log,
      heartbeat: () => {},
      emit: () => {},
    };
  }
}

function arrivalOf({ type, command, data, at }: Entry): Arrival {
  return { type, command, data, at };
}

/** A unique label per request: some share a command. */
function labelOf(request: Exclude<CommandRequest, { kind: "emit" | "limit-wait" | "step" | "stop-nodes" }>): string {
  if (request.kind === "cancel-timer" || request.kind === "cancel-task") return `${request.command} cancel`;
  if (request.kind === "answer") return `${request.command} answer`;
  return request.kind === "child-message" ? `${request.command} ${request.data}` : request.command;
}

const REQUEST_ENTRIES = {
  task: "TaskScheduled",
  child: "ChildWorkflowInitiated",
  timer: "TimerStarted",
  "cancel-timer": "TimerCancelled",
  promise: "PromiseCreated",
  patch: "PatchMarked",
  "input-change": "InputChanged",
  send: "MessageSent",
  settle: "SettleRequested",
} as const;

/** Entry 1 of a run of this definition. */
export function startedEntry(definition: Definition, input?: unknown): Entry {
  const { name, version } = workflowBody(definition);
  const data = startedData({
    definition: name,
    version,
    flags: CURRENT_FLAGS,
    input: entryData.encodeInput(input),
  });
  const chain = chainAfter(CHAIN_START, "RunStarted", "", data);
  return { seq: 1, type: "RunStarted", command: "", data, at: STARTED_AT, mark: markOf(chain) };
}

/** Adds seqs, marks and the chain to hand-written lines, so that they form a valid journal. */
export function journalOf(lines: readonly (readonly [type: EntryType, command: string, data: string])[]): {
  readonly entries: Entry[];
  readonly chain: string;
} {
  let chain = CHAIN_START;
  const entries = lines.map(([type, command, data], index) => {
    chain = chainAfter(chain, type, command, data);
    return { seq: index + 1, type, command, data, at: STARTED_AT + index, mark: markOf(chain) };
  });
  return { entries, chain };
}
