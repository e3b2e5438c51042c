// HotRun: a workflow run in memory, and what it has produced since its last commit.
//
// hot-run.H1. Only a held run appends entries. It assigns `seq` and the chain, in the order of events.
// hot-run.H2. Code sees a completion only after the commit that holds it is durable (rules.W11).
// hot-run.H3. A commit holds everything since the last one; a commit in flight does not change.
// hot-run.H4. After any outcome but `committed` the run is discarded: its code is ahead of the journal.
// hot-run.H5. The worker holds the turn while any work of the run is in progress here, and releases it in the commit after
//   which none is.

import { CancelledError, Fifo, invariant, type EpochMs } from "../base/index.ts";
import {
  decodeData,
  isBudgetAnswer,
  isCancel,
  type Arrival,
  type ClaimedItem,
  type Delivery,
  type EndedRunStatus,
  type EntryType,
  type InboxRow,
  type NewChild,
  type NextGeneration,
  type RunRecord,
  type DeliveredMessage,
  type TurnWrite,
} from "../kernel/index.ts";
import {
  PARENT_DEADLINE_PASSED,
  encodeChunk,
  entryData,
  type CommandRequest,
  type Execution,
  type OperationRequest,
  type Wait,
} from "../workflow/index.ts";
import type { Attempt } from "./attempt.ts";
import { BudgetWaits } from "./budget-waits.ts";
import {
  abortUpdates,
  announceCancel,
  appendTerminal,
  applyPort,
  applySignal,
  applyUpdate,
  closePromises,
  dropWaits,
  isAwaitedReply,
  isDelivered,
} from "./apply-message.ts";
import { appended, EMPTY } from "./pending-commit.ts";
import { JournalWriter, type EndedExecution } from "./journal-writer.ts";
import { HeldTurn } from "./held-turn.ts";
import { GraphNodes } from "./graph-nodes.ts";
import { OpenOperations } from "./open-operations.ts";
import type { PartsOf } from "./worker-parts.ts";
import { runOperation, type OperationParts } from "./run-operation.ts";
import { appendEnd, endFields, nextGeneration } from "./run-end.ts";
import { handleCommand, type KnownToRun } from "./handle-command.ts";
import { chunkSource, resetStreams, type StepExecution } from "./stream-resets.ts";
import { KnownAnswers } from "./known-answers.ts";
import type { PendingTransaction } from "./transactions.ts";

export type HotRunParts = OperationParts &
  PartsOf<"control" | "eagerClaims" | "journalLimit" | "localQueue" | "persistentWrites" | "tasks">;

export class HotRun implements KnownToRun {
  readonly record: RunRecord;
  readonly execution: Execution;
  readonly #parts: HotRunParts;
  readonly journal: JournalWriter;
  readonly #turn: HeldTurn;
  readonly #deliverable = new Fifo<Delivery>();
  readonly #operations = new OpenOperations();
  /** Only for a fork that does not execute all its commands; for a graph; for a run with a budget. */
  readonly #known: KnownAnswers | undefined;
  readonly nodes: GraphNodes | undefined;
  readonly budget: BudgetWaits | undefined;
  /** Tasks that the run claimed eagerly, or that were claimed with its turn, and that have not ended. */
  #localTasks: number;
  settledPorts: Set<string> | undefined;
  #ended: EndedRunStatus | undefined;
  #next: NextGeneration | undefined;
  #discarded = false;
  /** control.C1. No completion is delivered and no step starts; running steps continue and their results are kept. */
  #paused = false;
  /** The pump has queued a delivery to this run. */
  isQueued = false;
  /** The pump collects this run's commands in its next tick. */
  isRunning = false;

