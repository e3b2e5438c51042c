// SQLite store: the `Store` port on one SQLite file.
//
// sqlite-store.S1. A list of writes is one BEGIN IMMEDIATE … COMMIT on this thread. A worker thread had the same throughput and
//   more latency, also with a 2 ms fsync.
// sqlite-store.S2. When a list fails, its writes are repeated one by one, so that only the write that fails is lost.
// sqlite-store.S3. A poll that finds nothing writes nothing.

import { resolve } from "node:path";
import type { Clock, EpochMs, PayloadCodec, Random, Timers } from "../../base/index.ts";
import type {
  Backlog,
  Chunk,
  DueSchedules,
  Entry,
  HeldWork,
  HistoryBreak,
  HistoryEvent,
  InboxRow,
  InputsRequest,
  NewCheckpoint,
  NodeInput,
  OnProgress,
  Outcome,
  OutcomeOf,
  Problem,
  Rekeyed,
  PruneOptions,
  QueueState,
  Readiness,
  RunFilter,
  RunHolder,
  RunNumber,
  RunProgress,
  RunRecord,
  ScheduleRecord,
  Store,
  StoreInfo,
  TransactOutcome,
  TurnWrite,
  ItemInfo,
  VersionCount,
  WorkerInfo,
  Write,
} from "../../kernel/index.ts";
import type { Threads, ThreadStore } from "../thread-store.ts";
import { apply, idleOutcome } from "../rules/apply.ts";
import { listQueues, readBacklog } from "../rules/backlog.ts";
import { backUp } from "./back-up.ts";
import { describe } from "./describe.ts";
import { prune } from "../rules/prune.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { checkStore } from "./check-store.ts";
import { readReadiness } from "../rules/flow-reads.ts";
import { findCheckpoint, findLabeledCheckpoint, readCheckpoints } from "../rules/checkpoints.ts";
import { readHistory, readHolders } from "../rules/run-holders.ts";
import { listRuns } from "../rules/list-runs.ts";
import { MEMORY } from "./store-file.ts";
import type { Durability } from "./sqlite-connection.ts";
import {
  countVersions,
  findRun,
  readInbox,
  readItems,
  readItemTokens,
  readJournal,
  readProgress,
  readSteps,
} from "../rules/read.ts";
import {
  randomWorkerNumber,
  hasNothingToReap,
  listWorkers,
  readHeld,
  reap,
  registerWorker,
  releaseWorker,
  renewLease,
  type Reaped,
} from "../rules/worker-leases.ts";
import { rekeyFile } from "./rekey.ts";
import { findDueSchedules, findSchedule, listSchedules } from "../rules/schedules.ts";
import { rowSession, threadNumbers } from "./row-session.ts";
import { SqliteSession, type SqliteTx } from "./sqlite-session.ts";
import { isPoll, isWorthRetrying, writeOneByOne } from "../rules/write-one-by-one.ts";
import { readEmitted, readStream } from "../rules/streams.ts";
import { RowThreads } from "../rules/threads.ts";
import { transact } from "./user-transaction.ts";

export interface SqliteStoreOptions {
  /** A file, or ":memory:" for a store in memory. */
  readonly path: string;
  /** "relaxed" may lose the last commits in a power failure, never in a crash of the process. */
  readonly durability?: Durability;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** False: refuse a file with an older schema instead of migrating it. */
  readonly migrate?: boolean;
  /** Encodes and decodes payloads. */
  readonly codec?: PayloadCodec | undefined;
  /** Open the file without the codec its payloads were written with. Payloads can then be neither read nor written. */
  readonly locked?: boolean;
}

