// Execution: the live promise graph of one workflow run.
//
// It owns the command counters, the promises the code waits for, and the comparison with a recorded journal.
// It does not own entries, leases or time: the worker hands it one completion at a time and takes what it asks for.
//
// E1. A command gets its id `(type, per-type sequence)` and its global index synchronously, when it is created.
// E2. One completion is delivered at a time, in journal order; between two, everything the code can do is done.
// E3. Nothing is thrown through user code to suspend it: what has not come simply has not settled.
// E4. A command settles at most once; what comes later for it is dropped.
// E5. After a violation nothing settles any more and nothing that was asked for is kept.

import {
  CancelledError,
  digest,
  encode,
  digestOf,
  drawUnit,
  drawUuid,
  RepriseError,
  seedOf,
  type EpochMs,
} from "../base/index.ts";
import type { AnyTask, CommandType, Definition, EntryType, Policy } from "../kernel/index.ts";
import type { Ask, OperationAsk } from "./ask.ts";
import { createContext } from "./context-object.ts";
import type { Determinism, OperationContext } from "./context.ts";
import type { WorkflowBody } from "./definition.ts";
import * as entry from "./entry-data.ts";
import {
  stalled,
  unregistered,
  type CodeOutcome,
  type ExecutionHost,
  type LogLevel,
  type RunFacts,
  type Stop,
} from "./execution-host.ts";
import { Commands, compareInput, isViolation, type Command, type StrictCheck, type Violation } from "./commands.ts";
import { compareFields, type CommandName } from "./matrix.ts";
import { callOutsideSteps, refuseInsideStep } from "./operation-scope.ts";
import type { Recorded, RecordedEntry } from "./recorded.ts";
import { ignore, never, refused } from "./refusals.ts";
import { StateValues } from "./state-values.ts";
import { Waits, type Wait } from "./waits.ts";

export class Execution {
  /** What was asked for and is not journaled yet, in the order asked. The worker takes it after each drain. */
  asks: Ask[] = [];
  outcome: CodeOutcome | undefined;
  stop: Stop | undefined;
  /** Warnings a lenient replay leaves behind: commands the journal has and the code did not ask for. */
  readonly leftovers: string[] = [];

  readonly facts: RunFacts;
  readonly #body: WorkflowBody;
  readonly #host: ExecutionHost;
  readonly #commands: Commands;
  readonly #started: RecordedEntry;
  readonly #hasEnd: boolean;
  #undelivered: number;
  #live = false;
  readonly #waits = new Waits();
  #draws = 0;
  #time: EpochMs;
  #seedOfRun: bigint | undefined;
  /** Ports that have their value. */
  #ports: Map<string, RecordedEntry> | undefined;
  readonly state = new StateValues();
  #cancelled: CancelledError | undefined;
  cancelReason: string | undefined;
  #abort: AbortController | undefined;

  constructor(body: WorkflowBody, facts: RunFacts, recorded: Recorded, determinism: Determinism, host: ExecutionHost) {
    this.#body = body;
    this.facts = facts;
    this.#host = host;
    this.#commands = new Commands(recorded, determinism === "strict");
    this.#started = recorded.started;
    this.#hasEnd = recorded.end !== undefined;
    this.#undelivered = recorded.deliveries.length;
    this.#time = recorded.started.at;
  }

