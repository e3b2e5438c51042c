// Retry plan: how to reopen a failed run at the step that failed.
//
// A retry reopens the failed step and everything that was open when the code received the failure: their items return to
// the queue. The entries of the journal stay as they are (kernel/retry-record.ts).

import { invariant, toMs, type EpochMs } from "../base/index.ts";
import {
  DEADLINE_ITEM,
  decodeEntry,
  nodeCommandOf,
  nodeItemOf,
  promiseNameOf,
  rangesOf,
  timerDueAt,
  type Arrival,
  type DecodedEntry,
  type Entry,
  type EntryType,
  type NewItem,
  type NewPromise,
  type RetryRecord,
  type SentSettlement,
} from "../kernel/index.ts";
import { encodeInput, promiseRejectedData, promiseResolvedData } from "./entry-data.ts";
import { OpenCommands, type OpeningEntry } from "./open-commands.ts";
import { effectiveEntries, runRetriesOf } from "./recorded-journal.ts";

/** A child that the run waits for. */
export interface OpenChild {
  readonly command: string;
  readonly id: string;
  /** Set if the child was canceled: queued to start another one. */
  readonly item?: NewItem;
}

export interface RetryPlan {
  readonly status: "ready";
  readonly from: number;
  readonly commands: number;
  readonly step: number | undefined;
  readonly kept: RetryRecord["kept"];
  /** Without their queue, which only the definition of the task knows. */
  readonly tasks: readonly (NewItem & { readonly input: unknown })[];
  /** Other items that return to the queue: timers, and the nodes of flows. */
  readonly items: readonly NewItem[];
  readonly children: readonly OpenChild[];
  /** Settlements of promises of other runs, to send again. */
  readonly settlements: readonly SentSettlement[];
  /** The promises that are open again. */
  readonly promises: readonly NewPromise[];
  readonly deadlineMs: number | undefined;
  /** The ports whose rejection failed the run. */
  readonly reopened: readonly string[];
}

export type PlannedRetry = RetryPlan | { readonly status: "refused"; readonly reason: string };

/** `entries` is the whole journal of a failed run, and before it what the run shares with its origin. */
export function planRetry(entries: readonly Entry[]): PlannedRetry {
  const last = entries.at(-1);
  if (last?.type !== "RunFailed") return { status: "refused", reason: "its last entry is not RunFailed" };
  const { at, commands, undone, begun } = decodeEntry({ ...last, type: last.type }).data;
  if (undone === true) return { status: "refused", reason: "its steps were undone; start a new run" };
  const earlier = runRetriesOf(entries);
  const effective = effectiveEntries(entries, earlier).map(decodeEntry);
  const started = effective.findLast((entry) => entry.type === "RunStarted");
  invariant(started !== undefined, "A retry never voids the first entry of a journal.");
  const deadlineMs = started.data.deadline;
  const lastStep = effective.findLast((entry) => entry.type === "StepCommitted");
  if (lastStep !== undefined) return planGraph(lastStep, effective, deadlineMs);
  const boundary = commands ?? (begun === false ? 0 : indexAfter(effective));
  const failed = at === undefined ? undefined : effective.findLast((entry) => isFailureOf(entry, at));
  const from = failed?.seq ?? (begun === false ? last.seq - 1 : last.seq);
  if (from < 1)
    return {
      status: "refused",
      reason: `${at ?? "the step"} failed before the run was forked; fork its origin at ${at ?? "that step"} instead`,
    };
  const reopened = failed?.type === "PromiseRejected" ? [failed.data.promiseId] : [];
  const place = { from, commands: boundary, step: undefined, kept: [], reopened };
  const retried = { seq: last.seq + 1, emitted: [], ...place };
  const open = openAfter(effectiveEntries(entries, [...earlier, retried]).map(decodeEntry));
  return {
    status: "ready",
    ...place,
    tasks: open.flatMap(taskOf),
    items: open.flatMap(timerOf),
    settlements: open.flatMap(settlementOf),
    promises: open.flatMap(promiseOf),
    children: open.flatMap(({ type, command, data }) =>
      type === "ChildWorkflowInitiated" ? [{ command, id: data.childExecutionId }] : [],
    ),
    deadlineMs,
  };
}

/** retry-record.V4. Items of the failed step keep their results. Requests of items without a result are void. */
function planGraph(
  { seq, data }: DecodedEntry<"StepCommitted">,
  effective: readonly DecodedEntry[],
  deadlineMs: number | undefined,
): RetryPlan {
  const step = data.step + 1;
  const ended = (wanted: "NodeCompleted" | "NodeFailed"): readonly string[] =>
    effective.flatMap(({ type, command }) => (type === wanted && nodeItemOf(command)?.step === step ? [command] : []));
  const positions = ended("NodeCompleted").map((command) => nodeItemOf(command)!.position);
  return {
    status: "ready",
    from: seq + 1,
    commands: 0,
    step,
    kept: rangesOf(positions.toSorted((a, b) => a - b)),
    tasks: [],
    items: [],
    settlements: [],
    promises: [],
    children: [],
    deadlineMs,
    reopened: rejectedFor(new Set(ended("NodeFailed")), effective),
  };
}

