// HeldRuns: the runs in memory, from the claim of a turn to its release. Turns come in through turn-starts.ts; commits and releases go
// out through turn-commits.ts.
//
// held-runs.R1. A run is in memory at most once. It is held under the token of its last claim, or cached without a token.
// held-runs.R2. Work starts only after the commit that created or claimed it is durable.
// held-runs.R3. After any outcome but `committed` the worker discards the run and releases its turn. It submits the results of
//   finished tasks separately.

import { CancelledError } from "../base/index.ts";
import { emit, isObserved, type InboxRow, type RunNumber } from "../kernel/index.ts";
import type { HotRun } from "./hot-run.ts";
import { LoadingRuns } from "./loading-runs.ts";
import type { PartsOf } from "./worker-parts.ts";
import { RunCache, type Continuation } from "./run-cache.ts";
import { TURN_SIZE } from "./turn-budget.ts";

const DEFAULT_MEMORY = 256 * 1024 * 1024;
/** run-cache.C3. Enough for large batches; a worker with more slots may hold a run for each of them. */
const LEAST_HELD = 1_000;
/** What a run that waits takes besides its payloads, in bytes. Measured: 4,900 after five tasks; the rest is room for more open commands. */
const RUN_MEMORY = 8 * 1024;
/** What a character of a payload takes as a value of the code, in bytes. */
const BYTES_PER_CHARACTER = 2;

type UsedParts = PartsOf<
  | "claimer"
  | "control"
  | "isStopped"
  | "localQueue"
  | "log"
  | "options"
  | "persistentWrites"
  | "pump"
  | "stopper"
  | "store"
  | "tasks"
  | "timers"
  | "unawaited"
>;

export class HeldRuns {
  readonly #parts: UsedParts;
  readonly #runs: RunCache<HotRun>;
  readonly loading = new LoadingRuns();
  /** Counts calls of `evictAll`: a run whose replay started before the last call is released when loaded. */
  epoch = 0;

