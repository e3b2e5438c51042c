// LiveRun: one run over `Execution`, without a database. It plays the worker for replay tests.
//
// What is durable is `entries`; forget the rest after any commit, and `LiveRun.resume` goes on from them.
//
// L1. An arrival is appended only while somebody waits for it; what comes later is dropped (E4).
// L2. Code sees an arrival after the commit that holds it (W11), decoded from the stored text (A4).
// L3. One arrival is delivered at a time; after each the code is drained and what it asks for is appended (W1).
// L4. While some of a commit's arrivals are still to be delivered, further ones may be appended.
// L5. Nothing is delivered once the code has ended, and nothing is appended once it was stopped.

import { decode, systemTimers, type EpochMs } from "../../src/base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  decodeEntry,
  isCancel,
  markOf,
  parseNow,
  taskBody,
  type AnyTask,
  type DecodedEntry,
  type Definition,
  type Entry,
  type EntryType,
} from "../../src/kernel/index.ts";
import {
  CURRENT_FLAGS,
  driveThrough,
  entryData,
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

/** Something that happened outside the code, on its way into the journal. */
export interface Arrival {
  readonly type: EntryType;
  readonly command: string;
  readonly data: string;
  readonly at: EpochMs;
}

/** Arrivals of one commit, and of another that was made when the first of them had been delivered. */
export interface Commit {
  readonly arrivals: readonly Arrival[];
  readonly late: readonly Arrival[];
}

export type Answer = { readonly value?: unknown } | { readonly error: unknown };

/** Gives an execution everything its journal holds; the real one unless a test tries a wrong one. */
export type Drive = (execution: Execution, recorded: RecordedJournal) => Promise<void>;

export interface LiveRunOptions {
  readonly id?: string;
  readonly determinism?: Determinism;
  readonly drive?: Drive;
  /** Names nobody has registered here. */
  readonly unregistered?: readonly string[];
}

export const STARTED_AT: EpochMs = 1_900_000_000_000;
const RUN_ID = "run-1";

/** Everything the code can do with what it has is done when this resolves. */
export function drained(): Promise<void> {
  return new Promise((resolve) => systemTimers.soon(resolve));
}

const realDrive: Drive = (execution, recorded) => driveThrough(execution, recorded, systemTimers);

/** A host that takes every task and child not named in `unregistered`, and keeps what is logged. */
export function testHost(logs: string[], unregistered: readonly string[] = []): ExecutionHost {
  return {
    log: (level, message) => void logs.push(`${level}: ${message}`),
    acceptTask: (task, input) => {
      if (unregistered.includes(task.name)) return undefined;
      const { schema } = taskBody(task);
      return { input: parseNow(schema, input, `task ${task.name}`), parsed: schema !== undefined };
    },
    hasTask: (task) => !unregistered.includes(task.name),
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
  /** Commands asked for in this life of the run, in order; a cancelled timer is `Timer(0) cancel`. */
  readonly requested: string[] = [];
  /** What was appended from outside in this life, commit by commit. */
  readonly commits: Commit[] = [];
  /** Journal lengths at which a crash may cut: an append that is not in the middle of one commit's arrivals. */
  readonly cuts: number[] = [];
  readonly execution: Execution;
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

  /** A run taken up from its journal alone. */
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

  /** Commands that wait for somebody outside, oldest first. */
  open(): readonly string[] {
    return this.execution.openWaits().flatMap(({ command }) => (this.execution.isOpen(command) ? [command] : []));
  }

  /** What the code asked for by `ctx.run`. */
  operation(command: string): OperationRequest | undefined {
    return this.#operations.get(command);
  }

  // ── arrivals ──

  /** What a task, operation or child answers. */
  answerOf(command: string, answer: Answer): Arrival {
    const failed = "error" in answer;
    const result = failed ? undefined : entryData.encodeInput(answer.value);
    const [type] = command.split("(");
    const make = (name: EntryType, data: string): Arrival => ({ type: name, command, data, at: this.now });
    switch (type) {
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
  /** Its command is filled in when it is appended: who waits then. */
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

  /** Runs the function behind a task or operation, as a worker would. */
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

  /** An attempt of an operation has failed and will be repeated: nothing is delivered. */
  retryOperation(command: string, error: unknown, delayMs: number): void {
    this.#append(
      "OperationRetried",
      command,
      entryData.operationFailedData(this.#operationFields(command), error, delayMs),
    );
    this.cuts.push(this.entries.length);
  }

  // ── commits ──

  /** Appends in one commit what is still wanted, then delivers it; answers how many were wanted. */
  async commit(...arrivals: readonly Arrival[]): Promise<number> {
    return this.commitBoth(arrivals, () => []);
  }

  /** L4. `late` is asked when the first of the arrivals has been delivered. */
  async commitBoth(arrivals: readonly Arrival[], late: () => readonly Arrival[]): Promise<number> {
    if (this.isOver) return 0;
    const cutsBefore = this.cuts.length;
    const taken = this.#takeAll(arrivals);
    if (taken.length === 0) return 0;
    this.cuts.push(this.entries.length);
    await this.#deliver(taken[0]!);
    const further = this.isOver ? [] : this.#takeAll(late());
    if (further.length > 0) {
      // Cut in between, the run would hear the rest of the first commit before the second is made.
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
    this.execution.deliver(decodeEntry(entry));
    await drained();
    this.#afterDrain();
  }

  #takeAll(arrivals: readonly Arrival[]): Entry[] {
    return arrivals.flatMap((arrival) => this.#take(arrival) ?? []);
  }

  /** Runs the functions behind these commands, one commit each, in this order. */
  async finish(...commands: readonly string[]): Promise<void> {
    for (const command of commands) await this.commit(await this.perform(command));
  }

  /** L1 */
  #take(arrival: Arrival): Entry | undefined {
    const { type, data } = arrival;
    let { command } = arrival;
    this.now = Math.max(this.now, arrival.at);
    if (type === "PromiseResolved" || type === "PromiseRejected") {
      const port = String((decode(data) as { promiseId?: unknown }).promiseId);
      if (this.#settledPorts.has(port)) return undefined;
      const waits = this.execution.waitsOn(port);
      command = waits[0]?.command ?? "";
      for (const wait of waits) this.execution.close(wait.command);
    } else if (type === "SignalReceived") {
      const { name, value } = decode(data) as { name: string; value?: unknown };
      command = this.execution.signals.announce(this.execution, name, value)?.command ?? "";
      this.execution.close(command);
    } else if (isCancel(type)) {
      if (this.execution.cancellation.error !== undefined || this.execution.cancellation.announced) return undefined;
      this.execution.cancellation.announced = true;
      for (const { command: open } of this.execution.cancellableWaits()) this.execution.close(open);
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

  /** L3, L5 */
  #afterDrain(): void {
    if (this.isOver) return;
    const asks = this.execution.requests;
    this.execution.requests = [];
    for (const ask of asks) this.#ask(ask);
    if (this.execution.outcome !== undefined) this.#end();
  }

  #ask(ask: CommandRequest): void {
    if (ask.kind === "emit" || ask.kind === "step" || ask.kind === "stop-nodes" || ask.kind === "limit-wait") return;
    this.requested.push(labelOf(ask));
    if (ask.kind === "operation") {
      this.#operations.set(ask.command, ask);
      return;
    }
    if (ask.kind === "task") this.#tasks.set(ask.task.name, ask.task);
    this.#append("type" in ask ? ask.type : REQUEST_ENTRIES[ask.kind], ask.command, ask.data);
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
    const ask = this.#operations.get(command);
    if (ask === undefined) throw new Error(`${command} was not asked for.`);
    return { index: ask.index, name: ask.name, input: ask.input, attempt: ask.attempt };
  }

  #callContext(command: string): OperationContext {
    const { id, generation } = this.execution.identity;
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    return {
      runId: id,
      attempt: 0,
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

/** One for each thing that can be asked for: some share a command. */
function labelOf(ask: Exclude<CommandRequest, { kind: "emit" | "limit-wait" | "step" | "stop-nodes" }>): string {
  if (ask.kind === "cancel-timer") return `${ask.command} cancel`;
  if (ask.kind === "answer") return `${ask.command} answer`;
  return ask.kind === "child-message" ? `${ask.command} ${ask.data}` : ask.command;
}

const REQUEST_ENTRIES = {
  task: "TaskScheduled",
  child: "ChildWorkflowInitiated",
  timer: "TimerStarted",
  "cancel-timer": "TimerCancelled",
  promise: "PromiseCreated",
  patch: "PatchMarked",
  send: "MessageSent",
} as const;

/** Entry 1 of a run of this definition. */
export function startedEntry(definition: Definition, input?: unknown): Entry {
  const { name, version } = workflowBody(definition);
  const data = entryData.startedData({
    definition: name,
    version,
    flags: CURRENT_FLAGS,
    input: entryData.encodeInput(input),
  });
  const chain = chainAfter(CHAIN_START, "RunStarted", "", data);
  return { seq: 1, type: "RunStarted", command: "", data, at: STARTED_AT, mark: markOf(chain) };
}

/** Gives hand-written lines their numbers, marks and chain, so that they make a sound journal. */
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
