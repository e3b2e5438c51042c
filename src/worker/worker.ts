// Worker: claims what is due, runs it, commits what came of it.
//
// It wires the runs in memory (R1–R3, held-runs.ts), the tasks at work, this process's lease, and the pump they share.
// It does not own the rules of a commit (kernel) or of replay (workflow).
//
// R4. At most `concurrency` user functions at once, at most `HELD_LIMIT` runs held.
// R5. Draining starts nothing new; what is at work may finish. A run with nothing at work is given back at once, everything
//     else when it is done, or the time is up.
// R6. After a failure of the store everything held is given up, and the worker continues under a new number (restart.ts).
// R7. The same when the database went back to an earlier state: nothing that is in memory is used any more.

import { CancelledError, type EpochMs } from "../base/index.ts";
import {
  isScheduled,
  type Arrival,
  type Claim,
  type DefinitionVersion,
  type ClaimedItem,
  type EndStatus,
  type EndEntry,
  type HistoryBreak,
  type Line,
  type NewRun,
  type ChangeNotice,
  type NextGeneration,
  type RunRecord,
  type Store,
  type Write,
} from "../kernel/index.ts";
import type { ChildAsk, OperationAsk, PauseEvidence } from "../workflow/index.ts";
import { aboutText } from "./about.ts";
import { Claimer, KINDS, type ClaimerHost } from "./claimer.ts";
import { Deliveries } from "./deliveries.ts";
import { Drain } from "./drain.ts";
import { Flows } from "./flows.ts";
import { newFlowChild } from "./flow-child.ts";
import { mayHold } from "./claims-given-back.ts";
import { HeldRuns } from "./held-runs.ts";
import type { HotRun } from "./hot-run.ts";
import { PersistentWrites } from "./persistent-writes.ts";
import { intakeOf } from "./intake.ts";
import { ItemWatch } from "./item-watch.ts";
import type { Continued } from "./run-end.ts";
import { Lease } from "./lease.ts";
import { LookOut } from "./look-out.ts";
import { runOperation, type OperationHost } from "./operations.ts";
import { childRun, nextRun } from "./new-run.ts";
import { turnWanted } from "./nodes-of-run.ts";
import { HELD_LIMIT, Preclaims } from "./preclaims.ts";
import { Pump } from "./pump.ts";
import { Quarantine } from "./quarantine.ts";
import { Reconcile } from "./reconcile.ts";
import { versionOf } from "./registry.ts";
import { Restart } from "./restart.ts";
import { Schedules } from "./schedules.ts";
import { journalLimit } from "./journal-limit.ts";
import { Served } from "./served.ts";
import { Slots } from "./slots.ts";
import { TaskPool } from "./task-pool.ts";
import { Transactions } from "./transactions.ts";
import { WorkMeter } from "./work-meter.ts";
import { WorkerLog } from "./worker-log.ts";
import type { WorkerOptions } from "./worker-options.ts";
import type { NextAttempt } from "./tasks.ts";

export type { WorkerOptions } from "./worker-options.ts";

