// HeldRuns: the runs in memory, from the claim of a turn to its release.
//
// R1. A run is in memory at most once; it is held under the token of its last claim, or cached without one.
// R2. Work starts only when the commit that created or claimed it is durable.
// R3. After any outcome but `committed` the run is dropped and its turn given back; finished tasks are sent on their own.

import { CancelledError, encode, type EpochMs, type Timers } from "../base/index.ts";
import {
  emit,
  isObserved,
  type ClaimedItem,
  type ClaimedTurn,
  type EndStatus,
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
  type Recorded,
  type WorkflowBody,
} from "../workflow/index.ts";
import type { Claimer } from "./claimer.ts";
import { claimsIn, type Insisted } from "./claims-given-back.ts";
import { loadCold } from "./cold-load.ts";
import { HotRun } from "./hot-run.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import { LoadingRuns } from "./loading-runs.ts";
import { firstEntryOf } from "./new-run.ts";
import type { Pump } from "./pump.ts";
import type { Registry } from "./registry.ts";
import { RunCache } from "./run-cache.ts";
import { Steering } from "./steering.ts";
import { StoppingRuns } from "./stopping-runs.ts";
import { endUnbegun, findEarlyCancel } from "./unbegun.ts";
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
  readonly onEnded: (record: RunRecord, status: EndStatus, last: EndEntry) => void;
  readonly onMoved: (record: RunRecord) => void;
  readonly onUnheld: (record: RunRecord) => void;
  dueAt(at: EpochMs | undefined): void;
  /** Nobody can say what is held any more. */
  restart(): void;
  insist(write: Insisted): void;
  /** Flows have no code that is kept in memory. */
  readonly flows: { take(turn: ClaimedTurn): void; adopt(record: RunRecord, first: Entry, token: string): void };
  /** The run has committed: it is no suspect. */
  proved(run: RunNumber): void;
  report(error: unknown): void;
}

const CACHE_SIZE = 1_000;

export class HeldRuns {
  readonly #host: HeldRunsHost;
  readonly #runs = new RunCache<HotRun>(CACHE_SIZE);
  readonly #loading = new LoadingRuns();
  #stopped = false;

  /** R5 */
  #leaving = false;
  /** Counts what `evictAll` has put an end to: a run that was being loaded then is not held afterwards. */
  #epoch = 0;
  readonly steering: Steering;
  readonly #stopping: StoppingRuns;

