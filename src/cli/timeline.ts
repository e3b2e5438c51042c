// Timeline: a journal for people. One line per entry, with the time since the start of the run.
//
//      +3 ms  ○ charge   task, scheduled
//    +215 ms  ● charge   took 212 ms, attempt 2 of 5 → { receipt: 'ch_1' }
//                        └ attempt 1: Error: the card network did not answer

import { formatMs } from "../base/index.ts";
import { parseItemName } from "../flow/index.ts";
import { forkOriginOf, type JournalEntry, type RunStartedData } from "../kernel/index.ts";
import {
  completedText,
  failedText,
  flowCompletedText,
  flowFailedText,
  placeText,
  retriedText,
  stepText,
} from "./node-lines.ts";
import type { Paint } from "./output.ts";
import { attemptOf, isGraphNode, nodeOf, textOf, timerEndOf, typedEntryOf, type TypedEntry } from "./steps.ts";
import { clip, plain, showValue } from "./text.ts";

/** An event that is not in the journal: a crash, a new worker. */
export interface TimelineMark {
  readonly at: Date;
  readonly text: string;
  readonly bad: boolean;
}

export interface TimelineOptions {
  readonly width: number;
  readonly paint: Paint;
  readonly marks?: readonly TimelineMark[];
}

type Tone = "good" | "bad" | "open" | "quiet";

/** The text of one entry. */
export interface Line {
  readonly tone: Tone;
  readonly name: string;
  readonly text: string;
  /** Lines below it: failed attempts. */
  readonly under: readonly string[];
}

const SIGNS = {
  good: { sign: "●", style: "green" },
  bad: { sign: "✖", style: "red" },
  open: { sign: "○", style: "cyan" },
  quiet: { sign: "·", style: "dim" },
} as const;

const TIME_WIDTH = 11;
const MAX_NAME_WIDTH = 28;

/** Reads entries in order, and remembers the open commands of earlier entries. */
export class TimelineReader {
  readonly #opened: OpenCommands = new Map();
  #startedAt: number | undefined;

  /** `startedAt`: needed if the first entry of the run is not read. */
  constructor(startedAt?: number) {
    this.#startedAt = startedAt;
  }