/** Rejected ports that the code of these nodes waited for: with the same rejection the nodes would fail again. */
function rejectedFor(failed: ReadonlySet<string>, effective: readonly DecodedEntry[]): readonly string[] {
  const waitedFor = new Set<string>();
  const rejected = new Set<string>();
  for (const { type, command, data } of effective)
    if (type === "PromiseCreated" && failed.has(nodeCommandOf(command))) waitedFor.add(data.promiseId);
    else if (type === "PromiseRejected") rejected.add(data.promiseId);
  return [...rejected].filter((port) => waitedFor.has(port));
}

/** What a run that has this journal waits for: tasks and timers as items of its queue, and the ids of children. */
export function openWorkIn(
  entries: readonly Entry[],
): Pick<RetryPlan, "items"> & { readonly children: readonly string[] } {
  const open = openAfter(effectiveEntries(entries, runRetriesOf(entries)).map(decodeEntry));
  return {
    items: open.flatMap((entry) => [...taskOf(entry).map(itemOf), ...timerOf(entry)]),
    children: open.flatMap(({ type, data }) => (type === "ChildWorkflowInitiated" ? [data.childExecutionId] : [])),
  };
}

/** A task reads its input from its entry. */
function itemOf({ item, kind, name, priority, seq }: NewItem): NewItem {
  return { item, kind, name, priority, seq };
}

/** The number of commands in a journal whose end does not name it. */
function indexAfter(entries: readonly DecodedEntry[]): number {
  return entries.reduce((next, { data }) => {
    const { index = -1 } = data as { readonly index?: number };
    return Math.max(next, index + 1);
  }, 0);
}

const FAILURES: ReadonlySet<EntryType> = new Set<EntryType>([
  "TaskFailed",
  "OperationFailed",
  "ChildWorkflowFailed",
  "SettleAnswered",
]);

function isFailureOf({ type, command, data }: DecodedEntry, at: string): boolean {
  if (type === "DeadlineExceeded") return at === DEADLINE_ITEM;
  if (type === "PromiseRejected") return command === at || data.promiseId === at;
  return command === at && FAILURES.has(type);
}

/** The entries that opened commands which are still open. */
function openAfter(entries: readonly DecodedEntry[]): readonly OpeningEntry[] {
  const open = new OpenCommands();
  for (const entry of entries) {
    if (entry.type === "RunStarted") open.take();
    open.note(entry);
  }
  return open.all();
}

function taskOf({ type, command, data, seq }: OpeningEntry): RetryPlan["tasks"] {
  if (type !== "TaskScheduled") return [];
  return [{ item: command, kind: "task", name: data.taskType, priority: 0, seq, input: data.input }];
}

/** A promise that has this value already accepts it again. */
function settlementOf({ type, command, data }: OpeningEntry): readonly SentSettlement[] {
  if (type !== "SettleRequested") return [];
  const { promiseId, runId, definition, key, by, reason, value } = data;
  const fields = {
    ...(key !== undefined && { key }),
    ...(by !== undefined && { by }),
    ...(reason !== undefined && { reason }),
  };
  const arrival: Arrival =
    "error" in data
      ? { type: "PromiseRejected", target: promiseId, data: promiseRejectedData(promiseId, data.error, fields) }
      : {
          type: "PromiseResolved",
          target: promiseId,
          data: promiseResolvedData(promiseId, encodeInput(value), fields),
        };
  return [{ command, to: runId, definition, arrival }];
}

function promiseOf({ type, command, data, at, seq }: OpeningEntry): readonly NewPromise[] {
  if (type !== "PromiseCreated" || data.receives !== undefined) return [];
  return [{ command, name: promiseNameOf(data), key: data.key, seq, at }];
}

/** With the original due times: an overdue timer fires immediately. */
function timerOf({ type, command, data, at, seq }: OpeningEntry): readonly NewItem[] {
  const timer = (name: string, availableAt: EpochMs): NewItem[] => [
    { item: command, kind: "timer", name, priority: 0, availableAt, seq },
  ];
  if (type === "TimerStarted") return timer("TimerFired", timerDueAt(data, at));
  if (type !== "PromiseCreated" || data.timeout === undefined) return [];
  return timer("PromiseTimedOut", at + toMs(data.timeout));
}