  constructor(record: RunRecord, execution: Execution, parts: HotRunParts, token: string, read: number, tasks: number) {
    this.record = record;
    this.#localTasks = tasks;
    this.execution = execution;
    this.#parts = parts;
    this.journal = new JournalWriter(record, parts, execution.started.data.trace);
    this.journal.checkpointSeq = execution.checkpointSeq;
    this.#turn = new HeldTurn(this.journal, token, read);
    if (record.budget !== undefined) this.budget = new BudgetWaits(this, parts, this.#operations);
    if (execution.nodes !== undefined) this.nodes = new GraphNodes(this, parts, this.#operations);
    if (execution.answers !== undefined)
      this.#known = new KnownAnswers(execution, execution.answers, this.journal, this.#operations);
  }

  get token(): string | undefined {
    return this.#turn.token;
  }
  get head(): number {
    return this.journal.head;
  }
  /** Whether the journal in memory ends where the row says. */
  matches(read: RunRecord): boolean {
    return this.journal.matches(read);
  }
  get read(): number {
    return this.#turn.read;
  }
  get ended(): EndedRunStatus | undefined {
    return this.#ended;
  }
  get isDiscarded(): boolean {
    return this.#discarded;
  }
  /** Held, neither ended nor being released: it journals results. */
  get acceptsResults(): boolean {
    return this.#turn.isOpen && !this.#discarded && this.#ended === undefined;
  }
  /** The size of the pending commit, in entries; that of its payloads, in characters. */
  get pendingWeight(): number {
    return this.journal.pending?.weight ?? 0;
  }
  get pendingSize(): number {
    return this.journal.pending?.size ?? 0;
  }
  /** Journaled completions of the pending commit. */
  get #pendingDeliveries(): readonly Delivery[] {
    return this.journal.pending?.deliveries ?? EMPTY;
  }

  /** Holds a cached run again, under a new token; the caller has checked that the journal has not moved. */
  reacquire(token: string, read: number, tasks: number): void {
    this.#turn.reacquire(token, read);
    this.#localTasks += tasks;
    this.nodes?.onHeld();
  }

  /** hot-run.H4. Aborts its operations and ignores their results. */
  discard(reason: () => unknown): void {
    this.#discarded = true;
    this.nodes?.discard();
    this.#turn.abandon();
    this.#operations.abandon(reason, nothing);
    // Tasks claimed eagerly in a commit that did not happen: their slots are free again.
    for (const pending of [this.#turn.inFlight, this.journal.pending]) {
      for (const item of pending?.localItems ?? EMPTY) this.#parts.localQueue.cancelReserved(item);
      if (pending !== undefined) pending.localItems = EMPTY;
    }
  }

  // ── messages and results ──

  /** Appends inbox rows to the journal in order of arrival; drops those that the code does not wait for. */
  applyInbox(rows: readonly InboxRow[]): void {
    if (!this.acceptsResults) return;
    // Pending commands go first: a completion must follow its command, and a cancel must cover it.
    this.#handleCommands();
    for (const row of rows) if (this.#turn.advance(row.arrival)) this.receive(row);
    this.#parts.pump.markDirty(this);
  }

  /** Appends what has arrived for the run. */
  receive({ type, target, data, ran }: Arrival): void {
    if (type === "PromiseResolved" || type === "PromiseRejected") this.#applyPort(type, target, data);
    else if (type === "SignalReceived") applySignal(this.journal, this.execution, target, data);
    else if (type === "UpdateRequested") applyUpdate(this.journal, this.execution, target, data);
    else if (isCancel(type)) this.#applyCancel(type, data);
    else if (isBudgetAnswer(type)) this.budget?.answer(type, data);
    else if (isAwaitedReply(this.execution, target, data))
      appendTerminal(this.journal, this.execution, type, target, data, decodeData(type, data), ran);
  }

  #applyPort(type: EntryType, port: string, data: string): void {
    if (this.execution.promisePorts.find(port) !== undefined || this.settledPorts?.has(port)) return;
    (this.settledPorts ??= new Set()).add(port);
    applyPort(this.journal, this.execution, type, port, data);
  }

  #applyCancel(type: EntryType, data: string): void {
    const waits = announceCancel(this.journal, this.execution, type, data);
    if (waits === undefined) return;
    const cancel = type === "CancelRequested" ? data : entryData.cancelRequestedData(PARENT_DEADLINE_PASSED);
    this.#cancelWaits(waits, cancel, (command) => this.execution.waits.survivesCancel(command));
  }

  /** Drops the items of these waits, cancels their children and aborts their functions. */
  #cancelWaits(waits: readonly Wait[], cancel: string, isKept: (command: string) => boolean): void {
    dropWaits(this.journal, this.execution, waits, cancel);
    this.budget?.drop(isKept);
    this.#operations.abandon(() => new CancelledError(), isKept);
    this.#abandonTasks(isKept);
  }

