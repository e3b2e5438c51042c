// HeldRuns: the runs in memory, from the claim of a turn to its release.
//
// held-runs.R1. A run is in memory at most once. It is held under the token of its last claim, or cached without a token.
// held-runs.R2. Work starts only after the commit that created or claimed it is durable.
// held-runs.R3. After any outcome but `committed` the worker discards the run and releases its turn. It submits the results of
//   finished tasks separately.

import { CancelledError, encode, invariant, type EpochMs, type Timers } from "../base/index.ts";
import {
  emit,
  emitEnded,
  isObserved,
  type ClaimedTurn,
  type EndedRunStatus,
  type EndEntry,
  type Entry,
  type InboxRow,
  type NewChild,
  type NewItem,
  type NextGeneration,
  type RunNumber,
  type RunRecord,
  type Store,
  type TurnOutcome,
  type TurnWrite,
} from "../kernel/index.ts";
import {
  Execution,
  freshJournal,
  type Determinism,
  type Guard,
  type ExecutionHost,
  type LogLevel,
  type RecordedJournal,
  type WorkflowBody,
} from "../workflow/index.ts";
import type { Claimer } from "./claimer.ts";
import { releasesOf, type PersistentWrite } from "./released-claims.ts";
import { loadRun } from "./load-run.ts";
import { HotRun } from "./hot-run.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import { LoadingRuns, type LoadingRun } from "./loading-runs.ts";
import { executionHostOf, firstEntryOf, type ExecutionHostParts, type Registry } from "../process/index.ts";
import type { Pump } from "./pump.ts";
import { RunCache } from "./run-cache.ts";
import { HeldRunControl } from "./held-run-control.ts";
import { evidenceOf, RunStopper } from "./run-stopper.ts";
import { UnawaitedCheck } from "./unawaited-check.ts";
import { endNotStarted, findEarlyCancel } from "./not-started.ts";
import type { TaskPool } from "./task-pool.ts";

export interface HeldRunsHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly determinism: Determinism;
  readonly guard: Guard;
  readonly pump: Pump;
  readonly tasks: TaskPool;
  readonly claimer: Claimer;
  readonly hotRunHost: HotRunHost;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  readonly onEnded: (record: RunRecord, status: EndedRunStatus, last: EndEntry) => void;
  readonly onCommitted: (record: RunRecord) => void;
  readonly onUnheld: (record: RunRecord) => void;
  readonly onLoaded?: (record: RunRecord) => void;
  dueAt(at: EpochMs | undefined): void;
  /** The worker no longer knows which leases it holds. */
  restart(): void;
  persist(write: PersistentWrite): void;
  /** Flows keep no code in memory. */
  readonly flows: { take(turn: ClaimedTurn): void; adopt(record: RunRecord, first: Entry, token: string): void };
  /** The run has committed, so it is no suspect. */
  clearSuspect(run: RunNumber): void;
  report(error: unknown): void;
}

const CACHE_SIZE = 1_000;

export class HeldRuns {
  readonly #host: HeldRunsHost;
  readonly #executionParts: ExecutionHostParts;
  readonly #runs = new RunCache<HotRun>(CACHE_SIZE);
  readonly #loading = new LoadingRuns();
  #stopped = false;

  /** worker.R2 */
  #isDraining = false;
  /** Counts calls of `evictAll`: a run whose replay started before the last call is released when loaded. */
  #epoch = 0;
  readonly control: HeldRunControl;
  readonly #stopper: RunStopper;
  readonly unawaited: UnawaitedCheck;

