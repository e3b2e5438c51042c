// RemoteStore: the `Store` port on a database behind a network. The rules (../rules) define what each write does; a `Backend`
// contains what is specific to a database.
//
// remote-store.S1. A list of writes is one transaction, possibly shared with other lists (batches.ts); claims have their own.
// remote-store.S2. A call whose connection breaks is repeated where that is safe; an unknown commit is resolved
//   (commit-resolver.ts, rules.A8).
// remote-store.S3. Heartbeats have their own connection.

import type { EpochMs } from "../../base/index.ts";
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
  ItemInfo,
  NewCheckpoint,
  ChangeNotice,
  NodeInput,
  OnProgress,
  OutcomeOf,
  Problem,
  PruneOptions,
  QueueState,
  Readiness,
  Rekeyed,
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
  VersionCount,
  WorkerInfo,
  Write,
} from "../../kernel/index.ts";
import { findCheckpoint, findLabeledCheckpoint, readCheckpoints } from "../rules/checkpoints.ts";
import { readInputs, readReadiness } from "../rules/flow-reads.ts";
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
import { findDueSchedules, findSchedule, listSchedules } from "../rules/schedules.ts";
import { readEmitted, readStream } from "../rules/streams.ts";
import type { Threads, ThreadStore } from "../thread-store.ts";
import type { Backend } from "./backend.ts";
import { listQueues, readBacklog } from "../rules/backlog.ts";
import { describe } from "./describe.ts";
import { readHistory, readHolders } from "../rules/run-holders.ts";
import { listRuns } from "../rules/list-runs.ts";
import { prune } from "../rules/prune.ts";
import { rekey } from "../rules/rekey.ts";
import { backUp, check } from "./scratch-copy.ts";
import {
  OVERLAP_FROM,
  RemoteSession,
  USER_CONNECTIONS,
  WRITE_CONNECTIONS,
  type RemoteStoreOptions,
} from "./session.ts";
import { rulesWork } from "./rules-work.ts";
import { rowSession, threadNumbers } from "./row-session.ts";
import { RowThreads } from "../rules/threads.ts";
import { transact } from "./transact.ts";

/** No limit. */
const EVERYTHING = Number.MAX_SAFE_INTEGER;

/** Opens a store on a backend; closing the store closes both. */
export async function openRemoteStore(backend: Backend, options: RemoteStoreOptions): Promise<RemoteStore> {
  return new RemoteStore(await RemoteSession.open(backend, options));
}

export class RemoteStore implements Store, ThreadStore {
  readonly kind: string;
  readonly pollsSeparately = true;
  readonly pipeline: NonNullable<Store["pipeline"]>;
  readonly #session: RemoteSession;
  readonly #threads: Threads;

  constructor(session: RemoteSession) {
    this.#session = session;
    this.kind = session.backend.kind;
    const { writeConnections = WRITE_CONNECTIONS, overlapFrom = OVERLAP_FROM } = session.options;
    this.pipeline = { batches: writeConnections, writes: overlapFrom, transactions: USER_CONNECTIONS };
    this.#threads = new RowThreads(rowSession(session), threadNumbers(session));
  }

  get "~threads"(): Threads {
    return this.#threads;
  }

  now(): EpochMs {
    return this.#session.now();
  }