  read(entry: JournalEntry): Line {
    this.#startedAt ??= entry.at.getTime();
    const line = lineOf(typedEntryOf(entry), this.#opened, this.#startedAt);
    const { command = "" } = entry;
    // A command that the code of a node created shows the place of that node.
    return nodeOf(command) === undefined ? line : { ...line, name: `${placeText(command)}/${line.name}` };
  }
}

export function nameWidthOf(line: Line): number {
  return Math.min(MAX_NAME_WIDTH, line.name.length);
}

/** The lines of a timeline, from the first entry to the last. */
export function renderTimeline(entries: readonly JournalEntry[], options: TimelineOptions): string[] {
  const [first] = entries;
  if (first === undefined) return [];
  const startedAt = first.at.getTime();
  const reader = new TimelineReader();
  const lines = entries.map((entry) => ({ entry, line: reader.read(entry) }));
  const nameWidth = lines.reduce((width, { line }) => Math.max(width, nameWidthOf(line)), 0);
  const marks = [...(options.marks ?? [])].toSorted((a, b) => a.at.getTime() - b.at.getTime());
  const rendered: string[] = [];
  for (const { entry, line } of lines) {
    while (marks[0] !== undefined && marks[0].at < entry.at)
      rendered.push(renderMark(marks.shift()!, startedAt, options));
    rendered.push(...renderLine(line, offsetOf(entry.at.getTime() - startedAt), nameWidth, options));
  }
  for (const mark of marks) rendered.push(renderMark(mark, startedAt, options));
  return rendered;
}

/** The line of an entry, and its time since the start in milliseconds. */
export interface TimelineEntry {
  readonly at: number;
  readonly line: Line;
}

/** Renders some entries of a run. */
export function renderEvents(
  entries: readonly TimelineEntry[],
  options: Pick<TimelineOptions, "width" | "paint">,
): string[] {
  const width = entries.reduce((most, { line: one }) => Math.max(most, nameWidthOf(one)), 0);
  return entries.flatMap(({ at, line: one }) => renderLine(one, offsetOf(at), width, options));
}

/** The time since the start, padded. */
export function offsetOf(ms: number): string {
  return offsetText(ms).padStart(TIME_WIDTH);
}

/** A fixed number of decimals, so that times align. */
function offsetText(ms: number): string {
  if (ms < 1_000) return `+${Math.round(ms)} ms`;
  return ms < 60_000 ? `+${(ms / 1_000).toFixed(2)} s` : `+${formatMs(ms)}`;
}

/** `before` is the start of the line: a time, and in `dev` the run id. */
export function renderLine(
  line: Line,
  before: string,
  nameWidth: number,
  { width, paint }: Pick<TimelineOptions, "width" | "paint">,
): string[] {
  const { sign, style } = SIGNS[line.tone];
  const room = Math.max(20, width - before.length - nameWidth - 6);
  const name = clip(line.name, nameWidth).padEnd(nameWidth);
  const text = clip(line.text, room);
  const head = `${paint("dim", before)}  ${paint(style, sign)} ${paint(nameStyle(line.tone), name)}  ${
    line.tone === "quiet" || line.tone === "open" ? paint("dim", text) : text
  }`;
  const indent = " ".repeat(before.length + 4 + nameWidth);
  return [head.trimEnd(), ...line.under.map((under) => paint("yellow", `${indent}  └ ${clip(under, room - 2)}`))];
}

function nameStyle(tone: Tone): "bold" | "dim" | "reset" {
  if (tone === "quiet") return "dim";
  return tone === "open" ? "reset" : "bold";
}

function renderMark({ at, text, bad }: TimelineMark, startedAt: number, { width, paint }: TimelineOptions): string {
  const body = clip(`━━ ${plain(text)} `, width - TIME_WIDTH - 2);
  const rule = body.padEnd(Math.min(width, 100) - TIME_WIDTH - 2, "━");
  return `${paint("dim", offsetOf(at.getTime() - startedAt))}  ${paint(bad ? ["red", "bold"] : ["cyan"], rule)}`;
}

/** A command that has no terminal entry yet. `maxAttempts`: of a task, if it is retried. */
interface OpenCommand {
  readonly name: string;
  readonly at: Date;
  readonly maxAttempts?: number | undefined;
}

type OpenCommands = Map<string, OpenCommand>;

function lineOf(entry: TypedEntry, opened: OpenCommands, startedAt: number): Line {
  const command = entry.command ?? "";
  const open = (name: unknown, text: string, maxAttempts?: number): Line => {
    const shown = plain(textOf(name, command));
    opened.set(command, { name: shown, at: entry.at, maxAttempts });
    return { tone: "open", name: shown, text, under: [] };
  };
  const close = (tone: Tone, text: (took: string) => string, fallbackName?: unknown): Line => {
    const start = opened.get(command);
    const took = start === undefined ? "" : formatMs(entry.at.getTime() - start.at.getTime());
    const name = start?.name ?? plain(textOf(fallbackName, command));
    return { tone, name, text: text(took), under: failuresOf(entry.data) };
  };
  const attempt = (): string => attemptText(entry.data, opened.get(command)?.maxAttempts);
  switch (entry.type) {
    case "RunStarted":
      return line("quiet", "started", startedText(entry.data));
    case "NodeCompleted":
      if (isGraphNode(command)) return line("good", nodeName(entry), completedText(entry));
      return close(parseItemName(command).kind === "spread" ? "quiet" : "good", () => flowCompletedText(entry));
    case "NodeFailed":
      if (isGraphNode(command)) return line("bad", nodeName(entry), failedText(entry));
      return close("bad", () => flowFailedText(entry));
    case "NodeRetried":
      return { ...line("quiet", nodeName(entry), retriedText(entry)), under: [showValue(entry.data.error)] };
    case "NodeSkipped":
      return line("quiet", plain(command), "skipped");
    case "ItemsSpread":
      return line("quiet", plain(command), itemsText(entry.data));
    case "StepCommitted":
      return line("quiet", `step ${String(entry.data.step)}`, stepText(entry.data));
    case "TaskScheduled":
      return open(entry.data.taskType, "task, scheduled", entry.data.retry?.maxAttempts);
    case "TaskCompleted":
      return close("good", (took) => `took ${took}${attempt()}${arrow(entry.data, "result")}`);
    case "TaskFailed":
      return close("bad", (took) => `took ${took}${attempt()}: ${showValue(entry.data.error)}`);
    case "ChildWorkflowInitiated":
      return open(entry.data.childExecutionName, `child run ${plain(textOf(entry.data.childExecutionId, ""))}`);
    case "ChildWorkflowCompleted":
      return close("good", (took) => `child completed in ${took}${arrow(entry.data, "output")}`);
    case "ChildWorkflowFailed":
      return close("bad", (took) => `child failed after ${took}: ${showValue(entry.data.error)}`);
    case "TimerStarted":
      return open(
        entry.data.timerId === "sleep" ? `sleep ${formatMs(Number(entry.data.ms))}` : "sleep until",
        `until ${offsetText(timerEndOf(entry).getTime() - startedAt)}`,
      );
    case "TimerFired":
      return close("good", (took) => `ended after ${took}`);
    case "TimerCancelled":
      return close("quiet", () => "cancelled");
    case "OperationCompleted":
      return close("good", () => `operation${attempt()}${arrow(entry.data, "result")}`, entry.data.operationName);
    case "OperationFailed":
      return close("bad", () => `operation${attempt()}: ${showValue(entry.data.error)}`, entry.data.operationName);
    case "OperationRetried": {
      const { operationName, delay, error } = entry.data;
      const text = `operation, attempt ${attemptOf(entry.data)} failed, retry in ${formatMs(Number(delay))}`;
      return { ...close("quiet", () => text, operationName), under: [showValue(error)] };
    }
    case "PromiseCreated": {
      const { promiseId, receives, timeout } = entry.data;
      const limit = timeout === undefined ? "" : ` up to ${formatMs(Number(timeout))}`;
      return open(promiseId, `${receives === undefined ? "promise" : "signal"}, waiting${limit}`);
    }
    case "PromiseResolved":
      return close("good", (took) => `resolved${after(took)}${arrow(entry.data, "value")}`, entry.data.promiseId);
    case "PromiseRejected":
      return close("bad", (took) => `rejected${after(took)}: ${showValue(entry.data.error)}`, entry.data.promiseId);
    case "PromiseTimedOut":
      return close("quiet", (took) => `timed out after ${took}`);
    case "SignalReceived":
      return close("good", (took) => `signal${after(took)}${arrow(entry.data, "value")}`, entry.data.name);
    case "UpdateRequested":
      return open(entry.data.name, `update${"args" in entry.data ? ` with ${showValue(entry.data.args)}` : ""}`);
    case "UpdateCompleted":
      return close("good", (took) => `update answered in ${took}${arrow(entry.data, "result")}`);
    case "UpdateFailed":
      return close("bad", (took) => `update failed after ${took}: ${showValue(entry.data.error)}`);
    case "ChildSignalled": {
      const { name, childExecutionId } = entry.data;
      return line("quiet", `signal ${text(name)}`, `to ${text(childExecutionId)}${arrow(entry.data, "value")}`);
    }
    case "ChildCancelRequested":
      return line("quiet", "cancel", `to ${text(entry.data.childExecutionId)}`);
    case "StateSet":
      return line("quiet", `state ${text(entry.data.key)}`, `= ${showValue(entry.data.value)}`);
    case "StateCleared":
      return line("quiet", `state ${text(entry.data.key)}`.trim(), "cleared");
    case "MessageSent":
      return line("quiet", `to ${text(entry.data.destination)}`, `message${arrow(entry.data, "payload")}`);
    case "PatchMarked":
      return line("quiet", `patched ${text(entry.data.id)}`, "the run uses the changed code");
    case "RunRetried": {
      const { step, from } = entry.data;
      return line("quiet", "retried", step === undefined ? `from entry ${String(from)}` : `step ${step} again`);
    }
    case "DeadlineExceeded":
      return line("bad", "deadline", "exceeded");
    case "CancelRequested":
      return line("bad", "cancel requested", text(entry.data.reason));
    case "RunCompleted":
      return line("good", "completed", arrow(entry.data, "output").trimStart());
    case "RunFailed":
      return line("bad", "failed", showValue(entry.data.error));
    case "RunContinued":
      return line("good", "continued", `as the next generation, version ${String(entry.data.version)}`);
    case "RunCancelled":
      return line("bad", "terminated" in entry.data ? "terminated" : "cancelled", text(entry.data.reason));
  }
  // A newer version wrote this entry: print it as it is.
  return unknownLine(entry);
}

function unknownLine({ type, data }: { readonly type: string; readonly data: unknown }): Line {
  return line("quiet", plain(type), showValue(data));
}

function nodeName({ command = "", data }: TypedEntry<"NodeCompleted" | "NodeFailed" | "NodeRetried">): string {
  return plain(textOf(data.operationName, command));
}

function startedText(data: Partial<RunStartedData>): string {
  const origin = forkOriginOf(data as RunStartedData);
  if (origin !== undefined) return `as a fork of ${plain(origin.run)}, from step ${origin.step}`;
  return "input" in data ? `with ${showValue(data.input)}` : "";
}

function line(tone: Tone, name: string, text: string): Line {
  return { tone, name, text, under: [] };
}

function text(value: unknown): string {
  return plain(textOf(value, ""));
}

function after(took: string): string {
  return took === "" ? "" : ` after ${took}`;
}

/** `, attempt 2 of 5`; empty for the only attempt. */
function attemptText(data: object, maxAttempts: number | undefined): string {
  if (!("attempt" in data)) return "";
  return `, attempt ${attemptOf(data)}${maxAttempts === undefined ? "" : ` of ${maxAttempts}`}`;
}

function arrow(data: object, field: string): string {
  return field in data ? ` → ${showValue((data as Readonly<Record<string, unknown>>)[field])}` : "";
}

function failuresOf(data: object): string[] {
  const { failures } = data as { readonly failures?: unknown };
  if (!Array.isArray(failures)) return [];
  const first = attemptOf(data) - failures.length;
  return failures.map((failure, index) => `attempt ${first + index}: ${showValue(failure)}`);
}

/** `items 10 to 19` */
function itemsText({ from, items }: Partial<{ readonly from: number; readonly items: readonly unknown[] }>): string {
  const first = Number(from);
  const count = Array.isArray(items) ? items.length : 0;
  return count === 1 ? `item ${first}` : `items ${first} to ${first + count - 1}`;
}
