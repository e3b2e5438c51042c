// Worker: claims work, runs it and commits the results.
//
// It wires the runs in memory (held-runs.ts), the running tasks, the worker's lease and the pump that they share. It does not
// own the rules of a commit (kernel) or of replay (workflow).
//
// worker.R1. A worker runs at most `concurrency` user functions at once, and holds at most `HELD_LIMIT` runs.
// worker.R2. A draining worker starts no new work. Functions that run may finish until the grace period ends. The worker
//   releases each run as soon as none of its functions run.
// worker.R3. After a store failure the worker drops everything it holds and continues under a new number (restart.ts).
// worker.R4. It does the same when the database went back to an earlier state: nothing in memory is valid then.

import { CancelledError, type EpochMs } from "../base/index.ts";
import {
  isScheduled,
  type Claim,
  type DefinitionVersion,
  type EndedRunStatus,
  type EndEntry,
  type HistoryBreak,
  type ChangeNotice,
  type RunRecord,
  type Store,
  type Write,
} from "../kernel/index.ts";
import { describeWorker } from "./worker-description.ts";
import { Claimer, CLAIM_KINDS, type ClaimerHost } from "./claimer.ts";
import { OutboxRelay } from "./outbox-relay.ts";
import { Drain } from "./drain.ts";
import { FlowRunner } from "./flow-runner.ts";
import { FailureLog } from "./failure-log.ts";
import { newFlowChild } from "./flow-child.ts";
import { mayAcquireLease } from "./released-claims.ts";
import { HeldRuns } from "./held-runs.ts";
import { Memos } from "./memos.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import { PersistentWrites } from "./persistent-writes.ts";
import { claimDispatch } from "./claim-dispatch.ts";
import { ItemLeaseCheck } from "./item-lease-check.ts";
import { WorkerLease } from "./worker-lease.ts";
import { runOperation, withStub, type OperationHost } from "./run-operation.ts";
import { childRun, endSpans, nextRun, Poller, ProcessLog, versionOf } from "../process/index.ts";
import { requestTurn } from "./graph-nodes.ts";
import { HELD_LIMIT, EagerClaims } from "./eager-claims.ts";
import { Pump } from "./pump.ts";
import { Quarantine } from "./quarantine.ts";
import { LeaseReconciler } from "./lease-reconciler.ts";
import { Restart } from "./restart.ts";
import { ScheduleRunner } from "./schedule-runner.ts";
import { journalLimit, type JournalLimitHost } from "./journal-limit.ts";
import { ClaimFilter } from "./claim-filter.ts";
import { ExecutionSlots } from "./execution-slots.ts";
import { spendingHost } from "./spender.ts";
import { taskOutcomes } from "./task-outcomes.ts";
import { TaskPool } from "./task-pool.ts";
import { Transactions } from "./transactions.ts";
import { WorkMeter } from "./work-meter.ts";
import type { WorkerOptions } from "./worker-options.ts";