  constructor(host: HeldRunsHost) {
    this.#host = host;
    this.steering = new Steering(host, {
      runs: this.#runs,
      loading: this.#loading,
      isLeaving: () => this.#leaving,
      evict: (run) => this.#evict(run, false),
      forget: (run) => this.#forget(run),
      loadInbox: (run) => this.#loadInbox(run),
      arrived: (run) => this.arrived(run),
    });
    this.#stopping = new StoppingRuns(host, {
      isOver: () => this.#stopped,
      letGo: (run) => {
        this.#salvage(run);
        this.#forget(run);
      },
      loading: this.#loading,
      again: ({ record, execution }, recorded) =>
        this.#newExecution(execution.body, record, recorded, { ...this.executionHost(record.id), log: () => {} }),
    });
  }

  /** Held, or about to be. */
  get count(): number {
    return this.#runs.heldCount + this.#loading.size;
  }

  get isLoading(): boolean {
    return this.#loading.size > 0;
  }

  /** Resolves when no run is being replayed. */
  loaded(): Promise<void> {
    return this.#loading.none();
  }

  /** R5. Code of a node is at work that waits for nothing: not for a call that is done and will not be delivered any more. */
  get areNodesBusy(): boolean {
    return this.#runs.held().some(({ execution }) => execution.nodes?.isBusy === true);
  }

  /** R5. Each run is given back as soon as nothing of it is at work here, not when the last of them has ended. */
  leave(): void {
    this.#leaving = true;
    for (const run of this.#runs.held()) run.pause();
  }

  find(run: RunNumber): HotRun | undefined {
    return this.#runs.get(run);
  }

  evictAll(): void {
    this.#epoch += 1;
    for (const run of this.#runs.held()) this.#evict(run, false);
  }

  /** Runs that are kept without a turn. */
  forgetIdle(): void {
    for (const run of this.#runs.idle()) this.#forget(run);
  }

  /** Whether a turn that the store says is held here is. */
  knows(run: RunNumber, token: string): boolean {
    return this.#loading.has(run) || this.#runs.get(run)?.token === token;
  }

  stop(): void {
    this.#stopped = true;
    for (const run of this.#runs.clear()) run.discard(() => new CancelledError("The worker has stopped."));
  }

  executionHost(runId: string): ExecutionHost {
    const { registry } = this.#host;
    return {
      storeKind: this.#host.store.kind,
      log: (level, message, data) => this.#host.log(level, message, { run: runId, ...data }),
      guard: this.#host.guard,
      acceptTask: (task, input) => registry.acceptTask(task, input),
      hasTask: (task) => registry.findTask(task.name) !== undefined,
      acceptChild: (definition, input) => registry.acceptChild(definition, input),
      acceptNext: (name, version, input) => registry.acceptNext(name, version, input),
    };
  }

  take(turn: ClaimedTurn): void {
    const { record, token, inbox } = turn;
    const earlyCancel = findEarlyCancel(inbox);
    if (earlyCancel !== undefined) return this.#endUnbegun(turn, earlyCancel);
    if (record.kind === "flow") return this.#host.flows.take(turn);
    const cached = this.#runs.get(record.run);
    if (cached !== undefined && !cached.isGone && cached.is(record)) {
      cached.retake(token, readBefore(record, inbox));
      this.#runs.hold(record.run, cached);
      this.#applyInbox(cached, inbox);
      this.#host.pump.markRunning(cached);
      return;
    }
    if (cached !== undefined) this.#forget(cached);
    this.#loading.begin(record.run);
    this.#load(record, token, inbox).catch((error: unknown) => {
      this.#giveBack(record.run, token, error);
      this.#host.onUnheld(record);
    });
  }

  #giveBack(run: RunNumber, token: string, error: unknown): void {
    this.#loading.end(run);
    this.#host.report(error);
    this.#host.insist({ write: "turn-back", run, token });
  }

  /** Whatever comes of it, the store knows: claimed again, it ends again. */
  #endUnbegun(turn: ClaimedTurn, cancel: InboxRow): void {
    const { record, token } = turn;
    const write = endUnbegun(turn, cancel, this.#host.store);
    const giveBack = (): void => this.#host.insist({ write: "turn-back", run: record.run, token });
    this.#host.pump.submit(write).then(
      ({ status }) => {
        if (status !== "committed") return giveBack();
        for (const { to } of write.messages) if (typeof to === "number") this.arrived(to);
        if (isObserved())
          emit({ event: "run.ended", run: record.id, definition: record.definition, status: write.then });
        this.#host.onEnded(record, write.then, write.entries.at(-1)!);
      },
      (error: unknown) => {
        this.#host.report(error);
        giveBack();
      },
    );
  }

  /** Brings a cold run back. */
  async #load(record: RunRecord, token: string, inbox: readonly InboxRow[]): Promise<void> {
    const body = this.#host.registry.getWorkflow(record.definition, record.version);
    const epoch = this.#epoch;
    const loaded = await loadCold(this.#host.store, this.#host.timers, record, body, (recorded) =>
      this.#newExecution(body, record, recorded),
    );
    const { arrived, paused } = this.#loading.end(record.run);
    if (this.#stopped) return;
    if (epoch !== this.#epoch) {
      this.#host.insist({ write: "turn-back", run: record.run, token });
      return this.#host.onUnheld(record);
    }
    if (loaded.status === "unfit") {
      const { code, message, seq } = loaded;
      const evidence = encode({ code, message, seq, status: "blocked", where: `entry ${seq}` });
      return this.#stopping.stopWith(record, token, evidence, "blocked", message);
    }
    const { execution, isNew } = loaded;
    if (isObserved()) {
      const { id: run, definition, head: entries } = record;
      emit(isNew ? { event: "run.started", run, definition } : { event: "run.resumed", run, definition, entries });
    }
    const hot = this.#hold(record, execution, token, readBefore(record, inbox));
    if (paused) this.steering.steer(hot, true);
    if (this.#leaving) hot.pause();
    this.#applyInbox(hot, inbox);
    if (!arrived) return;
    this.#loadInbox(hot);
    this.steering.look([hot]).catch((error: unknown) => this.#host.report(error));
  }

  #newExecution(body: WorkflowBody, record: RunRecord, recorded: Recorded, given?: ExecutionHost): Execution {
    const { id, generation, run } = record;
    const determinism = body.determinism ?? this.#host.determinism;
    const host = given ?? this.executionHost(id);
    if (body.drive === undefined) return new Execution(body, { id, generation }, recorded, determinism, host);
    return new Execution(body, { id, generation }, recorded, determinism, {
      ...host,
      asked: () => this.#runs.get(run)?.nodes?.asked(),
      nodeWaits: (command, isWaiting) => this.#runs.get(run)?.nodes?.waits(command, isWaiting),
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

  /** A message that cannot be read stops the run it came for, and nothing else. */
  #applyInbox(run: HotRun, rows: readonly InboxRow[]): void {
    try {
      run.applyInbox(rows);
    } catch (error) {
      this.#stopping.stopBroken(run, error);
    }
  }

  drained(run: HotRun): void {
    if (run.isGone) return;
    try {
      run.afterDrain();
    } catch (error) {
      return this.#stopping.stopBroken(run, error);
    }
    const { stop } = run.execution;
    if (stop?.code === "STALLED") this.#stopping.stopStalled(run);
    else if (stop !== undefined) this.#stopping.stopRun(run, run.evidence() ?? "{}", stop.status);
  }

  committed(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void {
    // Chunks alone prove nothing: a function may emit, and then kill its worker.
    if (write.entries.length > 0) this.#host.proved(run.record.run);
    if (run.isGone) return claimsIn(write, outcome).forEach((claim) => this.#stopped || this.#host.insist(claim));
    // It stands with the tasks and children it claimed for this worker, of which nobody here knows.
    if (outcome.status === "already-committed") return this.#host.restart();
    if (outcome.status !== "committed") return this.#evict(run, true);
    const { localItems, children, released } = run.committed();
    this.#host.onMoved(run.record);
    for (const item of localItems)
      if (this.#leaving) this.#leaveItem(run, item);
      else this.#host.tasks.start(item, true);
    this.adoptChildren(children, outcome.children);
    for (const { kind, availableAt } of write.items) if (kind === "timer") this.#host.dueAt(availableAt);
    for (const { to } of write.messages) if (typeof to === "number") this.arrived(to);
    for (const child of outcome.reached ?? []) this.arrived(child);
    if (write.finished.length > 0 || write.dropped.length > 0 || run.ended !== undefined) this.#host.claimer.freed();
    if (write.sends.length > 0) this.#host.claimer.want("messages");
    if (run.ended !== undefined) {
      this.#onEnded(run, run.ended, write.entries.at(-1)!);
      return this.#goOn(write.next, outcome.next);
    }
    if (outcome.more) {
      if (released) this.#host.claimer.want("turns");
      else this.#loadInbox(run);
    }
    if (released)
      this.#runs.release(run.record.run, run)?.discard(() => new CancelledError("The run is no longer held here."));
    else if (run.isParked) this.#giveBackParked(run);
    else this.#host.pump.markDirty(run);
    if (this.#host.claimer.wants("turns") || this.#host.claimer.wants("items")) this.#host.pump.kick();
  }

  /** Claimed for this worker by a commit that was under way when it began to drain. */
  #leaveItem(run: HotRun, { item, token, attempt }: ClaimedItem): void {
    this.#host.hotRunHost.unclaimTask();
    this.#host.insist({ write: "item-back", run: run.record.run, item, token, attempt });
    run.taskLeft();
  }

  /** The next generation, here or wherever somebody has room for it. */
  #goOn(next: NextGeneration | undefined, record: RunRecord | undefined): void {
    if (next === undefined || record === undefined || record.status === "paused") return;
    if (next.claim === undefined) return this.#host.claimer.want("turns");
    const { token } = next.claim;
    if (record.arrivals === 0) return this.adopt(record, firstEntryOf(next, record), token);
    // With its messages at hand, or code that never waits would be over before it could be told to stop.
    this.#loading.begin(record.run);
    this.#host.store.readInbox(record.run, 0).then(
      (inbox) => this.take({ record, token, inbox, suspicion: 0 }),
      (error: unknown) => this.#giveBack(record.run, token, error),
    );
  }

  /** Children that were started, here or wherever somebody has room for them. */
  adoptChildren(asked: readonly NewChild[], started: readonly RunRecord[]): void {
    if (asked.length === 0) return;
    const records = new Map(started.map((record) => [record.id, record]));
    for (const { run, claim } of asked) {
      const record = records.get(run.id);
      if (record === undefined) continue;
      if (run.deadlineMs !== undefined) this.#host.dueAt(record.createdAt + run.deadlineMs);
      if (claim === undefined) {
        this.#host.claimer.want(run.line === undefined ? "turns" : "starts");
        continue;
      }
      this.adopt(record, firstEntryOf(run, record), claim.token);
    }
  }

  #onEnded(run: HotRun, status: EndStatus, last: EndEntry): void {
    this.#host.tasks.abandon(run.record.run, () => new CancelledError("The run has ended."));
    this.#forget(run);
    if (isObserved()) emit({ event: "run.ended", run: run.record.id, definition: run.record.definition, status });
    this.#host.onEnded(run.record, status, last);
    if (this.#host.claimer.wants("turns")) this.#host.pump.kick();
  }

  /** R3 */
  #evict(run: HotRun, giveBack: boolean): void {
    const { token, record } = run;
    if (isObserved()) emit({ event: "lease.lost", worker: undefined, run: record.id });
    this.#salvage(run);
    this.#forget(run);
    if (giveBack && token !== undefined) this.#host.insist({ write: "turn-back", run: record.run, token });
    this.#host.claimer.want("turns");
    this.#host.onUnheld(record);
  }

  /** R3, for a run whose memory is ahead of the store. */
  giveUp(run: HotRun): void {
    if (!run.isGone) this.#evict(run, true);
  }

  #salvage(run: HotRun): void {
    for (const { fence, arrival } of run.salvage())
      this.#host.insist({ write: "item-end", run: run.record.run, ...fence, arrival });
  }

  #forget(run: HotRun): void {
    run.discard(() => new CancelledError("The run is no longer held here."));
    this.#runs.delete(run.record.run, run);
    this.#host.pump.forget(run);
  }

  /** C1. Not kept in memory: whoever takes it up later finds everything in the journal. */
  #giveBackParked(run: HotRun): void {
    const { token, record } = run;
    this.#forget(run);
    if (token !== undefined) this.#host.insist({ write: "turn-back", run: record.run, token });
    this.#host.onUnheld(record);
  }

  /** Learns what others did to the runs held here, or to those of them that were named. */
  async checkHeld(only?: ReadonlySet<RunNumber>): Promise<void> {
    this.#loading.allArrived(only);
    const held = this.#runs.held();
    await this.steering.look(only === undefined ? held : held.filter(({ record }) => only.has(record.run)));
  }

  nodeQueueing({ definition, version }: RunRecord, item: string): Partial<Pick<NewItem, "name" | "line">> {
    return this.#host.registry.nodeQueueing(definition, version, item);
  }

  queueing(task: string, input: unknown): Partial<Pick<NewItem, "priority" | "line">> {
    return this.#host.registry.queueing(task, input);
  }

  /** Something arrived for a run: it may be held here, or its turn may be due. */
  arrived(run: RunNumber): void {
    this.#loading.arrived(run);
    const hot = this.#runs.get(run);
    if (hot?.token !== undefined) this.#loadInbox(hot);
    else this.#host.claimer.want("turns");
  }

  /** Whether news of the run's end will come from here. */
  holds(run: RunNumber): boolean {
    return this.#loading.has(run) || this.#runs.get(run)?.token !== undefined;
  }

  /** Of the runs whose code is here and whose turn is held. */
  heldIds(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { record, token } of this.#runs.held()) if (token !== undefined) ids.add(record.id);
    return ids;
  }

  #adoptFlow(record: RunRecord, first: Entry, token: string): void {
    if (isObserved()) emit({ event: "run.started", run: record.id, definition: record.definition });
    if (record.arrivals === 0) return this.#host.flows.adopt(record, first, token);
    this.#host.store.readInbox(record.run, 0).then(
      (inbox) => this.take({ record, token, inbox, suspicion: 0 }),
      (error: unknown) => this.#giveBack(record.run, token, error),
    );
  }

  /** Takes up a run that was started with this worker's token. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    if (this.#leaving) return this.#host.insist({ write: "turn-back", run: record.run, token });
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

/** Up to which arrival a run has read, when a claim came with `inbox`. */
function readBefore({ arrivals }: RunRecord, [first]: readonly InboxRow[]): number {
  return first === undefined ? arrivals : first.arrival - 1;
}
