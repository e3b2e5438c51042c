// Store: the port that every database implements.
//
// store.S1. `write` applies a list in one durable transaction, in order, and resolves when it is durable.
// store.S2. The store's clock decides about leases, timers and entries (rules.A5): `now()` never goes backwards.
// store.S3. A worker's lease is one row; renewing it costs the same however much the worker holds.
// store.S4. Taking over from a dead worker makes its turns due and its items ready, and revokes their tokens.
// store.S5. Work that was taken over twice in a row without a commit is a suspect: workers claim it before other work, in groups
//   that shrink with each takeover until it is alone (suspects.ts). After three takeovers alone the store blocks its run, with
//   evidence. So a run that crashes its workers is stopped, and runs that were held beside it are not.
// store.S6. Payloads are stored and returned byte for byte.

import type { EpochMs } from "../base/index.ts";
import type { Backlog } from "./backlog.ts";
import type { NewCheckpoint } from "./checkpoint.ts";
import type { InputsRequest, NodeInput, Readiness } from "./completion.ts";
import type { AttemptRecord } from "./attempts.ts";
import type { InboxRow, OutcomeOf, TurnWrite, Write } from "./commit.ts";
import type { TransactOutcome } from "./database.ts";
import type { VersionCount } from "./generation.ts";
import type { HistoryBreak, HistoryEvent } from "./history.ts";
import type { Entry } from "./journal.ts";
import type { ChangeNotice } from "./change-notice.ts";
import type { EndedRun, LogRow, SweptRuns } from "./log.ts";
import type { KeyedRequest, KeyReservation } from "./keyed-answer.ts";
import type { MemoAnswer, MemoFilter, MemoKeys, MemoPage } from "./memo.ts";
import type { QueueSlot, QueueState } from "./queue.ts";
import type { DeleteOutcome, Expired, ExpireRequest } from "./retention.ts";
import type { RunNumber, RunRecord, RunStatus } from "./run.ts";
import type { EventSubscription } from "./run-event.ts";
import type { BudgetReading } from "./spending.ts";
import type { RunTimes, RunTimesFilter, StatusCounts } from "./run-counts.ts";
import type { PromiseFilter, PromisePage } from "./open-promise.ts";
import type { MessageFence, OutboxInfo } from "./outbox.ts";
import type { DiskSpace, QueueUse, RunWork, SlotUser } from "./run-work.ts";
import type { Chunk } from "./stream.ts";
import type { DueSchedules, ScheduleRecord } from "./schedule.ts";

export interface WorkerInfo {
  readonly worker: number;
  readonly name: string;
  readonly startedAt: EpochMs;
  readonly until: EpochMs;
  /** `WorkerProfile` and `WorkerActivity` as JSON: from its registration, and from its last heartbeat. */
  readonly profile: string | undefined;
  readonly activity: string | undefined;
}

export interface RunFilter {
  readonly definition?: string;
  readonly kind?: RunRecord["kind"];
  readonly statuses?: readonly RunStatus[];
  /** The runs that have all of these. */
  readonly tags?: readonly string[];
  /** At or after, and before. A live run has no end. */
  readonly createdAfter?: EpochMs;
  readonly createdBefore?: EpochMs;
  readonly endedAfter?: EpochMs;
  readonly endedBefore?: EpochMs;
  readonly errorCode?: string;
  /** A part of the id, with the same case. */
  readonly idContains?: string;
  /** The id of the run that started them. */
  readonly parent?: string;
  /** Only runs with a smaller number: for paging, newest first. */
  readonly before?: RunNumber;
  readonly limit: number;
}

/** What a process checks about a run that it holds or waits for. */
export interface RunProgress {
  readonly run: RunNumber;
  readonly id: string;
  readonly status: RunStatus;
  readonly arrivals: number;
  readonly token: string | undefined;
}

/** A run, and after its end its last entry. */
export interface RunEnd {
  readonly record: RunRecord;
  readonly last: Entry | undefined;
}

/** Everything that is leased to a worker. */
export interface HeldWork {
  readonly turns: readonly { readonly run: RunNumber; readonly token: string }[];
  readonly items: readonly {
    readonly run: RunNumber;
    readonly item: string;
    readonly token: string;
    readonly attempt: number;
    readonly slot?: QueueSlot;
  }[];
  readonly messages: readonly (MessageFence & { readonly attempt: number })[];
}