export class Worker {
  readonly pump: Pump;
  readonly #options: WorkerOptions;
  readonly #store: Store;
  readonly #log: WorkerLog;
  readonly #served: Served;
  readonly #slots: Slots;
  /** Counts nodes of graphs at work; how many may be is the business of their graph. */
  readonly #nodeSlots: Slots;
  readonly #tasks: TaskPool;
  readonly #itemWatch: ItemWatch;
  readonly #lease: Lease;
  readonly #lookOut: LookOut;
  readonly #runs: HeldRuns;
  readonly #flows: Flows;
  readonly #schedules: Schedules;
  readonly #preclaims: Preclaims;
  readonly #meter: WorkMeter;
  readonly #insistence: PersistentWrites;
  readonly #operationHost: OperationHost;
  readonly #transactions: Transactions;
  readonly #deliveries: Deliveries;
  readonly #claimer: Claimer;
  readonly #quarantine: Quarantine;
  readonly #restart: Restart;
  readonly #reconcile: Reconcile;
  /** R7. How often the database went back, as far as this process knows. */
  timesRolledBack = 0;
  readonly #drain: Drain;
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#meter = new WorkMeter(options.store.now());
    this.#log = new WorkerLog(options.log, () => options.store.now());
    this.#served = new Served(options.registry, options.queues, options.labels);
    this.#slots = new Slots(options.concurrency);
    this.#nodeSlots = new Slots(Number.MAX_SAFE_INTEGER);
    const { store, timers, polls } = options;
    this.#preclaims = new Preclaims({
      random: options.random,
      served: this.#served,
      slots: this.#slots,
      claimer: () => this.#claimer,
      worker: () => this.#claimant,
      runsHeld: () => this.#runs.count,
    });
    this.pump = new Pump(store, timers, {
      committed: (run, write, outcome) => {
        this.#runs.committed(run, write, outcome);
        this.#drain.nodesMoved();
      },
      wrote: (write, outcome) => this.#meter.note(write, outcome),
      failed: (_runs, writes, error) => this.#onFailed(writes, error),
      transact: (run) => this.#transactions.next(run),
      drained: (run) => (this.#drain.isOn ? this.#drain.nodesMoved() : this.#runs.drained(run)),
      beforeFlush: () => this.#claimer.claim(),
    });
    this.#drain = new Drain({ timers, pump: this.pump, slots: this.#slots, runs: () => this.#runs });
    this.#tasks = new TaskPool({
      limits: options.payloadLimit === undefined ? undefined : { maxBytes: options.payloadLimit },
      timers,
      slots: this.#slots,
      registry: options.registry,
      now: () => store.now(),
      logger: (runId, step) => this.#log.logger(runId, step),
      taskEnded: (item, arrival, wasLocal) => this.#onTaskEnded(item, arrival, wasLocal),
      taskFailed: (item, next, wasLocal) => this.#onTaskFailed(item, next, wasLocal),
      report: (error) => this.#log.report(error),
      slotFreed: () => (this.#claimer.wants("items") || this.#claimer.wants("messages")) && this.pump.kick(),
    });
    this.#insistence = new PersistentWrites({
      timers,
      pump: this.pump,
      isStopped: () => this.#stopped,
      written: ({ write, run }) => {
        this.#claimer.freed();
        if (write !== "item-back") this.#runs.arrived(run);
      },
      report: (error) => this.#log.report(error),
    });
    this.#itemWatch = new ItemWatch({
      store,
      timers,
      tasks: this.#tasks,
      left: (run) => this.#runs.find(run)?.taskLeft(),
      failed: (error) => this.#log.report(error),
    });
    this.#operationHost = {
      timers,
      slots: this.#slots,
      nodeSlots: this.#nodeSlots,
      now: () => store.now(),
      mayStart: () => !this.#drain.isOn,
      logger: (runId, step) => this.#log.logger(runId, step),
    };
    this.#transactions = new Transactions({
      store,
      operations: this.#operationHost,
      committed: (run, write, outcome) => {
        this.#meter.note(write, outcome);
        this.#runs.committed(run, write, outcome);
      },
      giveUp: (run) => this.#runs.giveUp(run),
      report: (error) => this.#log.report(error),
    });
    this.#deliveries = new Deliveries({
      handlers: options.outbox ?? new Map(),
      pump: this.pump,
      timers,
      slots: this.#slots,
      now: () => store.now(),
      isStopped: () => this.#stopped,
      more: () => this.#claimer.want("messages"),
      dueAt: (at) => this.#lookOut.dueAt(at),
      log: options.log,
      report: (error) => this.#log.report(error),
    });
    this.#quarantine = new Quarantine(timers, () => this.#claimer.want("turns", "items"));
    this.#claimer = new Claimer(this.#claimerHost());
    this.#runs = new HeldRuns({
      ...options,
      onEnded: (record, status, last) => this.#onEnded(record, status, last),
      pump: this.pump,
      tasks: this.#tasks,
      claimer: this.#claimer,
      hotRunHost: { ...this.#hotRunHost, timers, ...journalLimit(options.entryLimit, options.log) },
      dueAt: (at) => this.#lookOut.dueAt(at),
      restart: () => this.#restart.run(),
      insist: (write) => this.#insistence.on(write),
      flows: {
        take: (turn) => this.#flows.take(turn),
        adopt: (record, first, token) => this.#flows.adopt(record, first, token),
      },
      proved: (run) => this.#quarantine.proved(String(run)),
      report: (error) => this.#log.report(error),
    });
    this.#flows = new Flows({
      store,
      timers,
      registry: options.registry,
      pump: this.pump,
      slots: this.#slots,
      tasks: this.#tasks,
      claimer: this.#claimer,
      served: this.#served,
      limits: options.payloadLimit === undefined ? undefined : { maxBytes: options.payloadLimit },
      newClaim: () => this.#preclaims.newClaim(),
      mayStart: () => !this.#drain.isOn && !this.#stopped,
      newChild: (child, id, command) => newFlowChild(this.#hotRunHost, options.registry, child, id, command),
      adoptChildren: (asked, started) => this.#runs.adoptChildren(asked, started),
      arrived: (run) => this.#runs.arrived(run),
      insist: (write) => this.#insistence.on(write),
      proved: (item) => this.#quarantine.proved(item),
      onEnded: (record, status, last) => this.#onEnded(record, status, last),
      onMoved: options.onMoved,
      onUnheld: options.onUnheld,
      log: options.log,
      report: (error) => this.#log.report(error),
    });
    this.#schedules = new Schedules({
      ...options,
      pump: this.pump,
      mayFire: () => this.#claimant !== undefined,
      started: () => this.#claimer.want("starts", "turns"),
      arrived: (run) => this.#runs.arrived(run),
      dueAt: (at) => this.#lookOut.dueAt(at),
      failed: (error) => this.#log.report(error),
    });
    this.#lease = new Lease({
      ...options,
      about: aboutText(options, this.#served),
      doing: () =>
        this.#meter.text(store.now(), {
          runsHeld: this.#runs.count,
          atWork: this.atWork,
          isDraining: this.#drain.isOn,
        }),
      lost: () => this.#restart.run(),
      tookOver: () => this.#claimer.tookOver(),
      // The alarm counts on a clock that stands still while the machine sleeps, and does not see the wall clock jump.
      renewed: () => {
        this.#claimer.want(...(this.#quarantine.holdsIsolated ? KINDS : (["due"] as const)));
        this.#schedules.look();
      },
      reconcile: (worker) => this.#reconcile.run(worker),
      failed: (error) => this.#log.report(error),
    });
    this.#restart = new Restart({
      timers,
      pump: this.pump,
      tasks: this.#tasks,
      lease: () => this.#lease,
      mayRestart: () => options.works && !this.#stopped,
      evictAll: () => (this.#runs.evictAll(), this.#quarantine.clear()),
      prepare: () => this.#declareQueues(),
      restarted: () => this.wake(),
      report: (error) => this.#log.report(error),
    });
    this.#reconcile = new Reconcile({
      store,
      knowsTurn: ({ run, token }) => this.#runs.knows(run, token),
      knowsItem: ({ run, item, token }) => this.#tasks.knows(run, item, token),
      knowsMessage: ({ token }) => this.#deliveries.knows(token),
      insist: (write) => (write.write === "message-back" ? this.#deliveries.insist(write) : this.#insistence.on(write)),
      gaveBack: (count) => this.#log.gaveBack(count),
    });
    const changed = (news: ChangeNotice | undefined): void => this.#onChanged(news);
    this.#lookOut = new LookOut({ store, timers, polls, due: () => this.wake(), changed });
  }

  async start(): Promise<void> {
    this.#store.onHistoryBreak?.((change) => this.#onHistoryBreak(change));
    await this.#declareQueues();
    if (this.#options.works) await this.#lease.start();
    this.#lookOut.start();
    this.wake();
  }

  #declareQueues(): Promise<unknown> {
    const { queues } = this.#options.registry;
    return this.#store.write([...queues].map(([name, limits]) => ({ write: "declare-queue", name, limits })));
  }

  // ── what the engine asks ──

  get runs(): HeldRuns {
    return this.#runs;
  }

  /** Code of runs held here gets what comes for it. */
  get works(): boolean {
    return this.#options.works && !this.#drain.isOn && !this.#stopped;
  }

  /** A token for a run about to be started here, or undefined when it is better left to the queue. */
  preclaim(definition: DefinitionVersion): Claim | undefined {
    return this.#preclaims.run(definition);
  }

  dueAt(at: EpochMs): void {
    this.#lookOut.dueAt(at);
  }

  /** Looks for everything there may be. */
  wake(): void {
    this.#claimer.want(...KINDS);
    this.#schedules.look();
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
      served: this.#served,
      destinations: this.#deliveries.destinations,
      worker: () => this.#claimant,
      roomForTurns: () => (this.#quarantine.isKept ? 0 : HELD_LIMIT - this.#runs.count),
      roomForItems: () => (this.#quarantine.isKept ? 0 : this.#slots.free),
      newToken: () => this.#preclaims.newToken(),
      ...intakeOf({
        quarantine: this.#quarantine,
        slots: this.#slots,
        mayStart: () => !this.#drain.isOn,
        now: () => this.#store.now(),
        startTurn: (turn) => this.#runs.take(turn),
        startItem: (item) => (item.kind === "node" ? this.#flows.start(item) : this.#tasks.start(item, false)),
        startMessage: (message) => this.#deliveries.deliver(message),
        insist: (write) => this.#insistence.on(write),
        submit: (write) => void this.pump.submit(write).catch((error: unknown) => this.#log.report(error)),
      }),
      onArrival: (run) => this.#runs.arrived(run),
      onNextDue: (at) => this.#lookOut.dueAt(at),
      failed: (error) => this.#log.report(error),
    };
  }

  readonly #hotRunHost = {
    now: (): EpochMs => this.#store.now(),
    pauseItself: (run: HotRun, evidence: PauseEvidence): void => this.#runs.steering.pauseItself(run, evidence),
    preclaimTask: (name: string, line: Line | undefined): Claim | undefined => this.#preclaims.task(name, line),
    unclaimTask: (): void => this.#slots.give(),
    abandonTasks: (run: HotRun, isKept: (item: string) => boolean): number =>
      this.#tasks.abandon(run.record.run, () => new CancelledError(), isKept),
    preclaimChild: ({ line, definition }: ChildAsk) => {
      const body = this.#options.registry.findWorkflow(definition.name, versionOf(definition));
      return line === undefined && body !== undefined ? this.preclaim(body) : undefined;
    },
    newChild: (ask: ChildAsk): NewRun => childRun(this.#options, ask),
    newGeneration: ({ definition }: RunRecord, { version, input }: Continued): Omit<NextGeneration, "carried"> => {
      const { started, runtime } = nextRun(this.#options, definition, version, input);
      // Runs that already wait go first: one that continues for ever must not keep them out.
      const claim = this.#claimer.wants("turns") ? undefined : this.preclaim({ name: definition, version });
      return { version, started, runtime, ...(claim && { claim }) };
    },
    runOperation: (run: HotRun, ask: OperationAsk): void => {
      const stub = ask.isNode === true ? undefined : this.#options.stubOperation?.(ask.name);
      runOperation(this.#operationHost, run, stub === undefined ? ask : { ...ask, call: (_op, input) => stub(input) });
    },
    wantTurn: ({ record }: HotRun): void =>
      void this.pump.submit(turnWanted(record)).then(
        () => this.#runs.arrived(record.run),
        (error: unknown) => this.#log.report(error),
      ),
    markRunning: (run: HotRun): void => this.pump.markRunning(run),
    markDirty: (run: HotRun): void => this.pump.markDirty(run),
    markReady: (run: HotRun): void => this.pump.markReady(run),
  };

  // ── what comes back ──

  #onEnded(record: RunRecord, status: EndStatus, last: EndEntry): void {
    // Somebody may be in line behind it.
    if (record.tags.length > 0 && isScheduled(record.tags)) this.#schedules.look();
    this.#options.onEnded(record, status, last);
  }

  /** R6. The worker cannot know what the store has of these writes. */
  #onFailed(writes: readonly Write[], error: unknown): void {
    this.#log.report(error);
    if (writes.some(mayHold)) this.#restart.run();
  }

  /** R7. Nothing that was read before counts; what the database has now does. */
  #onHistoryBreak(change: HistoryBreak): void {
    if (this.#stopped) return;
    this.timesRolledBack += Number(change.kind === "rolled-back");
    this.#log.historyBreak(change);
    this.#restart.run();
    this.#runs.forgetIdle();
    this.#flows.forget();
    this.#options.onChanged(undefined);
  }

  #onTaskEnded(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void {
    this.#quarantine.proved(`${item.run} ${item.item}`);
    const hot = this.#runs.find(item.run);
    if (hot?.accepts === true) return hot.taskEnded(item, arrival, wasLocal);
    const { run, token, line } = item;
    this.#insistence.on({ write: "item-end", run, item: item.item, token, ...(line && { line }), arrival });
  }

  #onTaskFailed(item: ClaimedItem, next: NextAttempt, wasLocal: boolean): void {
    const { run, token, line } = item;
    this.#quarantine.proved(`${run} ${item.item}`);
    if (wasLocal) this.#runs.find(run)?.taskLeft();
    this.#insistence.on({ write: "item-back", run, item: item.item, token, ...(line && { line }), ...next });
    this.#lookOut.dueAt(next.availableAt);
  }

  #onChanged(news: ChangeNotice | undefined): void {
    if (news !== undefined) this.#claimer.hear(news);
    else if (this.pump.pollsApart) this.#claimer.look();
    else this.wake();
    if (news?.work.has("schedules") !== false) this.#schedules.look();
    if (news === undefined && !this.works) this.#store.checkHistory?.().catch((error) => this.#log.report(error));
    this.#options.onChanged(news?.runs);
    this.#runs.checkHeld(news?.runs).catch((error: unknown) => this.#log.report(error));
    this.#itemWatch.lookSoon();
  }

  // ── the end ──

  /** R5. False when something was still at work when the time was up. */
  async drain(graceMs: number): Promise<boolean> {
    const finished = await this.#drain.run(graceMs);
    this.#stop();
    if (this.#options.works) await this.#lease.release();
    return finished;
  }

  /** How many user functions are running. */
  get atWork(): number {
    return this.#slots.taken + this.#nodeSlots.taken;
  }

  /** Resolves when no user function is running. */
  async idle(): Promise<void> {
    await Promise.all([this.#slots.idle(), this.#nodeSlots.idle()]);
  }

  /** Nothing is being delivered, written, replayed or looked for; user functions may be running. */
  get isSettled(): boolean {
    return (
      this.pump.isQuiet &&
      !this.#runs.isLoading &&
      !this.#flows.isReading &&
      !this.#schedules.isLooking &&
      !this.#restart.isRunning
    );
  }

  async settled(): Promise<void> {
    while (!this.isSettled) {
      await this.pump.quiet();
      await this.#runs.loaded();
      await this.#flows.read();
      await this.#schedules.looked();
      await this.#restart.done();
    }
  }

  /** After `drain`: whoever still waits for runs that others carry on is not told any more. */
  close(): void {
    this.#lookOut.stop();
  }

  /** As if the process had died: nothing is given back, nothing more is written. */
  crash(): void {
    this.#stop();
    this.#lookOut.stop();
    this.#lease.stop();
  }

  #stop(): void {
    this.#stopped = true;
    this.#log.stop();
    this.pump.stop();
    this.#lease.stop();
    this.#tasks.abandonAll(() => new CancelledError("The worker has stopped."));
    this.#runs.stop();
  }
}
