// Store: the port every database keeps.
//
// S1. `write` applies a list in one durable transaction, in order, and answers each when it is durable.
// S2. Time is the store's: leases, timers and entries are judged by `now()`, which never goes backwards.
// S3. A worker's lease is one row; renewing it costs the same however much the worker holds.
// S4. A reaped worker's turns are due again and its items ready again, with their tokens void.
// S5. Whatever was taken over twice in a row without a commit is a suspect: claimed before other work, in groups that shrink
//     with each takeover until it is alone (suspects.ts). After three takeovers alone its run is `blocked`, its evidence
//     kept. So what kills its worker is stopped, and what was merely held beside it is not.
// S6. Payloads are stored and given back byte for byte.

import type { EpochMs } from "../base/index.ts";
import type { Backlog } from "./backlog.ts";
import type { NewCheckpoint } from "./checkpoint.ts";
import type { InputsRequest, NodeInput, Readiness } from "./completion.ts";
import type { InboxRow, OutcomeOf, TurnWrite, Write } from "./commit.ts";
import type { TransactOutcome } from "./database.ts";
import type { VersionCount } from "./generation.ts";
import type { HistoryBreak, HistoryEvent } from "./history.ts";
import type { Entry } from "./journal.ts";
import type { ChangeNotice } from "./change-notice.ts";
import type { QueueSlot, QueueState } from "./queue.ts";
import type { RunNumber, RunRecord, RunStatus } from "./run.ts";
import type { MessageFence, OutboxInfo } from "./outbox.ts";
import type { Chunk } from "./stream.ts";
import type { DueSchedules, ScheduleRecord } from "./schedule.ts";

export interface WorkerInfo {
  readonly worker: number;
  readonly name: string;
  readonly startedAt: EpochMs;
  readonly until: EpochMs;
  /** What it said when it registered, and with its last heartbeat: `WorkerAbout` and `WorkerDoing` as JSON. */
  readonly profile: string | undefined;
  readonly activity: string | undefined;
}

export interface RunFilter {
  readonly definition?: string;
  readonly kind?: RunRecord["kind"];
  readonly statuses?: readonly RunStatus[];
  readonly tag?: string;
  /** Only runs with a smaller number: newest first, page by page. */
  readonly before?: RunNumber;
  readonly limit: number;
}

/** What a worker needs to know about a run it holds or waits for. */
export interface RunProgress {
  readonly run: RunNumber;
  readonly status: RunStatus;
  readonly arrivals: number;
  readonly token: string | undefined;
}

/** What a store says is leased to a worker. */
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

/** Who holds a run, as the database says, and when it last moved. For people. */
export interface RunHolder {
  readonly run: RunNumber;
  /** Of its turn; undefined while no worker holds it. */
  readonly worker: number | undefined;
  /** The time of its last journal entry; undefined while it has none. */
  readonly committedAt: EpochMs | undefined;
  /** Its tasks and nodes that workers hold, by name of the item: at most `MAX_HELD_ITEMS`. */
  readonly items: readonly { readonly item: string; readonly worker: number }[];
}

/** Enough for people. */
export const MAX_HELD_ITEMS = 20;

/** One broken promise found by `check`. */
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
  /** How payloads have been written, such as `aes-256-gcm 2026-11`; empty when they are kept as they are. */
  readonly codecs: readonly string[];
  readonly runs: Readonly<Partial<Record<RunStatus, number>>>;
  readonly workers: readonly WorkerInfo[];
  readonly outbox: OutboxInfo;
  readonly items: { readonly ready: number; readonly leased: number; readonly delayed: number };
}

/** An item of the queue, as it waits or is at work. */
export interface ItemInfo {
  /** `delayed`: until `availableAt`; `stopped`: until its run is resumed. */
  readonly state: "delayed" | "ready" | "leased" | "stopped";
  /** The attempt it is in, or that comes next; from 0. */
  readonly attempt: number;
  readonly availableAt: EpochMs;
  /** Of earlier attempts, encoded. */
  readonly failures: string | undefined;
}

/** What became of the payloads that were to be written anew. */
export interface Rekeyed {
  readonly payloads: number;
  /** Could not be read, and were left as they are. */
  readonly unreadable: number;
}

/** Told now and then how far long work has come; the last call may fall short of `total`. */
export type OnProgress = (done: number, total: number) => void;

export interface PruneOptions {
  /** Only counts. */
  readonly dryRun?: boolean;
  readonly onProgress?: OnProgress;
}

export interface Store {
  /** Which `Database` of `ctx.tx` this is. */
  readonly kind: string;
  /** True where looking for work costs round trips of its own: whoever commits should not wait for it. */
  readonly pollsSeparately?: boolean;
  /**
   * Where somebody else does the work of a commit: batches that may be under way at once, how large one should be, and how many
   * transactions of users may be open at once.
   */
  readonly pipeline?: { readonly batches: number; readonly writes: number; readonly transactions: number };

  // time
  now(): EpochMs;

  // the one way to change a run
  write<const W extends readonly Write[]>(writes: W): Promise<{ [K in keyof W]: OutcomeOf<W[K]> }>;

  /**
   * U1–U3. Calls `call` with the user's handle on the database, then commits what `write` makes of the answer, in one
   * transaction. Where the handle is synchronous, so must the function be. Both may be called again when the first COMMIT
   * turns out not to have happened.
   */
  transact(call: (db: unknown) => unknown, write: (result: unknown) => TurnWrite | undefined): Promise<TransactOutcome>;

