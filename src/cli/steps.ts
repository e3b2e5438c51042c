// Steps: a journal by command. What a run has done, and what it waits for.

import { isCancel, isTerminal, retriedOf, VoidEntries, type EntryType, type JournalEntry } from "../kernel/index.ts";

export type StepKind = "task" | "child" | "sleep" | "operation" | "promise" | "signal" | "update" | "node";

export interface Step {
  readonly command: string;
  readonly kind: StepKind;
  readonly name: string;
  readonly startedAt: Date | undefined;
  endedAt: Date | undefined;
  /** The type of the entry that settled it. */
  ending: EntryType | undefined;
  /** How many attempts are known from the journal. */
  attempts: number;
  /** When a wait runs out or a sleep is over. */
  readonly until: Date | undefined;
  /** A cancel leaves it. */
  readonly shielded: boolean;
  /** What a promise has for whoever answers it. */
  readonly show: unknown;
  /** The run of a child. */
  readonly child: string | undefined;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(entry: JournalEntry): Fields {
  return typeof entry.data === "object" && entry.data !== null ? (entry.data as Fields) : {};
}

/** A field that is text in every journal we wrote. */
export function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

export function stepsOf(entries: Iterable<JournalEntry>): Step[] {
  const steps = new Map<string, Step>();
  const ofNodes = new Map<string, Step[]>();
  for (const entry of countingOf([...entries])) {
    const { command, type, at } = entry;
    if (isCancel(type)) for (const step of steps.values()) if (!step.shielded) step.endedAt ??= at;
    if (command === undefined || command === "") continue;
    const fields = fieldsOf(entry);
    const step = steps.get(command) ?? opened(entry, command, fields);
    if (step === undefined) continue;
    if (!steps.has(command)) noteNode(ofNodes, step);
    steps.set(command, step);
    step.attempts = Math.max(step.attempts, Number(fields["attempt"] ?? 0) + 1);
    // What its code asked for in an attempt that is over is waited for no longer.
    if (step.kind === "node") for (const asked of ofNodes.get(command) ?? []) asked.endedAt ??= at;
    if (!isTerminal(type)) continue;
    step.endedAt = at;
    step.ending = type;
  }
  return [...steps.values()];
}

function noteNode(ofNodes: Map<string, Step[]>, step: Step): void {
  const node = nodeOf(step.command);
  if (node === undefined) return;
  const asked = ofNodes.get(node);
  if (asked === undefined) ofNodes.set(node, [step]);
  else asked.push(step);
}

const GRAPH_NODE = /^Node\(\d+\.\d+\)/;

/** A node of a graph, and no name that somebody gave to a node of a flow: those have no dots. */
export function isOfGraph(command: string): boolean {
  return GRAPH_NODE.test(command);
}

/** The node whose code asked for it: `Node(3.0)` of `Node(3.0)#0/Task(1)`; undefined for what is none's. */
export function nodeOf(command: string): string | undefined {
  const [node] = GRAPH_NODE.exec(command) ?? [];
  return node === undefined || node.length === command.length ? undefined : node;
}

/** Without what a retry made void. */
export function countingOf(entries: readonly JournalEntry[]): readonly JournalEntry[] {
  const retries = entries.flatMap((entry) =>
    entry.type === "RunRetried" ? [retriedOf(entry.seq, fieldsOf(entry))] : [],
  );
  if (retries.length === 0) return entries;
  const voids = new VoidEntries(retries);
  return entries.filter((entry) => {
    const { seq, type, command = "" } = entry;
    return voids.judge({ seq, type, command }, () => fieldsOf(entry)) === "counts";
  });
}

function opened({ type, at }: JournalEntry, command: string, fields: Fields): Step | undefined {
  const text = (field: string): string => textOf(fields[field], "?");
  const step = (kind: StepKind, name: string, startedAt: Date | undefined, until?: Date): Step => ({
    command,
    kind,
    name,
    startedAt,
    endedAt: undefined,
    ending: undefined,
    attempts: 1,
    until,
    shielded: fields["shielded"] === true,
    show: fields["show"],
    child: typeof fields["childExecutionId"] === "string" ? fields["childExecutionId"] : undefined,
  });
  switch (type) {
    case "TaskScheduled":
      return step("task", text("taskType"), at);
    case "ChildWorkflowInitiated":
      return step("child", text("childExecutionName"), at);
    case "TimerStarted":
      return step("sleep", text("timerId"), at, dueOf(fields, at));
    case "PromiseCreated":
      return step("receives" in fields ? "signal" : "promise", text("promiseId"), at, timeoutOf(fields, at));
    case "UpdateRequested":
      return step("update", text("name"), at);
    // An operation has no entry until an attempt of it has ended.
    case "OperationCompleted":
    case "OperationFailed":
    case "OperationRetried":
      return step("operation", text("operationName"), undefined);
    case "NodeCompleted":
    case "NodeFailed":
    case "NodeRetried":
      return step("node", textOf(fields["operationName"], command), undefined);
    default:
      return undefined;
  }
}

export function dueOf(fields: Fields, at: Date): Date {
  const ms = Number(fields["ms"] ?? 0);
  return new Date(fields["timerId"] === "sleepUntil" ? ms : at.getTime() + ms);
}

function timeoutOf(fields: Fields, at: Date): Date | undefined {
  return typeof fields["timeout"] === "number" ? new Date(at.getTime() + fields["timeout"]) : undefined;
}
