// Parts: what one worker consists of. Each part gets this object and calls the others through it: a call goes from the part that knows
// something to the part that acts on it, without a relay between them.
//
// worker-parts.P1. A constructor of a part keeps the object and uses none of the other parts: those below it in this file do not exist yet.
// worker-parts.P2. The type of a constructor names the parts that a part uses (`PartsOf<"pump" | "timers">`).

import type { EpochMs, PayloadLimits, Timers } from "../base/index.ts";
import type { Logger, Store } from "../kernel/index.ts";
import { Poller, ProcessLog, type Registry } from "../process/index.ts";
import { BudgetOffers } from "./budget-offers.ts";
import { ClaimDispatch } from "./claim-dispatch.ts";
import { ClaimFilter } from "./claim-filter.ts";
import { Claimer } from "./claimer.ts";
import { Drain } from "./drain.ts";
import { EagerClaims } from "./eager-claims.ts";
import { ExecutionSlots } from "./execution-slots.ts";
import { FailureLog } from "./failure-log.ts";
import { FlowRunner } from "./flow-runner.ts";
import { HeldRunControl } from "./held-run-control.ts";
import { HeldRuns } from "./held-runs.ts";
import { ItemLeaseCheck } from "./item-lease-check.ts";
import { JournalLimit } from "./journal-limit.ts";
import { LeaseReconciler } from "./lease-reconciler.ts";
import { LocalQueue } from "./local-queue.ts";
import { Memos } from "./memos.ts";
import { OutboxRelay } from "./outbox-relay.ts";
import { PersistentWrites } from "./persistent-writes.ts";
import { Pump } from "./pump.ts";
import { Quarantine } from "./quarantine.ts";
import { QueueGates } from "./queue-gates.ts";
import { Restart } from "./restart.ts";
import { RunStopper } from "./run-stopper.ts";
import { ScheduleRunner } from "./schedule-runner.ts";
import { TaskPool } from "./task-pool.ts";
import { Transactions } from "./transactions.ts";
import { TurnCommits } from "./turn-commits.ts";
import { TurnStarts } from "./turn-starts.ts";
import { UnawaitedCheck } from "./unawaited-check.ts";
import { WorkerEvents } from "./worker-events.ts";
import { WorkerLease } from "./worker-lease.ts";
import { WorkMeter } from "./work-meter.ts";
import type { WorkerOptions } from "./worker-options.ts";

export class Parts {
  readonly options: WorkerOptions;
  readonly store: Store;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly log: ProcessLog;
  /** The time of the store, which decides about leases and timers. */
  readonly now: () => EpochMs;
  /** The logger of one step's code. */
  readonly logger: (runId: string, step: string) => Required<Logger>;
  readonly failures: FailureLog;
  readonly meter: WorkMeter;
  readonly filter: ClaimFilter;
  readonly slots: ExecutionSlots;
  /** Counts the running nodes of graphs; each graph limits its own. */
  readonly nodeSlots = new ExecutionSlots(Number.MAX_SAFE_INTEGER);
  readonly limits: PayloadLimits | undefined;
  readonly journalLimit: JournalLimit;
  readonly poller: Poller;

  // Writes and what follows from them.
  readonly pump: Pump;
  readonly events = new WorkerEvents(this);
  readonly persistentWrites = new PersistentWrites(this);
  readonly transactions = new Transactions(this);

  // Claims: from the queue to this worker.
  readonly eagerClaims: EagerClaims;
  readonly claimer: Claimer;
  readonly dispatch = new ClaimDispatch(this);
  readonly quarantine = new Quarantine(this);

  // Runs in memory: what comes in, what is there, what goes out.
  readonly starts: TurnStarts;
  readonly runs: HeldRuns;
  readonly commits = new TurnCommits(this);
  readonly control = new HeldRunControl(this);
  readonly stopper = new RunStopper(this);
  readonly unawaited = new UnawaitedCheck(this);

  // User code and messages.
  readonly memos: Memos;
  readonly budgetOffers = new BudgetOffers(this);
  readonly gates = new QueueGates(this);
  readonly localQueue: LocalQueue;
  readonly tasks = new TaskPool(this);
  readonly flows: FlowRunner;
  readonly outbox: OutboxRelay;
  readonly schedules = new ScheduleRunner(this);

  // The life of the worker.
  readonly lease: WorkerLease;
  readonly itemLeaseCheck = new ItemLeaseCheck(this);
  readonly reconciler = new LeaseReconciler(this);
  readonly restart = new Restart(this);
  readonly drain = new Drain(this);
  /** Nothing more is written, and no failed write is repeated. */
  isStopped = false;

  constructor(options: WorkerOptions) {
    const { store, timers, registry, log } = options;
    const now = (): EpochMs => store.now();
    this.options = options;
    this.store = store;
    this.timers = timers;
    this.registry = registry;
    this.now = now;
    this.log = new ProcessLog(log, now);
    this.logger = (runId, step) => this.log.logger(runId, step);
    this.failures = new FailureLog(options.isCopy === true ? () => {} : log, timers, now);
    this.meter = new WorkMeter(now());
    this.filter = new ClaimFilter(registry, options.queues, options.labels);
    this.slots = new ExecutionSlots(options.concurrency);
    this.limits = options.payloadLimit === undefined ? undefined : { maxBytes: options.payloadLimit };
    this.journalLimit = new JournalLimit(options.entryLimit, log);
    this.poller = new Poller({
      store,
      timers,
      polls: options.polls,
      onDue: () => this.events.due(),
      onChanged: (notice) => this.events.changed(notice),
    });
    this.pump = new Pump(this);
    this.eagerClaims = new EagerClaims(this);
    this.claimer = new Claimer(this);
    this.starts = new TurnStarts(this);
    this.runs = new HeldRuns(this);
    this.localQueue = new LocalQueue(this);
    this.memos = new Memos(this);
    this.flows = new FlowRunner(this);
    this.outbox = new OutboxRelay(this);
    this.lease = new WorkerLease(this);
  }

  /** Whether this worker runs the code of the runs it holds. */
  get works(): boolean {
    return this.options.works && !this.drain.isDraining && !this.isStopped;
  }

  /** This worker's number while it may claim. */
  get claimant(): number | undefined {
    return this.works && this.lease.worker !== 0 ? this.lease.worker : undefined;
  }
}

/** The parts that a part uses (worker-parts.P2). */
export type PartsOf<Name extends keyof Parts> = Pick<Parts, Name>;
