// Execution: the live promise graph of one workflow run.
//
// It owns the promises that the code awaits, the command counters and the comparison with the recorded journal. It does not own
// entries, leases or time: the worker delivers one completion at a time and takes the requests of the code.
//
// execution.E1. A command gets its id and its index synchronously, when it is created (command-matcher.D1).
// execution.E2. Completions are delivered one at a time, in journal order. Between two, the code runs until it waits.
// execution.E3. Suspending throws nothing through user code: the promise of an open command has simply not settled.
// execution.E4. A command settles at most once. Later completions for it are dropped.
// execution.E5. After a violation nothing settles and all requests are dropped.
// execution.E6. A cancel rejects what the code awaits and refuses new requests, except inside a shield.

import { readableThrown, type EpochMs, type PayloadLimits, type RepriseError } from "../base/index.ts";
import { type CommandType, type DecodedEntry, type EndedRunStatus, type EntryFields } from "../kernel/index.ts";
import type { CommandRequest } from "./command-request.ts";
import { Cancellation } from "./cancellation.ts";
import { createContext } from "./context-object.ts";
import type { WorkflowContext } from "./context.ts";
import type { WorkflowBody } from "./definition.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { ForkAnswers } from "./fork-answers.ts";
import type { EmittedChunks } from "./emit-chunk.ts";
import { Deliveries } from "./deliveries.ts";
import {
  failureOf,
  nondeterministic,
  stalled,
  violated,
  type CodeOutcome,
  type ExecutionHost,
  type LogLevel,
  type RunIdentity,
  type Stop,
} from "./execution-host.ts";
import {
  CommandMatcher,
  isViolation,
  requestedTooLate,
  type Differences,
  type InputChange,
  type IssuedCommand,
  type Comparison,
  type StrictCheck,
  type Violation,
} from "./command-matcher.ts";
import { findNondeterminism } from "./guard.ts";
import type { CommandName } from "./validation-matrix.ts";
import { runEpochsOf, type RunEpochs } from "./run-epochs.ts";
import { RunningNodes } from "./running-nodes.ts";
import { LostTurns } from "./lost-turns.ts";
import { Patches } from "./command-patched.ts";
import { noteInputChange } from "./input-change.ts";
import { PromisePorts } from "./promise-ports.ts";
import type { QueryHandler } from "./queries.ts";
import { callOutside, callShielded, callWorkflow, isShielded, nodeOfCaller, refuseInsideStep } from "./scope.ts";
import type { RecordedJournal } from "./recorded-journal.ts";
import { never } from "./refusals.ts";
import { Signals } from "./signals.ts";
import { findUserLocation } from "./source-location.ts";
import { StateValues } from "./state-values.ts";
import { Undos, type StepUndo } from "./undo.ts";
import { Updates } from "./updates.ts";
import { Waits, type Wait } from "./waits.ts";

const NO_WAITS: readonly Wait[] = [];
const NO_WARNINGS: readonly Violation[] = [];

export class Execution implements Differences {
  /** Requests that the journal does not have yet, in order. The worker takes them after each drain. */
  requests: CommandRequest[] = [];
  outcome: CodeOutcome | undefined;
  stop: Stop | undefined;
  stopPlace: string | undefined;
  /** Differences that did not stop the run: commands that the code did not request, and changed inputs. */
  warnings = NO_WARNINGS;
  /** Graphs: when the newest checkpoint was written; undefined while it is being written. */
  steppedAt: EpochMs | undefined;
  /** The position to start from, and the entry of the checkpoint that it was restored from. */
  restoredPosition: unknown;
  checkpointSeq = 0;
  readonly lostTurns: LostTurns;

  readonly identity: RunIdentity;
  readonly body: WorkflowBody;
  readonly host: ExecutionHost;
  readonly commands: CommandMatcher;
  /** Recorded with the run, so every replay refuses the same payloads. */
  readonly limits: PayloadLimits | undefined;
  readonly started: DecodedEntry<"RunStarted">;
  readonly #steps: RecordedJournal["steps"];
  readonly #hasEnd: boolean;
  readonly epochs: RunEpochs;
  #live = false;
  readonly waits: Waits;
  /** Undefined except for graphs. */
  readonly nodes: RunningNodes | undefined;
  /** What comes in. */
  readonly deliveries: Deliveries;
  readonly draws: SeededRandom;
  #promisePorts: PromisePorts | undefined;
  #signals: Signals | undefined;
  #updates: Updates | undefined;
  /** Undefined in most runs. */
  queries: Map<string, QueryHandler> | undefined;
  #state: StateValues | undefined;
  /** Undefined unless the run is a fork that does not execute all its commands (fork.F6). */
  answers: ForkAnswers | undefined;
  /** fork.F6. The calls without an answer in the journal of a fork. */
  readonly openCalls: RecordedJournal["open"];
  /** Undefined in runs without streams. */
  emitted: EmittedChunks | undefined;
  /** The last timer with each id that the code gave (command-timer.I1). Undefined in most runs. */
  timers: Map<string, string> | undefined;
  readonly #recordedPatches: ReadonlySet<string>;
  #patches: Patches | undefined;
  #cancellation: Cancellation | undefined;
  /** Waits that the code gave up. The worker cancels their work after each drain. */
  abandoned: readonly Wait[] = NO_WAITS;
  /** Whether steps were undone before the end. */
  undone = false;
  #usesShield = false;
  /** Undefined in runs whose steps have no undo. */
  undos: Undos | undefined;
  #context: WorkflowContext | undefined;