/** The leases of a run, and when it last committed. For people. */
export interface RunHolder {
  readonly run: RunNumber;
  /** The holder of its turn; undefined: none. */
  readonly worker: number | undefined;
  /** The time of its last journal entry; undefined: it has none. */
  readonly committedAt: EpochMs | undefined;
  /** Its leased tasks and nodes, by name of the item: at most `MAX_HELD_ITEMS`. */
  readonly items: readonly { readonly item: string; readonly worker: number }[];
}

/** The limit of `RunHolder.items`. */
export const MAX_HELD_ITEMS = 20;

/** A violated invariant that `check` found. */
export interface Problem {
  /** The invariant, such as `I7 journal gap-free`. */
  readonly invariant: string;
  readonly run: string | undefined;
  readonly seq: number | undefined;
  readonly message: string;
}

export interface StoreInfo {
  readonly kind: string;
  readonly location: string;
  readonly schemaVersion: number;
  readonly durability: "full" | "relaxed";
  readonly bytes: number;
  /** The codecs that wrote payloads, such as `aes-256-gcm 2026-11`; empty: none. */
  readonly codecs: readonly string[];
  readonly runs: Readonly<Partial<Record<RunStatus, number>>>;
  readonly workers: readonly WorkerInfo[];
  readonly outbox: OutboxInfo;
  readonly items: { readonly ready: number; readonly leased: number; readonly delayed: number };
}

/** An item of the queue, for people. */
export interface ItemInfo {
  /** `delayed`: until `availableAt`; `stopped`: until its run is resumed. */
  readonly state: "delayed" | "ready" | "leased" | "stopped";
  /** The current attempt, or the next one; from 0. */
  readonly attempt: number;
  readonly availableAt: EpochMs;
  /** The errors of earlier attempts, encoded. */
  readonly failures: string | undefined;
}

/** The result of `rekey`. */
export interface Rekeyed {
  readonly payloads: number;
  /** Payloads that could not be decoded, and were not changed. */
  readonly unreadable: number;
}

/** Called from time to time during long work; the last call may be less than `total`. */
export type OnProgress = (done: number, total: number) => void;

export interface PruneOptions {
  /** Counts, and removes nothing. */
  readonly dryRun?: boolean;
  readonly onProgress?: OnProgress;
  /** Stops before the next batch, and rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface Store {
  /** The kind of `Database` for `ctx.tx`. */
  readonly kind: string;
  /** The name of the store whose runs this one mirrors: nothing in it moves, and every write is refused. Undefined: no mirror. */
  readonly mirrorOf?: string | undefined;
  /** True: the store was opened to read, and refuses every write. */
  readonly isReadOnly?: boolean;
  /** True: polling costs separate round trips, so a commit must not wait for it. */
  readonly pollsSeparately?: boolean;
  /**
   * For a database behind a network: how many batches may be in flight at once, how large one should be, and how many user
   * transactions may be open at once.
   */
  readonly pipeline?: { readonly batches: number; readonly writes: number; readonly transactions: number };

  // time
  now(): EpochMs;

  /** run-event.E1. From now on, the commits of this process write these events to the outbox. */
  announce(subscriptions: readonly EventSubscription[]): void;

  // the one way to change a run
  write<const W extends readonly Write[]>(writes: W): Promise<{ [K in keyof W]: OutcomeOf<W[K]> }>;

  /**
   * database.U1 to database.U3. Calls `call` with the user's handle on the database, then commits what `write` returns for its
   * result, in one transaction. With a synchronous handle, the function must be synchronous. Both are called again if the first
   * COMMIT did not take effect.
   */
  transact(call: (db: unknown) => unknown, write: (result: unknown) => TurnWrite | undefined): Promise<TransactOutcome>;

  // workers
  /** Adds a lease row and returns its number, which is never reused. */
  registerWorker(name: string, leaseMs: number, profile?: string): Promise<number>;
  /** False: the lease is gone, and everything held under it is lost. `activity` replaces the last one. */
  renewLease(worker: number, leaseMs: number, activity?: string): Promise<boolean>;
  /** By number, including workers whose lease has expired. The cost does not depend on the number of runs. */
  listWorkers(): Promise<readonly WorkerInfo[]>;
  /** Everything that is leased to a worker. */
  readHeld(worker: number): Promise<HeldWork>;
  /** Releases everything that the worker holds. */
  releaseWorker(worker: number): Promise<void>;
  /** store.S4. Takes over from workers whose lease has expired, except `self`; removes leftovers of ended runs. */
  reap(self: number): Promise<{ readonly workers: number; readonly turns: number; readonly items: number }>;

