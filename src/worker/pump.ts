// Pump: the worker's loop. It delivers completions to run code, collects the commands, and commits them in batches (group
// commit).
//
// pump.P1. Each macrotask delivers one completion to each ready run. When no run is ready, one batch commits all dirty runs.
// pump.P2. The pump does not flush from a microtask or a fixed timer. (Measured: a microtask flush falls from 74k to 6.8k
//   steps/s when functions really wait; a fixed 1 ms window makes a five-step run take 8 ms.)
// pump.P3. One batch is in flight; the next one gathers meanwhile. With a remote store two may be in flight: one is written
//   while the code of the other's runs continues. Writes of one run are never in both.
// pump.P4. A run's own transaction (`ctx.tx`) follows the batch that holds its earlier entries; no batch is in flight beside
//   it. Transactions of several runs may be open at once if the store allows it. After a time limit other work goes first.
// pump.P5. Graph nodes that have just started often end at once, so a flush waits for them briefly. Then a step and the node
//   that follows are one commit, and so are many items of a wide step.
// pump.P6. With a remote store, polls for work follow the batch they would have been in, and no batch waits for them.
// pump.P7. No turn of the event loop takes long. A turn resumes some of the runs, and handles payloads up to a size (turn-budget.B1). A
//   batch holds some of the writes, up to a size; one write may exceed it. Code of runs does not continue while what it has
//   produced waits for a batch.

import { invariant, RepriseError, type EpochMs } from "../base/index.ts";
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
import type { PartsOf } from "./worker-parts.ts";
import { countEntries, sizeOf, subjectOf } from "./batched-writes.ts";
import { TurnBudget } from "./turn-budget.ts";

/** pump.P7. How many pending entries make a flush go before further deliveries, and about how many a batch holds. */
const BATCH_ENTRIES = 1_000;
/** pump.P7. The size of pending payloads that does the same, in characters. */
const BATCH_SIZE = 4 * 1024 * 1024;
/** pump.P7. How many submitted writes a batch holds, and their size. */
const BATCH_SUBMITTED = 500;
const SUBMITTED_SIZE = BATCH_SIZE / 4;
/** pump.P7. How many runs one turn resumes, and how many it collects the commands of. */
const TURN_RUNS = 500;
/** pump.P5. How long a flush waits for nodes. */
const NODES_MS = 5;
/** pump.P4. How long transactions may keep batches waiting. */
const TRANSACT_MS = 20;

/** The outcome of a poll. */
export interface Polled<W extends Write> {
  readonly outcome: OutcomeOf<W>;
  /** No other write of this process was in flight at the same time. */
  readonly isAlone: boolean;
}

export interface SubmittedWrite {
  readonly write: Write;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

interface SubmittedPoll extends Omit<SubmittedWrite, "resolve"> {
  readonly resolve: (polled: Polled<Write>) => void;
}

/** The writes of one store transaction. */
interface Batch {
  readonly runs: readonly HotRun[];
  readonly turns: readonly TurnWrite[];
  readonly submitted: readonly SubmittedWrite[];
  /** Turns first. */
  readonly writes: readonly Write[];
}

type UsedParts = PartsOf<"claimer" | "commits" | "events" | "stopper" | "store" | "timers" | "transactions">;

export class Pump {
  readonly #parts: UsedParts;
  readonly turn = new TurnBudget(() => this.wake());
  readonly #store: Store;
  readonly #pipeline: NonNullable<Store["pipeline"]>;
  #submitted: SubmittedWrite[] = [];
  /** pump.P6. Polls to write after the next batch, and those being written. */
  #polls: SubmittedPoll[] = [];
  readonly #pollsInFlight = new Set<Promise<void>>();
  #ready: HotRun[] = [];
  #draining: HotRun[] = [];
  #dirty = new Set<HotRun>();
  #scheduled = false;
  readonly #batchesInFlight = new Set<Batch>();
  /** How many batches, polls and transactions were started so far. */
  #writesStarted = 0;
  /** pump.P4. No other batch may start. */
  #isExclusive = false;
  #stopped = false;
  #isDeliveryHeld = false;
  /** pump.P5 */
  #flushDelayedUntil: EpochMs | undefined;
  #idleWaiters: (() => void)[] = [];
  #flushWaiters: (() => void)[] = [];

  constructor(parts: UsedParts) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#pipeline = parts.store.pipeline ?? { batches: 1, writes: 1, transactions: 1 };
  }