  async write<const W extends readonly Write[]>(writes: W): Promise<{ [K in keyof W]: OutcomeOf<W[K]> }> {
    this.#session.refuseClosed();
    return (await this.#session.batches.write(writes)) as { [K in keyof W]: OutcomeOf<W[K]> };
  }

  transact(
    call: (db: unknown) => unknown,
    write: (result: unknown) => TurnWrite | undefined,
  ): Promise<TransactOutcome> {
    return transact(this.#session.runner, this.#session.history, call, write);
  }

  // ── workers (remote-store.S3) ──

  async registerWorker(name: string, leaseMs: number, about?: string): Promise<number> {
    const session = this.#session;
    await session.catchUp();
    for (;;) {
      // Outside of the work, which runs more than once.
      const worker = randomWorkerNumber(session.options.random);
      const registering = rulesWork("Registering a worker", (tx) => registerWorker(tx, worker, name, leaseMs, about));
      if (!(await session.runner.run({ ...registering, use: "heartbeat" }))) continue;
      session.cache.addWorker(worker);
      return worker;
    }
  }

  async renewLease(worker: number, leaseMs: number, doing?: string): Promise<boolean> {
    const session = this.#session;
    await session.catchUp();
    const renewing = rulesWork("Renewing a lease", (tx) => renewLease(tx, worker, leaseMs, doing));
    const isThere = await session.runner.run({ ...renewing, use: "heartbeat" });
    if (!isThere) session.cache.dropWorker(worker);
    return isThere;
  }

  listWorkers(): Promise<readonly WorkerInfo[]> {
    return this.#session.reader.withRows("Listing workers", listWorkers);
  }

  readHeld(worker: number): Promise<HeldWork> {
    return this.#session.reader.withRows("Reading the work of a worker", (rows) => readHeld(rows, worker));
  }

  async releaseWorker(worker: number): Promise<void> {
    this.#session.cache.dropWorker(worker);
    await this.#session.runner.run(rulesWork("Releasing a worker", (tx) => releaseWorker(tx, worker)));
  }

  async reap(self: number): Promise<Reaped> {
    const session = this.#session;
    await session.catchUp();
    const now = session.now();
    const isIdle = await session.reader.withRows("Reaping", (rows) => hasNothingToReap(rows, now, self));
    if (isIdle) return { workers: 0, turns: 0, items: 0 };
    return session.runner.run(rulesWork("Reaping", (tx) => reap(tx, self)));
  }

  // ── reads ──

  findRun(id: string, generation?: number): Promise<RunRecord | undefined> {
    return this.#session.reader.withRows("Finding a run", (rows) => findRun(rows, id, generation));
  }

  countVersions(): Promise<readonly VersionCount[]> {
    return this.#session.reader.withRows("Counting versions", countVersions);
  }

  listRuns(filter: RunFilter): Promise<readonly RunRecord[]> {
    return this.#session.reader.withRows("Listing runs", (rows) => listRuns(rows, filter));
  }

  readJournal(run: RunNumber, after: number, limit?: number): Promise<readonly Entry[]> {
    return this.#session.reader.withRows("Reading a journal", (rows) => readJournal(rows, run, after, limit));
  }

  readCheckpoints(run: RunNumber, after: number, limit?: number): Promise<readonly NewCheckpoint[]> {
    return this.#session.reader.withRows("Reading checkpoints", (rows) => readCheckpoints(rows, run, after, limit));
  }

  findCheckpoint(run: RunNumber, step: number, whole: boolean): Promise<NewCheckpoint | undefined> {
    return this.#session.reader.withRows("Reading a checkpoint", (rows) => findCheckpoint(rows, run, step, whole));
  }

  findLabeledCheckpoint(run: RunNumber, label: string, step: number): Promise<NewCheckpoint | undefined> {
    return this.#session.reader.withRows("Reading a checkpoint", (rows) =>
      findLabeledCheckpoint(rows, run, label, step),
    );
  }

  readSteps(run: RunNumber, after: number, upTo: number, limit?: number): Promise<readonly Entry[]> {
    return this.#session.reader.withRows("Reading steps", (rows) => readSteps(rows, run, after, upTo, limit));
  }

  readInbox(run: RunNumber, after: number): Promise<readonly InboxRow[]> {
    return this.#session.reader.withRows("Reading an inbox", (rows) => readInbox(rows, run, after));
  }

  readStream(run: RunNumber, stream: string, after: number, limit: number): Promise<readonly Chunk[]> {
    return this.#session.reader.withRows("Reading a stream", (rows) => readStream(rows, run, stream, after, limit));
  }

  readEmitted(run: RunNumber): Promise<ReadonlyMap<string, number>> {
    return this.#session.reader.withRows("Reading a run's streams", (rows) => readEmitted(rows, run));
  }

  readInputs(requests: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]> {
    return this.#session.reader.withRows("Reading inputs", (rows) => readInputs(rows, requests));
  }

  readReadiness(run: RunNumber): Promise<readonly Readiness[]> {
    return this.#session.reader.withRows("Reading readiness", (rows) => readReadiness(rows, run));
  }

  readProgress(runs: readonly RunNumber[]): Promise<readonly RunProgress[]> {
    return this.#session.reader.withRows("Reading the progress of runs", (rows) => readProgress(rows, runs));
  }

  readItemTokens(
    items: readonly { readonly run: RunNumber; readonly item: string }[],
  ): Promise<readonly (string | undefined)[]> {
    return this.#session.reader.withRows("Reading items", (rows) => readItemTokens(rows, items));
  }

  readItems(run: RunNumber, items: readonly string[]): Promise<readonly (ItemInfo | undefined)[]> {
    return this.#session.reader.withRows("Reading items", (rows) => readItems(rows, run, items));
  }

  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
    return this.#session.reader.withRows("Reading who holds runs", (rows) =>
      readHolders(rows, runs, (run, seq) => rows.most("journal", [run, seq], "at")),
    );
  }

  readHistory(): Promise<readonly HistoryEvent[]> {
    return this.#session.reader.withRows("Reading the store's history", readHistory);
  }

  pollChanges(): boolean {
    return this.#session.notifier.pollChanges();
  }

  takeNotice(): ChangeNotice | undefined {
    return this.#session.notifier.takeNotice();
  }

  onHistoryBreak(listener: (change: HistoryBreak) => void): void {
    this.#session.history.onBreak(listener);
  }

  checkHistory(): Promise<void> {
    return this.#session.control((connection) => this.#session.history.check(connection), "read");
  }

  onNotice(heard: () => void): void {
    this.#session.notifier.onNotice(heard);
  }

  findSchedule(name: string): Promise<ScheduleRecord | undefined> {
    return this.#session.reader.withRows("Finding a schedule", (rows) => findSchedule(rows, name));
  }

  listSchedules(after: string, limit: number): Promise<readonly ScheduleRecord[]> {
    return this.#session.reader.withRows("Listing schedules", (rows) => listSchedules(rows, after, limit));
  }

  dueSchedules(definitions: readonly string[], limit: number): Promise<DueSchedules> {
    const now = this.now();
    return this.#session.reader.withRows("Reading schedules", (rows) =>
      findDueSchedules(rows, now, definitions, limit),
    );
  }

  listQueues(upTo = EVERYTHING): Promise<readonly QueueState[]> {
    return this.#session.reader.withRows("Listing queues", (rows) => listQueues(rows, upTo));
  }

  readBacklog(upTo = EVERYTHING): Promise<readonly Backlog[]> {
    return this.#session.reader.withRows("Reading the backlog", (rows) => readBacklog(rows, upTo));
  }

  // ── maintenance ──

  prune(endedBefore: EpochMs, options: PruneOptions = {}): Promise<{ readonly runs: number }> {
    return prune(rowSession(this.#session), endedBefore, options);
  }

  backup(path: string, onProgress?: OnProgress): Promise<void> {
    return backUp(this.#session.pool, this.#session.options, path, onProgress);
  }

  rekey(onProgress?: OnProgress): Promise<Rekeyed> {
    return rekey(rowSession(this.#session), this.#session.cipher, onProgress);
  }

  async info(): Promise<StoreInfo> {
    const { backend } = this.#session;
    return describe(this.#session, this.kind, await this.#session.control((connection) => backend.info(connection)));
  }

  async check(onProgress?: OnProgress): Promise<readonly Problem[]> {
    const { cipher, pool, options, clock } = this.#session;
    // The hash chain covers the decoded text.
    if (cipher?.isUnlocked === false) cipher.refuse();
    return check(
      pool,
      { ...options, clock: { now: () => clock.now(), monotonic: () => options.clock.monotonic() } },
      onProgress,
    );
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}