  /** Aborts the tasks that run on this worker, and does not start those it is about to claim. */
  #abandonTasks(isKept: (command: string) => boolean): void {
    const { pending } = this.journal;
    const unclaimed = pending?.localItems.filter(({ item }) => !isKept(item)) ?? EMPTY;
    for (const item of unclaimed) this.#parts.localQueue.cancelReserved(item);
    if (pending !== undefined && unclaimed.length > 0)
      pending.localItems = pending.localItems.filter(({ item }) => isKept(item));
    this.#localTasks -=
      unclaimed.length + this.#parts.tasks.abandon(this.record.run, () => new CancelledError(), isKept);
  }

  /** A task that this worker ran for the run has ended; the commit also removes its item. */
  endTask(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void {
    if (wasLocal) this.#localTasks -= 1;
    const { token, slot } = item;
    const { type, target, data, ran } = arrival;
    const fence = slot === undefined ? { item: item.item, token } : { item: item.item, token, slot };
    const { next } = this.journal;
    next.finished = appended(next.finished, fence);
    next.arrivals = appended(next.arrivals, arrival);
    if (this.execution.isOpen(item.item))
      appendTerminal(this.journal, this.execution, type, target, data, decodeData(type, data), ran);
    this.#parts.pump.markDirty(this);
  }

  /** An eagerly claimed task was released, or its result was submitted separately. */
  onLocalTaskGone(): void {
    this.#localTasks -= 1;
    if (this.acceptsResults) this.#parts.pump.markDirty(this);
  }

  /** False when the operation is no longer open, or the run is paused. */
  startOperation(request: OperationRequest, attempt: Attempt): boolean {
    const { command } = request;
    if (!this.acceptsResults || !this.#operations.has(command)) return false;
    if (this.#paused) this.#operations.park({ ...request, attempt: attempt.storedAttempt, dueAt: undefined });
    else this.#operations.start(command, attempt);
    if (!this.#paused && resetStreams(this.journal, this.execution, request, attempt)) this.#parts.pump.markDirty(this);
    return !this.#paused;
  }

  // ── pausing (control.C1) ──

  get isPaused(): boolean {
    return this.#paused;
  }

  pause(): void {
    if (!this.acceptsResults) return;
    this.#paused = true;
    this.#parts.pump.markDirty(this);
  }

  unpause(): void {
    if (!this.#paused) return;
    this.#paused = false;
    for (const request of this.#operations.unpark()) runOperation(this.#parts, this, request);
    this.#parts.pump[this.#deliverable.length > 0 ? "markReady" : "markRunning"](this);
  }

  /** Paused, idle and committed: the turn can be released. */
  get isParked(): boolean {
    return (
      this.#isPausedIdle && this.#turn.inFlight === undefined && this.#ended === undefined && this.pendingWeight === 0
    );
  }

  get #isPausedIdle(): boolean {
    return this.#paused && this.#localTasks === 0 && this.#operations.areIdle;
  }

  endOperation(
    request: OperationRequest,
    type: "OperationCompleted" | "OperationFailed" | "NodeCompleted" | "NodeFailed",
    text: string,
    data: object,
    ran: EndedExecution | undefined,
  ): void {
    const { command } = request;
    if (this.nodes !== undefined && this.defer(() => this.endOperation(request, type, text, data, ran))) return;
    if (!this.#operations.end(command) || !this.acceptsResults) return;
    if (request.isNode === true) {
      // The node's pending commands go first.
      this.#handleCommands();
      this.nodes?.onEnded(this.journal, request, type === "NodeCompleted");
      closePromises(this.journal, this.execution, this.execution.abandoned);
    }
    let at = this.execution.deliveries.time;
    if (this.execution.isOpen(command))
      at = appendTerminal(this.journal, this.execution, type, command, text, data, ran);
    if (type === "NodeCompleted") this.execution.nodes?.onCompleted?.(command, at);
    this.#parts.pump.markDirty(this);
  }

  // ── nodes ──

  /** True while the run is released although its nodes run: `work` is done when the run is held again. */
  defer(work: () => void): boolean {
    if (this.nodes === undefined || this.acceptsResults || this.#discarded || this.#ended !== undefined) return false;
    this.nodes.defer(work);
    return true;
  }

  /** Ends a node whose function is not running. */
  endIdleNode(command: string, text: string): void {
    this.#operations.end(command);
    if (this.execution.isOpen(command))
      appendTerminal(this.journal, this.execution, "NodeFailed", command, text, decodeData("NodeFailed", text));
  }

  /** User SQL that is committed together with its entry. */
  enqueueTransaction(waiting: PendingTransaction): void {
    this.#operations.addTransaction(waiting);
    this.#parts.pump.markDirty(this);
  }

  get hasTransaction(): boolean {
    return this.#operations.hasTransaction;
  }

  /** Undefined when the operation is no longer open. */
  takeTransaction(): PendingTransaction | undefined {
    const next = this.#operations.takeTransaction();
    if (next === undefined) return undefined;
    if (this.hasTransaction) this.#parts.pump.markDirty(this);
    return this.acceptsResults && this.#operations.has(next.request.command) ? next : undefined;
  }

  /** Journals a failed attempt; returns when to retry, or undefined when the operation is no longer open. */
  retryOperation(request: OperationRequest, text: string, delayMs: number, ran: EndedExecution): EpochMs | undefined {
    const { command, isNode } = request;
    const isOpen = this.acceptsResults && this.#operations.has(command);
    if (isNode === true) this.execution.nodes?.[isOpen ? "retried" : "end"](command);
    if (!isOpen) return undefined;
    this.#operations.wait(command);
    if (isNode === true) closePromises(this.journal, this.execution, this.execution.abandoned);
    const { at } = this.journal.append(isNode === true ? "NodeRetried" : "OperationRetried", command, text, ran);
    if (isNode === true) this.execution.nodes?.repeatAt(command, at + delayMs);
    this.#parts.pump.markDirty(this);
    return at + delayMs;
  }

  /** Adds a chunk of a running operation; it does not wait for the operation's end. */
  emit(stream: string, chunk: unknown, from: StepExecution): void {
    const data = encodeChunk(this.execution, stream, chunk);
    if (this.defer(() => this.emit(stream, chunk, from)) || !this.acceptsResults) return;
    this.journal.emit({ stream, number: undefined, data, ...chunkSource(this.record, from) });
    this.#parts.pump.markDirty(this);
  }

  // ── deliveries and commands ──

  get hasDeliverable(): boolean {
    return this.#deliverable.length > 0 && !this.#paused;
  }

  /** The code has received every journaled completion. */
  get isCurrent(): boolean {
    const { length } = this.#pendingDeliveries;
    return (
      !this.#discarded && !this.hasDeliverable && length === 0 && (this.#turn.inFlight?.deliveries.length ?? 0) === 0
    );
  }

  deliverNext(): void {
    if (this.nodes?.deliverNext() === true) return;
    let next = this.#deliverable.shift();
    while (next !== undefined) {
      this.execution.deliveries.deliver(next);
      // The nodes of a step are delivered together: the next step needs all of them, so code cannot observe their order.
      const isMore = next.type === "NodeCompleted" && this.#deliverable.first?.type === "NodeCompleted";
      next = isMore ? this.#deliverable.shift() : undefined;
    }
  }

  /** Called when the code has suspended: journals its commands, or its end. */
  afterDrain(): void {
    if (!this.acceptsResults || this.execution.stop !== undefined) return;
    this.#handleCommands();
    const { journalLimit } = this.#parts;
    if (this.head >= journalLimit.checkFrom) journalLimit.warnIfLong(this.journal);
    if (this.execution.stop !== undefined) return;
    if (this.execution.abandoned.length > 0) this.#cancelAbandonedWaits();
    if (this.execution.outcome === undefined) this.#known?.giveNext(this);
    if (this.execution.outcome !== undefined) this.#end();
    else if (this.#deliverable.length > 0) return this.#parts.pump.markReady(this);
    else if (this.nodes?.deliverNext() !== true) this.execution.checkStalled();
    else this.#parts.pump.markRunning(this);
    this.#parts.pump.markDirty(this);
  }

  #handleCommands(): void {
    // A node's code starts synchronously and may issue commands.
    const { journalLimit } = this.#parts;
    while (this.execution.requests.length > 0) {
      if (this.head >= journalLimit.checkFrom && journalLimit.refuses(this.execution, this.journal)) return;
      for (const request of this.execution.takeRequests()) this.#handleCommand(request);
    }
  }

  #handleCommand(request: CommandRequest): void {
    if (this.#known?.take(request) === true) return;
    if (request.kind === "stop-nodes" || request.kind === "limit-wait") return this.nodes?.handleCommand(request);
    if (request.kind !== "operation") {
      this.#localTasks += handleCommand(this.journal, this.#parts, request, this);
      // command-task.K2
      if (request.kind === "cancel-task" && request.type === "TaskCancelled")
        this.#abandonTasks((item) => item !== request.command);
      return;
    }
    this.#operations.wait(request.command);
    if (this.nodes !== undefined) this.nodes.hasStarted ||= request.isNode === true;
    if (this.#paused) this.#operations.park(request);
    else runOperation(this.#parts, this, request);
  }

  /** checkpoint.C4 */
  deliveredMessages(): readonly DeliveredMessage[] {
    const coming = [this.#deliverable.all(), this.#turn.inFlight?.deliveries ?? EMPTY, this.#pendingDeliveries];
    return [...this.execution.promisePorts.all(), ...coming.flat().filter(isDelivered)];
  }

  #cancelAbandonedWaits(): void {
    const { abandoned, cancellation } = this.execution;
    this.execution.abandoned = EMPTY;
    this.#cancelWaits(abandoned, entryData.cancelRequestedData(cancellation.reason), (one) =>
      this.execution.isOpen(one),
    );
  }

  #end(): void {
    const { outcome } = this.execution;
    if (outcome?.status === "continued") {
      const late = [...this.#deliverable.all(), ...(this.#turn.inFlight?.deliveries ?? []), ...this.#pendingDeliveries];
      this.#next = nextGeneration(this.execution, outcome, late, (one) =>
        this.#parts.eagerClaims.newGeneration(this.journal, one),
      );
      if (this.#next !== undefined) abortUpdates(this.journal, this.execution);
    }
    this.#ended = appendEnd(this.journal, this.execution);
    this.#operations.abandon(() => new CancelledError("The run has ended."), nothing);
  }

  // ── commits ──

  /** hot-run.H5. Also checks for commands and an outcome that are not journaled: a draining worker does not collect them. */
  get #isIdle(): boolean {
    return (
      this.execution.requests.length === 0 &&
      this.execution.outcome === undefined &&
      (this.#operations.size === 0 || this.#operations.areSuspended) &&
      this.#localTasks === 0 &&
      !this.execution.waits.hasNext &&
      this.#deliverable.length + this.#pendingDeliveries.length === 0
    );
  }

  /** hot-run.H3. Undefined when there is nothing to commit, or a commit is in flight. */
  takeWrite(): TurnWrite | undefined {
    if (this.#discarded) return undefined;
    const then = this.#ended ?? (this.#isIdle && !this.#paused ? "release" : "hold");
    if (then === "hold" && !this.#isPausedIdle && !this.#turn.isDirty) return undefined;
    invariant(this.#localTasks >= 0, "a run has no fewer than 0 eagerly claimed tasks");
    const write = this.#turn.take(then);
    if (write === undefined || this.#ended === undefined) return write;
    return { ...write, ...endFields(this.execution, this.#next) };
  }

  /** hot-run.H2. The commit in flight is durable: its completions are delivered and its work starts. */
  onCommitted(): {
    readonly localItems: readonly ClaimedItem[];
    readonly children: readonly NewChild[];
    readonly released: boolean;
  } {
    const { pending, released } = this.#turn.onCommitted();
    for (const delivery of pending.deliveries) this.#deliverable.push(delivery);
    if (this.#deliverable.length > 0) this.#parts.pump.markReady(this);
    const localItems =
      pending.localItems === EMPTY ? EMPTY : pending.localItems.filter((item) => this.#isStillOpen(item));
    return { localItems, children: pending.children, released };
  }

  /** A cancel may have arrived while the commit was in flight. */
  #isStillOpen(item: ClaimedItem): boolean {
    if (this.execution.isOpen(item.item)) return true;
    this.#localTasks -= 1;
    this.#parts.localQueue.cancelReserved(item);
    return false;
  }

  get uncommittedResults(): ReturnType<HeldTurn["uncommittedResults"]> {
    return this.#turn.uncommittedResults();
  }
}

const nothing = (): boolean => false;
