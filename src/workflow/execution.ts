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
// E6. A cancel rejects what the code waits for and refuses what it asks for, except inside a shield.

import { approachable, RepriseError, type EpochMs, type PayloadLimits } from "../base/index.ts";
import {
  DEADLINE_ITEM,
  lifeOf,
  isAnswer,
  isCancel,
  type Arrival,
  type CommandType,
  type EndStatus,
  type EntryType,
  type Retried,
} from "../kernel/index.ts";
import type { Ask } from "./ask.ts";
import { Cancellation } from "./cancellation.ts";
import { createContext } from "./context-object.ts";
import type { WorkflowContext } from "./context.ts";
import type { WorkflowBody } from "./definition.ts";
import { Draws } from "./draws.ts";
import type { EmittedChunks } from "./emit-chunk.ts";
import { arrivalOf, errorOf } from "./entry-data.ts";
import {
  failureOf,
  nondeterministic,
  stalled,
  type CodeOutcome,
  type ExecutionHost,
  type LogLevel,
  type RunFacts,
  type Stop,
} from "./execution-host.ts";
import { Commands, isViolation, type Command, type Comparison, type StrictCheck, type Violation } from "./commands.ts";
import { findNondeterminism } from "./guard.ts";
import type { CommandName } from "./matrix.ts";
import { Nodes } from "./nodes.ts";
import { Patches } from "./ask-patched.ts";
import { Failures, type FailedAt } from "./failures.ts";
import { PromisePorts } from "./promise-ports.ts";
import type { QueryHandler } from "./queries.ts";
import { callOutside, callShielded, callWorkflow, isShielded, nodeOfCaller, refuseInsideStep } from "./scope.ts";
import type { Recorded, RecordedEntry } from "./recorded.ts";
import { never } from "./refusals.ts";
import { Signals } from "./signals.ts";
import { StateValues } from "./state-values.ts";
import { Undos, type StepUndo } from "./undo.ts";
import { Updates } from "./updates.ts";
import { outlivesCancel, Waits, type Wait } from "./waits.ts";

const NOBODY: readonly Wait[] = [];

export class Execution {
  /** What was asked for and is not journaled yet, in the order asked. The worker takes it after each drain. */
  asks: Ask[] = [];
  outcome: CodeOutcome | undefined;
  stop: Stop | undefined;
  /** Warnings a lenient replay leaves behind: commands the journal has and the code did not ask for. */
  readonly leftovers: string[] = [];

  /** Of a graph: when its newest checkpoint was written; undefined while it is about to be. */
  steppedAt: EpochMs | undefined;
  /** Where to go on from, when not from the beginning; and the entry with which that was kept whole. */
  from: unknown;
  keptAt = 0;

  readonly facts: RunFacts;
  readonly body: WorkflowBody;
  readonly host: ExecutionHost;
  readonly commands: Commands;
  /** Recorded with the run: what was too large once is too large in every replay. */
  readonly limits: PayloadLimits | undefined;
  readonly #started: RecordedEntry;
  readonly #steps: Recorded["steps"];
  readonly #hasEnd: boolean;
  #undelivered: number;
  readonly #lives: readonly Retried[];
  #failures: Failures | undefined;
  #live = false;
  readonly waits: Waits;
  /** Of a graph. */
  readonly nodes: Nodes | undefined;
  #time: EpochMs;
  readonly #draws: Draws;
  readonly promisePorts = new PromisePorts();
  #signals: Signals | undefined;
  #updates: Updates | undefined;
  /** What answers queries; most runs are asked none. */
  queries: Map<string, QueryHandler> | undefined;
  readonly state = new StateValues();
  /** Q2. Most runs have no streams. */
  emitted: EmittedChunks | undefined;
  readonly patches: Patches;
  readonly cancellation = new Cancellation();
  /** Nobody waits for these any more: what works for them is to be told. The worker takes them after each drain. */
  abandoned: readonly Wait[] = NOBODY;
  /** Whether steps were taken back before the end. */
  undone = false;
  #usesShield = false;
  #undos: Undos | undefined;
  #unheard: Arrival[] | undefined;
  #context: WorkflowContext | undefined;