  // workers
  /** Adds a lease row and answers its number, which is never used again. What it says about itself is kept as it is. */
  registerWorker(name: string, leaseMs: number, about?: string): Promise<number>;
  /** False when the lease is gone: everything held under it is lost. `doing`, if given, takes the place of the last. */
  renewLease(worker: number, leaseMs: number, doing?: string): Promise<boolean>;
  /** By number, those whose lease has run out included. Costs the same however many runs there are. */
  listWorkers(): Promise<readonly WorkerInfo[]>;
  /** Everything that is leased to a worker. */
  readHeld(worker: number): Promise<HeldWork>;
  /** Gives everything back at once. */
  releaseWorker(worker: number): Promise<void>;
  /** S4. Takes over from workers whose lease has run out, never from `self`; sweeps leftovers of ended runs. */
  reap(self: number): Promise<{ readonly workers: number; readonly turns: number; readonly items: number }>;

  // nodes of flows
  /** F7. In one query, for each that is asked: by target, edge and index. */
  readInputs(asked: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]>;
  /** Nodes something has arrived for, by name. */
  readReadiness(run: RunNumber): Promise<readonly Readiness[]>;

  // reading
  /** The newest generation, or the one that is asked for. */
  findRun(id: string, generation?: number): Promise<RunRecord | undefined>;
  /** Every version of a definition that live runs are pinned to. */
  countVersions(): Promise<readonly VersionCount[]>;
  listRuns(filter: RunFilter): Promise<readonly RunRecord[]>;
  readJournal(run: RunNumber, after: number, limit?: number): Promise<readonly Entry[]>;
  /** Of a graph, in order of their steps, without their states. */
  readCheckpoints(run: RunNumber, after: number, limit?: number): Promise<readonly NewCheckpoint[]>;
  /** The newest one up to a step; with `whole`, the newest that holds the whole state. */
  findCheckpoint(run: RunNumber, step: number, whole: boolean): Promise<NewCheckpoint | undefined>;
  /** The newest one up to a step that has this label. */
  findLabeledCheckpoint(run: RunNumber, label: string, step: number): Promise<NewCheckpoint | undefined>;
  /** The entries of steps after one, up to another, in order: nothing else of the journal is read. */
  readSteps(run: RunNumber, after: number, upTo: number, limit?: number): Promise<readonly Entry[]>;
  readInbox(run: RunNumber, after: number): Promise<readonly InboxRow[]>;
  /** Chunks of a stream behind an offset, of all generations of the run. */
  readStream(run: RunNumber, stream: string, after: number, limit: number): Promise<readonly Chunk[]>;
  /** Q2. How many chunks the code of this generation has emitted, by stream. */
  readEmitted(run: RunNumber): Promise<ReadonlyMap<string, number>>;
  readProgress(runs: readonly RunNumber[]): Promise<readonly RunProgress[]>;
  /** The tokens these items have now, in order; undefined where the item is gone or free. */
  readItemTokens(
    items: readonly { readonly run: RunNumber; readonly item: string }[],
  ): Promise<readonly (string | undefined)[]>;
  /** How these items of a run stand, in order; undefined where one is not in the queue. For people. */
  readItems(run: RunNumber, items: readonly string[]): Promise<readonly (ItemInfo | undefined)[]>;
  /** Who holds these runs, in order; those that do not exist are left out. */
  readHolders(runs: readonly RunNumber[]): Promise<readonly RunHolder[]>;
  /** What happened to the store as a whole, newest first. */
  readHistory(): Promise<readonly HistoryEvent[]>;
  /** Whether somebody else wrote since the last call; may answer true too often, never too rarely. */
  pollChanges(): boolean;
  /** After that: what they said, where they can be heard. Undefined: anything may have changed. */
  takeNotice?(): ChangeNotice | undefined;
  /**
   * Calls back as soon as this store finds that what the process knows may not be what the database has. Whatever was read or
   * held before is of no more use; turns that were under way are answered with `lease_lost`.
   */
  onHistoryBreak?(listener: (change: HistoryBreak) => void): void;
  /** Looks whether history went back, for a process that only waits: every commit looks by itself. */
  checkHistory?(): Promise<void>;
  /** Calls back as soon as somebody is heard. */
  onNotice?(heard: () => void): void;

  // schedules
  findSchedule(name: string): Promise<ScheduleRecord | undefined>;
  /** By name, from the first one behind `after`. */
  listSchedules(after: string, limit: number): Promise<readonly ScheduleRecord[]>;
  /**
   * Of the named definitions: those whose time has come, and those with somebody in line whose run before has ended.
   * `nextAt` is the earliest time of any of them, past or to come.
   */
  dueSchedules(definitions: readonly string[], limit: number): Promise<DueSchedules>;
  /** Every queue that was declared, after the default one. With `upTo`, nothing is counted further than that. */
  listQueues(upTo?: number): Promise<readonly QueueState[]>;
  /**
   * What is ready and that nobody has taken, by the names it is claimed by. With `upTo`, nothing is counted further than
   * that, and the cost does not grow with what waits.
   */
  readBacklog(upTo?: number): Promise<readonly Backlog[]>;

  // care
  prune(endedBefore: EpochMs, options?: PruneOptions): Promise<{ readonly runs: number }>;
  backup(path: string, onProgress?: OnProgress): Promise<void>;
  /** Writes every payload anew with today's codec, some at a time, while work goes on. */
  rekey(onProgress?: OnProgress): Promise<Rekeyed>;
  info(): Promise<StoreInfo>;
  /** Every invariant that can be seen in the data; an empty list is a healthy store. */
  check(onProgress?: OnProgress): Promise<readonly Problem[]>;
  close(): Promise<void>;
}