/**
 * Opens a store in one SQLite file, and creates the file if it does not exist.
 *
 * @example
 * ```ts
 * const store = await openSqliteStore({ path: "shop.db", ...system });
 * ```
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const session = await SqliteSession.open({
    ...options,
    path: options.path === MEMORY ? MEMORY : resolve(options.path),
    durability: options.durability ?? "full",
    migrate: options.migrate ?? true,
  });
  return new SqliteStore(session);
}

const EVERYTHING = Number.MAX_SAFE_INTEGER;
const KIND = "sqlite";
const ENTRY_TIME = ["at"] as const;

export class SqliteStore implements Store, ThreadStore {
  readonly #session: SqliteSession;
  #dataVersion: number;

  constructor(session: SqliteSession) {
    this.#session = session;
    this.#dataVersion = this.#readDataVersion();
  }

  now(): EpochMs {
    return this.#session.clock.now();
  }

  async write<const W extends readonly Write[]>(writes: W): Promise<{ [K in keyof W]: OutcomeOf<W[K]> }> {
    return (await this.#write(writes)) as { [K in keyof W]: OutcomeOf<W[K]> };
  }

  readonly kind = KIND;

  get "~threads"(): Threads {
    return new RowThreads(rowSession(this.#session), threadNumbers);
  }

  transact(
    call: (db: unknown) => unknown,
    write: (result: unknown) => TurnWrite | undefined,
  ): Promise<TransactOutcome> {
    return transact(this.#session, call, write);
  }

  async #write(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (writes.length === 0) return [];
    if (writes.every(isPoll)) {
      const idle = await this.#pollWithoutTransaction(writes);
      if (idle !== undefined) return idle;
    }
    const { epoch } = this.#session;
    const commit = (some: readonly Write[]): Promise<readonly Outcome[]> =>
      this.#session.transact("Committing", (tx) => apply(tx, some, epoch !== this.#session.epoch));
    try {
      return await commit(writes);
    } catch (error) {
      if (writes.length === 1 || !isWorthRetrying(error)) throw error;
      // sqlite-store.S2
      return writeOneByOne(writes, async (write) => (await commit([write]))[0]!);
    }
  }

  checkHistory(): Promise<void> {
    return this.#session.checkHistory();
  }

  onHistoryBreak(listener: (change: HistoryBreak) => void): void {
    this.#session.onBreak(listener);
  }

  /** sqlite-store.S3 */
  #pollWithoutTransaction(polls: readonly Write[]): Promise<readonly Outcome[] | undefined> {
    return this.#session.read("Polling", (_sql, rows) => {
      const now = this.now();
      const outcomes = polls.map((poll) => idleOutcome(rows, now, poll));
      return outcomes.every((outcome) => outcome !== undefined) ? outcomes : undefined;
    });
  }

  registerWorker(name: string, leaseMs: number, about?: string): Promise<number> {
    return this.#session.transact("Registering a worker", (tx) => {
      for (;;) {
        const worker = randomWorkerNumber(this.#session.options.random);
        if (registerWorker(this.#withHighestTime(tx), worker, name, leaseMs, about)) return worker;
      }
    });
  }

  renewLease(worker: number, leaseMs: number, doing?: string): Promise<boolean> {
    return this.#session.transact("Renewing a lease", (tx) =>
      renewLease(this.#withHighestTime(tx), worker, leaseMs, doing),
    );
  }

  listWorkers(): Promise<readonly WorkerInfo[]> {
    return this.#session.read("Listing workers", (_, rows) => listWorkers(rows));
  }

  /** With the highest time of all writers: a lease by a slower clock would expire at once for the others. */
  #withHighestTime(tx: SqliteTx): SqliteTx {
    this.#session.catchUp();
    return { ...tx, now: this.now() };
  }

  readHeld(worker: number): Promise<HeldWork> {
    return this.#session.read("Reading the leases of a worker", (_, rows) => readHeld(rows, worker));
  }

  releaseWorker(worker: number): Promise<void> {
    return this.#session.transact("Releasing a worker", (tx) => releaseWorker(tx, worker));
  }

  async reap(self: number): Promise<Reaped> {
    const idle = await this.#session.read("Reaping", (_, rows) => {
      this.#session.catchUp();
      return hasNothingToReap(rows, this.now(), self);
    });
    if (idle) return { workers: 0, turns: 0, items: 0 };
    return this.#session.transact("Reaping", (tx) => reap(tx, self));
  }

  findRun(id: string, generation?: number): Promise<RunRecord | undefined> {
    return this.#session.read("Finding a run", (_, rows) => findRun(rows, id, generation));
  }

  countVersions(): Promise<readonly VersionCount[]> {
    return this.#session.read("Counting versions", (_, rows) => countVersions(rows));
  }

  listRuns(filter: RunFilter): Promise<readonly RunRecord[]> {
    return this.#session.read("Listing runs", (_, rows) => listRuns(rows, filter));
  }

  readJournal(run: RunNumber, after: number, limit?: number): Promise<readonly Entry[]> {
    return this.#session.read("Reading a journal", (_, rows) => readJournal(rows, run, after, limit));
  }

  readCheckpoints(run: RunNumber, after: number, limit?: number): Promise<readonly NewCheckpoint[]> {
    return this.#session.read("Reading checkpoints", (_, rows) => readCheckpoints(rows, run, after, limit));
  }

  findCheckpoint(run: RunNumber, step: number, whole: boolean): Promise<NewCheckpoint | undefined> {
    return this.#session.read("Reading a checkpoint", (_, rows) => findCheckpoint(rows, run, step, whole));
  }

  findLabeledCheckpoint(run: RunNumber, label: string, step: number): Promise<NewCheckpoint | undefined> {
    return this.#session.read("Reading a checkpoint", (_, rows) => findLabeledCheckpoint(rows, run, label, step));
  }

  readSteps(run: RunNumber, after: number, upTo: number, limit?: number): Promise<readonly Entry[]> {
    return this.#session.read("Reading steps", (_, rows) => readSteps(rows, run, after, upTo, limit));
  }

  readInbox(run: RunNumber, after: number): Promise<readonly InboxRow[]> {
    return this.#session.read("Reading an inbox", (_, rows) => readInbox(rows, run, after));
  }

  readStream(run: RunNumber, stream: string, after: number, limit: number): Promise<readonly Chunk[]> {
    return this.#session.read("Reading a stream", (_, rows) => readStream(rows, run, stream, after, limit));
  }

  readEmitted(run: RunNumber): Promise<ReadonlyMap<string, number>> {
    return this.#session.read("Reading a run's streams", (_, rows) => readEmitted(rows, run));
  }

  readInputs(requests: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]> {
    return this.#session.read("Reading inputs", () => this.#session.connection.inputs.read(requests));
  }

  readReadiness(run: RunNumber): Promise<readonly Readiness[]> {
    return this.#session.read("Reading readiness", (_, rows) => readReadiness(rows, run));
  }

  readProgress(runs: readonly RunNumber[]): Promise<readonly RunProgress[]> {
    return this.#session.read("Reading the progress of runs", (_, rows) => readProgress(rows, runs));
  }

  readItemTokens(
    items: readonly { readonly run: RunNumber; readonly item: string }[],
  ): Promise<readonly (string | undefined)[]> {
    return this.#session.read("Reading items", (_, rows) => readItemTokens(rows, items));
  }

  readItems(run: RunNumber, items: readonly string[]): Promise<readonly (ItemInfo | undefined)[]> {
    return this.#session.read("Reading items", (_, rows) => readItems(rows, run, items));
  }

  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
    return this.#session.read("Reading who holds runs", (_, rows) =>
      readHolders(rows, runs, (run, seq) => rows.get("journal", [run, seq], ENTRY_TIME)?.at),
    );
  }

  readHistory(): Promise<readonly HistoryEvent[]> {
    return this.#session.read("Reading the store's history", (_, rows) => readHistory(rows));
  }

  listQueues(upTo = EVERYTHING): Promise<readonly QueueState[]> {
    return this.#session.read("Listing queues", (_sql, rows) => listQueues(rows, upTo));
  }

  readBacklog(upTo = EVERYTHING): Promise<readonly Backlog[]> {
    return this.#session.read("Reading the backlog", (_sql, rows) => readBacklog(rows, upTo));
  }

  pollChanges(): boolean {
    let version: number;
    try {
      version = this.#readDataVersion();
    } catch {
      // Busy or unavailable for a moment: the next poll compares with the same number.
      return false;
    }
    const changed = version !== this.#dataVersion;
    this.#dataVersion = version;
    return changed;
  }

  /** Changes when another connection commits. A new connection starts with another number. */
  #readDataVersion(): number {
    const { db, sql } = this.#session.connection;
    return db.isOpen ? (sql.dataVersion.get() as { data_version: number }).data_version : -1;
  }

  findSchedule(name: string): Promise<ScheduleRecord | undefined> {
    return this.#session.read("Finding a schedule", (_, rows) => findSchedule(rows, name));
  }

  listSchedules(after: string, limit: number): Promise<readonly ScheduleRecord[]> {
    return this.#session.read("Listing schedules", (_, rows) => listSchedules(rows, after, limit));
  }

  dueSchedules(definitions: readonly string[], limit: number): Promise<DueSchedules> {
    return this.#session.read("Reading due schedules", (_, rows) =>
      findDueSchedules(rows, this.now(), definitions, limit),
    );
  }

  prune(endedBefore: EpochMs, options: PruneOptions = {}): Promise<{ readonly runs: number }> {
    return prune(rowSession(this.#session), endedBefore, options, () => yieldToEventLoop(this.#session.options));
  }

  backup(path: string, onProgress?: OnProgress): Promise<void> {
    return backUp(this.#session, path, onProgress);
  }

  rekey(onProgress?: (done: number, total: number) => void): Promise<Rekeyed> {
    return rekeyFile(this.#session, onProgress);
  }

  info(): Promise<StoreInfo> {
    return describe(this.#session);
  }

  check(onProgress?: OnProgress): Promise<readonly Problem[]> {
    return checkStore(this.#session, onProgress);
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}
