// Pump: the loop that delivers, drains and flushes; where group commit happens.
//
// P1. One completion to each ready run per macrotask; when nothing is ready, everything dirty is flushed in one batch.
// P2. Never flushed from a microtask or a fixed timer. (Measured: a microtask flush falls from 74k to 6.8k steps/s when
//     functions really wait; a fixed 1 ms window makes a five-step run take 8 ms.)
// P3. One batch in flight; while it is, the next gathers. Where somebody else does the work of a commit there may be two of
//     them: one is written while the code of the other's runs goes on. What is about one run is never in both.
// P4. A run's own transaction comes after the batch that holds its earlier entries; no batch is in flight beside it. Those of
//     several runs may be open at once where the store says so. When they have taken their time, others come first.
// P5. Nodes of graphs that have just begun often end at once: a flush waits for them, not for long. So a step and the node
//     that follows are one commit, and so are many items of a wide step.
// P6. Behind a network, what looks for work follows the batch it would have been in, and nothing waits for it.

import { RepriseError, type EpochMs, type Timers } from "../base/index.ts";
import {
  emit,
  isObserved,
  type Outcome,
  type OutcomeOf,
  type RunNumber,
  type Store,
  type TurnOutcome,
  type TurnWrite,
  type Write,
} from "../kernel/index.ts";
import type { HotRun } from "./hot-run.ts";

/** Entries that may wait before a flush goes ahead of further deliveries. */
const FLUSH_AT = 2_000;
/** P5. How long what waits for a commit may wait for nodes that begin. */
const NODES_MS = 5;
/** P4. How long transactions may go on while others wait. */
const TRANSACT_MS = 20;

interface Submitted {
  readonly write: Write;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** A batch. */
interface Flight {
  readonly runs: readonly HotRun[];
  readonly turns: readonly TurnWrite[];
  readonly submitted: readonly Submitted[];
  /** Turns first. */
  readonly writes: readonly Write[];
}

/** What the pump tells about the runs it moves. */
export interface PumpListener {
  committed(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void;
  /** For each write of a batch, before anybody else is told. */
  wrote(write: Write, outcome: Outcome): void;
  /** The store could not say what became of the batch, or refused it. */
  failed(runs: readonly HotRun[], writes: readonly Write[], error: unknown): void;
  drained(run: HotRun): void;
  /** Commits the next of the run's own transactions (U3). */
  transact(run: HotRun): Promise<void>;
  /** Asked before each flush for writes of the worker's own. */
  beforeFlush(): void;
}

export class Pump {
  readonly #store: Store;
  readonly #timers: Timers;
  readonly #listener: PumpListener;
  readonly #overlap: NonNullable<Store["overlap"]>;
  #submitted: Submitted[] = [];
  /** P6. What looks for work after the next batch, and those that are looking. */
  #polls: Submitted[] = [];
  readonly #looking = new Set<Promise<void>>();
  #ready: HotRun[] = [];
  #draining: HotRun[] = [];
  #dirty = new Set<HotRun>();
  #scheduled = false;
  readonly #flights = new Set<Flight>();
  /** P4. Nothing else may leave. */
  #alone = false;
  #stopped = false;
  #holding = false;
  /** P5 */
  #putOffUntil: EpochMs | undefined;
  #idleWaiters: (() => void)[] = [];
  #writtenWaiters: (() => void)[] = [];

  constructor(store: Store, timers: Timers, listener: PumpListener) {
    this.#store = store;
    this.#timers = timers;
    this.#listener = listener;
    this.#overlap = store.overlap ?? { batches: 1, writes: 1, transactions: 1 };
  }

