// Worker: claims what is due, runs it, commits what came of it.
//
// It owns the runs in memory (held and cached), the tasks at work, this process's lease, and the pump they share.
// It does not own the rules of a commit (kernel) or of replay (workflow).
//
// R1. A run is in memory at most once; it is held under the token of its last claim, or cached without one.
// R2. Work starts only when the commit that created or claimed it is durable.
// R3. After any outcome but `committed` the run is dropped and its turn given back; finished tasks are sent on their own.
// R4. At most `concurrency` user functions at once, at most `HELD_LIMIT` runs held.
// R5. Draining starts nothing new; what is at work may finish, then everything is given back.
// R6. After a failure of the store everything held is given up, and the worker goes on under a new number.

import { CancelledError, encode, RepriseError, type EpochMs, type Random, type Timers } from "../base/index.ts";
import {
  emit,
  isObserved,
  type Arrival,
  type ClaimedItem,
  type ClaimedTurn,
  type EndStatus,
  type Entry,
  type InboxRow,
  type Logger,
  type NewChild,
  type NewRun,
  type RunNumber,
  type RunRecord,
  type Store,
  type TurnOutcome,
  type TurnWrite,
  type Write,
} from "../kernel/index.ts";
import {
  Execution,
  indexJournal,
  type ChildAsk,
  type Determinism,
  type ExecutionHost,
  type LogLevel,
  type OperationAsk,
  type Recorded,
  type WorkflowBody,
} from "../workflow/index.ts";
import { Claimer, type ClaimerHost } from "./claimer.ts";
import { loadCold } from "./cold-load.ts";
import { HotRun } from "./hot-run.ts";
import { Lease } from "./lease.ts";
import { LookOut } from "./look-out.ts";
import { runOperation, type OperationHost } from "./operations.ts";
import { firstEntryOf, newRun } from "./new-run.ts";
import { Pump } from "./pump.ts";
import type { Registry } from "./registry.ts";
import { RunCache } from "./run-cache.ts";
import { Slots } from "./slots.ts";
import { Solitude } from "./solitude.ts";
import { TaskPool } from "./task-pool.ts";

export interface WorkerOptions {
  readonly store: Store;
  readonly timers: Timers;
  readonly random: Random;
  readonly registry: Registry;
  readonly name: string;
  /** False: a client only; nothing is claimed. */
  readonly works: boolean;
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly heartbeats: boolean;
  readonly polls: boolean;
  readonly determinism: Determinism;
  readonly runtime: string;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  /** A run ended in this process; its last entry says how. */
  readonly onEnded: (record: RunRecord, status: EndStatus, last: Entry) => void;
  /** A run was stopped, or is no longer held here: whoever waits for it must look. */
  readonly onUnheld: (record: RunRecord) => void;
  /** Called instead of an operation's own function, in tests. */
  readonly stubOperation?: (name: string) => ((input: unknown) => unknown) | undefined;
  /** Another process wrote. */
  readonly onChanged: () => void;
}

const HELD_LIMIT = 1_000;
const CACHE_SIZE = 1_000;
/** Pause before a write the store could not take is tried again. */
const INSIST_MS = 250;

