// SQLite store: the `Store` port on one SQLite file.
//
// sqlite-store.S1. A list of writes is one BEGIN IMMEDIATE … COMMIT on this thread. A worker thread had the same throughput and
//   more latency, also with a 2 ms fsync.
// sqlite-store.S2. When a list fails, its writes are repeated one by one, so that only the write that fails is lost.
// sqlite-store.S3. A poll that finds nothing writes nothing.
// sqlite-store.S4. Polling `data_version` finds the commits of other processes; their notices (file-notifier.ts) only tell when.

import { resolve } from "node:path";
import type { Clock, EpochMs, PayloadCodec, Random, Timers } from "../../base/index.ts";
import type {
  DiskSpace,
  EventSubscription,
  HistoryBreak,
  KeyedRequest,
  KeyReservation,
  InputsRequest,
  MemoKeys,
  NodeInput,
  OnProgress,
  Outcome,
  OutcomeOf,
  Problem,
  Rekeyed,
  DeleteOutcome,
  Expired,
  ExpireRequest,
  PruneOptions,
  RunHolder,
  RunNumber,
  Store,
  StoreInfo,
  SweptRuns,
  TransactOutcome,
  TurnWrite,
  Write,
} from "../../kernel/index.ts";
import type { Rows, RowSession } from "../rows/rows.ts";
import { RowReads } from "../rules/row-reads.ts";
import { OutsideContents } from "../contents/outside-contents.ts";
import type { Threads, ThreadStore } from "../thread-store.ts";
import { apply, idleOutcome } from "../rules/apply.ts";
import { backUp } from "./back-up.ts";
import { describe } from "./describe.ts";
import { FileNotifier } from "./file-notifier.ts";
import { freeSpace } from "./free-space.ts";
import { deleteOneRun } from "../rules/delete-run.ts";
import { expire } from "../rules/expire.ts";
import { noteEnded, setFederated } from "../rules/run-log.ts";
import { deleteOldAnswers, recordAnswer, releaseKey, reserveKey } from "../rules/keyed-answers.ts";
import { clearMemos, openMemoKeys } from "../rules/memo.ts";
import { prune } from "../rules/prune.ts";
import { deleteStartKeys } from "../rules/unused-keys.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { checkStore } from "./check-store.ts";
import { readHolders } from "../rules/run-holders.ts";
import { INDEX, MEMORY } from "./store-file.ts";
import type { Durability, SqliteConnection } from "./sqlite-connection.ts";
import {
  randomWorkerNumber,
  hasNothingToReap,
  reap,
  registerWorker,
  releaseWorker,
  renewLease,
  type Reaped,
} from "../rules/worker-leases.ts";
import { rekeyFile } from "./rekey.ts";
import { isUnchanged } from "./read-only-file.ts";
import { rowSession, threadNumbers } from "./row-session.ts";
import { SqliteSession, type SqliteTx } from "./sqlite-session.ts";
import { isPoll, isWorthRetrying, writeOneByOne } from "../rules/write-one-by-one.ts";
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
  /** Open the file to read: nothing is created, migrated or written, and a write is refused. */
  readonly readOnly?: boolean;
  /** Create the folder of the file if it is missing. */
  readonly mkdir?: boolean;
  /** Encodes and decodes payloads. */
  readonly codec?: PayloadCodec | undefined;
  /** Open the file without the codec its payloads were written with. Payloads can then be neither read nor written. */
  readonly locked?: boolean;
  /** Where large payloads are stored (../contents/content-place.ts). */
  readonly contents?: string | undefined;
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
  const { contents: given, ...others } = options;
  const session = await SqliteSession.open({
    ...others,
    path: options.path === MEMORY ? MEMORY : resolve(options.path),
    durability: options.durability ?? "full",
    migrate: options.readOnly === true ? false : (options.migrate ?? true),
  });
  try {
    await openOutside(session, given);
  } catch (error) {
    await session.close();
    throw error;
  }
  return new SqliteStore(session);
}

/** outside-contents.O1 */
async function openOutside(session: SqliteSession, given: string | undefined): Promise<void> {
  const { connection, options, mirror } = session;
  if (mirror !== undefined) return;
  connection.contents.outside = await OutsideContents.open(rowSession(session), {
    ports: options,
    cipher: () => session.connection.cipher,
    given,
    isReadOnly: options.readOnly === true,
  });
}

const KIND = "sqlite";
const ENTRY_TIME = ["at"] as const;