  /** Adds a write to the next batch. */
  submit<W extends Write>(write: W): Promise<OutcomeOf<W>> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) return reject(stopped());
      this.#submitted.push({ write, resolve: resolve as (outcome: Outcome) => void, reject });
      this.kick();
    });
  }

  /** P6 */
  get pollsApart(): boolean {
    return this.#store.pollsApart === true;
  }

  /** P6. As `submit`, for what looks for work. */
  poll<W extends Write>(write: W): Promise<OutcomeOf<W>> {
    if (!this.pollsApart) return this.submit(write);
    return new Promise((resolve, reject) => {
      if (this.#stopped) return reject(stopped());
      this.#polls.push({ write, resolve: resolve as (outcome: Outcome) => void, reject });
      this.kick();
    });
  }

  markDirty(run: HotRun): void {
    this.#dirty.add(run);
    this.kick();
  }

  markReady(run: HotRun): void {
    if (run.queued || this.#holding) return;
    run.queued = true;
    this.#ready.push(run);
    this.kick();
  }

  /** The code of this run has just been set going: look at it when it has done all it can. */
  markRunning(run: HotRun): void {
    if (run.running) return;
    run.running = true;
    this.#draining.push(run);
    this.kick();
  }

  forget(run: HotRun): void {
    this.#dirty.delete(run);
  }

  /** Code gets nothing more; what is under way is still written. */
  holdDeliveries(): void {
    this.#holding = true;
    this.#ready = [];
  }

  /** Nothing is written any more; what waited to be is refused. */
  stop(): void {
    this.#stopped = true;
    for (const { reject } of [...this.#submitted.splice(0), ...this.#polls.splice(0)]) reject(stopped());
    this.#settleIdle();
  }

  get isQuiet(): boolean {
    return (
      this.#stopped ||
      (!this.#scheduled &&
        this.#flights.size === 0 &&
        !this.#alone &&
        this.#looking.size === 0 &&
        this.#submitted.length === 0 &&
        this.#polls.length === 0 &&
        this.#ready.length === 0 &&
        this.#draining.length === 0)
    );
  }

  /** Resolves when nothing is left to deliver or to write. */
  quiet(): Promise<void> {
    if (this.isQuiet) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Resolves when everything submitted so far has been written, or refused; what comes after is not waited for. */
  written(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#writtenWaiters.push(resolve);
      this.kick();
    });
  }

  kick(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    this.#timers.soon(this.#tick);
  }

  readonly #tick = (): void => {
    this.#scheduled = false;
    if (this.#stopped) return;
    const drained = this.#draining;
    let nodesBegan = false;
    if (drained.length > 0) {
      this.#draining = [];
      for (const run of drained) {
        run.running = false;
        this.#listener.drained(run);
        if (run.nodes?.began !== true) continue;
        run.nodes.began = false;
        nodesBegan = true;
      }
    }
    let waiting = 0;
    for (const run of this.#dirty) waiting += run.waiting;
    if (waiting >= FLUSH_AT) this.#flush();
    else if (this.#ready.length > 0) this.#deliver();
    else if (nodesBegan && this.#mayPutOff()) this.kick();
    else this.#flush();
  };

  /** P5 */
  #mayPutOff(): boolean {
    const now = this.#store.now();
    this.#putOffUntil ??= now + NODES_MS;
    return now < this.#putOffUntil;
  }

  /** P1 */
  #deliver(): void {
    const ready = this.#ready;
    this.#ready = [];
    for (const run of ready) {
      run.queued = false;
      if (run.isGone || !run.hasDeliverable) continue;
      run.deliverNext();
      this.#draining.push(run);
    }
    this.kick();
  }

  #flush(): void {
    if (!this.#mayLeave()) return;
    this.#putOffUntil = undefined;
    this.#listener.beforeFlush();
    const waiters = this.#writtenWaiters.splice(0);
    const transacting: HotRun[] = [];
    if (!this.#holding) for (const run of this.#dirty) if (run.hasTransaction) transacting.push(run);
    this.#alone = waiters.length > 0 || transacting.length > 0;
    const flight = this.#load();
    if (flight.writes.length > 0) {
      void this.#fly(flight, waiters, transacting);
      // The other half.
      if (!this.#alone && this.#dirty.size + this.#submitted.length > 0) this.kick();
      return;
    }
    this.#look(waiters);
    this.#alone = false;
    if (transacting.length > 0) void this.#transact(transacting);
    else this.#settleIdle();
  }

  /** P3, P4 */
  #mayLeave(): boolean {
    if (this.#alone) return false;
    if (this.#flights.size === 0) return true;
    const { batches, writes } = this.#overlap;
    if (this.#flights.size >= batches || this.#dirty.size + this.#submitted.length < writes) return false;
    if (this.#writtenWaiters.length > 0) return false;
    for (const run of this.#dirty) if (run.hasTransaction) return false;
    return true;
  }

  /** Takes what the next batch is made of: everything, or half of it when the other half may follow at once. */
  #load(): Flight {
    const { batches, writes } = this.#overlap;
    const isShared = batches > 1 && this.#flights.size === 0 && !this.#alone;
    const isHalf = isShared && this.#dirty.size + this.#submitted.length >= 2 * writes;
    const share = isHalf ? 0.5 : 1;
    const runs: HotRun[] = [];
    const turns: TurnWrite[] = [];
    const underway = this.#underway();
    let left = Math.ceil(this.#dirty.size * share);
    for (const run of this.#dirty) {
      if (left-- <= 0) break;
      if (underway?.has(run.record.run) === true) continue;
      this.#dirty.delete(run);
      const write = run.takeWrite();
      if (write === undefined) continue;
      runs.push(run);
      turns.push(write);
    }
    const submitted: Submitted[] = [];
    const later: Submitted[] = [];
    left = Math.ceil(this.#submitted.length * share);
    for (const one of this.#submitted)
      if (submitted.length < left && underway?.has(subjectOf(one.write)) !== true) submitted.push(one);
      else later.push(one);
    this.#submitted = later;
    return { runs, turns, submitted, writes: [...turns, ...submitted.map(({ write }) => write)] };
  }

  /** P3. What the batches in flight are about. Turns alone need not be looked at: a run has one of them at a time. */
  #underway(): ReadonlySet<RunNumber | string> | undefined {
    const flights = [...this.#flights];
    if (this.#submitted.length === 0 && flights.every(({ submitted }) => submitted.length === 0)) return undefined;
    return new Set(flights.flatMap(subjectsOf));
  }

  async #fly(flight: Flight, waiters: readonly (() => void)[], transacting: readonly HotRun[]): Promise<void> {
    const { runs, turns, submitted, writes } = flight;
    this.#flights.add(flight);
    let outcomes: readonly Outcome[] | undefined;
    let failure: unknown;
    try {
      outcomes = await this.#store.write(writes);
    } catch (error) {
      failure = error;
    }
    this.#flights.delete(flight);
    this.#alone = false;
    this.#look(waiters);
    if (this.#stopped) return;
    this.kick();
    if (outcomes === undefined) {
      for (const { reject } of submitted) reject(failure);
      return this.#listener.failed(runs, writes, failure);
    }
    if (isObserved()) emit({ event: "commit", writes: writes.length, entries: countEntries(turns) });
    writes.forEach((write, index) => this.#listener.wrote(write, outcomes[index]!));
    runs.forEach((run, index) => this.#listener.committed(run, turns[index]!, outcomes[index] as TurnOutcome));
    submitted.forEach(({ resolve }, index) => resolve(outcomes[turns.length + index]!));
    if (transacting.length > 0) await this.#transact(transacting);
  }

  /** P6. `waiters` are told when everybody has looked. */
  #look(waiters: readonly (() => void)[]): void {
    if (this.#polls.length > 0 && !this.#stopped) {
      const looking = this.#lookFor(this.#polls.splice(0)).finally(() => {
        this.#looking.delete(looking);
        this.#settleIdle();
      });
      this.#looking.add(looking);
    }
    if (this.#looking.size === 0) for (const resolve of waiters) resolve();
    else if (waiters.length > 0) void Promise.all(this.#looking).then(() => waiters.forEach((resolve) => resolve()));
  }

  async #lookFor(polls: readonly Submitted[]): Promise<void> {
    const writes = polls.map(({ write }) => write);
    try {
      const outcomes: readonly Outcome[] = await this.#store.write(writes);
      if (this.#stopped) return;
      writes.forEach((write, index) => this.#listener.wrote(write, outcomes[index]!));
      polls.forEach(({ resolve }, index) => resolve(outcomes[index]!));
    } catch (error) {
      if (this.#stopped) return;
      for (const { reject } of polls) reject(error);
      this.#listener.failed([], writes, error);
    }
  }

  /** P4 */
  async #transact(runs: readonly HotRun[]): Promise<void> {
    this.#alone = true;
    const left = [...runs];
    const until = this.#store.now() + TRANSACT_MS;
    do {
      const some = left.splice(0, this.#overlap.transactions);
      await Promise.all(some.map((run) => this.#listener.transact(run)));
    } while (left.length > 0 && !this.#stopped && this.#store.now() < until);
    this.#alone = false;
    if (this.#stopped) return;
    // The first of the next time.
    if (left.length > 0) this.#dirty = new Set([...left.filter((run) => !run.isGone), ...this.#dirty]);
    this.kick();
  }

  #settleIdle(): void {
    if (!this.isQuiet) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

function stopped(): RepriseError {
  return new RepriseError("ENGINE_CLOSED", "The engine was closed before this could be written.");
}

function countEntries(turns: readonly TurnWrite[]): number {
  return turns.reduce((sum, { entries }) => sum + entries.length, 0);
}

/** P3. Which run a write is about, by number or by id; what is about none is done one after the other. */
function subjectOf(write: Write): RunNumber | string {
  if ("to" in write) return write.to;
  if ("id" in write) return write.id;
  if (!("run" in write)) return "";
  return typeof write.run === "number" ? write.run : write.run.id;
}

function subjectsOf({ runs, submitted }: Flight): readonly (RunNumber | string)[] {
  return [...runs.flatMap(({ record }) => [record.run, record.id]), ...submitted.map(({ write }) => subjectOf(write))];
}