  /** Adds a write to the next batch. */
  submit<W extends Write>(write: W): Promise<OutcomeOf<W>> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) return reject(closedError());
      this.turn.spend(sizeOf(write));
      this.#submitted.push({ write, resolve: resolve as (outcome: Outcome) => void, reject });
      this.wake();
    });
  }

  /** pump.P6 */
  get pollsSeparately(): boolean {
    return this.#store.pollsSeparately === true;
  }

  /** pump.P6. Like `submit`, for writes that poll for work. */
  poll<W extends Write>(write: W): Promise<Polled<W>> {
    if (!this.pollsSeparately) return this.submit(write).then((outcome) => ({ outcome, isAlone: true }));
    return new Promise((resolve, reject) => {
      if (this.#stopped) return reject(closedError());
      this.#polls.push({ write, resolve: resolve as SubmittedPoll["resolve"], reject });
      this.wake();
    });
  }

  /** No batch, poll or transaction is in flight. */
  get isQuiet(): boolean {
    return this.#batchesInFlight.size === 0 && this.#pollsInFlight.size === 0 && !this.#isExclusive;
  }

  markDirty(run: HotRun): void {
    this.turn.spend(run.journal.pending?.takeAddedSize() ?? 0);
    this.#dirty.add(run);
    this.wake();
  }

  markReady(run: HotRun): void {
    if (run.isQueued || this.#isDeliveryHeld) return;
    run.isQueued = true;
    this.#ready.push(run);
    this.wake();
  }

  /** The run's code was resumed: the next tick collects its commands. */
  markRunning(run: HotRun): void {
    if (run.isRunning) return;
    run.isRunning = true;
    this.#draining.push(run);
    this.wake();
  }

  forget(run: HotRun): void {
    this.#dirty.delete(run);
  }

  /** Delivers no more completions to code; pending entries are still committed. */
  stopDeliveries(): void {
    this.#isDeliveryHeld = true;
    this.#ready = [];
  }

  /** Writes nothing more; rejects what was submitted. */
  stop(): void {
    this.#stopped = true;
    for (const { reject } of [...this.#submitted.splice(0), ...this.#polls.splice(0)]) reject(closedError());
    this.#settleIdle();
  }

  get isIdle(): boolean {
    return (
      this.#stopped ||
      (!this.#scheduled &&
        !this.turn.hasWork &&
        this.#batchesInFlight.size === 0 &&
        !this.#isExclusive &&
        this.#pollsInFlight.size === 0 &&
        this.#submitted.length === 0 &&
        this.#polls.length === 0 &&
        this.#ready.length === 0 &&
        this.#draining.length === 0)
    );
  }

  /** Resolves when there is nothing to deliver or to write. */
  idle(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Resolves when everything submitted before this call has been written or rejected. */
  flushed(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushWaiters.push(resolve);
      this.wake();
    });
  }

  wake(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    this.#parts.timers.soon(this.#tick);
  }

  readonly #tick = (): void => {
    this.#scheduled = false;
    if (this.#stopped) return;
    if (this.#isFull()) return this.#flush();
    this.turn.renew();
    const { isLeft, nodesBegan } = this.#collect();
    if (this.#isFull()) this.#flush();
    else if (isLeft || this.turn.hasWork) this.wake();
    else if (this.#ready.length > 0) this.#deliver();
    else if (nodesBegan && this.#mayDelayFlush()) this.wake();
    else this.#flush();
  };

  /** pump.P7. Whether what is pending fills a batch. */
  #isFull(): boolean {
    let entries = 0;
    let size = 0;
    for (const run of this.#dirty) {
      entries += run.pendingWeight;
      size += run.pendingSize;
    }
    return entries >= BATCH_ENTRIES || size >= BATCH_SIZE;
  }

  /** Collects the commands of runs whose code has run. `isLeft`: of some of them; `nodesBegan`: nodes of graphs have started. */
  #collect(): { readonly isLeft: boolean; readonly nodesBegan: boolean } {
    let nodesBegan = false;
    let count = 0;
    const drained = this.#draining;
    this.#draining = [];
    for (const run of drained) {
      if (count === TURN_RUNS || (this.turn.isSpent && count > 0)) break;
      count += 1;
      run.isRunning = false;
      this.#parts.commits.onDrained(run);
      if (run.nodes?.hasStarted !== true) continue;
      run.nodes.hasStarted = false;
      nodesBegan = true;
    }
    // Runs that were resumed meanwhile come after those of this turn.
    const isLeft = count < drained.length;
    if (isLeft) this.#draining = [...drained.slice(count), ...this.#draining];
    return { isLeft, nodesBegan };
  }

  /** pump.P5 */
  #mayDelayFlush(): boolean {
    const now = this.#store.now();
    this.#flushDelayedUntil ??= now + NODES_MS;
    return now < this.#flushDelayedUntil;
  }

  /** pump.P1 */
  #deliver(): void {
    for (const run of this.#ready.splice(0, TURN_RUNS)) {
      run.isQueued = false;
      if (run.isDiscarded || !run.hasDeliverable) continue;
      run.deliverNext();
      this.#draining.push(run);
    }
    this.wake();
  }

  #flush(): void {
    if (!this.#mayStartBatch()) return;
    this.#flushDelayedUntil = undefined;
    this.#parts.claimer.claim();
    const waiters = this.#flushWaiters.splice(0);
    const candidates: HotRun[] = [];
    if (!this.#isDeliveryHeld) for (const run of this.#dirty) if (run.hasTransaction) candidates.push(run);
    this.#isExclusive = waiters.length > 0 || candidates.length > 0;
    const batch = this.#planBatch(waiters.length > 0);
    // pump.P4. Not those whose entries the batch had no place for.
    const transacting = candidates.filter((run) => !this.#dirty.has(run));
    if (batch.writes.length > 0) {
      void this.#writeBatch(batch, waiters, transacting);
      // The second half of the writes.
      if (!this.#isExclusive && this.#dirty.size + this.#submitted.length > 0) this.wake();
      return;
    }
    this.#startPolls(waiters);
    this.#isExclusive = false;
    if (transacting.length > 0) void this.#transact(transacting);
    else this.#settleIdle();
  }

  /** pump.P3, pump.P4 */
  #mayStartBatch(): boolean {
    if (this.#isExclusive) return false;
    if (this.#batchesInFlight.size === 0) return true;
    const { batches, writes } = this.#pipeline;
    if (this.#batchesInFlight.size >= batches || this.#dirty.size + this.#submitted.length < writes) return false;
    if (this.#flushWaiters.length > 0) return false;
    for (const run of this.#dirty) if (run.hasTransaction) return false;
    return true;
  }

  /** pump.P3, pump.P7. Takes pending writes, or half of them when a second batch may start at once; `all`: without a limit. */
  #planBatch(all: boolean): Batch {
    const { batches, writes } = this.#pipeline;
    const isShared = batches > 1 && this.#batchesInFlight.size === 0 && !this.#isExclusive;
    const isHalf = isShared && this.#dirty.size + this.#submitted.length >= 2 * writes;
    const share = isHalf ? 0.5 : 1;
    const runs: HotRun[] = [];
    const turns: TurnWrite[] = [];
    const inFlight = this.#subjectsInFlight();
    let left = Math.ceil(this.#dirty.size * share);
    let [entries, size] = [0, 0];
    for (const run of this.#dirty) {
      if (left-- <= 0 || (!all && (entries >= BATCH_ENTRIES || size >= BATCH_SIZE))) break;
      if (inFlight?.has(run.record.run) === true) continue;
      this.#dirty.delete(run);
      entries += Math.max(1, run.pendingWeight);
      size += run.pendingSize;
      const write = this.#takeWrite(run);
      if (write === undefined) continue;
      runs.push(run);
      turns.push(write);
    }
    const submitted: SubmittedWrite[] = [];
    const later: SubmittedWrite[] = [];
    left = Math.ceil(this.#submitted.length * share);
    if (!all) left = Math.min(left, BATCH_SUBMITTED);
    size = 0;
    for (const one of this.#submitted)
      if (submitted.length < left && (all || size < SUBMITTED_SIZE) && inFlight?.has(subjectOf(one.write)) !== true) {
        submitted.push(one);
        size += sizeOf(one.write);
      } else later.push(one);
    this.#submitted = later;
    const batch = { runs, turns, submitted, writes: [...turns, ...submitted.map(({ write }) => write)] };
    // queue.Q5
    const refill = this.#parts.claimer.refill(batch.writes);
    if (refill === undefined) return batch;
    return { runs, turns, submitted: [...submitted, refill], writes: [...batch.writes, refill.write] };
  }

  /** A run whose write cannot be made is stopped; the other runs are committed. */
  #takeWrite(run: HotRun): TurnWrite | undefined {
    try {
      return run.takeWrite();
    } catch (error) {
      this.#parts.stopper.stopBroken(run, error);
      return undefined;
    }
  }

  /** pump.P3. The runs of the batches in flight. Undefined when all writes are turns: a run has one turn write at a time. */
  #subjectsInFlight(): ReadonlySet<RunNumber | string> | undefined {
    const batches = [...this.#batchesInFlight];
    if (this.#submitted.length === 0 && batches.every(({ submitted }) => submitted.length === 0)) return undefined;
    return new Set(batches.flatMap(subjectsOf));
  }

  async #writeBatch(batch: Batch, waiters: readonly (() => void)[], transacting: readonly HotRun[]): Promise<void> {
    const { runs, turns, submitted, writes } = batch;
    this.#batchesInFlight.add(batch);
    this.#writesStarted += 1;
    invariant(this.#batchesInFlight.size <= this.#pipeline.batches, "no more batches in flight than the store allows");
    invariant(!this.#isExclusive || this.#batchesInFlight.size === 1, "an exclusive batch is the only one in flight");
    let outcomes: readonly Outcome[] | undefined;
    let failure: unknown;
    const startedAt = isObserved() ? this.#store.now() : 0;
    try {
      const answers: readonly Outcome[] = await this.#store.write(writes);
      invariant(answers.length === writes.length, "the store answers every write of a batch");
      outcomes = answers;
    } catch (error) {
      failure = error;
    }
    this.#batchesInFlight.delete(batch);
    this.#isExclusive = false;
    this.#startPolls(waiters);
    if (this.#stopped) return;
    this.wake();
    if (outcomes === undefined) {
      for (const { reject } of submitted) reject(failure);
      return this.#parts.events.failed(writes, failure);
    }
    if (isObserved()) this.#emitCommit(writes, turns, startedAt);
    writes.forEach((write, index) => this.#parts.events.wrote(write, outcomes[index]!));
    runs.forEach((run, index) => this.#parts.events.committed(run, turns[index]!, outcomes[index] as TurnOutcome));
    submitted.forEach(({ resolve }, index) => resolve(outcomes[turns.length + index]!));
    if (transacting.length > 0) await this.#transact(transacting);
  }

  #emitCommit({ length }: readonly Write[], turns: readonly TurnWrite[], startedAt: EpochMs): void {
    const tookMs = startedAt === 0 ? 0 : Math.max(0, this.#store.now() - startedAt);
    emit({ event: "commit", writes: length, entries: countEntries(turns), tookMs });
  }

  /** pump.P6. Resolves `waiters` after all polls. */
  #startPolls(waiters: readonly (() => void)[]): void {
    if (this.#polls.length > 0 && !this.#stopped) {
      const polling = this.#writePolls(this.#polls.splice(0), this.isQuiet).finally(() => {
        this.#pollsInFlight.delete(polling);
        this.#settleIdle();
      });
      this.#pollsInFlight.add(polling);
    }
    if (this.#pollsInFlight.size === 0) for (const resolve of waiters) resolve();
    else if (waiters.length > 0)
      void Promise.all(this.#pollsInFlight).then(() => waiters.forEach((resolve) => resolve()));
  }

  async #writePolls(polls: readonly SubmittedPoll[], startsAlone: boolean): Promise<void> {
    const started = (this.#writesStarted += 1);
    const writes = polls.map(({ write }) => write);
    try {
      const outcomes: readonly Outcome[] = await this.#store.write(writes);
      if (this.#stopped) return;
      writes.forEach((write, index) => this.#parts.events.wrote(write, outcomes[index]!));
      const isAlone = startsAlone && started === this.#writesStarted;
      polls.forEach(({ resolve }, index) => resolve({ outcome: outcomes[index]!, isAlone } as Polled<Write>));
    } catch (error) {
      if (this.#stopped) return;
      for (const { reject } of polls) reject(error);
      this.#parts.events.failed(writes, error);
    }
  }

  /** pump.P4 */
  async #transact(runs: readonly HotRun[]): Promise<void> {
    this.#isExclusive = true;
    this.#writesStarted += 1;
    const left = [...runs];
    const until = this.#store.now() + TRANSACT_MS;
    do {
      const some = left.splice(0, this.#pipeline.transactions);
      await Promise.all(some.map((run) => this.#parts.transactions.next(run)));
    } while (left.length > 0 && !this.#stopped && this.#store.now() < until);
    this.#isExclusive = false;
    if (this.#stopped) return;
    // They go first next time.
    if (left.length > 0) this.#dirty = new Set([...left.filter((run) => !run.isDiscarded), ...this.#dirty]);
    this.wake();
  }

  #settleIdle(): void {
    if (!this.isIdle) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

function closedError(): RepriseError {
  return new RepriseError(
    "ENGINE_CLOSED",
    "The engine was closed before it wrote this to the store. Do it again with an open engine.",
  );
}

function subjectsOf({ runs, submitted }: Batch): readonly (RunNumber | string)[] {
  return [...runs.flatMap(({ record }) => [record.run, record.id]), ...submitted.map(({ write }) => subjectOf(write))];
}