  // nodes of flows
  /** rules.F7. In one query; for each request by target, edge and index. */
  readInputs(requests: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]>;
  /** Nodes with at least one arrival, by name. */
  readReadiness(run: RunNumber): Promise<readonly Readiness[]>;

  // reading
  /** The newest generation, or the given one. */
  findRun(id: string, generation?: number): Promise<RunRecord | undefined>;
  /** Every definition version that has live runs. */
  countVersions(): Promise<readonly VersionCount[]>;
  listRuns(filter: RunFilter): Promise<readonly RunRecord[]>;
  /** Runs by status, of all definitions or of one. Counts stop at `upTo`, and so does the cost. For people. */
  countStatuses(upTo: number, definition?: string): Promise<StatusCounts>;
  /** When runs without a parent were created and ended, the last ones first. For people. */
  readRunTimes(filter: RunTimesFilter): Promise<readonly RunTimes[]>;
  /** The budget with this number, and what waits for it; undefined: there is none. */
  readBudget(budget: RunNumber): Promise<BudgetReading | undefined>;
  /** A page of the open promises of live runs, by run, then by command. */
  listPromises(filter: PromiseFilter): Promise<PromisePage>;
  readJournal(run: RunNumber, after: number, limit?: number): Promise<readonly Entry[]>;
  /** Of a graph, by step, without states. */
  readCheckpoints(run: RunNumber, after: number, limit?: number): Promise<readonly NewCheckpoint[]>;
  /** The newest one up to a step; with `whole`, the newest with a snapshot. */
  findCheckpoint(run: RunNumber, step: number, whole: boolean): Promise<NewCheckpoint | undefined>;
  /** The newest one with this label up to a step. */
  findLabeledCheckpoint(run: RunNumber, label: string, step: number): Promise<NewCheckpoint | undefined>;
  /** The entries of the steps after one, up to another, in order. Reads nothing else of the journal. */
  readSteps(run: RunNumber, after: number, upTo: number, limit?: number): Promise<readonly Entry[]>;
  /** Executions that ended without an entry, in order of time; with `step`, only those of it. */
  readAttempts(run: RunNumber, step?: string): Promise<readonly AttemptRecord[]>;
  readInbox(run: RunNumber, after: number): Promise<readonly InboxRow[]>;
  /** Chunks of a stream after an offset, of all generations of the run. */
  readStream(run: RunNumber, stream: string, after: number, limit: number): Promise<readonly Chunk[]>;
  /** stream.Q2. How many chunks the code of this generation emitted, by stream. */
  readEmitted(run: RunNumber): Promise<ReadonlyMap<string, number>>;
  readProgress(runs: readonly RunNumber[]): Promise<readonly RunProgress[]>;
  /** A run with its last entry, which is read only if the run has ended; undefined: no such run. In one round trip. */
  readEnd(run: RunNumber): Promise<RunEnd | undefined>;
  /** The current tokens of these items, in order; undefined: the item is gone or not leased. */
  readItemTokens(
    items: readonly { readonly run: RunNumber; readonly item: string }[],
  ): Promise<readonly (string | undefined)[]>;
  /** The state of these items of a run, in order; undefined: not in the queue. For people. */
  readItems(run: RunNumber, items: readonly string[]): Promise<readonly (ItemInfo | undefined)[]>;
  /** The leases of these runs, in order; skips runs that do not exist. */
  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]>;
  /** The open work of a run; undefined: no such run. For people. */
  readRunWork(run: RunNumber): Promise<RunWork | undefined>;
  /** The number of its children, also ended ones; counting stops at `MAX_COUNTED`. */
  countChildren(run: RunNumber): Promise<number>;
  /** How much of a queue's limits one kind of work uses; undefined: the queue was never declared. For people. */
  readQueueUse(kind: SlotUser, queue: string, key?: string): Promise<QueueUse | undefined>;
  /** The space that is left for the store's file, where this process can tell. For people. */
  readDiskSpace?(): Promise<DiskSpace | undefined>;
  /** The events of the store as a whole, newest first. */
  readHistory(): Promise<readonly HistoryEvent[]>;
  /** Whether another process wrote since the last call; may return true too often, never too rarely. */
  pollChanges(): boolean;
  /** After `pollChanges`: the notices that arrived. Undefined: anything may have changed. */
  takeNotice?(): ChangeNotice | undefined;
  /**
   * Calls the listener when the store detects a break in the history of the database. Everything read or held before is invalid;
   * turns in flight get the outcome `lease_lost`.
   */
  onHistoryBreak?(listener: (change: HistoryBreak) => void): void;
  /** Checks whether history went back, for a process that only waits; every commit checks it anyway. */
  checkHistory?(): Promise<void>;
  /** Calls the listener when a notice arrives. */
  onNotice?(listener: () => void): void;

  // memo of pure steps
  /** What the memo says under these keys, in order; undefined: nothing. In one query. */
  readMemos(keys: readonly string[]): Promise<readonly (MemoAnswer | undefined)[]>;
  /** memo.M5. Creates the secret of a store with a codec, if it has none. */
  openMemoKeys(): Promise<MemoKeys>;
  /** A page of the memo, by key. For people. */
  listMemos(filter: MemoFilter): Promise<MemoPage>;
  /** Deletes the rows of these keys, or of all; returns how many. */
  clearMemos(keys: readonly string[] | "all"): Promise<number>;

  // the log of a federated store
  /** Whether the ends of runs are noted for the log. */
  isFederated(): Promise<boolean>;
  /** log.L5. Switching it on or off touches no run. */
  setFederated(on: boolean): Promise<void>;
  /** Records after a number. */
  readLog(after: number, limit: number): Promise<readonly LogRow[]>;
  /** The number of records in the log. */
  logSize(): Promise<number>;
  /** Noted runs, in the order of their ends. */
  listEnded(limit: number): Promise<readonly EndedRun[]>;
  /** log.L5. Notes the ended runs without a record among the `limit` runs after a number. */
  noteEnded(after: RunNumber, limit: number): Promise<SweptRuns>;
  /** The rows of these runs, in order; undefined: no such run. */
  readRuns(runs: readonly RunNumber[]): Promise<readonly (RunRecord | undefined)[]>;

  // schedules
  findSchedule(name: string): Promise<ScheduleRecord | undefined>;
  /** By name, starting after `after`. */
  listSchedules(after: string, limit: number): Promise<readonly ScheduleRecord[]>;
  /**
   * Schedules of these definitions that are due, or that have queued times and whose previous run has ended. `nextAt` is the
   * earliest due time of any of them, past or future.
   */
  dueSchedules(definitions: readonly string[], limit: number): Promise<DueSchedules>;
  /** The default queue, then every declared one. With `upTo`, counts stop there. */
  listQueues(upTo?: number): Promise<readonly QueueState[]>;
  /**
   * Ready and unclaimed work, by the names it is claimed by. With `upTo`, counts stop there, and the cost does not grow with the
   * backlog.
   */
  readBacklog(upTo?: number): Promise<readonly Backlog[]>;

  // maintenance
  prune(endedBefore: EpochMs, options?: PruneOptions): Promise<{ readonly runs: number }>;
  /** Deletes an ended run with its family, or says what keeps it. */
  deleteRun(id: string): Promise<DeleteOutcome>;
  /** As `deleteRun`, also for a run that is noted or pinned (log.L4). */
  forget(id: string): Promise<DeleteOutcome>;
  /** retention.R1. One batch, oldest end first. Costs two seeks when no run is old enough. */
  expire(request: ExpireRequest): Promise<Expired>;
  /** Deletes the start keys of a definition whose runs do not exist. */
  deleteUnusedKeys(definition: string): Promise<void>;
  /** keyed-answer.K2. Reserves an idempotency key for `holdMs`, or says what it was answered. */
  reserveKey(request: KeyedRequest, holdMs: number): Promise<KeyReservation>;
  /** The answer that every repetition of the request gets: a status and the encoded text of a value. */
  recordAnswer(request: KeyedRequest, code: number, answer: string): Promise<void>;
  /** The request did nothing (`forget`), or its outcome is unknown: the same request may be executed again. */
  releaseKey(request: KeyedRequest, forget: boolean): Promise<void>;
  /** Deletes answers older than a day; returns how many. */
  deleteOldAnswers(): Promise<number>;
  backup(path: string, onProgress?: OnProgress): Promise<void>;
  /** Encodes every payload again with the current codec, in small batches beside other work. */
  rekey(onProgress?: OnProgress): Promise<Rekeyed>;
  info(): Promise<StoreInfo>;
  /** Checks every invariant that the data shows; an empty list means that none is violated. */
  check(onProgress?: OnProgress): Promise<readonly Problem[]>;
  close(): Promise<void>;
}
