// HotRun: a workflow run in memory, and what it has produced since its last commit.
//
// H1. Only a held run appends; `seq` and the chain are assigned here, in the order things happened.
// H2. Code sees a completion only after the commit that holds it is durable (W11).
// H3. Everything since the last batch goes into one commit; a batch in flight is never touched.
// H4. Any outcome but `committed` makes the run useless: its promises are ahead of the journal.
// H5. The turn is held while something of the run is in flight here, and given back in the commit after which nothing is.

import { CancelledError, decode, encode, Fifo, type EpochMs } from "../base/index.ts";
import {
  isCancel,
  dataWithoutSecrets,
  isTold,
  type Arrival,
  type ClaimedItem,
  type EndStatus,
  type EntryType,
  type InboxRow,
  type ItemFence,
  type NewChild,
  type NextGeneration,
  type RunRecord,
  type Told,
  type TurnWrite,
} from "../kernel/index.ts";
import {
  DEADLINE_PASSED,
  encodeChunk,
  entryData,
  type Ask,
  type Execution,
  type OperationAsk,
  type Wait,
} from "../workflow/index.ts";
import type { Attempt } from "./attempt.ts";
import { answers, applyPort, applySignal, applyUpdate, breakOffUpdates } from "./apply-message.ts";
import { added, Batch, NONE, type Delivery } from "./batch.ts";
import { Draft } from "./draft.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import { isTooLong, warnIfLong } from "./journal-limit.ts";
import { NodesOfRun } from "./nodes-of-run.ts";
import { OperationsOfRun } from "./operations-of-run.ts";
import { appendEnd, nextGeneration } from "./run-end.ts";
import { takeAsk } from "./take-ask.ts";
import type { WaitingTransaction } from "./transactions.ts";

export class HotRun {
  readonly record: RunRecord;
  readonly execution: Execution;
  readonly #host: HotRunHost;
  #token: string | undefined;
  readonly #draft: Draft;
  #read: number;
  #readCommitted: number;
  #inFlight: Batch | undefined;
  #releasing = false;
  readonly #deliverable = new Fifo<Delivery>();
  readonly #operations = new OperationsOfRun();
  /** Of a graph. */
  readonly nodes: NodesOfRun | undefined;
  /** Tasks of this run that it claimed for this worker and that have not ended. */
  #localTasks = 0;
  #closingPorts: Set<string> | undefined;
  #ended: EndStatus | undefined;
  #next: NextGeneration | undefined;
  #gone = false;
  /** C1. The code gets nothing, no step starts; what is at work is kept. */
  #paused = false;
  /** Woken in the loop already; kept by the loop. */
  queued = false;
  /** Will be looked at in the next round; kept by the loop. */
  running = false;

