// Retry plan: what it takes to bring a failed run back to where it failed.
//
// The failed step is open again, and so is everything that was open when the code heard of the failure: the queue gets
// their items back. What the journal has to say stays as it is (kernel/retried.ts).

import { toMs, type EpochMs } from "../base/index.ts";
import {
  isCancel,
  isTerminal,
  itemOfCommand,
  runsOf,
  type Entry,
  type NewItem,
  type Retried,
} from "../kernel/index.ts";
import { decodeEntry, entriesThatCount, livesOf, type RecordedEntry } from "./recorded.ts";

/** A child the run waits for. */
export interface OpenChild {
  readonly command: string;
  readonly id: string;
  /** Queued instead where the child was cancelled: another one is started. */
  readonly item?: NewItem;
}

export interface RetryPlan {
  readonly status: "ready";
  readonly from: number;
  readonly commands: number;
  readonly step: number | undefined;
  readonly kept: Retried["kept"];
  /** Tasks without the queue they stood in: only their definition knows it. */
  readonly tasks: readonly (NewItem & { readonly input: unknown })[];
  /** What else goes back into the queue: timers; of a flow, nodes. */
  readonly items: readonly NewItem[];
  /** Children the code waits for. */
  readonly children: readonly OpenChild[];
  readonly deadlineMs: number | undefined;
  /** The ports whose rejection made the run fail. */
  readonly reopened: readonly string[];
}

export type PlannedRetry = RetryPlan | { readonly status: "refused"; readonly reason: string };

/** `entries` is the whole journal of a failed run. */
export function planRetry(entries: readonly Entry[]): PlannedRetry {
  const last = entries.at(-1);
  if (last?.type !== "RunFailed") return { status: "refused", reason: "its last entry is not RunFailed" };
  const { at, commands, undone, begun } = decodeEntry(last).data;
  if (undone === true) return { status: "refused", reason: "its steps were undone; start a new run" };
  const earlier = livesOf(entries);
  const counting = entriesThatCount(entries, earlier).map(decodeEntry);
  const deadline = decodeEntry(entries[0] as Entry).data["deadline"];
  const deadlineMs = typeof deadline === "number" ? deadline : undefined;
  const lastStep = counting.findLast(({ type }) => type === "StepCommitted");
  if (lastStep !== undefined) return planGraph(lastStep, counting, deadlineMs);
  const boundary = typeof commands === "number" ? commands : begun === false ? 0 : indexAfter(counting);
  const failed = typeof at === "string" ? counting.findLast((entry) => isFailureOf(entry, at)) : undefined;
  const from = failed?.seq ?? (begun === false ? last.seq - 1 : last.seq);
  const reopened = failed?.type === "PromiseRejected" ? [String(failed.data["promiseId"])] : [];
  const place = { from, commands: boundary, step: undefined, kept: [], reopened };
  const retried = { seq: last.seq + 1, emitted: [], ...place };
  const open = openAfter(entriesThatCount(entries, [...earlier, retried]).map(decodeEntry));
  return {
    status: "ready",
    ...place,
    tasks: open.flatMap(taskOf),
    items: open.flatMap(timerOf),
    children: open.flatMap((entry) =>
      entry.type === "ChildWorkflowInitiated"
        ? [{ command: entry.command, id: String(entry.data["childExecutionId"]) }]
        : [],
    ),
    deadlineMs,
  };
}

/** V4. The items of the failed step that have a result keep it; what the others asked for is void and open nowhere. */
function planGraph(
  { seq, data }: RecordedEntry,
  counting: readonly RecordedEntry[],
  deadlineMs: number | undefined,
): RetryPlan {
  const step = Number(data["step"]) + 1;
  const ended = (wanted: string): readonly string[] =>
    counting.flatMap(({ type, command }) =>
      type === wanted && itemOfCommand(command)?.step === step ? [command] : [],
    );
  const positions = ended("NodeCompleted").map((command) => itemOfCommand(command)!.position);
  return {
    status: "ready",
    from: seq + 1,
    commands: 0,
    step,
    kept: runsOf(positions.toSorted((a, b) => a - b)),
    tasks: [],
    items: [],
    children: [],
    deadlineMs,
    reopened: rejectedFor(new Set(ended("NodeFailed")), counting),
  };
}

/** Ports that were rejected and that the code of these nodes waited for: with the same answer they would fail again. */
function rejectedFor(failed: ReadonlySet<string>, counting: readonly RecordedEntry[]): readonly string[] {
  const waitedFor = new Set<unknown>();
  const rejected = new Set<string>();
  for (const { type, command, data } of counting)
    if (type === "PromiseCreated" && failed.has(nodeOf(command))) waitedFor.add(data["promiseId"]);
    else if (type === "PromiseRejected") rejected.add(String(data["promiseId"]));
  return [...rejected].filter((port) => waitedFor.has(port));
}

/** `Node(3.1)` of `Node(3.1)~1#0/Promise(0)` */
function nodeOf(command: string): string {
  return command.slice(0, command.indexOf(")") + 1);
}

/** Of a journal that does not say how many commands there were: all of them. */
function indexAfter(entries: readonly RecordedEntry[]): number {
  return entries.reduce((next, { data }) => Math.max(next, Number(data["index"] ?? -1) + 1), 0);
}

function isFailureOf({ type, command, data }: RecordedEntry, at: string): boolean {
  if (type === "DeadlineExceeded") return at === "Deadline";
  if (type === "PromiseRejected") return command === at || data["promiseId"] === at;
  return command === at && (type === "TaskFailed" || type === "OperationFailed" || type === "ChildWorkflowFailed");
}

/** The entries that opened commands which nothing has closed. */
function openAfter(entries: readonly RecordedEntry[]): readonly RecordedEntry[] {
  const open = new Map<string, RecordedEntry>();
  const settledPorts = new Set<unknown>();
  for (const entry of entries) {
    const { type, command, data } = entry;
    if (OPENS.has(type)) {
      if (!settledPorts.has(data["promiseId"])) open.set(command, entry);
    } else if (isCancel(type)) {
      for (const [opened, { data: how }] of open) if (how["shielded"] !== true) open.delete(opened);
    } else if (type === "PromiseResolved" || type === "PromiseRejected") {
      settledPorts.add(data["promiseId"]);
      for (const [opened, { data: how }] of open) if (how["promiseId"] === data["promiseId"]) open.delete(opened);
    } else if (isTerminal(type)) open.delete(command);
  }
  return [...open.values()];
}
const OPENS: ReadonlySet<string> = new Set([
  "TaskScheduled",
  "ChildWorkflowInitiated",
  "TimerStarted",
  "PromiseCreated",
]);

function taskOf({ type, command, data, seq }: RecordedEntry): RetryPlan["tasks"] {
  if (type !== "TaskScheduled") return [];
  return [{ item: command, kind: "task", name: String(data["taskType"]), priority: 0, seq, input: data["input"] }];
}

/** With their original times: what has come due meanwhile fires at once. */
function timerOf({ type, command, data, at, seq }: RecordedEntry): readonly NewItem[] {
  const timer = (name: string, availableAt: EpochMs): NewItem[] => [
    { item: command, kind: "timer", name, priority: 0, availableAt, seq },
  ];
  if (type === "TimerStarted") {
    const ms = Number(data["ms"]);
    return timer("TimerFired", data["timerId"] === "sleepUntil" ? ms : at + ms);
  }
  if (type !== "PromiseCreated" || data["timeout"] === undefined) return [];
  return timer("PromiseTimedOut", at + toMs(Number(data["timeout"])));
}