  constructor(host: HeldRunsHost) {
    this.#host = host;
    const { registry, guard, log } = host;
    this.#executionParts = { storeKind: host.store.kind, registry, guard, log };
    this.control = new HeldRunControl(host, {
      runs: this.#runs,
      loading: this.#loading,
      isDraining: () => this.#isDraining,
      evict: (run) => this.#evict(run, false),
      forget: (run) => this.#forget(run),
      loadInbox: (run) => this.#loadInbox(run),
      onArrival: (run) => this.arrived(run),
    });
    const replayRun = ({ record, execution }: HotRun, recorded: RecordedJournal): Execution =>
      this.#newExecution(execution.body, record, recorded, { ...this.executionHost(record.id), log: () => {} });
    this.#stopper = new RunStopper(host, {
      isStopped: () => this.#stopped,
      releaseMemory: (run) => {
        this.#resubmitResults(run);
        this.#forget(run);
      },
      loading: this.#loading,
      replayRun,
    });
    this.unawaited = new UnawaitedCheck(host, replayRun);
  }

  /** Runs that are held or being loaded. */
  get count(): number {
    return this.#runs.heldCount + this.#loading.size;
  }

  get isLoading(): boolean {
    return this.#loading.size > 0 || this.unawaited.isBusy;
  }

  /** Resolves when no run is being replayed. */
  async allLoaded(): Promise<void> {
    await Promise.all([this.#loading.allLoaded(), this.unawaited.idle()]);
  }

  /** worker.R2. A node runs code, and does not wait for a result that this worker no longer delivers. */
  get areNodesBusy(): boolean {
    return this.#runs.held().some(({ execution }) => execution.nodes?.isBusy === true);
  }

  /** worker.R2. The worker releases each run as soon as none of its functions run here. */
  beginDrain(): void {
    this.#isDraining = true;
    this.#host.tasks.giveBackWaiting();
    for (const run of this.#runs.held()) run.pause();
  }

  find(run: RunNumber): HotRun | undefined {
    return this.#runs.get(run);
  }

  evictAll(): void {
    this.#epoch += 1;
    for (const run of this.#runs.held()) this.#evict(run, false);
  }

  /** Forgets cached runs. */
  forgetIdle(): void {
    for (const run of this.#runs.idle()) this.#forget(run);
  }

  /** Whether this worker holds the turn under that token, or is loading the run. */
  holdsToken(run: RunNumber, token: string): boolean {
    return this.#loading.has(run) || this.#runs.get(run)?.token === token;
  }

  stop(): void {
    this.#stopped = true;
    for (const run of this.#runs.clear()) run.discard(() => new CancelledError("The worker has stopped."));
  }

  executionHost(runId: string): ExecutionHost {
    return executionHostOf(this.#executionParts, runId);
  }

  startTurn(turn: ClaimedTurn): void {
    const { record, token, inbox } = turn;
    try {
      checkTurn(turn);
    } catch (error) {
      return this.#stopper.stopClaimed(record, token, error);
    }
    const earlyCancel = findEarlyCancel(inbox);
    if (earlyCancel !== undefined) return this.#endNotStarted(turn, earlyCancel);
    if (record.kind === "flow") return this.#host.flows.take(turn);
    const cached = this.#runs.get(record.run);
    if (cached !== undefined && !cached.isDiscarded && cached.matches(record)) {
      cached.reacquire(token, readBefore(record, inbox));
      this.#runs.hold(record.run, cached);
      this.#applyInbox(cached, inbox);
      this.#host.pump.markRunning(cached);
      return;
    }
    if (cached !== undefined) this.#forget(cached);
    const loading = this.#loading.begin(record.run);
    this.#load(record, token, inbox, loading).catch((error: unknown) => {
      this.#loading.end(record.run, loading);
      this.#releaseTurn(record.run, token, error);
      this.#host.onUnheld(record);
    });
  }

  #releaseTurn(run: RunNumber, token: string, error: unknown): void {
    this.#host.report(error);
    this.#host.persist({ write: "return-turn", run, token });
  }

  /** After a failed write the turn is claimed again, and ends again. */
  #endNotStarted(turn: ClaimedTurn, cancel: InboxRow): void {
    const { record, token } = turn;
    const write = endNotStarted(turn, cancel, this.#host.hotRunHost);
    const giveBack = (): void => this.#host.persist({ write: "return-turn", run: record.run, token });
    this.#host.pump.submit(write).then(
      ({ status }) => {
        if (status !== "committed") return giveBack();
        for (const { to } of write.messages) if (typeof to === "number") this.arrived(to);
        if (isObserved()) emitEnded(record, write.then, this.#host.store.now());
        this.#host.onEnded(record, write.then, write.entries.at(-1)!);
      },
      (error: unknown) => {
        this.#host.report(error);
        giveBack();
      },
    );
  }

  /** Replays a run that is not in memory. */
  async #load(record: RunRecord, token: string, inbox: readonly InboxRow[], loading: LoadingRun): Promise<void> {
    const body = this.#host.registry.getWorkflow(record.definition, record.version);
    const epoch = this.#epoch;
    const loaded = await loadRun(this.#host, record, body, (recorded) => this.#newExecution(body, record, recorded));
    // held-runs.R1. The token of an earlier claim is no longer valid.
    if (!this.#loading.end(record.run, loading) || this.#stopped) return;
    if (epoch !== this.#epoch) {
      this.#host.persist({ write: "return-turn", run: record.run, token });
      return this.#host.onUnheld(record);
    }
    if (loaded.status === "unfit") {
      const { code, message, seq } = loaded;
      const evidence = encode({ code, message, seq, status: "blocked", where: `entry ${seq}` });
      return this.#stopper.stopWith(record, token, evidence, "blocked", message);
    }
    const { execution, isNew } = loaded;
    if (isObserved()) {
      const { id: run, definition, head: entries } = record;
      emit(isNew ? { event: "run.started", run, definition } : { event: "run.resumed", run, definition, entries });
    }
    const hot = this.#hold(record, execution, token, readBefore(record, inbox));
    if (loading.paused) this.control.setPaused(hot, true);
    if (this.#isDraining) hot.pause();
    this.#applyInbox(hot, inbox);
    if (!loading.arrived) return;
    this.#loadInbox(hot);
    this.control.refresh([hot]).catch((error: unknown) => this.#host.report(error));
  }

  #newExecution(body: WorkflowBody, record: RunRecord, recorded: RecordedJournal, given?: ExecutionHost): Execution {
    const { id, generation, run } = record;
    const determinism = body.determinism ?? this.#host.determinism;
    const host = given ?? this.executionHost(id);
    if (body.drive === undefined) return new Execution(body, { id, generation }, recorded, determinism, host);
    return new Execution(body, { id, generation }, recorded, determinism, {
      ...host,
      onNodeRequest: () => this.#runs.get(run)?.nodes?.onCommand(),
      onNodeWaiting: (command, isWaiting) => this.#runs.get(run)?.nodes?.setWaiting(command, isWaiting),
    });
  }

  #hold(record: RunRecord, execution: Execution, token: string, read: number): HotRun {
    const hot = new HotRun(record, execution, this.#host.hotRunHost, token, read);
    this.#runs.hold(record.run, hot);
    this.#host.pump.markRunning(hot);
    return hot;
  }

  #loadInbox(run: HotRun): void {
    this.#host.store
      .readInbox(run.record.run, run.read)
      .then((rows) => {
        if (!this.#stopped && rows.length > 0) this.#applyInbox(run, rows);
      })
      .catch((error: unknown) => this.#host.report(error));
  }

  /** A message that cannot be read stops only the run it was sent to. */
  #applyInbox(run: HotRun, rows: readonly InboxRow[]): void {
    try {
      run.applyInbox(rows);
    } catch (error) {
      this.#stopper.stopBroken(run, error);
    }
  }

  stopBroken(run: HotRun, error: unknown): void {
    if (!run.isDiscarded) this.#stopper.stopBroken(run, error);
  }

  onDrained(run: HotRun): void {
    if (run.isDiscarded) return;
    try {
      run.afterDrain();
    } catch (error) {
      return this.#stopper.stopBroken(run, error);
    }
    const { stop } = run.execution;
    if (stop?.code === "STALLED") this.#stopper.stopStalled(run);
    else if (stop !== undefined) this.#stopper.stopRun(run, evidenceOf(run), stop.status);
  }

  onCommitted(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void {
    // Chunks alone do not clear a suspect: a function may emit, and then kill its worker. A run that is released runs none.
    if (write.entries.length > 0 || write.then === "release") this.#host.clearSuspect(run.record.run);
    if (run.isDiscarded)
      return releasesOf(write, outcome).forEach((claim) => this.#stopped || this.#host.persist(claim));
    // The earlier commit leased tasks and children to this worker, which does not know them.
    if (outcome.status === "already_committed") return this.#host.restart();
    if (outcome.status !== "committed") return this.#evict(run, true);
    const { localItems, children, released } = run.onCommitted();
    this.#host.onCommitted(run.record);
    for (const item of localItems)
      if (this.#isDraining) this.#host.tasks.giveBackReserved(item);
      else this.#host.tasks.start(item, true);
    this.adoptChildren(children, outcome.children);
    for (const { kind, availableAt } of write.items) if (kind === "timer") this.#host.dueAt(availableAt);
    for (const { to } of write.messages) if (typeof to === "number") this.arrived(to);
    for (const child of outcome.reached ?? []) this.arrived(child);
    if (write.finished.length > 0 || write.dropped.length > 0 || run.ended !== undefined)
      this.#host.claimer.onQueueSlotFreed();
    if (write.outgoing.length > 0) this.#host.claimer.request("messages");
    if (run.ended !== undefined) {
      this.#onEnded(run, run.ended, write.entries.at(-1)!);
      return this.#startNextGeneration(write.next, outcome.next);
    }
    if (outcome.more) {
      if (released) this.#host.claimer.request("turns");
      else this.#loadInbox(run);
    }
    if (released) this.#runs.release(run.record.run, run)?.discard(notHeld);
    else if (run.isParked) this.#releaseParked(run);
    else this.#host.pump.markDirty(run);
    if (this.#host.claimer.isRequested("turns") || this.#host.claimer.isRequested("items")) this.#host.pump.wake();
  }

  /** Starts the next generation here, if the commit leased it to this worker. */
  #startNextGeneration(next: NextGeneration | undefined, record: RunRecord | undefined): void {
    if (next === undefined || record === undefined || record.status === "paused") return;
    if (next.claim === undefined) return this.#host.claimer.request("turns");
    const { token } = next.claim;
    if (record.arrivals === 0) return this.adopt(record, firstEntryOf(next, record), token);
    // Read first, so that code that never waits still sees a cancel.
    const loading = this.#loading.begin(record.run);
    this.#host.store.readInbox(record.run, 0).then(
      (inbox) => this.startTurn({ record, token, inbox, suspicion: 0 }),
      (error: unknown) => (this.#loading.end(record.run, loading), this.#releaseTurn(record.run, token, error)),
    );
  }

  /** Starts the children that the commit leased to this worker; the others are claimed. */
  adoptChildren(requested: readonly NewChild[], started: readonly RunRecord[]): void {
    if (requested.length === 0) return;
    const records = new Map(started.map((record) => [record.id, record]));
    for (const { run, claim } of requested) {
      const record = records.get(run.id);
      if (record === undefined) continue;
      if (run.deadlineMs !== undefined) this.#host.dueAt(record.createdAt + run.deadlineMs);
      if (claim === undefined) {
        this.#host.claimer.request(run.slot === undefined ? "turns" : "starts");
        continue;
      }
      this.adopt(record, firstEntryOf(run, record), claim.token);
    }
  }

  #onEnded(run: HotRun, status: EndedRunStatus, last: EndEntry): void {
    this.#host.tasks.abandon(run.record.run, () => new CancelledError("The run has ended."));
    this.#forget(run);
    if (status === "completed" || status === "continued") this.unawaited.onReturned(run);
    if (isObserved()) emitEnded(run.record, status, this.#host.store.now());
    this.#host.onEnded(run.record, status, last);
    if (this.#host.claimer.isRequested("turns")) this.#host.pump.wake();
  }

  /** held-runs.R3 */
  #evict(run: HotRun, giveBack: boolean): void {
    const { token, record } = run;
    if (isObserved()) emit({ event: "lease.lost", worker: undefined, run: record.id });
    this.#resubmitResults(run);
    this.#forget(run);
    if (giveBack && token !== undefined) this.#host.persist({ write: "return-turn", run: record.run, token });
    this.#host.claimer.request("turns");
    this.#host.onUnheld(record);
  }

  /** held-runs.R3, for a run that is ahead of the store. */
  evict(run: HotRun): void {
    if (!run.isDiscarded) this.#evict(run, true);
  }

  #resubmitResults(run: HotRun): void {
    for (const { fence, arrival } of run.uncommittedResults())
      this.#host.persist({ write: "end-item", run: run.record.run, ...fence, arrival });
  }

  #forget(run: HotRun): void {
    run.discard(notHeld);
    this.#runs.delete(run.record.run, run);
    this.#host.pump.forget(run);
  }

  /** control.C1. The run leaves memory: any worker can replay it after a resume. */
  #releaseParked(run: HotRun): void {
    const { token, record } = run;
    this.#forget(run);
    const span = run.journal.takeStretch("released");
    if (token !== undefined) this.#host.persist({ write: "return-turn", run: record.run, token, span });
    this.#host.onUnheld(record);
  }

  /** Reads what other processes did to the held runs, or to the named ones. */
  async refreshHeld(only?: ReadonlySet<RunNumber>): Promise<void> {
    this.#loading.onArrivals(only);
    const held = this.#runs.held();
    await this.control.refresh(only === undefined ? held : held.filter(({ record }) => only.has(record.run)));
  }

  nodeQueueing({ definition, version }: RunRecord, item: string): Partial<Pick<NewItem, "name" | "slot">> {
    return this.#host.registry.nodeQueueing(definition, version, item);
  }

  queueing(task: string, input: unknown): Partial<Pick<NewItem, "priority" | "slot">> {
    return this.#host.registry.queueing(task, input);
  }

  /** A message arrived: the run reads it if it is held here; otherwise its turn may be due. */
  arrived(run: RunNumber): void {
    this.#loading.onArrival(run);
    const hot = this.#runs.get(run);
    if (hot?.token !== undefined) this.#loadInbox(hot);
    else this.#host.claimer.request("turns");
  }

  /** Whether this worker will report the end of the run. */
  holds(run: RunNumber): boolean {
    return this.#loading.has(run) || this.#runs.get(run)?.token !== undefined;
  }

  /** The ids of the runs whose turn this worker holds. */
  heldIds(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { record, token } of this.#runs.held()) if (token !== undefined) ids.add(record.id);
    return ids;
  }

  #adoptFlow(record: RunRecord, first: Entry, token: string): void {
    if (record.arrivals === 0) return this.#host.flows.adopt(record, first, token);
    this.#host.store.readInbox(record.run, 0).then(
      (inbox) => this.startTurn({ record, token, inbox, suspicion: 0 }),
      (error: unknown) => this.#releaseTurn(record.run, token, error),
    );
  }

  /** Starts a new run that its first commit leased to this worker. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    if (this.#isDraining) return this.#host.persist({ write: "return-turn", run: record.run, token });
    if (record.kind === "flow") return this.#adoptFlow(record, first, token);
    const body = this.#host.registry.getWorkflow(record.definition, record.version);
    const execution = this.#newExecution(body, record, freshJournal(first));
    if (isObserved()) emit({ event: "run.started", run: record.id, definition: record.definition });
    execution.start();
    execution.caughtUp();
    const hot = this.#hold(record, execution, token, 0);
    if (record.arrivals > 0) this.#loadInbox(hot);
  }
}

const notHeld = (): CancelledError =>
  new CancelledError("This worker no longer holds the run; another worker may run this step again.");

function checkTurn({ record: { run, head }, token, inbox }: ClaimedTurn): void {
  invariant(run > 0, "a claimed run has a number");
  invariant(token !== "", "a claimed turn has a token");
  invariant(head > 0, "a claimed run has its first entry");
  invariant(inbox.length === 0 || inbox[0]!.arrival > 0, "arrivals count from 1");
}

/** The last arrival that the run had read before the claim returned `inbox`. */
function readBefore({ arrivals }: RunRecord, [first]: readonly InboxRow[]): number {
  return first === undefined ? arrivals : first.arrival - 1;
}