export class Worker {
  readonly pump: Pump;
  readonly #options: WorkerOptions;
  readonly #store: Store;
  readonly #slots: Slots;
  readonly #tasks: TaskPool;
  readonly #lease: Lease;
  readonly #lookOut: LookOut;
  readonly #runs = new RunCache<HotRun>(CACHE_SIZE);
  /** Runs being replayed, and whether something arrived for them meanwhile. */
  readonly #loading = new Map<RunNumber, { arrived: boolean }>();
  readonly #tokenPrefix: string;
  #tokens = 0;
  readonly #operationHost: OperationHost;
  readonly #claimer: Claimer;
  readonly #solitude: Solitude;
  #draining = false;
  #stopped = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#tokenPrefix = options.random.token().slice(0, 12);
    this.#slots = new Slots(options.concurrency);
    const { store, timers, name, leaseMs, heartbeats, polls } = options;
    this.pump = new Pump(store, timers, {
      committed: (run, write, outcome) => this.#onCommitted(run, write, outcome),
      failed: (_runs, writes, error) => this.#onFailed(writes, error),
      drained: (run) => this.#onDrained(run),
      beforeFlush: () => this.#claimer.claim(),
    });
    this.#tasks = new TaskPool({
      timers,
      slots: this.#slots,
      registry: options.registry,
      now: () => store.now(),
      logger: (runId, step) => this.#logger(runId, step),
      taskEnded: (item, arrival, wasLocal) => this.#onTaskEnded(item, arrival, wasLocal),
      taskFailed: (item, next, wasLocal) => this.#onTaskFailed(item, next, wasLocal),
      slotFreed: () => this.#claimer.wants("items") && this.pump.kick(),
    });
    this.#operationHost = {
      timers,
      slots: this.#slots,
      now: () => store.now(),
      logger: (runId, step) => this.#logger(runId, step),
    };
    this.#claimer = new Claimer(this.#claimerHost());
    this.#solitude = new Solitude(timers, () => this.pump.kick());
    this.#lease = new Lease({
      store,
      timers,
      name,
      leaseMs,
      heartbeats,
      lost: () => this.#beginAnew(),
      tookOver: () => this.wake(),
      failed: (error) => this.#report(error),
    });
    this.#lookOut = new LookOut({
      store,
      timers,
      polls,
      due: () => this.wake(),
      changed: () => this.#onChanged(),
    });
  }

  async start(): Promise<void> {
    if (this.#options.works) await this.#lease.start();
    this.#lookOut.start();
    this.wake();
  }

  // ── what the engine asks ──

  /** A token for a run about to be started here, or undefined when it is better left to the queue. */
  preclaim(): { readonly worker: number; readonly token: string } | undefined {
    if (!this.#mayClaim || this.#heldCount >= HELD_LIMIT) return undefined;
    return { worker: this.#lease.worker, token: this.#newToken() };
  }

  /** Takes up a run that was started with this worker's token. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    const body = this.#options.registry.getWorkflow(record.definition);
    const execution = this.#newExecution(body, record, indexJournal([first]));
    if (isObserved()) emit({ event: "run.started", run: record.id, definition: record.definition });
    execution.start();
    execution.caughtUp();
    this.#hold(record, execution, token, 0);
  }

  /** Something arrived for a run: it may be held here, or its turn may be due. */
  arrived(run: RunNumber): void {
    const loading = this.#loading.get(run);
    if (loading !== undefined) loading.arrived = true;
    const hot = this.#runs.get(run);
    if (hot?.token !== undefined) this.#loadInbox(hot);
    else this.#claimer.want("turns");
  }

  /** Whether news of the run's end will come from here. */
  holds(run: RunNumber): boolean {
    return this.#loading.has(run) || this.#runs.get(run)?.token !== undefined;
  }

  /** Looks for everything there may be. */
  wake(): void {
    this.#claimer.want("turns", "items", "due");
  }

  executionHost(runId: string): ExecutionHost {
    const { registry } = this.#options;
    return {
      log: (level, message, data) => this.#options.log(level, message, { run: runId, ...data }),
      acceptTask: (task, input) => registry.acceptTask(task, input),
      acceptChild: (definition, input) => registry.acceptChild(definition, input),
    };
  }

  // ── claiming ──

  get #mayClaim(): boolean {
    return this.#options.works && !this.#draining && !this.#stopped && this.#lease.worker !== 0;
  }

  get #heldCount(): number {
    return this.#runs.heldCount + this.#loading.size;
  }

  #claimerHost(): ClaimerHost {
    const worker = this;
    return {
      pump: this.pump,
      timers: this.#options.timers,
      registry: this.#options.registry,
      get worker() {
        return worker.#mayClaim ? worker.#lease.worker : undefined;
      },
      get roomForTurns() {
        return worker.#solitude.isKept ? 0 : HELD_LIMIT - worker.#heldCount;
      },
      get roomForItems() {
        return worker.#solitude.isKept ? 0 : worker.#slots.free;
      },
      newToken: () => this.#newToken(),
      onTurn: (turn) => this.#onTurn(turn),
      onItem: (item) => {
        if (item.suspect) this.#solitude.begin(`${item.run} ${item.item}`);
        this.#slots.take();
        this.#tasks.start(item, false);
      },
      onArrival: (run) => this.arrived(run),
      onNextDue: (at) => this.#lookOut.dueAt(at),
      failed: (error) => this.#report(error),
    };
  }

  #newToken(): string {
    this.#tokens += 1;
    return `${this.#tokenPrefix}.${this.#tokens}`;
  }

  #onTurn({ record, token, inbox, suspect }: ClaimedTurn): void {
    if (suspect) this.#solitude.begin(String(record.run));
    const cached = this.#runs.get(record.run);
    if (cached !== undefined && !cached.isGone && cached.head === record.head) {
      cached.retake(token);
      this.#runs.hold(record.run, cached);
      cached.applyInbox(inbox);
      this.pump.markRunning(cached);
      return;
    }
    if (cached !== undefined) this.#forget(cached);
    this.#loading.set(record.run, { arrived: false });
    this.#load(record, token, inbox).catch((error: unknown) => {
      this.#loading.delete(record.run);
      this.#report(error);
      this.#insist({ write: "turn-back", run: record.run, token });
    });
  }

  /** Brings a cold run back. */
  async #load(record: RunRecord, token: string, inbox: readonly InboxRow[]): Promise<void> {
    const body = this.#options.registry.getWorkflow(record.definition);
    const loaded = await loadCold(this.#store, this.#options.timers, record, (recorded) =>
      this.#newExecution(body, record, recorded),
    );
    const arrived = this.#loading.get(record.run)?.arrived === true;
    this.#loading.delete(record.run);
    if (this.#stopped) return;
    if (loaded.status === "unfit") {
      const { code, message, seq } = loaded;
      const evidence = encode({ code, message, seq, status: "blocked", where: `entry ${seq}` });
      return this.#stopWith(record, token, evidence, "blocked", message);
    }
    const { execution, entries } = loaded;
    if (isObserved()) emit({ event: "run.resumed", run: record.id, definition: record.definition, entries });
    const hot = this.#hold(record, execution, token, inbox[0] === undefined ? record.arrivals : inbox[0].arrival - 1);
    hot.applyInbox(inbox);
    if (arrived) this.#loadInbox(hot);
  }

  #newExecution(body: WorkflowBody, record: RunRecord, recorded: Recorded): Execution {
    const { id, generation } = record;
    const determinism = body.determinism ?? this.#options.determinism;
    return new Execution(body, { id, generation }, recorded, determinism, this.executionHost(id));
  }

  #hold(record: RunRecord, execution: Execution, token: string, read: number): HotRun {
    const hot = new HotRun(record, execution, this.#hotRunHost, token, read);
    this.#runs.hold(record.run, hot);
    this.pump.markRunning(hot);
    return hot;
  }

  readonly #hotRunHost = {
    now: (): EpochMs => this.#store.now(),
    preclaimTask: (): { worker: number; token: string } | undefined => {
      // Work that already waits goes first; a draining worker starts nothing.
      if (this.#claimer.wants("items") || !this.#mayClaim || this.#slots.free === 0) {
        this.#claimer.note("items");
        return undefined;
      }
      this.#slots.take();
      return { worker: this.#lease.worker, token: this.#newToken() };
    },
    unclaimTask: (): void => this.#slots.give(),
    abandonTasks: (run: HotRun): number => this.#tasks.abandon(run.record.run, () => new CancelledError()),
    preclaimChild: () => this.preclaim(),
    newChild: (ask: ChildAsk): NewRun =>
      newRun(this.#options.registry.getWorkflow(ask.definition.name), {
        id: ask.childId,
        input: ask.input,
        runtime: this.#options.runtime,
      }),
    runOperation: (run: HotRun, ask: OperationAsk): void => {
      const stub = this.#options.stubOperation?.(ask.name);
      runOperation(this.#operationHost, run, stub === undefined ? ask : { ...ask, call: (_op, input) => stub(input) });
    },
    markDirty: (run: HotRun): void => this.pump.markDirty(run),
    markReady: (run: HotRun): void => this.pump.markReady(run),
  };

  #loadInbox(run: HotRun): void {
    this.#store.readInbox(run.record.run, run.read).then(
      (rows) => {
        if (!this.#stopped && rows.length > 0) run.applyInbox(rows);
      },
      (error: unknown) => this.#report(error),
    );
  }

  // ── what comes back ──

  #onDrained(run: HotRun): void {
    if (run.isGone || this.#draining) return;
    try {
      run.afterDrain();
    } catch (error) {
      this.#report(error);
      this.#stopRun(run, encode({ code: "INVARIANT", message: String(error), status: "blocked" }), "blocked");
      return;
    }
    const { stop } = run.execution;
    if (stop !== undefined) this.#stopRun(run, run.evidence() ?? "{}", stop.status);
  }

  #stopRun(run: HotRun, evidence: string, status: "determinism_violation" | "blocked"): void {
    const { token, record } = run;
    if (token === undefined) return;
    this.#salvage(run);
    this.#forget(run);
    this.#stopWith(record, token, evidence, status, run.execution.stop?.message ?? "internal error");
  }

  #stopWith(
    record: RunRecord,
    token: string,
    evidence: string,
    status: "determinism_violation" | "blocked",
    message: string,
  ): void {
    this.#options.log("error", message, { run: record.id, status });
    this.pump.submit({ write: "stop", run: record.run, token, status, evidence }).then(
      () => {
        if (isObserved()) emit({ event: "run.stopped", run: record.id, status, message });
        this.#options.onUnheld(record);
      },
      (error: unknown) => this.#report(error),
    );
  }

  #onCommitted(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void {
    this.#solitude.end(String(run.record.run));
    if (run.isGone) return;
    // It stands with the tasks and children it claimed for this worker, of which nobody here knows.
    if (outcome.status === "already-committed") return this.#beginAnew();
    if (outcome.status !== "committed") return this.#evict(run, true);
    const { localItems, children, released } = run.committed();
    for (const item of localItems) this.#tasks.start(item, true);
    this.#adoptChildren(children, outcome.children);
    for (const { kind, availableAt } of write.items) if (kind === "timer") this.#lookOut.dueAt(availableAt);
    for (const { to } of write.messages)
      if (typeof to === "number") this.arrived(to);
      else this.#claimer.want("turns");
    if (run.ended !== undefined) return this.#onEnded(run, run.ended, write.entries.at(-1)!);
    if (outcome.more) {
      if (released) this.#claimer.want("turns");
      else this.#loadInbox(run);
    }
    if (released) this.#runs.release(run.record.run, run);
    else this.pump.markDirty(run);
    if (this.#claimer.wants("turns") || this.#claimer.wants("items")) this.pump.kick();
  }

  #adoptChildren(asked: readonly NewChild[], started: readonly RunRecord[]): void {
    if (asked.length === 0) return;
    const records = new Map(started.map((record) => [record.id, record]));
    for (const { run, claim } of asked) {
      const record = records.get(run.id);
      if (record === undefined) continue;
      if (claim === undefined) {
        this.#claimer.want("turns");
        continue;
      }
      this.adopt(record, firstEntryOf(run, record), claim.token);
    }
  }

  #onEnded(run: HotRun, status: EndStatus, last: Entry): void {
    this.#tasks.abandon(run.record.run, () => new CancelledError("The run has ended."));
    this.#forget(run);
    if (isObserved()) emit({ event: "run.ended", run: run.record.id, definition: run.record.definition, status });
    this.#options.onEnded(run.record, status, last);
    if (this.#claimer.wants("turns")) this.pump.kick();
  }

  /** R3 */
  #evict(run: HotRun, giveBack: boolean): void {
    const { token, record } = run;
    if (isObserved()) emit({ event: "lease.lost", worker: this.#lease.worker, run: record.id });
    this.#salvage(run);
    this.#forget(run);
    if (giveBack && token !== undefined) this.#insist({ write: "turn-back", run: record.run, token });
    this.#claimer.want("turns");
    this.#options.onUnheld(record);
  }

  #salvage(run: HotRun): void {
    for (const { fence, arrival } of run.salvage())
      this.#insist({ write: "item-end", run: run.record.run, item: fence.item, token: fence.token, arrival });
  }

  #forget(run: HotRun): void {
    run.discard(() => new CancelledError("The run is no longer held here."));
    this.#runs.delete(run.record.run, run);
    this.pump.forget(run);
  }

  /** R6. Nobody can say what the store has of all this: give up everything held and begin anew under another number. */
  #onFailed(writes: readonly Write[], error: unknown): void {
    this.#report(error);
    if (writes.some(mayHold)) this.#beginAnew();
  }

  #beginAnew(): void {
    if (!this.#options.works || this.#stopped) return;
    this.#dropEverything();
    this.#lease.renew().then(
      () => this.wake(),
      (error: unknown) => {
        this.#report(error);
        this.#options.timers.set(INSIST_MS, () => this.#beginAnew(), { ref: false });
      },
    );
  }

  #onTaskEnded(item: ClaimedItem, arrival: Arrival, wasLocal: boolean): void {
    this.#solitude.end(`${item.run} ${item.item}`);
    const hot = this.#runs.get(item.run);
    if (hot?.accepts === true) return hot.taskEnded(item, arrival, wasLocal);
    this.#insist({ write: "item-end", run: item.run, item: item.item, token: item.token, arrival });
  }

  #onTaskFailed(item: ClaimedItem, next: { availableAt: EpochMs; failures: string }, wasLocal: boolean): void {
    const { run, token, attempt } = item;
    this.#solitude.end(`${run} ${item.item}`);
    if (wasLocal) this.#runs.get(run)?.taskLeft();
    this.#insist({ write: "item-back", run, item: item.item, token, attempt: attempt + 1, ...next });
    this.#lookOut.dueAt(next.availableAt);
  }

  /** For writes that must not be lost while this worker lives: tried until the store answers. */
  #insist(write: Extract<Write, { write: "item-end" | "item-back" | "turn-back" }>): void {
    this.pump.submit(write).then(
      () => {
        if (write.write === "item-back") return;
        this.arrived(write.run);
      },
      (error: unknown) => {
        this.#report(error);
        if (!this.#stopped) this.#options.timers.set(INSIST_MS, () => this.#insist(write), { ref: false });
      },
    );
  }

  #onChanged(): void {
    this.wake();
    this.#options.onChanged();
    this.#checkHeld().catch((error: unknown) => this.#report(error));
  }

  /** Learns what others did to the runs held here. */
  async #checkHeld(): Promise<void> {
    const held = this.#runs.held();
    if (held.length === 0) return;
    for (const { run, arrivals, token } of await this.#store.pulse(held.map((hot) => hot.record.run))) {
      const hot = this.#runs.get(run);
      if (hot?.token === undefined) continue;
      if (token !== hot.token) this.#evict(hot, false);
      else if (arrivals > hot.read) this.#loadInbox(hot);
    }
  }

  // ── the end ──

  /** R5. False when something was still at work when the time was up. */
  async drain(graceMs: number): Promise<boolean> {
    this.#draining = true;
    this.pump.holdDeliveries();
    const { timers } = this.#options;
    const finished = await Promise.race([
      this.#slots.idle().then(() => true),
      new Promise<boolean>((resolve) => timers.set(graceMs, () => resolve(false), { ref: false })),
    ]);
    await this.pump.quiet();
    this.#stop();
    if (this.#options.works) await this.#lease.release();
    return finished;
  }

  /** Resolves when nothing is being delivered, run, written or replayed. */
  async settled(): Promise<void> {
    for (;;) {
      await this.#slots.idle();
      await this.pump.quiet();
      if (this.#slots.taken === 0 && this.#loading.size === 0 && this.pump.isQuiet) return;
      await new Promise<void>((resolve) => this.#options.timers.soon(resolve));
    }
  }

  /** As if the process had died: nothing is given back, nothing more is written. */
  crash(): void {
    this.#stop();
    this.#lease.stop();
  }

  get workerNumber(): number {
    return this.#lease.worker;
  }

  #stop(): void {
    this.#stopped = true;
    this.pump.stop();
    this.#lookOut.stop();
    this.#lease.stop();
    this.#tasks.abandonAll(() => new CancelledError("The worker has stopped."));
    for (const run of this.#runs.clear()) run.discard(() => new CancelledError("The worker has stopped."));
  }

  #dropEverything(): void {
    for (const run of this.#runs.held()) this.#evict(run, false);
    this.#tasks.abandonAll(() => new CancelledError("The lease was lost."));
  }

  #logger(runId: string, step: string): Logger {
    const log = (level: LogLevel) => (message: string, data?: object) =>
      this.#options.log(level, message, { run: runId, step, ...data });
    return { info: log("info"), warn: log("warn"), error: log("error") };
  }

  #report(error: unknown): void {
    if (this.#stopped && error instanceof RepriseError) return;
    if (isObserved()) emit({ event: "store.failed", error });
    this.#options.log("error", error instanceof Error ? error.message : String(error), {
      ...(error instanceof RepriseError && { code: error.code }),
    });
  }
}

/** Whether something may be held under this worker's number after the write, should it have been applied. */
function mayHold(write: Write): boolean {
  switch (write.write) {
    case "turn":
    case "claim-turns":
    case "claim-items":
      return true;
    case "start":
      return write.claim !== undefined;
    default:
      return false;
  }
}