export class SqliteStore extends RowReads implements Store, ThreadStore {
  readonly isReadOnly: boolean;
  readonly #session: SqliteSession;
  readonly #notifier: FileNotifier;
  #dataVersion: number;
  /** The connection whose files the notifier has. */
  #notifying: SqliteConnection | undefined;

  constructor(session: SqliteSession) {
    super();
    this.#session = session;
    this.#notifier = new FileNotifier(session.options);
    this.isReadOnly = session.options.readOnly === true;
    this.#dataVersion = this.#readDataVersion();
    this.#watchFiles();
  }

  now(): EpochMs {
    return this.#session.clock.now();
  }

  announce(subscriptions: readonly EventSubscription[]): void {
    this.#session.subscriptions = subscriptions.length === 0 ? undefined : subscriptions;
  }

  async write<const W extends readonly Write[]>(writes: W): Promise<{ [K in keyof W]: OutcomeOf<W[K]> }> {
    return (await this.#write(writes)) as { [K in keyof W]: OutcomeOf<W[K]> };
  }

  readonly kind = KIND;

  get mirrorOf(): string | undefined {
    return this.#session.mirror?.name;
  }

  get "~threads"(): Threads {
    return new RowThreads(rowSession(this.#session), threadNumbers);
  }

  async transact(
    call: (db: unknown) => unknown,
    write: (result: unknown) => TurnWrite | undefined,
  ): Promise<TransactOutcome> {
    let turn: TurnWrite | undefined;
    const outcome = await transact(this.#session, call, (result) => (turn = write(result)));
    if (outcome.status === "committed" && turn !== undefined) this.#notifier.committed([turn], [outcome]);
    return outcome;
  }

  async #write(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (writes.length === 0) return [];
    this.#session.refuseMirror("Committing");
    if (writes.every(isPoll)) {
      const idle = await this.#pollWithoutTransaction(writes);
      if (idle !== undefined) return idle;
    }
    const { epoch } = this.#session;
    const commit = (some: readonly Write[]): Promise<readonly Outcome[]> =>
      this.#session.transact("Committing", (tx) => apply(tx, some, epoch !== this.#session.epoch));
    try {
      const outcomes = await commit(writes);
      this.#notifier.committed(writes, outcomes);
      return outcomes;
    } catch (error) {
      if (writes.length === 1 || !isWorthRetrying(error)) throw error;
      // sqlite-store.S2
      return writeOneByOne(writes, async (write) => {
        const outcomes = await commit([write]);
        this.#notifier.committed([write], outcomes);
        return outcomes[0]!;
      });
    }
  }

  protected read<T>(what: string, body: (rows: Rows) => T): Promise<T> {
    return this.#session.read(what, (_, rows) => body(rows));
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
    this.#notifier.worksHere = true;
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

  /** With the highest time of all writers: a lease by a slower clock would expire at once for the others. Also log.L5. */
  #withHighestTime(tx: SqliteTx): SqliteTx {
    this.#session.catchUp();
    this.#session.refreshFederated();
    return { ...tx, now: this.now() };
  }

  async releaseWorker(worker: number): Promise<void> {
    await this.#session.transact("Releasing a worker", (tx) => releaseWorker(tx, worker));
    this.#notifier.released();
  }

  async reap(self: number): Promise<Reaped> {
    this.#session.refuseMirror("Reaping");
    const idle = await this.#session.read("Reaping", (_, rows) => {
      this.#session.catchUp();
      return hasNothingToReap(rows, this.now(), self);
    });
    if (idle) return { workers: 0, turns: 0, items: 0 };
    return this.#session.transact("Reaping", (tx) => reap(tx, self));
  }

  /** joined-inputs.J1 */
  override readInputs(requests: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]> {
    return this.#session.read("Reading inputs", () => this.#session.connection.inputs.read(requests));
  }

  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
    return this.#session.read("Reading who holds runs", (_, rows) =>
      readHolders(rows, runs, (run, seq) => rows.get("journal", [run, seq], ENTRY_TIME)?.at),
    );
  }

  /** sqlite-store.S4 */
  onNotice(listener: () => void): void {
    this.#notifier.onNotice(listener);
    this.#notifying = undefined;
    this.#watchFiles();
  }

  #watchFiles(): void {
    const { connection, options } = this.#session;
    if (connection === this.#notifying) return;
    this.#notifying = connection;
    const hasIndex = connection.files !== undefined && connection.frozen === undefined;
    this.#notifier.open(hasIndex ? options.path + INDEX : undefined);
  }

  pollChanges(): boolean {
    this.#watchFiles();
    const { frozen } = this.#session.connection;
    // The next read opens the file again.
    if (frozen !== undefined) return !isUnchanged(frozen);
    let version: number;
    try {
      version = this.#readDataVersion();
    } catch {
      // Busy or unavailable for a moment: the next poll compares with the same number.
      return false;
    }
    const changed = version !== this.#dataVersion;
    this.#dataVersion = version;
    if (changed) this.#notifier.sawOthers();
    return changed;
  }

  /** Changes when another connection commits. A new connection starts with another number. */
  #readDataVersion(): number {
    const { db, sql } = this.#session.connection;
    return db.isOpen ? (sql.dataVersion.get() as { data_version: number }).data_version : -1;
  }

  async prune(endedBefore: EpochMs, options: PruneOptions = {}): Promise<{ readonly runs: number }> {
    const pruned = await prune(this.#toWrite("Pruning"), endedBefore, options, this.#pause);
    await this.#outside?.sweep(this.now());
    return pruned;
  }

  deleteRun(id: string): Promise<DeleteOutcome> {
    return this.#removing(deleteOneRun(this.#toWrite("Deleting a run"), id, this.#pause));
  }

  forget(id: string): Promise<DeleteOutcome> {
    return this.#removing(deleteOneRun(this.#toWrite("Forgetting a run"), id, this.#pause, true));
  }

  get #outside(): OutsideContents | undefined {
    return this.#session.connection.contents.outside;
  }

  /** outside-contents.O3 */
  async #removing<T>(deleted: Promise<T>): Promise<T> {
    const outcome = await deleted;
    await this.#outside?.removeDeleted();
    return outcome;
  }

  async setFederated(on: boolean): Promise<void> {
    await setFederated(this.#toWrite("Switching federation"), on);
    this.#session.isFederated = on;
  }

  noteEnded(after: RunNumber, limit: number): Promise<SweptRuns> {
    return noteEnded(this.#toWrite("Looking for runs without a record"), after, limit);
  }

  expire(request: ExpireRequest): Promise<Expired> {
    return this.#removing(expire(this.#toWrite("Expiring runs"), request, this.#pause));
  }

  async openMemoKeys(): Promise<MemoKeys> {
    const cipher = await this.#session.read("Opening the memo", () => this.#session.connection.cipher);
    return openMemoKeys(rowSession(this.#session), cipher, this.#session.options.random);
  }

  clearMemos(keys: readonly string[] | "all"): Promise<number> {
    return clearMemos(rowSession(this.#session), keys);
  }

  async reserveKey(request: KeyedRequest, holdMs: number): Promise<KeyReservation> {
    return reserveKey(this.#toWrite("Keeping answers"), request, holdMs);
  }

  async recordAnswer(request: KeyedRequest, code: number, answer: string): Promise<void> {
    await recordAnswer(this.#toWrite("Keeping answers"), request, code, answer);
  }

  async releaseKey(request: KeyedRequest, forget: boolean): Promise<void> {
    await releaseKey(this.#toWrite("Keeping answers"), request, forget);
  }

  async deleteOldAnswers(): Promise<number> {
    return deleteOldAnswers(this.#toWrite("Keeping answers"));
  }

  deleteUnusedKeys(definition: string): Promise<void> {
    return deleteStartKeys(this.#toWrite("Deleting start keys"), definition, this.#pause);
  }

  /** For work that first looks whether there is anything to do. */
  #toWrite(what: string): RowSession {
    this.#session.refuseMirror(what);
    return rowSession(this.#session);
  }

  readonly #pause = (): Promise<void> => yieldToEventLoop(this.#session.options);

  backup(path: string, onProgress?: OnProgress): Promise<void> {
    return backUp(this.#session, path, onProgress);
  }

  rekey(onProgress?: (done: number, total: number) => void): Promise<Rekeyed> {
    this.#session.refuseMirror("Rekeying");
    return rekeyFile(this.#session, onProgress, () => this.#outside?.rekey());
  }

  readDiskSpace(): Promise<DiskSpace | undefined> {
    return freeSpace(this.#session.options.path);
  }

  info(): Promise<StoreInfo> {
    return describe(this.#session);
  }

  async check(onProgress?: OnProgress): Promise<readonly Problem[]> {
    const problems = await checkStore(this.#session, onProgress);
    return [...problems, ...((await this.#outside?.check(this.now())) ?? [])];
  }

  async close(): Promise<void> {
    await this.#outside?.close();
    this.#notifier.close();
    await this.#session.close();
  }
}
