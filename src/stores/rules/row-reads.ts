// Row reads: the reads of the `Store` port over rows, once for every store.

import type { EpochMs } from "../../base/index.ts";
import type {
  AttemptRecord,
  Backlog,
  Chunk,
  DueSchedules,
  EndedRun,
  Entry,
  HeldWork,
  HistoryEvent,
  InboxRow,
  InputsRequest,
  ItemInfo,
  LogRow,
  MemoAnswer,
  MemoFilter,
  MemoPage,
  NewCheckpoint,
  NodeInput,
  PromiseFilter,
  BudgetReading,
  PromisePage,
  QueueState,
  QueueUse,
  Readiness,
  RunFilter,
  RunNumber,
  RunEnd,
  RunProgress,
  RunRecord,
  RunTimes,
  RunTimesFilter,
  RunWork,
  ScheduleRecord,
  SlotUser,
  StatusCounts,
  VersionCount,
  WorkerInfo,
} from "../../kernel/index.ts";
import type { CopiedRun, CopySource, RunName } from "./copied-run.ts";
import type { Rows } from "../rows/rows.ts";
import { readAttempts } from "./attempts.ts";
import { listQueues, readBacklog } from "./backlog.ts";
import { findCheckpoint, findLabeledCheckpoint, readCheckpoints } from "./checkpoints.ts";
import { copyRun } from "./copy-run.ts";
import { readInputs, readReadiness } from "./flow-reads.ts";
import { listRuns } from "./list-runs.ts";
import { isFederated, listEnded, readLog, readLogSize, readRuns } from "./run-log.ts";
import { listMemos, readMemos } from "./memo.ts";
import { readBudget } from "./budgets.ts";
import { listPromises } from "./promises.ts";
import {
  countVersions,
  findRun,
  readInbox,
  readItems,
  readItemTokens,
  readJournal,
  readEnd,
  readProgress,
  readSteps,
} from "./read.ts";
import { countStatuses, readRunTimes } from "./run-counts.ts";
import { readHistory } from "./run-holders.ts";
import { countChildren, readQueueUse, readRunWork } from "./run-work.ts";
import { findDueSchedules, findSchedule, listSchedules } from "./schedules.ts";
import { readEmitted, readStream } from "./streams.ts";
import { listWorkers, readHeld } from "./worker-leases.ts";

/** No limit. */
const EVERYTHING = Number.MAX_SAFE_INTEGER;

export abstract class RowReads implements CopySource {
  /** Runs `body` on the rows of the store, possibly several times. */
  protected abstract read<T>(what: string, body: (rows: Rows) => T): Promise<T>;
  abstract now(): EpochMs;

  readonly "~copyOf" = (run: RunName): Promise<CopiedRun | undefined> =>
    copyRun((what, body) => this.read(what, body), run);

  listWorkers(): Promise<readonly WorkerInfo[]> {
    return this.read("Listing workers", listWorkers);
  }

  readHeld(worker: number): Promise<HeldWork> {
    return this.read("Reading the work of a worker", (rows) => readHeld(rows, worker));
  }

  findRun(id: string, generation?: number): Promise<RunRecord | undefined> {
    return this.read("Finding a run", (rows) => findRun(rows, id, generation));
  }

  readEnd(run: RunNumber): Promise<RunEnd | undefined> {
    return this.read("Reading the end of a run", (rows) => readEnd(rows, run));
  }

  countVersions(): Promise<readonly VersionCount[]> {
    return this.read("Counting versions", countVersions);
  }

  listRuns(filter: RunFilter): Promise<readonly RunRecord[]> {
    return this.read("Listing runs", (rows) => listRuns(rows, filter));
  }

  countStatuses(upTo: number, definition?: string): Promise<StatusCounts> {
    return this.read("Counting runs", (rows) => countStatuses(rows, upTo, definition));
  }

  readRunTimes(filter: RunTimesFilter): Promise<readonly RunTimes[]> {
    return this.read("Reading the times of runs", (rows) => readRunTimes(rows, filter));
  }

  readBudget(budget: RunNumber): Promise<BudgetReading | undefined> {
    return this.read("Reading a budget", (rows) => readBudget(rows, budget));
  }

  listPromises(filter: PromiseFilter): Promise<PromisePage> {
    return this.read("Listing promises", (rows) => listPromises(rows, filter));
  }

  readMemos(keys: readonly string[]): Promise<readonly (MemoAnswer | undefined)[]> {
    return this.read("Reading the memo", (rows) => readMemos(rows, keys));
  }

  listMemos(filter: MemoFilter): Promise<MemoPage> {
    return this.read("Listing the memo", (rows) => listMemos(rows, filter));
  }

  isFederated(): Promise<boolean> {
    return this.read("Reading whether the store is federated", isFederated);
  }

  readLog(after: number, limit: number): Promise<readonly LogRow[]> {
    return this.read("Reading the log", (rows) => readLog(rows, after, limit));
  }