  constructor(body: WorkflowBody, facts: RunFacts, recorded: Recorded, comparison: Comparison, host: ExecutionHost) {
    this.body = body;
    this.facts = facts;
    this.#draws = new Draws(facts, recorded.started.data["seed"]);
    this.host = host;
    this.nodes = body.drive === undefined ? undefined : new Nodes(this);
    this.waits = new Waits(this.nodes);
    this.commands = new Commands(recorded, comparison, host.tolerates);
    this.patches = new Patches(recorded);
    this.#started = recorded.started;
    const limit = recorded.started.data["payloadLimit"];
    this.limits = typeof limit === "number" ? { maxBytes: limit } : undefined;
    this.#steps = recorded.steps;
    this.#hasEnd = recorded.end !== undefined;
    this.#lives = recorded.lives;
    this.#undelivered = recorded.deliveries.length;
    this.#time = recorded.started.at;
  }

  /** Runs the code up to its first wait. */
  start(): void {
    const input = this.#started.data["input"];
    let promise: Promise<unknown>;
    try {
      promise = callWorkflow(this.host.guard, () => Promise.resolve(this.#run(input)));
    } catch (error) {
      promise = Promise.reject(error);
    }
    promise.then(
      (value) => this.#end({ status: "returned", value }),
      (error: unknown) => this.#end({ status: "threw", error: approachable(error) }),
    );
  }

  #run(input: unknown): Promise<unknown> {
    const { body } = this;
    return body.drive === undefined ? body.run(this.context, input) : body.drive(this, input, this.from);
  }

  get context(): WorkflowContext {
    return (this.#context ??= createContext(this));
  }

  #end(outcome: CodeOutcome): void {
    // A mistake in the code, not the end of the run: nothing of this turn is kept, and the right code goes on.
    const caught = outcome.status === "threw" ? findNondeterminism(outcome.error) : undefined;
    if (caught !== undefined) return void this.halt(nondeterministic(caught));
    if (this.#undos?.isNeeded === true && this.stop === undefined && this.outcome === undefined) {
      const failure = failureOf(outcome, this.limits);
      this.#usesShield ||= failure !== undefined;
      if (failure !== undefined) return this.#undos.begin(this, failure.error);
    }
    this.conclude(outcome);
  }

  /** The first end counts: code may go on after `continueAsNew`, and nobody hears it. */
  conclude(outcome: CodeOutcome): void {
    this.outcome ??= outcome;
    if (this.#live) this.checkLeftovers();
  }

  get signals(): Signals {
    return (this.#signals ??= new Signals());
  }

  get updates(): Updates {
    return (this.#updates ??= new Updates());
  }

  /** Signals that the code never took. */
  get unreceived(): number {
    return this.#signals === undefined ? 0 : this.#signals.left().length;
  }

  /** U3. What the code asks for is not done any more. */
  get isUndoing(): boolean {
    return this.#undos?.phase === "waiting";
  }

  abandon(waits: readonly Wait[]): void {
    const open = waits.filter(({ closing }) => !closing);
    if (open.length > 0) this.abandoned = [...this.abandoned, ...open];
  }

  get endStatus(): EndStatus | undefined {
    return this.outcome === undefined ? undefined : this.cancellation.endStatus(this.outcome);
  }

  get replaying(): boolean {
    if (this.#live) return false;
    return this.#undelivered > 0 || this.commands.hasUnmatched || this.#hasEnd || this.host.served !== undefined;
  }

  /** The journal has been delivered. What the code has not asked for yet, as changed code may, is compared when it does. */
  caughtUp(): void {
    this.#live = true;
    this.commands.forgetJournal();
  }

  /** To be asked when the code has done all it can: it must have ended, or wait for something that can come. */
  checkStalled(): void {
    if (this.outcome === undefined && this.stop === undefined && this.waits.isEmpty && this.#updates?.isReady !== true)
      void this.halt(stalled(this.body.name, this.commands.last));
  }

  // ── what the worker delivers ──

  /** Whether an entry that settles this command is still wanted (E4). */
  isOpen(command: string): boolean {
    const wait = this.waits.get(command);
    if (wait !== undefined) return !wait.closing;
    return this.commands.isUnmatched(command) && !this.waits.hasEarly(command);
  }

  /** The command's terminal entry has been appended. */
  close(command: string): void {
    const wait = this.waits.get(command);
    if (wait !== undefined) wait.closing = true;
  }

  /** Waits on a port, oldest first; `timed` ones have a timer that is no longer needed once the port is settled. */
  waitsOn(port: string): readonly Wait[] {
    return this.waits.on(port).filter(({ closing }) => !closing);
  }

  openWaits(): readonly Wait[] {
    return this.waits.all().filter(({ closing }) => !closing);
  }

  /** What a cancel takes with it. */
  cancellableWaits(): readonly Wait[] {
    return this.openWaits().filter((wait) => !outlivesCancel(wait));
  }

  /** Whether a cancel leaves what works for this command alone. */
  outlivesCancel(command: string): boolean {
    const wait = this.waits.get(command);
    return wait !== undefined && outlivesCancel(wait);
  }

  /** Gives the code one completion (E2). */
  deliver(type: EntryType, command: string, data: Readonly<Record<string, unknown>>, at: EpochMs): void {
    if (this.stop !== undefined) return;
    if (this.#undelivered > 0) this.#undelivered -= 1;
    // It came in the same commit as the last thing the code waited for; a replay must not go further than the run did.
    if (this.outcome !== undefined) return this.#leave(type, data);
    if (this.#undos?.phase !== undefined && !isCancel(type) && !this.#isHeard(command)) return;
    this.#time = at;
    switch (type) {
      case "TaskCompleted":
      case "OperationCompleted":
      case "NodeCompleted":
        return this.settle(command, data["result"]);
      case "ChildWorkflowCompleted":
        return this.settle(command, data["output"]);
      case "TaskFailed":
      case "OperationFailed":
      case "NodeFailed":
      case "ChildWorkflowFailed":
        return this.fail(command, this.noteFailure(errorOf(data), command));
      case "TimerFired":
      case "PromiseTimedOut":
        return this.settle(command, undefined);
      case "PromiseResolved":
      case "PromiseRejected":
        return this.promisePorts.settle(this, { seq: 0, type, command, data, at });
      case "SignalReceived":
        return this.signals.deliver(this, { seq: 0, command, data });
      case "UpdateRequested":
        return this.updates.deliver(this, command, data);
      case "CancelRequested":
      case "DeadlineExceeded":
        return this.#applyCancel(type, data);
      default:
        throw new RepriseError("INVARIANT", `An entry of type ${type} is not delivered to code.`);
    }
  }

  /** Something that came before the position the code goes on from (CP4). */
  tell(type: EntryType, data: Readonly<Record<string, unknown>>, at: EpochMs): void {
    if (isCancel(type)) this.#applyCancel(type, data);
    else this.promisePorts.settle(this, { seq: 0, type, command: "", data, at });
  }

  /** N3. Came too late for this generation. */
  #leave(type: EntryType, data: Readonly<Record<string, unknown>>): void {
    if (this.outcome?.status !== "continued" || isAnswer(type)) return;
    if (isCancel(type)) this.#applyCancel(type, data);
    else (this.#unheard ??= []).push(arrivalOf(type, data));
  }

  /** N3. What the code was told and never used, in the order it came. */
  unused(): readonly Arrival[] {
    const signals = this.#signals?.kept() ?? [];
    return [
      ...this.promisePorts.untaken().map(({ type, data }) => arrivalOf(type, data)),
      ...signals.map((signal) => arrivalOf("SignalReceived", { ...signal })),
      ...(this.#updates?.unhandled() ?? []).map((request) => arrivalOf("UpdateRequested", request)),
      ...(this.#unheard ?? []),
    ];
  }

  /** U3 */
  #isHeard(command: string): boolean {
    return this.waits.get(command) !== undefined || this.commands.isUnmatched(command);
  }

  /** Remembers whose failure an error is, should the code let it through. */
  noteFailure(error: unknown, at: string): unknown {
    (this.#failures ??= new Failures()).note(error, { at, commands: this.commands.issued });
    return error;
  }

  /** What made the code throw; undefined when it threw by itself. */
  findFailure(error: unknown): FailedAt | undefined {
    return this.#failures?.find(error);
  }

  /** V3. Of the command with this index. */
  lifeOf(index: number): number {
    // V4. What code of a node asks for has its life in its id.
    return this.#lives.length === 0 || this.nodes !== undefined ? 0 : lifeOf(this.#lives, index);
  }

  /** V4. How often the items of a step that have no result yet were given up. */
  lifeOfStep(step: number): number {
    return this.#lives.length === 0 ? 0 : this.#lives.filter((life) => life.step === step).length;
  }

  settle(command: string, value: unknown): void {
    this.#finish(command, (wait) => {
      wait.resolve(value);
      if (wait.undo !== undefined) this.#undos?.completed(wait, value);
    });
  }

  fail(command: string, error: unknown): void {
    this.#finish(command, (wait) => {
      wait.reject(error);
      if (wait.undo !== undefined) this.#undos?.settled();
    });
  }

  #finish(command: string, settle: (wait: Wait) => void): void {
    if (this.waits.settle(command, settle)) return;
    if (this.commands.isUnmatched(command)) this.keepEarly(command, settle);
  }

  /** It came before the code asked for it. */
  keepEarly(command: string, settle: (wait: Wait) => void): void {
    const at = this.#time;
    this.waits.keepEarly(command, (wait) => {
      if (wait.node !== undefined) wait.node.time = Math.max(wait.node.time, at);
      settle(wait);
    });
  }

  /** E6. The first one counts. */
  #applyCancel(type: EntryType, { reason }: Readonly<Record<string, unknown>>): void {
    if (this.cancellation.error !== undefined) return;
    const error = this.cancellation.apply(type, reason, this.facts.id, this.#started.data["deadline"]);
    if (type === "DeadlineExceeded") this.noteFailure(error, DEADLINE_ITEM);
    this.abandon(this.cancellableWaits());
    for (const wait of this.waits.all()) {
      if (wait.shielded) continue;
      // U2. The code is told; whether the step completes is still of interest.
      if (wait.undo !== undefined) wait.reject(error);
      else this.fail(wait.command, error);
    }
  }

  // ── what the code asks for ──

  /** What a call is refused with: the run was cancelled (E6). */
  get refusal(): RepriseError | undefined {
    const { error } = this.cancellation;
    if (error !== undefined && !this.isShielded) return error;
    return this.nodes === undefined ? undefined : nodeOfCaller()?.stopped;
  }

  /** Whether the code that is calling stands inside a shield. */
  get isShielded(): boolean {
    return this.#usesShield && isShielded();
  }

  shield<T>(call: () => Promise<T>): Promise<T> {
    refuseInsideStep();
    this.#usesShield = true;
    return callShielded(this.host.guard, () => Promise.resolve(call()));
  }

  /** When the last thing came that was delivered. */
  get time(): EpochMs {
    return this.#time;
  }

  now(): Date {
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    return new Date(node?.time ?? this.#time);
  }
  random(): number {
    refuseInsideStep("Draw before the step, or use Math.random() inside it.");
    return this.#draws.unit(nodeOfCaller());
  }
  uuid(): string {
    refuseInsideStep("Draw before the step, or use crypto.randomUUID() inside it.");
    return this.#draws.uuid(nodeOfCaller());
  }
  log(level: LogLevel, message: string, data?: object): void {
    if (!this.replaying) callOutside(() => this.host.log(level, message, data));
  }

  // ── identity and comparison ──

  open(type: CommandType, command: string, name: string, timed: boolean, undo?: StepUndo): Promise<unknown> {
    const shielded = this.isShielded;
    const closing = this.commands.isClosedTimer(command, shielded);
    if (undo !== undefined) (this.#undos ??= new Undos()).opened();
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    const { promise, early } = this.waits.add(command, { type, name, timed, shielded, undo, closing }, node);
    if (early === undefined) return promise;
    // Seed 004 matches completions by id, not by order, so a lenient replay accepts it; a strict one does not.
    if (!this.commands.strict) early();
    else
      this.violate({
        message: `Command order mismatch at ${command}: expected it before its completion in the journal, got it after`,
        expected: "before its completion",
        actual: "after its completion",
        where: command,
        seq: undefined,
      });
    return promise;
  }

  /** E1. Undefined: the code and the journal disagree; nothing goes on from here (E5). */
  command(
    type: CommandType,
    name: CommandName,
    fields: Readonly<Record<string, unknown>>,
    strictly?: StrictCheck,
  ): Command | undefined {
    refuseInsideStep();
    if (this.stop !== undefined || this.isUndoing) return undefined;
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    if (node?.over === true) return undefined;
    const command = this.commands.next(type, name, fields, strictly, node);
    // The code of a node runs when it likes, not only when something was delivered.
    if (node !== undefined) callOutside(() => this.host.asked?.());
    if (!isViolation(command)) return command;
    this.violate(command);
    return undefined;
  }

  violate(found: Violation): void {
    if (this.host.tolerates?.(found) === true) return;
    void this.halt({ status: "determinism_violation", code: "DETERMINISM_VIOLATION", ...found });
  }

  /** E5 */
  halt(stop: Stop): Promise<never> {
    this.stop ??= stop;
    this.asks = [];
    return never();
  }

  /** The recorded checkpoint of a graph's step. */
  stepOf(step: number): RecordedEntry | undefined {
    return this.#steps.get(step);
  }

  /** Called when the journal has been delivered and the code has ended: what the journal has and nobody asked for. */
  checkLeftovers(): void {
    if (this.stop !== undefined || this.outcome === undefined) return;
    if (this.#hasEnd && this.endStatus === "continued") this.#updates?.breakOff(this);
    for (const left of this.commands.leftovers()) {
      if (this.commands.strict) return this.violate(left);
      this.leftovers.push(left.message);
      this.host.log("warn", left.message);
    }
  }
}
