// RemoteStore: the `Store` port on a database behind a network. The rules (../rules) define what each write does; a `Backend`
// contains what is specific to a database.
//
// remote-store.S1. A list of writes is one transaction, possibly shared with other lists (batches.ts); claims have their own.
// remote-store.S2. A call whose connection breaks is repeated where that is safe; an unknown commit is resolved
//   (commit-resolver.ts, rules.A8).
// remote-store.S3. Heartbeats have their own connection.

import type { EpochMs } from "../../base/index.ts";
import type {
  HistoryBreak,
  KeyedRequest,
  KeyReservation,
  ChangeNotice,
  DeleteOutcome,
  EventSubscription,
  Expired,
  ExpireRequest,
  MemoKeys,
  OnProgress,
  OutcomeOf,
  Problem,
  PruneOptions,
  Rekeyed,
  RunHolder,
  RunNumber,
  Store,
  StoreInfo,
  SweptRuns,
  TransactOutcome,
  TurnWrite,
  Write,
} from "../../kernel/index.ts";
import {
  randomWorkerNumber,
  hasNothingToReap,
  reap,
  registerWorker,
  releaseWorker,
  renewLease,
  type Reaped,
} from "../rules/worker-leases.ts";
import type { Threads, ThreadStore } from "../thread-store.ts";
import type { Rows } from "../rows/rows.ts";
import type { Tx } from "../rules/transaction.ts";
import { RowReads } from "../rules/row-reads.ts";
import type { Backend, BackendUse } from "./backend.ts";
import { describe } from "./describe.ts";
import { readHolders } from "../rules/run-holders.ts";
import { deleteOneRun } from "../rules/delete-run.ts";
import { expire } from "../rules/expire.ts";
import { isFederated, noteEnded, setFederated } from "../rules/run-log.ts";
import { deleteOldAnswers, recordAnswer, releaseKey, reserveKey } from "../rules/keyed-answers.ts";
import { clearMemos, openMemoKeys } from "../rules/memo.ts";
import { prune } from "../rules/prune.ts";
import { deleteStartKeys } from "../rules/unused-keys.ts";
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

/** What a backend has to know about the options. Reading does not depend on durability. */
export function openedFor({ durability, migrate = true, readOnly = false }: RemoteStoreOptions): BackendUse {
  return readOnly ? { durability: "relaxed", migrate: false, readOnly } : { durability, migrate, readOnly };
}

/** Opens a store on a backend; closing the store closes both. */
export async function openRemoteStore(backend: Backend, options: RemoteStoreOptions): Promise<RemoteStore> {
  return new RemoteStore(await RemoteSession.open(backend, options));
}

export class RemoteStore extends RowReads implements Store, ThreadStore {
  readonly kind: string;
  readonly isReadOnly: boolean;
  readonly pollsSeparately = true;
  readonly pipeline: NonNullable<Store["pipeline"]>;
  readonly #session: RemoteSession;
  readonly #threads: Threads;

  constructor(session: RemoteSession) {
    super();
    this.#session = session;
    this.kind = session.backend.kind;
    this.isReadOnly = session.options.readOnly === true;
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

  announce(subscriptions: readonly EventSubscription[]): void {
    this.#session.cache.subscriptions = subscriptions.length === 0 ? undefined : subscriptions;
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
      const isNew = await this.#beat("Registering a worker", (tx) => registerWorker(tx, worker, name, leaseMs, about));
      if (!isNew) continue;
      session.cache.addWorker(worker);
      return worker;
    }
  }

  async renewLease(worker: number, leaseMs: number, doing?: string): Promise<boolean> {
    const session = this.#session;
    await session.catchUp();
    const isThere = await this.#beat("Renewing a lease", (tx) => renewLease(tx, worker, leaseMs, doing));
    if (!isThere) session.cache.dropWorker(worker);
    return isThere;
  }

  /** With log.L5, in the same round trip. */
  async #beat(what: string, body: (tx: Tx) => boolean): Promise<boolean> {
    const work = rulesWork(what, (tx) => ({ isFederated: isFederated(tx.rows), result: body(tx) }));
    const { result, isFederated: isOn } = await this.#session.runner.run({ ...work, use: "heartbeat" });
    this.#session.cache.isFederated = isOn;
    return result;
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

  protected read<T>(what: string, body: (rows: Rows) => T): Promise<T> {
    return this.#session.reader.withRows(what, body);
  }

  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
    return this.#session.reader.withRows("Reading who holds runs", (rows) =>
      readHolders(rows, runs, (run, seq) => rows.most("journal", [run, seq], "at")),
    );
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

  // ── maintenance ──

  async prune(endedBefore: EpochMs, options: PruneOptions = {}): Promise<{ readonly runs: number }> {
    const pruned = await prune(rowSession(this.#session), endedBefore, options);
    await this.#session.outside?.sweep(this.now());
    return pruned;
  }

  deleteRun(id: string): Promise<DeleteOutcome> {
    return this.#removing(deleteOneRun(rowSession(this.#session), id));
  }

  forget(id: string): Promise<DeleteOutcome> {
    return this.#removing(deleteOneRun(rowSession(this.#session), id, undefined, true));
  }

  /** outside-contents.O3 */
  async #removing<T>(deleted: Promise<T>): Promise<T> {
    const outcome = await deleted;
    await this.#session.outside?.removeDeleted();
    return outcome;
  }

  async setFederated(on: boolean): Promise<void> {
    await setFederated(rowSession(this.#session), on);
    this.#session.cache.isFederated = on;
  }

  noteEnded(after: RunNumber, limit: number): Promise<SweptRuns> {
    return noteEnded(rowSession(this.#session), after, limit);
  }

  expire(request: ExpireRequest): Promise<Expired> {
    return this.#removing(expire(rowSession(this.#session), request));
  }

  openMemoKeys(): Promise<MemoKeys> {
    const session = this.#session;
    return openMemoKeys(rowSession(session), session.cipher, session.options.random);
  }

  clearMemos(keys: readonly string[] | "all"): Promise<number> {
    return clearMemos(rowSession(this.#session), keys);
  }

  async reserveKey(request: KeyedRequest, holdMs: number): Promise<KeyReservation> {
    return reserveKey(rowSession(this.#session), request, holdMs);
  }

  async recordAnswer(request: KeyedRequest, code: number, answer: string): Promise<void> {
    await recordAnswer(rowSession(this.#session), request, code, answer);
  }

  async releaseKey(request: KeyedRequest, forget: boolean): Promise<void> {
    await releaseKey(rowSession(this.#session), request, forget);
  }

  async deleteOldAnswers(): Promise<number> {
    return deleteOldAnswers(rowSession(this.#session));
  }

  deleteUnusedKeys(definition: string): Promise<void> {
    return deleteStartKeys(rowSession(this.#session), definition);
  }

  backup(path: string, onProgress?: OnProgress): Promise<void> {
    return backUp(this.#session.pool, this.#session.options, path, onProgress);
  }

  rekey(onProgress?: OnProgress): Promise<Rekeyed> {
    return rekey(rowSession(this.#session), this.#session.cipher, onProgress, () => this.#session.outside?.rekey());
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