  constructor(parts: UsedParts) {
    this.#parts = parts;
    this.#runs = new RunCache({
      limit: parts.options.memory ?? DEFAULT_MEMORY,
      maxHeld: Math.max(LEAST_HELD, parts.options.concurrency),
      memoryOf: ({ journal }) => RUN_MEMORY + BYTES_PER_CHARACTER * journal.size,
      continuationOf: (run) => this.#continuationOf(run),
    });
  }

  // ── what is there ──

  /** run-cache.C3. How many more runs the worker may hold. */
  get room(): number {
    return Math.max(0, this.#runs.room - this.loading.size);
  }

  /** Runs that are held or being loaded. */
  get count(): number {
    return this.#runs.heldCount + this.loading.size;
  }

  get isLoading(): boolean {
    return this.loading.size > 0 || this.#parts.unawaited.isBusy;
  }

  /** Resolves when no run is being replayed. */
  async allLoaded(): Promise<void> {
    await Promise.all([this.loading.allLoaded(), this.#parts.unawaited.idle()]);
  }

  find(run: RunNumber): HotRun | undefined {
    return this.#runs.get(run);
  }

  /** Whether this worker will report the end of the run. */
  holds(run: RunNumber): boolean {
    return this.loading.has(run) || this.#runs.get(run)?.token !== undefined;
  }

  /** Whether this worker holds the turn under that token, or is loading the run. */
  holdsToken(run: RunNumber, token: string): boolean {
    return this.loading.has(run) || this.#runs.get(run)?.token === token;
  }

  /** The ids of the runs whose turn this worker holds. */
  heldIds(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { record, token } of this.#runs.held()) if (token !== undefined) ids.add(record.id);
    return ids;
  }

  /** worker.R2. A node runs code, and does not wait for a result that this worker no longer delivers. */
  get areNodesBusy(): boolean {
    return this.#runs.held().some(({ execution }) => execution.nodes?.isBusy === true);
  }

  /** worker.R2. The worker releases each run as soon as none of its functions run here. */
  beginDrain(): void {
    this.#parts.localQueue.giveBackAll();
    for (const run of this.#runs.held()) run.pause();
  }

  // ── holding ──

  hold(run: HotRun): void {
    this.#discard(this.#runs.hold(run));
    this.#parts.pump.markRunning(run);
  }

  /** The commit released the turn: the run stays in memory while there is room. */
  release(run: HotRun): void {
    this.#discard(this.#runs.release(run));
  }

  #discard(evicted: readonly HotRun[]): void {
    for (const run of evicted) run.discard(notHeld);
  }

  #continuationOf({ record, execution }: HotRun): Continuation {
    if (this.#parts.tasks.hasWork(record.run)) return "at_once";
    return execution.waits.awaitsWork ? "soon" : "unknown";
  }

  forget(run: HotRun): void {
    run.discard(notHeld);
    this.#runs.delete(run);
    this.#parts.pump.forget(run);
  }

  /** held-runs.R3, for a run that is ahead of the store. */
  evict(run: HotRun): void {
    if (!run.isDiscarded) this.drop(run, true);
  }

  evictAll(): void {
    this.epoch += 1;
    for (const run of this.#runs.held()) this.drop(run, false);
  }

  /** held-runs.R3. `givesBack`: the token is valid, and the store may hand out the turn at once. */
  drop(run: HotRun, givesBack: boolean): void {
    const { persistentWrites, claimer, options } = this.#parts;
    const { token, record } = run;
    if (isObserved()) emit({ event: "lease.lost", worker: undefined, run: record.id });
    this.releaseMemory(run);
    if (givesBack && token !== undefined) persistentWrites.submit({ write: "return-turn", run: record.run, token });
    claimer.request("turns");
    options.onUnheld(record);
  }

  /** Removes the run from memory and submits its results separately. */
  releaseMemory(run: HotRun): void {
    for (const { fence, arrival } of run.uncommittedResults)
      this.#parts.persistentWrites.submit({ write: "end-item", run: run.record.run, ...fence, arrival });
    this.forget(run);
  }

  /** Forgets cached runs. */
  forgetIdle(): void {
    for (const run of this.#runs.idle()) this.forget(run);
  }

  stop(): void {
    for (const run of this.#runs.clear()) run.discard(() => new CancelledError("The worker has stopped."));
  }

  // ── messages ──

  /** A message arrived: the run reads it if it is held here; otherwise its turn may be due. */
  arrived(run: RunNumber): void {
    this.loading.onArrival(run);
    const hot = this.#runs.get(run);
    if (hot?.token !== undefined) this.loadInbox(hot);
    else this.#parts.claimer.request("turns");
  }

  loadInbox(run: HotRun): void {
    this.#parts.store
      .readInbox(run.record.run, run.read)
      .then((rows) => {
        if (!this.#parts.isStopped && rows.length > 0) this.applyInbox(run, rows);
      })
      .catch((error: unknown) => this.#parts.log.report(error));
  }

  /** A message that cannot be read stops only the run it was sent to. Large ones take several turns (turn-budget.B1). */
  applyInbox(run: HotRun, rows: readonly InboxRow[]): void {
    let count = 0;
    for (let size = 0; count < rows.length && size < TURN_SIZE; count += 1) size += rows[count]!.data.length;
    try {
      run.applyInbox(count < rows.length ? rows.slice(0, count) : rows);
    } catch (error) {
      return this.#parts.stopper.stopBroken(run, error);
    }
    if (count === rows.length) return;
    // A row that the run has received from a later read is skipped.
    this.#parts.timers.soon(() => this.#parts.isStopped || this.applyInbox(run, rows.slice(count)));
  }

  /** Reads what other processes did to the held runs, or to the named ones. */
  async refreshHeld(only?: ReadonlySet<RunNumber>): Promise<void> {
    this.loading.onArrivals(only);
    const held = this.#runs.held();
    await this.#parts.control.refresh(only === undefined ? held : held.filter(({ record }) => only.has(record.run)));
  }
}

const notHeld = (): CancelledError =>
  new CancelledError("This worker no longer holds the run; another worker may run this step again.");
