// Steps: a journal grouped by command: what a run has done, and what it waits for.

import {
  isCancel,
  isTerminal,
  retryRecordOf,
  timerDueAt,
  VoidEntries,
  type EntryData,
  type EntryType,
  type JournalEntry,
  type RunRetriedData,
} from "../kernel/index.ts";

export type StepKind = "task" | "child" | "sleep" | "operation" | "promise" | "settle" | "signal" | "update" | "node";

export interface Step {
  readonly command: string;
  readonly kind: StepKind;
  readonly name: string;
  readonly startedAt: Date | undefined;
  endedAt: Date | undefined;
  /** The type of the entry that settled it. */
  ending: EntryType | undefined;
  /** Attempts that the journal shows. */
  attempts: number;
  /** When a wait times out or a sleep ends. */
  readonly until: Date | undefined;
  /** A cancellation does not end it. */
  readonly shielded: boolean;
  /** What a promise shows to the person who resolves it. */
  readonly show: unknown;
  /** The key of a promise; its name contains it, too. */
  readonly key: string | undefined;
  /** Who settled it and why, as the caller said. */
  by: string | undefined;
  reason: string | undefined;
  /** The names of the signals that a receive waits for. */
  readonly signals: readonly string[];
  /** The run id of a child. */
  readonly child: string | undefined;
}

/** A journal entry whose `type` decides the type of `data`. Fields are optional: other versions may write fewer. */
export type TypedEntry<T extends EntryType = EntryType> = {
  readonly [K in T]: Omit<JournalEntry, "type" | "data"> & {
    readonly type: K;
    readonly data: Partial<EntryData[K]>;
  };
}[T];

export function typedEntryOf(entry: JournalEntry): TypedEntry {
  const data = typeof entry.data === "object" && entry.data !== null ? entry.data : {};
  return { ...entry, data } as TypedEntry;
}

/** The stored attempt counts from 0; people count from 1. */
export function attemptOf(data: object): number {
  return Number((data as { readonly attempt?: unknown }).attempt ?? 0) + 1;
}

export function stepsOf(entries: Iterable<JournalEntry>): Step[] {
  const steps = new Map<string, Step>();
  const stepsOfNode = new Map<string, Step[]>();
  const settled = new Map<string, Settlement>();
  for (const entry of effectiveEntries([...entries])) {
    const { command, type, at } = entry;
    if (isCancel(type)) for (const step of steps.values()) if (!step.shielded) step.endedAt ??= at;
    const typed = typedEntryOf(entry);
    if (isSettlement(typed)) settled.set(String(typed.data.promiseId), typed);
    if (command === undefined || command === "") continue;
    const step = steps.get(command) ?? openStep(typed, command);
    if (step === undefined) continue;
    if (!steps.has(command)) addNodeStep(stepsOfNode, step);
    steps.set(command, step);
    step.attempts = Math.max(step.attempts, attemptOf(typed.data));
    // When an attempt of a node ends, the node no longer waits for the steps of that attempt.
    if (step.kind === "node") for (const inner of stepsOfNode.get(command) ?? []) inner.endedAt ??= at;
    // The code does not wait for a promise that was settled before.
    const early = typed.type === "PromiseCreated" ? settled.get(String(typed.data.promiseId)) : undefined;
    if (early === undefined && !isTerminal(type)) continue;
    step.endedAt = at;
    step.ending = early?.type ?? type;
    const settlement = early ?? typed;
    if (!isSettlement(settlement)) continue;
    step.by = settlement.data.by;
    step.reason = settlement.data.reason;
  }
  return [...steps.values()];
}

type Settlement = TypedEntry<"PromiseResolved" | "PromiseRejected">;

function isSettlement(entry: TypedEntry): entry is Settlement {
  return entry.type === "PromiseResolved" || entry.type === "PromiseRejected";
}

function addNodeStep(stepsOfNode: Map<string, Step[]>, step: Step): void {
  const node = nodeOf(step.command);
  if (node === undefined) return;
  const steps = stepsOfNode.get(node);
  if (steps === undefined) stepsOfNode.set(node, [step]);
  else steps.push(step);
}

const GRAPH_NODE = /^Node\(\d+\.\d+\)/;

/** True for a node of a graph. The names of flow nodes contain no dots, so they never match. */
export function isGraphNode(command: string): boolean {
  return GRAPH_NODE.test(command);
}

/** The node whose code created the command: `Node(3.0)` of `Node(3.0)#0/Task(1)`; undefined outside nodes. */
export function nodeOf(command: string): string | undefined {
  const [node] = GRAPH_NODE.exec(command) ?? [];
  return node === undefined || node.length === command.length ? undefined : node;
}

/** The entries without those that a retry made void. */
export function effectiveEntries(entries: readonly JournalEntry[]): readonly JournalEntry[] {
  const retries = entries.flatMap((entry) =>
    entry.type === "RunRetried" ? [retryRecordOf(entry.seq, typedEntryOf(entry).data as RunRetriedData)] : [],
  );
  if (retries.length === 0) return entries;
  const voids = new VoidEntries(retries);
  return entries.filter((entry) => {
    const { seq, type, command = "" } = entry;
    return voids.classify({ seq, type, command }, () => typedEntryOf(entry).data as EntryData[EntryType]) === "counts";
  });
}

function openStep(entry: TypedEntry, command: string): Step | undefined {
  const { at } = entry;
  const step = (kind: StepKind, name: unknown, startedAt: Date | undefined, more: Partial<Step> = {}): Step => ({
    command,
    kind,
    name: typeof name === "string" ? name : "?",
    startedAt,
    endedAt: undefined,
    ending: undefined,
    attempts: 1,
    until: undefined,
    shielded: (entry.data as { readonly shielded?: unknown }).shielded === true,
    show: undefined,
    key: undefined,
    by: undefined,
    reason: undefined,
    signals: [],
    child: undefined,
    ...more,
  });
  switch (entry.type) {
    case "TaskScheduled":
      return step("task", entry.data.taskType, at);
    case "ChildWorkflowInitiated":
      return step("child", entry.data.childExecutionName, at, { child: entry.data.childExecutionId });
    case "TimerStarted":
      return step("sleep", entry.data.timerId, at, { until: timerEndOf(entry) });
    case "PromiseCreated": {
      const { promiseId, key, receives, timeout, show } = entry.data;
      const until = typeof timeout === "number" ? new Date(at.getTime() + timeout) : undefined;
      return step(receives === undefined ? "promise" : "signal", promiseId, at, {
        until,
        show,
        key,
        signals: receives ?? [],
      });
    }
    case "SettleRequested":
      return step("settle", entry.data.promiseId, at);
    case "UpdateRequested":
      return step("update", entry.data.name, at);
    // The first entry of an operation or a node is the end of an attempt, so its start is not known.
    case "OperationCompleted":
    case "OperationFailed":
    case "OperationRetried":
      return step("operation", entry.data.operationName, undefined);
    case "NodeCompleted":
    case "NodeFailed":
    case "NodeRetried":
      return step("node", entry.data.operationName ?? command, undefined);
    default:
      return undefined;
  }
}

/** When a sleep ends. */
export function timerEndOf({ data: { timerId = "", ms = 0, until }, at }: TypedEntry<"TimerStarted">): Date {
  return new Date(timerDueAt({ timerId, ms, until: until === true }, at.getTime()));
}