  /** Runs the code up to its first wait. */
  start(): void {
    const input = this.#started.data["input"];
    let promise: Promise<unknown>;
    try {
      promise = callOutsideSteps(() => Promise.resolve(this.#body.run(createContext(this), input)));
    } catch (error) {
      promise = Promise.reject(error);
    }
    promise.then(
      (value) => this.#end({ status: "returned", value }),
      (error: unknown) => this.#end({ status: "threw", error }),
    );
  }

  #end(outcome: CodeOutcome): void {
    this.outcome ??= outcome;
    if (this.#live) this.checkLeftovers();
  }

  /** A cancel is a request: the run ends `cancelled` when its code lets the cancellation through. */
  get endStatus(): "completed" | "failed" | "cancelled" | undefined {
    if (this.outcome === undefined) return undefined;
    if (this.outcome.status === "returned") return "completed";
    return this.#cancelled !== undefined && this.outcome.error instanceof CancelledError ? "cancelled" : "failed";
  }

  get replaying(): boolean {
    return !this.#live && (this.#undelivered > 0 || this.#commands.hasUnmatched || this.#hasEnd);
  }

  /** The journal has been delivered. What the code has not asked for yet, as changed code may, is compared when it does. */
  caughtUp(): void {
    this.#live = true;
    this.#commands.forgetJournal();
  }

  /** To be asked when the code has done all it can: it must have ended, or wait for something that can come. */
  checkStalled(): void {
    if (this.outcome === undefined && this.stop === undefined && this.#waits.isEmpty)
      void this.#halt(stalled(this.#body.name, this.#commands.last));
  }

  // ── what the worker delivers ──

  /** Whether an entry that settles this command is still wanted (E4). */
  isOpen(command: string): boolean {
    const wait = this.#waits.get(command);
    if (wait !== undefined) return !wait.closing;
    return this.#commands.isUnmatched(command) && !this.#waits.hasEarly(command);
  }

  /** The command's terminal entry has been appended. */
  close(command: string): void {
    const wait = this.#waits.get(command);
    if (wait !== undefined) wait.closing = true;
  }

  isPortSettled(port: string): boolean {
    return this.#ports?.has(port) ?? false;
  }

  /** Waits on a port, oldest first; `timed` ones have a timer that is no longer needed once the port is settled. */
  waitsOn(port: string): readonly Wait[] {
    return this.#waits.on(port).filter(({ closing }) => !closing);
  }

  /** What is still open: dropped when the run is cancelled. */
  openWaits(): readonly Wait[] {
    return this.#waits.all().filter(({ closing }) => !closing);
  }

  /** Gives the code one completion (E2). */
  deliver(type: EntryType, command: string, data: Readonly<Record<string, unknown>>, at: EpochMs): void {
    if (this.stop !== undefined) return;
    if (this.#undelivered > 0) this.#undelivered -= 1;
    // It came in the same commit as the last thing the code waited for; a replay must not go further than the run did.
    if (this.outcome !== undefined) return;
    this.#time = at;
    switch (type) {
      case "TaskCompleted":
      case "OperationCompleted":
        return this.#settle(command, data["result"]);
      case "ChildWorkflowCompleted":
        return this.#settle(command, data["output"]);
      case "TaskFailed":
      case "OperationFailed":
      case "ChildWorkflowFailed":
        return this.#fail(command, entry.errorOf(data));
      case "TimerFired":
      case "PromiseTimedOut":
        return this.#settle(command, undefined);
      case "PromiseResolved":
      case "PromiseRejected":
        return this.#settlePort({ seq: 0, type, command, data, at });
      case "CancelRequested":
        return this.#cancel(data["reason"]);
      default:
        throw new RepriseError("INVARIANT", `An entry of type ${type} is not delivered to code.`);
    }
  }

  #settle(command: string, value: unknown): void {
    this.#finish(command, (wait) => wait.resolve(value));
  }

  #fail(command: string, error: unknown): void {
    this.#finish(command, (wait) => wait.reject(error));
  }

  #finish(command: string, settle: (wait: Wait) => void): void {
    if (this.#waits.settle(command, settle)) return;
    if (this.#commands.isUnmatched(command)) this.#waits.keepEarly(command, settle);
  }

  #settlePort(recorded: RecordedEntry): void {
    const port = String(recorded.data["promiseId"]);
    // The journal says who waited when it was written; the code that waits now must be the same.
    const waiter = recorded.command === "" ? undefined : this.#waits.get(recorded.command);
    if (waiter !== undefined && waiter.name !== port) {
      const mismatch = compareFields("ResolvePromise", recorded.command, { promiseId: waiter.name }, recorded);
      const seq = this.#commands.findDelivery(recorded.type, recorded.command);
      if (mismatch !== undefined) return this.#violate({ ...mismatch, where: recorded.command, seq });
    }
    if (this.isPortSettled(port)) return;
    (this.#ports ??= new Map()).set(port, recorded);
    for (const { command } of this.#waits.on(port))
      this.#waits.settle(command, (wait) => {
        if (recorded.type === "PromiseRejected") wait.reject(recorded.data["error"]);
        else wait.resolve(portValue(recorded, wait.timed));
      });
  }

  #cancel(reason: unknown): void {
    if (this.#cancelled !== undefined) return;
    if (typeof reason === "string") this.cancelReason = reason;
    const said = this.cancelReason === undefined ? "." : `: ${this.cancelReason}`;
    this.#cancelled = new CancelledError(`The run was cancelled${said}`);
    this.#abort?.abort(this.#cancelled);
    for (const { command } of this.#waits.all()) this.#fail(command, this.#cancelled);
  }

  // ── what the code asks for ──

  get abortSignal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled !== undefined && !this.#abort.signal.aborted) this.#abort.abort(this.#cancelled);
    return this.#abort.signal;
  }

  #seed(): bigint {
    const { id, generation } = this.facts;
    this.#seedOfRun ??= seedOf(generation === 0 ? id : `${id}#${generation}`);
    return this.#seedOfRun;
  }

  now(): Date {
    return new Date(this.#time);
  }
  random(): number {
    return drawUnit(this.#seed(), "workflow", this.#draws++);
  }
  uuid(): string {
    return drawUuid(this.#seed(), "workflow", this.#draws++);
  }
  log(level: LogLevel, message: string, data?: object): void {
    if (!this.replaying) this.#host.log(level, message, data);
  }

  runTask(task: AnyTask, input: unknown, policy: Policy, priority: number): Promise<unknown> {
    if (this.#cancelled !== undefined) return refused(this.#cancelled);
    // Everything that can be refused is refused before the command takes its number: a number without an entry is a gap.
    const accepted = this.#host.acceptTask(task, input);
    const text = entry.encodeInput(accepted === undefined ? input : accepted.input);
    const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
    const command = this.#command("Task", "ScheduleTask", { taskType: task.name }, compareInput("Task", input));
    if (command === undefined) return never();
    if (!command.known) {
      if (accepted === undefined)
        return this.#halt(unregistered("UNKNOWN_TASK", this.#body.name, task.name, command.id));
      const data = entry.taskScheduledData({ index: command.index, taskType: task.name, input: text, given, policy });
      this.asks.push({ ask: "task", command: command.id, data, task, priority });
    }
    return this.#open("Task", command.id, task.name, false);
  }

  startChild(
    definition: Definition,
    input: unknown,
    options: { readonly id?: string; readonly detached?: boolean },
  ): { readonly id: string; readonly promise: Promise<unknown> } {
    const sequence = this.#commands.count("ChildWorkflow");
    const id = options.id ?? digestOf("reprise/child/v1", this.facts.id, this.facts.generation, sequence).slice(0, 32);
    if (this.#cancelled !== undefined) return { id, promise: refused(this.#cancelled) };
    const accepted = this.#host.acceptChild(definition, input);
    const text = entry.encodeInput(accepted === undefined ? input : accepted.input);
    const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
    const fields = { childExecutionName: definition.name, childWorkflowKind: definition.kind };
    const command = this.#command(
      "ChildWorkflow",
      "ScheduleChildWorkflow",
      fields,
      compareInput("Child workflow", input),
    );
    if (command === undefined) return { id, promise: never() };
    if (!command.known) {
      if (accepted === undefined)
        return {
          id,
          promise: this.#halt(unregistered("UNKNOWN_DEFINITION", this.#body.name, definition.name, command.id)),
        };
      const data = entry.childInitiatedData({
        index: command.index,
        childExecutionId: id,
        ...fields,
        input: text,
        given,
      });
      const detached = options.detached ?? false;
      this.asks.push({ ask: "child", command: command.id, data, definition, childId: id, input: text, detached });
    }
    if (options.detached === true) return { id, promise: refused(doesNotAnswer(id)) };
    return { id, promise: this.#open("ChildWorkflow", command.id, id, false) };
  }

  startTimer(timerId: "sleep" | "sleepUntil", ms: number): { readonly promise: Promise<void>; cancel(): void } {
    if (this.#cancelled !== undefined) return { promise: refused(this.#cancelled), cancel: ignore };
    const command = this.#command("Timer", "StartTimer", { timerId }, (recorded) =>
      timerId === recorded.data["timerId"] && ms !== recorded.data["ms"]
        ? { what: "Timer duration", expected: ms, actual: recorded.data["ms"] }
        : undefined,
    );
    if (command === undefined) return { promise: never(), cancel: ignore };
    if (!command.known) {
      const data = entry.timerStartedData(command.index, timerId, ms);
      const due = timerId === "sleep" ? { afterMs: ms } : { at: ms };
      this.asks.push({ ask: "timer", command: command.id, data, due });
    }
    const promise = this.#open("Timer", command.id, timerId, true) as Promise<void>;
    return { promise, cancel: () => this.#cancelTimer(command.id, timerId) };
  }

  #cancelTimer(id: string, timerId: string): void {
    const wait = this.#waits.get(id);
    // Fired already, though perhaps not delivered: E4.
    if (wait === undefined || wait.closing || this.stop !== undefined) return;
    const cancel = this.#commands.nextCancel(id, timerId);
    if (isViolation(cancel)) return this.#violate(cancel);
    if (!cancel.known)
      this.asks.push({ ask: "cancel-timer", command: id, data: entry.timerCancelledData(cancel.index, timerId) });
    this.#fail(id, new CancelledError("The timer was cancelled."));
  }

  waitFor(port: string, timeoutMs: number | undefined, show: unknown): Promise<unknown> {
    if (this.#cancelled !== undefined) return refused(this.#cancelled);
    if (this.#body.ports[port]?.port !== "promise")
      return refused(
        new RepriseError(
          "UNKNOWN_PORT",
          `Workflow ${this.#body.name} waits for the promise ${port}, which is not among its ports. Declare it: ports: { ${port}: promise() }.`,
        ),
      );
    const shown = entry.encodeInput(show);
    const command = this.#command("Promise", "CreatePromise", { promiseId: port });
    if (command === undefined) return never();
    const settled = this.#ports?.get(port);
    if (!command.known) {
      const data = entry.promiseCreatedData(command.index, port, timeoutMs, shown);
      this.asks.push({
        ask: "promise",
        command: command.id,
        data,
        timeoutMs: settled === undefined ? timeoutMs : undefined,
      });
    }
    if (settled === undefined) return this.#open("Promise", command.id, port, timeoutMs !== undefined);
    if (settled.type === "PromiseRejected") return refused(settled.data["error"] as Error);
    return Promise.resolve(portValue(settled, timeoutMs !== undefined));
  }

  perform(
    name: string,
    input: { readonly value: unknown } | undefined,
    call: (op: OperationContext, input: unknown) => unknown,
    policy: Policy,
  ): Promise<unknown> {
    if (this.#cancelled !== undefined) return refused(this.#cancelled);
    const text = input === undefined ? undefined : encode(input.value);
    const command = this.#command(
      "Operation",
      "RecordOperation",
      { operationName: name },
      compareInput("Operation", input?.value),
    );
    if (command === undefined) return never();
    if (!command.known) this.asks.push(this.#operationAsk(command, name, text, call, policy));
    return this.#open("Operation", command.id, name, false);
  }

  #operationAsk(
    command: Command,
    name: string,
    input: string | undefined,
    call: OperationAsk["call"],
    policy: Policy,
  ): OperationAsk {
    const { id, index, retried } = command;
    return {
      ask: "operation",
      command: id,
      name,
      index,
      input,
      call,
      policy,
      attempt: retried === undefined ? 0 : Number(retried.data["attempt"] ?? 0) + 1,
      dueAt: retried === undefined ? undefined : retried.at + Number(retried.data["delay"]),
    };
  }

  setState(key: string, value: unknown): void {
    const text = encode(value);
    if (this.#cancelled !== undefined) throw this.#cancelled;
    const command = this.#command("State", "SetState", { key }, (recorded) => {
      const then = encode(recorded.data["value"]);
      return text === then ? undefined : { what: "State value", expected: text, actual: then };
    });
    if (command === undefined) return;
    this.state.set(key, text);
    if (!command.known)
      this.asks.push({
        ask: "state",
        type: "StateSet",
        command: command.id,
        data: entry.stateSetData(command.index, key, text),
      });
  }
  clearState(key: string | undefined): void {
    if (this.#cancelled !== undefined) throw this.#cancelled;
    const command = this.#command("State", "ClearState", { key });
    if (command === undefined) return;
    this.state.clear(key);
    if (!command.known)
      this.asks.push({
        ask: "state",
        type: "StateCleared",
        command: command.id,
        data: entry.stateClearedData(command.index, key),
      });
  }

  // ── identity and comparison ──

  #open(type: CommandType, command: string, name: string, timed: boolean): Promise<unknown> {
    const closing = this.#commands.isClosedTimer(command);
    const { promise, early } = this.#waits.add(command, { type, name, timed, closing });
    if (early === undefined) return promise;
    // Seed 004 matches completions by id, not by order, so a lenient replay accepts it; a strict one does not.
    if (!this.#commands.strict) early();
    else
      this.#violate({
        message: `Command order mismatch at ${command}: expected it before its completion in the journal, got it after`,
        expected: "before its completion",
        actual: "after its completion",
        where: command,
        seq: undefined,
      });
    return promise;
  }

  /** E1. Undefined: the code and the journal disagree; nothing goes on from here (E5). */
  #command(
    type: CommandType,
    name: CommandName,
    fields: Readonly<Record<string, unknown>>,
    strictly?: StrictCheck,
  ): Command | undefined {
    refuseInsideStep();
    if (this.stop !== undefined) return undefined;
    const command = this.#commands.next(type, name, fields, strictly);
    if (!isViolation(command)) return command;
    this.#violate(command);
    return undefined;
  }

  #violate(found: Violation): void {
    void this.#halt({ status: "determinism_violation", code: "DETERMINISM_VIOLATION", ...found });
  }

  /** E5 */
  #halt(stop: Stop): Promise<never> {
    this.stop ??= stop;
    this.asks = [];
    return never();
  }

  /** Called when the journal has been delivered and the code has ended: what the journal has and nobody asked for. */
  checkLeftovers(): void {
    if (this.stop !== undefined || this.outcome === undefined) return;
    for (const left of this.#commands.leftovers()) {
      if (this.#commands.strict) return this.#violate(left);
      this.leftovers.push(left.message);
      this.#host.log("warn", left.message);
    }
  }
}

function doesNotAnswer(child: string): RepriseError {
  return new RepriseError("USAGE", `Child ${child} is detached and does not answer; read it with engine.run.`);
}

/** A port without payload answers `true` to a wait that could have run out, so that the two can be told apart. */
function portValue(recorded: RecordedEntry, timed: boolean): unknown {
  const value = recorded.data["value"];
  return value === undefined && timed ? true : value;
}