  constructor(record: RunRecord, execution: Execution, host: HotRunHost, token: string, read: number) {
    this.record = record;
    this.execution = execution;
    this.#host = host;
    this.#token = token;
    this.#draft = new Draft(record, host);
    this.#draft.keptAt = execution.keptAt;
    if (execution.nodes !== undefined) this.nodes = new NodesOfRun(this, host, this.#operations);
    this.#read = read;
    this.#readCommitted = read;
  }

  get token(): string | undefined {
    return this.#token;
  }
  get head(): number {
    return this.#draft.head;
  }
  /** Whether this is the run a row just read is about, and stands where that row says. */
  is(read: RunRecord): boolean {
    return this.#draft.is(read);
  }
  get read(): number {
    return this.#read;
  }
  get ended(): EndStatus | undefined {
    return this.#ended;
  }
  get isGone(): boolean {
    return this.#gone;
  }
  /** Held, and not on its way out: results may be handed to it directly. */
  get accepts(): boolean {
    return this.#token !== undefined && !this.#gone && !this.#releasing && this.#ended === undefined;
  }
  /** How much waits for a commit, in entries. */
  get waiting(): number {
    return this.#draft.batch.weight;
  }

  /** Takes a cached run up again with a new token; the caller has checked that the journal has not moved. */
  retake(token: string, read: number): void {
    this.#token = token;
    // Another worker may have read, and dropped, messages without an entry.
    this.#read = read;
    this.#readCommitted = read;
    this.#releasing = false;
    this.nodes?.held();
  }

  /** H4. Its operations are told, its results are not heard any more. */
  discard(reason: () => unknown): void {
    this.#gone = true;
    this.nodes?.letGo();
    this.#token = undefined;
    this.#operations.abandon(reason, nothing);
    // Claimed for this worker in a commit that did not happen: their slots are free again.
    for (const batch of [this.#inFlight, this.#draft.batch]) {
      for (const _ of batch?.localItems ?? NONE) this.#host.unclaimTask();
      if (batch !== undefined) batch.localItems = NONE;
    }
  }

  // ── what comes in ──

  #appendTerminal(
    type: EntryType,
    command: string,
    text: string,
    data: Delivery["data"],
    startedAt?: EpochMs,
  ): EpochMs {
    const at = this.#draft.appendDelivery(type, command, text, data, startedAt);
    this.execution.close(command);
    return at;
  }

  /** Gives inbox rows their place in the journal, in order of arrival; what nobody waits for is dropped. */
  applyInbox(rows: readonly InboxRow[]): void {
    if (!this.accepts) return;
    // What the code has just asked for comes first: a completion never stands before its command, and a cancel covers it.
    this.#takeAsks();
    for (const { arrival, type, target, data } of rows) {
      if (arrival <= this.#read) continue;
      this.#read = arrival;
      if (type === "PromiseResolved" || type === "PromiseRejected") this.#applyPort(type, target, data);
      else if (type === "SignalReceived") applySignal(this.#draft, this.execution, target, data);
      else if (type === "UpdateRequested") applyUpdate(this.#draft, this.execution, target, data);
      else if (isCancel(type)) this.#applyCancel(type, data);
      else if (answers(this.execution, target, data)) this.#appendTerminal(type, target, data, asRecord(data));
    }
    this.#host.markDirty(this);
  }

  #applyPort(type: EntryType, port: string, data: string): void {
    if (this.execution.promisePorts.find(port) !== undefined || this.#closingPorts?.has(port)) return;
    (this.#closingPorts ??= new Set()).add(port);
    applyPort(this.#draft, this.execution, type, port, data);
  }

  /** A run is cancelled once; its cleanup is not disturbed by another request. */
  #applyCancel(type: EntryType, data: string): void {
    const { cancellation } = this.execution;
    if (cancellation.announced || cancellation.error !== undefined) return;
    cancellation.announced = true;
    this.#draft.appendDelivery(type, "", data, asRecord(data));
    const waits = this.execution.cancellableWaits();
    for (const { command } of waits) this.execution.close(command);
    const cancel = type === "CancelRequested" ? data : entryData.cancelRequestedData(DEADLINE_PASSED);
    this.#letGo(waits, cancel, (command) => this.execution.outlivesCancel(command));
  }

  /** Nobody waits for these any more: their items go, their children and functions are told. */
  #letGo(waits: readonly Wait[], cancel: string, isKept: (command: string) => boolean): void {
    const draft = this.#draft;
    for (const { command, type, timed, name } of waits)
      if (type === "ChildWorkflow") draft.send(name, { type: "CancelRequested", target: "", data: cancel });
      else if (type === "Task" || timed) draft.drop(command);
    this.#operations.abandon(() => new CancelledError(), isKept);
    const { batch } = draft;
    const unclaimed = batch.localItems.filter(({ item }) => !isKept(item));
    for (const _ of unclaimed) this.#host.unclaimTask();
    if (unclaimed.length > 0) batch.localItems = batch.localItems.filter(({ item }) => isKept(item));
    this.#localTasks -= unclaimed.length + this.#host.abandonTasks(this, isKept);
  }

  /** A task this worker held for this run has ended; its item goes with the same commit. */
  taskEnded(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void {
    if (wasLocal) this.#localTasks -= 1;
    const { token, line } = item;
    const fence = line === undefined ? { item: item.item, token } : { item: item.item, token, line };
    this.#draft.batch.finished = added(this.#draft.batch.finished, fence);
    this.#draft.batch.arrivals = added(this.#draft.batch.arrivals, arrival);
    if (this.execution.isOpen(item.item))
      this.#appendTerminal(arrival.type, arrival.target, arrival.data, asRecord(arrival.data));
    this.#host.markDirty(this);
  }

  /** A local task went back to the queue, or its result took another way. */
  taskLeft(): void {
    this.#localTasks -= 1;
    if (this.accepts) this.#host.markDirty(this);
  }

  /** False when nobody waits for the operation any more, or not now. */
  operationStarted(ask: OperationAsk, attempt: Attempt): boolean {
    const { command } = ask;
    if (!this.accepts || !this.#operations.has(command)) return false;
    if (!this.#paused) this.#operations.start(command, attempt);
    else this.#operations.park({ ...ask, attempt: attempt.attempt, dueAt: undefined });
    return !this.#paused;
  }

  // ── pausing (C1) ──

  get isPaused(): boolean {
    return this.#paused;
  }

  pause(): void {
    if (!this.accepts) return;
    this.#paused = true;
    this.#host.markDirty(this);
  }

  unpause(): void {
    if (!this.#paused) return;
    this.#paused = false;
    for (const ask of this.#operations.unpark()) this.#host.runOperation(this, ask);
    this.#host[this.#deliverable.length > 0 ? "markReady" : "markRunning"](this);
  }

  /** Paused, with nothing at work and nothing to write: the turn can be given back. */
  get isParked(): boolean {
    return this.#restsPaused && this.#inFlight === undefined && this.#ended === undefined && this.waiting === 0;
  }

  get #restsPaused(): boolean {
    return this.#paused && this.#localTasks === 0 && this.#operations.areAtRest;
  }

  operationEnded(
    ask: OperationAsk,
    type: "OperationCompleted" | "OperationFailed" | "NodeCompleted" | "NodeFailed",
    text: string,
    data: Delivery["data"],
    startedAt: EpochMs | undefined,
  ): void {
    const { command } = ask;
    if (this.nodes !== undefined && this.postpone(() => this.operationEnded(ask, type, text, data, startedAt))) return;
    if (!this.#operations.end(command) || !this.accepts) return;
    if (ask.isNode === true) {
      // What its code has just asked for comes first.
      this.#takeAsks();
      this.nodes?.ended(this.#draft, ask, type === "NodeCompleted");
    }
    let at = this.execution.time;
    if (this.execution.isOpen(command)) at = this.#appendTerminal(type, command, text, data, startedAt);
    if (type === "NodeCompleted") this.execution.nodes?.onCompleted?.(command, at);
    this.#host.markDirty(this);
  }

  // ── nodes ──

  /** True while the run is given back although code of its nodes is at work: `work` is done when it is held again. */
  postpone(work: () => void): boolean {
    if (this.nodes === undefined || this.accepts || this.#gone || this.#ended !== undefined) return false;
    this.nodes.postpone(work);
    return true;
  }

  /** A node ends that is not at work. */
  endIdleNode(command: string, text: string): void {
    this.#operations.end(command);
    if (this.execution.isOpen(command)) this.#appendTerminal("NodeFailed", command, text, asRecord(text));
  }

  /** User SQL that is to be committed with its entry. */
  addTransaction(waiting: WaitingTransaction): void {
    this.#operations.addTransaction(waiting);
    this.#host.markDirty(this);
  }

  get hasTransaction(): boolean {
    return this.#operations.hasTransaction;
  }

  /** Undefined when nobody waits for it any more. */
  takeTransaction(): WaitingTransaction | undefined {
    const next = this.#operations.takeTransaction();
    if (next === undefined) return undefined;
    if (this.hasTransaction) this.#host.markDirty(this);
    return this.accepts && this.#operations.has(next.ask.command) ? next : undefined;
  }

  /** The attempt failed and will be repeated; answers when, or undefined when nobody waits any more. */
  operationRetried(ask: OperationAsk, text: string, delayMs: number, startedAt?: EpochMs): EpochMs | undefined {
    const { command, isNode } = ask;
    const isWanted = this.accepts && this.#operations.has(command);
    if (isNode === true) this.execution.nodes?.[isWanted ? "retried" : "end"](command);
    if (!isWanted) return undefined;
    this.#operations.wait(command);
    const { at } = this.#draft.append(isNode === true ? "NodeRetried" : "OperationRetried", command, text, startedAt);
    if (isNode === true) this.execution.nodes?.repeatAt(command, at + delayMs);
    this.#host.markDirty(this);
    return at + delayMs;
  }

  /** A chunk from an operation at work; it does not wait for the operation's end. */
  emit(stream: string, chunk: unknown): void {
    const data = encodeChunk(this.execution, stream, chunk);
    if (this.postpone(() => this.emit(stream, chunk)) || !this.accepts) return;
    this.#draft.emit(stream, undefined, data);
    this.#host.markDirty(this);
  }

  // ── what goes out ──

  get hasDeliverable(): boolean {
    return this.#deliverable.length > 0 && !this.#paused;
  }

  /** The code has seen everything that is in the journal, or about to be. */
  get isCurrent(): boolean {
    const { length } = this.#draft.batch.deliveries;
    return !this.#gone && !this.hasDeliverable && length === 0 && (this.#inFlight?.deliveries.length ?? 0) === 0;
  }

  deliverNext(): void {
    if (this.nodes?.giveNext() === true) return;
    let next = this.#deliverable.shift();
    while (next !== undefined) {
      this.execution.deliver(next.type, next.command, next.data, next.at);
      // Of a step's nodes no order can be seen: what follows needs all of them.
      const isMore = next.type === "NodeCompleted" && this.#deliverable.first?.type === "NodeCompleted";
      next = isMore ? this.#deliverable.shift() : undefined;
    }
  }

  /** Called when the code has done all it can: takes what it asks for, and its end. */
  afterDrain(): void {
    if (!this.accepts || this.execution.stop !== undefined) return;
    this.#takeAsks();
    if (this.head >= this.#host.longAt) warnIfLong(this.#host, this.#draft);
    if (this.execution.stop !== undefined) return;
    if (this.execution.abandoned.length > 0) this.#letGoAbandoned();
    if (this.execution.outcome !== undefined) this.#end();
    else if (this.#deliverable.length > 0) return this.#host.markReady(this);
    else if (this.nodes?.giveNext() !== true) this.execution.checkStalled();
    else this.#host.markRunning(this);
    this.#host.markDirty(this);
  }

  #takeAsks(): void {
    // Code of a node begins at once, and may ask at once.
    while (this.execution.asks.length > 0) {
      if (this.head >= this.#host.longAt && isTooLong(this.#host, this.execution, this.#draft)) return;
      for (const ask of this.execution.asks.splice(0)) this.#ask(ask);
    }
  }

  #ask(ask: Ask): void {
    if (ask.ask === "stop-nodes" || ask.ask === "limit-wait") return this.nodes?.take(ask);
    if (ask.ask !== "operation") return void (this.#localTasks += takeAsk(this.#draft, this.#host, ask, this.#told));
    this.#operations.wait(ask.command);
    if (this.nodes !== undefined) this.nodes.began ||= ask.isNode === true;
    if (this.#paused) this.#operations.park(ask);
    else this.#host.runOperation(this, ask);
  }

  /** CP4 */
  readonly #told = (): readonly Told[] => {
    const coming = [this.#deliverable.all(), this.#inFlight?.deliveries ?? NONE, this.#draft.batch.deliveries];
    return [...this.execution.promisePorts.all(), ...coming.flat().filter(({ type }) => isTold(type))];
  };

  #letGoAbandoned(): void {
    const { abandoned, cancellation } = this.execution;
    this.execution.abandoned = NONE;
    this.#letGo(abandoned, entryData.cancelRequestedData(cancellation.reason), (one) => this.execution.isOpen(one));
  }

  #end(): void {
    const { outcome } = this.execution;
    if (outcome?.status === "continued") {
      const { deliveries } = this.#draft.batch;
      const late = [...this.#deliverable.all(), ...(this.#inFlight?.deliveries ?? []), ...deliveries];
      this.#next = nextGeneration(this.execution, outcome, late, (one) => this.#host.newGeneration(this.record, one));
      if (this.#next !== undefined) breakOffUpdates(this.#draft, this.execution);
    }
    this.#ended = appendEnd(this.#draft, this.execution);
    this.#operations.abandon(() => new CancelledError("The run has ended."), nothing);
  }

  // ── commits ──

  /** H5. What the code has asked for, or how it ended, may not have been taken: a worker that drains no longer looks. */
  get #isIdle(): boolean {
    return (
      this.execution.asks.length === 0 &&
      this.execution.outcome === undefined &&
      (this.#operations.size === 0 || this.#operations.allWait) &&
      this.#localTasks === 0 &&
      !this.execution.waits.hasNext &&
      this.#deliverable.length + this.#draft.batch.deliveries.length === 0
    );
  }

  /** H3. Undefined when there is nothing to commit, or a batch is in flight. */
  takeWrite(): TurnWrite | undefined {
    if (this.#gone || this.#token === undefined || this.#inFlight !== undefined) return undefined;
    const { batch } = this.#draft;
    const then = this.#ended ?? (this.#isIdle && !this.#paused ? "release" : "hold");
    if (then === "hold" && !this.#restsPaused && batch.isEmpty && this.#read === this.#readCommitted) return undefined;
    this.#draft.batch = new Batch(this.#draft.chain);
    this.#inFlight = batch;
    this.#readCommitted = this.#read;
    this.#releasing = then !== "hold";
    return {
      write: "turn",
      run: this.record.run,
      token: this.#token,
      head: this.#draft.head - batch.entries.length,
      previousChain: batch.previousChain,
      entries: batch.entries,
      chain: this.#draft.chain,
      read: this.#read,
      finished: batch.finished,
      items: batch.wantedItems(),
      dropped: batch.dropped,
      children: batch.children,
      messages: batch.messages,
      emits: batch.emits,
      sends: batch.sends,
      checkpoints: batch.checkpoints === NONE ? undefined : batch.checkpoints,
      then,
      ...(this.#ended !== undefined && this.#atEnd()),
    };
  }

  #atEnd(): Pick<TurnWrite, "next" | "unread"> {
    return this.#next === undefined ? { unread: this.execution.unreceived } : { next: this.#next };
  }

  /** The batch in flight is durable: what it holds may be shown and done. */
  committed(): {
    readonly localItems: readonly ClaimedItem[];
    readonly children: readonly NewChild[];
    readonly released: boolean;
  } {
    const batch = this.#inFlight ?? new Batch(this.#draft.chain);
    this.#inFlight = undefined;
    const released = this.#releasing;
    if (released) this.#token = undefined;
    this.#releasing = false;
    for (const delivery of batch.deliveries) this.#deliverable.push(delivery);
    if (this.#deliverable.length > 0) this.#host.markReady(this);
    const localItems = batch.localItems === NONE ? NONE : batch.localItems.filter((item) => this.#isWanted(item));
    return { localItems, children: batch.children, released };
  }

  /** A cancel may have come between the commit and now. */
  #isWanted(item: ClaimedItem): boolean {
    if (this.execution.isOpen(item.item)) return true;
    this.#localTasks -= 1;
    this.#host.unclaimTask();
    return false;
  }

  /** Results of items that a void commit took down with it, to be sent on their own. */
  salvage(): readonly { readonly fence: ItemFence; readonly arrival: Arrival }[] {
    return [...(this.#inFlight?.results() ?? NONE), ...this.#draft.batch.results()];
  }

  /** The evidence of a stop, as it is kept beside the journal. */
  evidence(): string | undefined {
    const { stop } = this.execution;
    return stop === undefined ? undefined : encode(dataWithoutSecrets({ ...stop, head: this.record.head }));
  }
}

const nothing = (): boolean => false;

function asRecord(text: string): Readonly<Record<string, unknown>> {
  return decode(text) as Record<string, unknown>;
}