export class Worker {
  readonly pump: Pump;
  readonly #options: WorkerOptions;
  readonly #store: Store;
  readonly #log: ProcessLog;
  readonly #failures: FailureLog;
  readonly #filter: ClaimFilter;
  readonly #slots: ExecutionSlots;
  readonly #nodeSlots: ExecutionSlots;
  readonly #tasks: TaskPool;
  readonly #itemLeaseCheck: ItemLeaseCheck;
  readonly #lease: WorkerLease;
  readonly #poller: Poller;
  readonly #runs: HeldRuns;
  readonly #flows: FlowRunner;
  readonly #schedules: ScheduleRunner;
  readonly #eagerClaims: EagerClaims;
  readonly #meter: WorkMeter;
  readonly #persistentWrites: PersistentWrites;
  readonly #operationHost: OperationHost;
  readonly #transactions: Transactions;
  readonly #outbox: OutboxRelay;
  readonly #claimer: Claimer;
  readonly #quarantine: Quarantine;
  readonly #restart: Restart;
  readonly #reconciler: LeaseReconciler;
  /** worker.R4. How often this process saw the database go back. */
  timesRolledBack = 0;
  readonly #drain: Drain;
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#meter = new WorkMeter(options.store.now());
    this.#log = new ProcessLog(options.log, () => options.store.now());
    this.#failures = new FailureLog(options.isCopy === true ? () => {} : options.log, options.timers, () =>
      options.store.now(),
    );
    this.#filter = new ClaimFilter(options.registry, options.queues, options.labels);
    this.#slots = new ExecutionSlots(options.concurrency);
    this.#nodeSlots = new ExecutionSlots(Number.MAX_SAFE_INTEGER);
    const { store, timers, polls, foreignMemos: foreign, runtime, telemetry } = options;
    this.#eagerClaims = new EagerClaims({
      random: options.random,
      filter: this.#filter,
      queue: () => this.#tasks.queue,
      claimer: () => this.#claimer,
      worker: () => this.#claimant,
      runsHeld: () => this.#runs.count,
    });
    this.pump = new Pump(store, timers, {
      committed: (run, write, outcome) => {
        this.#failures.onTurn(run.record, write, outcome);
        this.#runs.onCommitted(run, write, outcome);
        this.#drain.onNodeProgress();
      },
      wrote: (write, outcome) => {
        this.#meter.note(write, outcome);
        this.#outbox.wrote(write, outcome);
        if (telemetry !== undefined) endSpans(write, outcome);
        this.#failures.onWrote(write, outcome);
        options.remote?.wrote(write, outcome);
      },
      failed: (_runs, writes, error) => this.#onFailed(writes, error),
      transact: (run) => this.#transactions.next(run),
      drained: (run) => (this.#drain.isDraining ? this.#drain.onNodeProgress() : this.#runs.onDrained(run)),
      broken: (run, error) => this.#runs.stopBroken(run, error),
      beforeFlush: () => this.#claimer.claim(),
    });
    this.#drain = new Drain({ timers, pump: this.pump, slots: this.#slots, runs: () => this.#runs });
    const memos = new Memos({ store, timers, foreign, runtime, ...this.#log.ofMemos() });
    const spending = spendingHost(this.pump, timers, options.log);
    this.#tasks = new TaskPool({
      ...{ memos, spending, telemetry, remote: options.remote },
      limits: options.payloadLimit === undefined ? undefined : { maxBytes: options.payloadLimit },
      timers,
      slots: this.#slots,
      registry: options.registry,
      workerName: options.name,
      now: () => store.now(),
      logger: (runId, step) => this.#log.logger(runId, step),
      ...taskOutcomes({
        clearSuspect: (item) => this.#quarantine.clear(item),
        findRun: (run) => this.#runs.find(run),
        onFailed: (item) => this.#failures.onTaskFailed(item),
        persist: (write) => this.#persistentWrites.submit(write),
        dueAt: (at) => this.#poller.dueAt(at),
        onQueueSlotFreed: () => this.#claimer.onQueueSlotFreed(),
      }),
      report: (error) => this.#log.report(error),
      onSlotFreed: () =>
        (this.#claimer.isRequested("items") || this.#claimer.isRequested("messages")) && this.pump.wake(),
    });
    this.#persistentWrites = new PersistentWrites({
      timers,
      pump: this.pump,
      isStopped: () => this.#stopped,
      written: (write) => {
        this.#claimer.onQueueSlotFreed();
        if (write.write !== "return-item") this.#runs.arrived(write.run);
        else if (write.availableAt === undefined) this.#claimer.request("items");
      },
      report: (error) => this.#log.report(error),
    });
    this.#itemLeaseCheck = new ItemLeaseCheck({
      store,
      timers,
      tasks: this.#tasks,
      onLocalTaskLost: (run) => this.#runs.find(run)?.onLocalTaskGone(),
      report: (error) => this.#log.report(error),
    });
    this.#operationHost = {
      timers,
      slots: this.#slots,
      nodeSlots: this.#nodeSlots,
      ...{ memos, spending },
      evict: (run) => this.#runs.evict(run),
      now: () => store.now(),
      mayStart: () => !this.#drain.isDraining,
      logger: (runId, step) => this.#log.logger(runId, step),
    };
    this.#transactions = new Transactions({
      store,
      operations: this.#operationHost,
      committed: (run, write, outcome) => {
        this.#meter.note(write, outcome);
        this.#outbox.wrote(write, outcome);
        if (telemetry !== undefined) endSpans(write, outcome);
        this.#failures.onTurn(run.record, write, outcome);
        this.#runs.onCommitted(run, write, outcome);
      },
      evict: (run) => this.#runs.evict(run),
      report: (error) => this.#log.report(error),
    });
    this.#outbox = new OutboxRelay({
      ...options,
      handlers: options.outbox ?? new Map(),
      pump: this.pump,
      slots: this.#slots,
      now: () => store.now(),
      isStopped: () => this.#stopped,
      wantMessages: () => this.#claimer.request("messages"),
      dueAt: (at) => this.#poller.dueAt(at),
      report: (error) => this.#log.report(error),
    });
    this.#quarantine = new Quarantine(timers, () => this.#claimer.request("turns", "items"));
    this.#claimer = new Claimer(this.#claimerHost());
    const entryLimits = journalLimit(options.entryLimit, options.log);
    this.#runs = new HeldRuns({
      ...options,
      onEnded: (record, status, last) => this.#onEnded(record, status, last),
      pump: this.pump,
      tasks: this.#tasks,
      claimer: this.#claimer,
      hotRunHost: { ...this.#hotRunHost, workerName: options.name, runtime, telemetry, timers, ...entryLimits },
      dueAt: (at) => this.#poller.dueAt(at),
      restart: () => this.#restart.run(),
      persist: (write) => this.#persistentWrites.submit(write),
      flows: {
        take: (turn) => this.#flows.startTurn(turn),
        adopt: (record, first, token) => this.#flows.adopt(record, first, token),
      },
      clearSuspect: (run) => this.#quarantine.clear(String(run)),
      report: (error) => this.#log.report(error),
    });
    this.#flows = new FlowRunner({
      ...options,
      pump: this.pump,
      slots: this.#slots,
      tasks: this.#tasks,
      claimer: this.#claimer,
      filter: this.#filter,
      limits: options.payloadLimit === undefined ? undefined : { maxBytes: options.payloadLimit },
      newClaim: () => this.#eagerClaims.newClaim(),
      mayStart: () => !this.#drain.isDraining && !this.#stopped,
      newChild: (child, ...at) => newFlowChild(this.#hotRunHost, options.registry, child, ...at),
      adoptChildren: (requested, started) => this.#runs.adoptChildren(requested, started),
      onArrival: (run) => this.#runs.arrived(run),
      persist: (write) => this.#persistentWrites.submit(write),
      clearSuspect: (item) => this.#quarantine.clear(item),
      onEnded: (record, status, last) => this.#onEnded(record, status, last),
      onCommitted: (record, write) => {
        this.#failures.onNodes(record, write);
        options.onCommitted(record);
      },
      report: (error) => this.#log.report(error),
    });
    this.#schedules = new ScheduleRunner({
      ...options,
      pump: this.pump,
      mayFire: () => this.#claimant !== undefined,
      onStarted: () => this.#claimer.request("starts", "turns"),
      onArrival: (run) => this.#runs.arrived(run),
      dueAt: (at) => this.#poller.dueAt(at),
      report: (error) => this.#log.report(error),
    });
    this.#lease = new WorkerLease({
      ...options,
      profile: describeWorker(options, this.#filter),
      activity: () =>
        this.#meter.text(store.now(), {
          runsHeld: this.#runs.count,
          running: this.runningCount,
          isDraining: this.#drain.isDraining,
        }),
      onLost: () => this.#restart.run(),
      onTakeover: () => this.#claimer.onTakeover(),
      // The poller's timer stops while the machine sleeps, and does not see the wall clock jump.
      onRenewed: () => {
        this.#claimer.request(...(this.#quarantine.holdsIsolated ? CLAIM_KINDS : (["due"] as const)));
        this.#schedules.poll();
      },
      reconcile: (worker) => this.#reconciler.run(worker),
      report: (error) => this.#log.report(error),
    });
    this.#restart = new Restart({
      timers,
      pump: this.pump,
      tasks: this.#tasks,
      lease: () => this.#lease,
      mayRestart: () => options.works && !this.#stopped,
      evictAll: () => (this.#runs.evictAll(), this.#quarantine.reset()),
      prepare: () => this.#declareQueues(),
      onRestarted: () => this.wake(),
      report: (error) => this.#log.report(error),
    });
    this.#reconciler = new LeaseReconciler({
      store,
      knowsTurn: ({ run, token }) => this.#runs.holdsToken(run, token),
      knowsItem: ({ run, item, token }) => this.#tasks.holdsToken(run, item, token),
      knowsMessage: ({ token }) => this.#outbox.isDelivering(token),
      persist: (write) =>
        write.write === "return-message" ? this.#outbox.submit(write) : this.#persistentWrites.submit(write),
      released: (count) => this.#log.leasesReleased(count),
    });
    this.#poller = new Poller({ store, timers, polls, onDue: () => this.wake(), onChanged: this.#onChanged });
  }

  async start(): Promise<void> {
    this.#store.onHistoryBreak?.((change) => this.#onHistoryBreak(change));
    await this.#declareQueues();
    if (this.#options.works) await this.#lease.start();
    this.#poller.start();
    this.wake();
  }

  #declareQueues(): Promise<unknown> {
    return this.#store.write(this.#options.registry.queueDeclarations());
  }

  // ── calls of the engine ──

  get runs(): HeldRuns {
    return this.#runs;
  }

  /** Whether this worker runs the code of the runs it holds. */
  get works(): boolean {
    return this.#options.works && !this.#drain.isDraining && !this.#stopped;
  }

  /** A lease for a run that is about to start here; undefined when any worker may claim it. */
  claimEagerly(definition: DefinitionVersion): Claim | undefined {
    return this.#eagerClaims.claimRun(definition);
  }

  dueAt(at: EpochMs): void {
    this.#poller.dueAt(at);
  }

  /** Polls for every kind of work. */
  wake(): void {
    this.#claimer.request(...CLAIM_KINDS);
    this.#schedules.poll();
  }

  // ── claiming ──

  /** This worker's number while it may claim. */
  get #claimant(): number | undefined {
    return this.works && this.#lease.worker !== 0 ? this.#lease.worker : undefined;
  }

  #claimerHost(): ClaimerHost {
    return {
      pump: this.pump,
      timers: this.#options.timers,
      filter: this.#filter,
      destinations: this.#outbox.destinations,
      webhooks: () => (this.#quarantine.isActive ? [] : this.#outbox.webhooks),
      worker: () => this.#claimant,
      roomForTurns: () => (this.#quarantine.isActive ? 0 : HELD_LIMIT - this.#runs.count),
      roomForItems: () => (this.#quarantine.isActive ? 0 : this.#tasks.queue.room),
      freeSlots: () => (this.#quarantine.isActive ? 0 : this.#slots.free),
      newToken: () => this.#eagerClaims.newToken(),
      ...claimDispatch({
        quarantine: this.#quarantine,
        slots: this.#slots,
        mayStart: () => !this.#drain.isDraining,
        now: () => this.#store.now(),
        startTurn: (turn) => this.#runs.startTurn(turn),
        startItem: (item) => this.#tasks.startClaimed(item, (node) => this.#flows.startNode(node)),
        startMessage: (message) => this.#outbox.deliver(message),
        persist: (write) => this.#persistentWrites.submit(write),
        submit: (write) => void this.pump.submit(write).catch((error: unknown) => this.#log.report(error)),
      }),
      onArrival: (run) => this.#runs.arrived(run),
      onNextDue: (at) => this.#poller.dueAt(at),
      report: (error) => this.#log.report(error),
    };
  }

  readonly #hotRunHost: Omit<HotRunHost, "timers" | "workerName" | "runtime" | keyof JournalLimitHost> = {
    now: () => this.#store.now(),
    onInputChanged: (run, command, message) => this.#log.inputChanged(run, command, message),
    pauseRun: (run, evidence) => this.#runs.control.pauseFromCode(run, evidence),
    claimTask: (...task) => this.#eagerClaims.claimTask(...task),
    releaseTaskSlot: (item) => this.#tasks.queue.cancelReserved(item),
    abandonTasks: (run, isKept) => this.#tasks.abandon(run.record.run, () => new CancelledError(), isKept),
    claimChild: ({ slot, definition }) => {
      const body = this.#options.registry.findWorkflow(definition.name, versionOf(definition));
      return slot === undefined && body !== undefined ? this.claimEagerly(body) : undefined;
    },
    newChild: (request, trace) => childRun(this.#options, request, trace),
    newGeneration: ({ record: { definition }, trace }, { version, input, models }) => {
      const { started, runtime } = nextRun(this.#options, definition, version, input, trace, models);
      // Waiting runs go first: a run that continues as new without end must not starve them.
      const claim = this.#claimer.isRequested("turns") ? undefined : this.claimEagerly({ name: definition, version });
      return { version, started, runtime, ...(claim && { claim }) };
    },
    runOperation: (run, request) =>
      runOperation(this.#operationHost, run, withStub(request, this.#options.stubOperation)),
    requestTurn: ({ record }) =>
      void this.pump.submit(requestTurn(record)).then(
        () => this.#runs.arrived(record.run),
        (error: unknown) => this.#log.report(error),
      ),
    markRunning: (run) => this.pump.markRunning(run),
    markDirty: (run) => this.pump.markDirty(run),
    markReady: (run) => this.pump.markReady(run),
  };

  // ── outcomes ──

  #onEnded(record: RunRecord, status: EndedRunStatus, last: EndEntry): void {
    this.#failures.onEnded(record, last);
    // The schedule may have queued its next run behind this one.
    if (record.tags.length > 0 && isScheduled(record.tags)) this.#schedules.poll();
    this.#options.onEnded(record, status, last);
  }

  /** worker.R3. The worker does not know which of these writes the store applied. */
  #onFailed(writes: readonly Write[], error: unknown): void {
    this.#log.report(error);
    if (writes.some(mayAcquireLease)) this.#restart.run();
  }

  /** worker.R4 */
  #onHistoryBreak(change: HistoryBreak): void {
    if (this.#stopped) return;
    this.timesRolledBack += Number(change.kind === "rolled_back");
    this.#log.historyBreak(change);
    this.#restart.run();
    this.#runs.forgetIdle();
    this.#flows.clear();
    this.#options.onChanged(undefined);
  }

  readonly #onChanged = (notice: ChangeNotice | undefined): void => {
    if (notice !== undefined) this.#claimer.onNotice(notice);
    else if (this.pump.pollsSeparately) this.#claimer.requestAll();
    else this.wake();
    if (notice?.work.has("schedules") !== false) this.#schedules.poll();
    if (notice === undefined && !this.works) this.#store.checkHistory?.().catch((error) => this.#log.report(error));
    this.#options.onChanged(notice?.runs);
    this.#runs.refreshHeld(notice?.runs).catch((error: unknown) => this.#log.report(error));
    this.#itemLeaseCheck.schedule();
  };

  // ── drain and stop ──

  /** worker.R2. False when user functions were still running after `graceMs`. */
  async drain(graceMs: number): Promise<boolean> {
    const finished = await this.#drain.run(graceMs);
    this.#failures.flush();
    this.#stop();
    if (this.#options.works) await this.#lease.release();
    return finished;
  }

  /** How many user functions are running. */
  get runningCount(): number {
    return this.#slots.inUse + this.#nodeSlots.inUse;
  }

  /** Resolves when no user function is running. */
  readonly idle = (): Promise<unknown> => Promise.all([this.#slots.idle(), this.#nodeSlots.idle()]);

  /** No delivery, write, replay or poll is in progress; user functions may be running. */
  get isSettled(): boolean {
    return (
      this.pump.isIdle &&
      !this.#runs.isLoading &&
      !this.#flows.isReading &&
      !this.#schedules.isPolling &&
      !this.#restart.isRunning
    );
  }

  async settled(): Promise<void> {
    while (!this.isSettled) {
      await this.pump.idle();
      await this.#runs.allLoaded();
      await this.#flows.allRead();
      await this.#schedules.polled();
      await this.#restart.done();
    }
  }

  /** After `drain`: stops polling for the ends of runs that other workers continue. */
  close(): void {
    this.#poller.stop();
  }

  /** Stops as a killed process does: releases nothing and writes nothing more. */
  crash(): void {
    this.#stop();
    this.#poller.stop();
  }

  #stop(): void {
    this.#stopped = true;
    this.#log.stop();
    this.pump.stop();
    this.#lease.stop();
    this.#outbox.stop();
    this.#tasks.abandonAll(() => new CancelledError("The worker has stopped."));
    this.#runs.stop();
  }
}