  constructor(
    body: WorkflowBody,
    identity: RunIdentity,
    recorded: RecordedJournal,
    comparison: Comparison,
    host: ExecutionHost,
  ) {
    this.body = body;
    this.identity = identity;
    this.draws = new SeededRandom(identity, recorded);
    this.openCalls = recorded.open;
    this.host = host;
    this.nodes = body.drive === undefined ? undefined : new RunningNodes(this);
    this.waits = new Waits(this.nodes);
    this.commands = new CommandMatcher(recorded, comparison, this);
    this.#recordedPatches = recorded.patches;
    this.started = recorded.started;
    const { payloadLimit } = recorded.started.data;
    this.limits = payloadLimit === undefined ? undefined : { maxBytes: payloadLimit };
    this.#steps = recorded.steps;
    this.#hasEnd = recorded.end !== undefined;
    this.lostTurns = new LostTurns(recorded.earlier);
    this.epochs = runEpochsOf(recorded, body.drive !== undefined);
    this.deliveries = new Deliveries(this, recorded);
  }

  /** Runs the code up to its first wait. */
  start(): void {
    const { input } = this.started.data;
    let promise: Promise<unknown>;
    try {
      promise = callWorkflow(this.host.guard, () => Promise.resolve(this.#run(input)));
    } catch (error) {
      promise = Promise.reject(error);
    }
    promise.then(
      (value) => this.#end({ status: "returned", value }),
      (error: unknown) => this.#end({ status: "threw", error: readableThrown(error) }),
    );
  }

  #run(input: unknown): Promise<unknown> {
    const { body } = this;
    return body.drive === undefined ? body.run(this.context, input) : body.drive(this, input, this.restoredPosition);
  }

  get context(): WorkflowContext {
    return (this.#context ??= createContext(this));
  }

  #end(outcome: CodeOutcome): void {
    // A mistake in the code, not the end of the run: this turn is dropped, and the fixed code can continue.
    const caught = outcome.status === "threw" ? findNondeterminism(outcome.error) : undefined;
    if (caught !== undefined) return void this.halt(nondeterministic(caught));
    if (this.undos?.isNeeded === true && this.stop === undefined && this.outcome === undefined) {
      const failure = failureOf(outcome, this.limits);
      if (failure !== undefined) return this.undos.begin(this, failure.error);
      if (this.undos.hasCanceled) return this.undos.finish(this, outcome);
    }
    this.conclude(outcome);
  }

  /** The first end counts. Code may run on after `continueAsNew`, without effect. */
  conclude(outcome: CodeOutcome): void {
    this.outcome ??= outcome;
    if (this.#live) this.checkOrphans();
  }

  // Most runs use few of these parts.

  get cancellation(): Cancellation {
    return (this.#cancellation ??= new Cancellation());
  }

  get promisePorts(): PromisePorts {
    return (this.#promisePorts ??= new PromisePorts());
  }

  get state(): StateValues {
    return (this.#state ??= new StateValues());
  }

  get patches(): Patches {
    return (this.#patches ??= new Patches(this.#recordedPatches, this.#hasEnd));
  }

  get signals(): Signals {
    return (this.#signals ??= new Signals());
  }

  get updates(): Updates {
    return (this.#updates ??= new Updates());
  }

  /** The number of signals that the code has not received. */
  get unreceived(): number {
    return this.#signals === undefined ? 0 : this.#signals.untaken().length;
  }

  /** undo.U3. Requests of the code are ignored. */
  get isUndoing(): boolean {
    return this.undos?.phase === "waiting";
  }

  abandon(waits: readonly Wait[]): void {
    const open = waits.filter(({ closing }) => !closing);
    if (open.length > 0) this.abandoned = [...this.abandoned, ...open];
  }

  get endStatus(): EndedRunStatus | undefined {
    return this.outcome === undefined ? undefined : this.cancellation.endStatus(this.outcome);
  }

  get replaying(): boolean {
    if (this.#live) return false;
    return (
      this.deliveries.areLeft || this.commands.hasUnmatched || this.#hasEnd || this.host.onRecordedCall !== undefined
    );
  }

  /** The journal has been delivered. Commands that the code has not requested yet are compared when it does. */
  caughtUp(): void {
    this.#live = true;
    this.lostTurns.deliveredSeq = undefined;
    this.commands.releaseJournal();
  }

  /** Called after a drain: the code must have ended, or wait for something that can settle. */
  checkStalled(): void {
    if (this.outcome !== undefined || this.stop !== undefined || this.#updates?.isReady === true) return;
    if (this.waits.isEmpty) return void this.halt(stalled(this.body.name, this.commands.last));
    if (!this.commands.hasUnmatched || this.nodes !== undefined) return;
    // Nothing settles what an earlier version of the code canceled.
    const lost = this.waits.all().map(({ command }) => this.commands.findUnrequestedCancel(command));
    if (lost[0] !== undefined && !lost.includes(undefined)) this.violate(lost[0]);
  }

  // ── deliveries of the worker ──

  /** Whether a terminal entry of this command would still settle it (execution.E4). */
  isOpen(command: string): boolean {
    const wait = this.waits.get(command);
    if (wait !== undefined) return !wait.closing;
    return this.commands.isUnmatched(command) && !this.waits.hasEarly(command);
  }

  /** The worker has appended the terminal entry of the command. */
  close(command: string): void {
    const wait = this.waits.get(command);
    if (wait !== undefined) wait.closing = true;
  }

  // ── requests of the code ──

  takeRequests(): readonly CommandRequest[] {
    const { requests } = this;
    this.requests = [];
    return requests;
  }

  /** The error that refuses a request: the run was canceled (execution.E6), or a node failed (rules.G12). */
  get refusal(): RepriseError | undefined {
    const error = this.#cancellation?.error;
    if (error !== undefined && !this.isShielded) return error;
    return this.nodes === undefined ? undefined : nodeOfCaller()?.stopped;
  }

  /** Whether the caller is inside a shield. */
  get isShielded(): boolean {
    return this.#usesShield && isShielded();
  }

  shield<T>(call: () => Promise<T>): Promise<T> {
    refuseInsideStep();
    return this.callShielded(() => Promise.resolve(call()));
  }

  callShielded<T>(call: () => T): T {
    this.#usesShield = true;
    return callShielded(this.host.guard, call);
  }

  now(): Date {
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    return new Date(node?.time ?? this.deliveries.time);
  }
  log(level: LogLevel, message: string, data?: object): void {
    if (!this.replaying) callOutside(() => this.host.log(this.identity.id, level, message, data));
  }

  // ── identity and comparison ──

  open(type: CommandType, command: string, name: string, timed: boolean, undo?: StepUndo): Promise<unknown> {
    const shielded = this.isShielded;
    const closing = type === "Timer" && this.commands.isClosed(command, shielded);
    if (undo !== undefined) (this.undos ??= new Undos()).opened();
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    const { promise, early } = this.waits.add(command, { type, name, timed, shielded, undo, closing }, node);
    if (early === undefined) return promise;
    // Seed 004 matches completions by id, not by order: a lenient replay accepts it, a strict one does not.
    if (!this.commands.strict) early();
    else this.violate(requestedTooLate(command));
    return promise;
  }

  /** execution.E1. Undefined: the request is ignored, for example after a violation (execution.E5). */
  issueCommand(
    type: CommandType,
    name: CommandName,
    fields: EntryFields,
    strictly?: StrictCheck,
  ): IssuedCommand | undefined {
    refuseInsideStep();
    if (this.stop !== undefined || this.isUndoing) return undefined;
    const node = this.nodes === undefined ? undefined : nodeOfCaller();
    if (node?.isOver === true) return undefined;
    const command = this.commands.issue(type, name, fields, strictly, node);
    // The code of a node also runs without a delivery.
    if (node !== undefined) callOutside(() => this.host.onNodeRequest?.());
    if (!isViolation(command)) return command;
    this.violate(command);
    return undefined;
  }

  violate(found: Violation): void {
    if (this.tolerates(found)) return;
    void this.halt(violated(found, this.body.kind));
  }

  tolerates(found: Violation): boolean {
    return this.host.tolerates?.(found) === true;
  }

  noteInputChange(found: InputChange): void {
    noteInputChange(this, found);
  }

  warn(found: Violation): void {
    this.warnings = [...this.warnings, found];
  }

  /** execution.E5 */
  halt(stop: Stop): Promise<never> {
    if (this.stop === undefined) [this.stop, this.stopPlace] = [stop, findUserLocation(findUserLocation)];
    this.requests = [];
    return never();
  }

  /** The recorded checkpoint of a graph's step. */
  stepOf(step: number): DecodedEntry<"StepCommitted"> | undefined {
    return this.#steps.get(step);
  }

  /** Called when the journal has been delivered and the code has ended. */
  checkOrphans(): void {
    if (this.stop !== undefined || this.outcome === undefined) return;
    if (this.#hasEnd && this.endStatus === "continued") this.#updates?.abortRunning(this);
    for (const left of this.commands.orphans()) {
      if (this.commands.strict) return this.violate(left);
      this.warn(left);
      this.host.log(this.identity.id, "warn", left.message);
    }
  }
}