  logSize(): Promise<number> {
    return this.read("Reading the log", readLogSize);
  }

  listEnded(limit: number): Promise<readonly EndedRun[]> {
    return this.read("Listing ended runs", (rows) => listEnded(rows, limit));
  }

  readRuns(runs: readonly RunNumber[]): Promise<readonly (RunRecord | undefined)[]> {
    return this.read("Reading runs", (rows) => readRuns(rows, runs));
  }

  readJournal(run: RunNumber, after: number, limit?: number): Promise<readonly Entry[]> {
    return this.read("Reading a journal", (rows) => readJournal(rows, run, after, limit));
  }

  readCheckpoints(run: RunNumber, after: number, limit?: number): Promise<readonly NewCheckpoint[]> {
    return this.read("Reading checkpoints", (rows) => readCheckpoints(rows, run, after, limit));
  }

  findCheckpoint(run: RunNumber, step: number, whole: boolean): Promise<NewCheckpoint | undefined> {
    return this.read("Reading a checkpoint", (rows) => findCheckpoint(rows, run, step, whole));
  }

  findLabeledCheckpoint(run: RunNumber, label: string, step: number): Promise<NewCheckpoint | undefined> {
    return this.read("Reading a checkpoint", (rows) => findLabeledCheckpoint(rows, run, label, step));
  }

  readSteps(run: RunNumber, after: number, upTo: number, limit?: number): Promise<readonly Entry[]> {
    return this.read("Reading steps", (rows) => readSteps(rows, run, after, upTo, limit));
  }

  readAttempts(run: RunNumber, step?: string): Promise<readonly AttemptRecord[]> {
    return this.read("Reading attempts", (rows) => readAttempts(rows, run, step));
  }

  readInbox(run: RunNumber, after: number): Promise<readonly InboxRow[]> {
    return this.read("Reading an inbox", (rows) => readInbox(rows, run, after));
  }

  readStream(run: RunNumber, stream: string, after: number, limit: number): Promise<readonly Chunk[]> {
    return this.read("Reading a stream", (rows) => readStream(rows, run, stream, after, limit));
  }

  readEmitted(run: RunNumber): Promise<ReadonlyMap<string, number>> {
    return this.read("Reading a run's streams", (rows) => readEmitted(rows, run));
  }

  readInputs(requests: readonly InputsRequest[]): Promise<readonly (readonly NodeInput[])[]> {
    return this.read("Reading inputs", (rows) => readInputs(rows, requests));
  }

  readReadiness(run: RunNumber): Promise<readonly Readiness[]> {
    return this.read("Reading readiness", (rows) => readReadiness(rows, run));
  }

  readProgress(runs: readonly RunNumber[]): Promise<readonly RunProgress[]> {
    return this.read("Reading the progress of runs", (rows) => readProgress(rows, runs));
  }

  readItemTokens(
    items: readonly { readonly run: RunNumber; readonly item: string }[],
  ): Promise<readonly (string | undefined)[]> {
    return this.read("Reading items", (rows) => readItemTokens(rows, items));
  }

  readItems(run: RunNumber, items: readonly string[]): Promise<readonly (ItemInfo | undefined)[]> {
    return this.read("Reading items", (rows) => readItems(rows, run, items));
  }

  readRunWork(run: RunNumber): Promise<RunWork | undefined> {
    return this.read("Reading the work of a run", (rows) => readRunWork(rows, run));
  }

  countChildren(run: RunNumber): Promise<number> {
    return this.read("Counting children", (rows) => countChildren(rows, run));
  }

  readQueueUse(kind: SlotUser, queue: string, key?: string): Promise<QueueUse | undefined> {
    const now = this.now();
    return this.read("Reading a queue", (rows) => readQueueUse(rows, now, kind, queue, key));
  }

  readHistory(): Promise<readonly HistoryEvent[]> {
    return this.read("Reading the store's history", readHistory);
  }

  findSchedule(name: string): Promise<ScheduleRecord | undefined> {
    return this.read("Finding a schedule", (rows) => findSchedule(rows, name));
  }

  listSchedules(after: string, limit: number): Promise<readonly ScheduleRecord[]> {
    return this.read("Listing schedules", (rows) => listSchedules(rows, after, limit));
  }

  dueSchedules(definitions: readonly string[], limit: number): Promise<DueSchedules> {
    const now = this.now();
    return this.read("Reading schedules", (rows) => findDueSchedules(rows, now, definitions, limit));
  }

  listQueues(upTo = EVERYTHING): Promise<readonly QueueState[]> {
    return this.read("Listing queues", (rows) => listQueues(rows, upTo));
  }

  readBacklog(upTo = EVERYTHING): Promise<readonly Backlog[]> {
    return this.read("Reading the backlog", (rows) => readBacklog(rows, upTo));
  }
}
