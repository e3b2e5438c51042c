// Timeline: a journal as a person likes to read it. One line per entry, times counted from the start.
//
//      +3 ms  ○ charge   task, scheduled
//    +215 ms  ● charge   took 212 ms, attempt 2 → { receipt: 'ch_1' }
//                        └ attempt 1: Error: the card network did not answer

import { formatMs } from "../base/index.ts";
import { completedText, failedText, flowCompletedText, flowFailedText, placeText, stepText } from "./node-lines.ts";
import type { Paint } from "./output.ts";
import { dueOf, fieldsOf, isOfGraph, nodeOf, textOf, type Fields } from "./steps.ts";
import { forkedOf, type JournalEntry } from "../kernel/index.ts";
import { clip, plain, showValue } from "./text.ts";

/** Something that happened around the run and does not stand in its journal: a crash, a new worker. */
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

/** What one entry says. */
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

/** Reads entries one by one, in order; remembers what the ones before have opened. */
export class TimelineReader {
  readonly #opened = new Map<string, { readonly name: string; readonly at: Date }>();
  #startedAt: number | undefined;

  /** `startedAt`: of a run whose first entry is not read. */
  constructor(startedAt?: number) {
    this.#startedAt = startedAt;
  }

  read(entry: JournalEntry): Line {
    this.#startedAt ??= entry.at.getTime();
    const line = lineOf(entry, this.#opened, this.#startedAt);
    const { command = "" } = entry;
    // What the code of a node asked for says whose it is.
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

/** What an entry says, and when since the start. */
export interface TimelineEntry {
  readonly at: number;
  readonly line: Line;
}

/** Some of a run's entries. */
export function renderEvents(
  entries: readonly TimelineEntry[],
  options: Pick<TimelineOptions, "width" | "paint">,
): string[] {
  const width = entries.reduce((most, { line: one }) => Math.max(most, nameWidthOf(one)), 0);
  return entries.flatMap(({ at, line: one }) => renderLine(one, offsetOf(at), width, options));
}

/** Time since the start, for the beginning of a line. */
export function offsetOf(ms: number): string {
  return offsetText(ms).padStart(TIME_WIDTH);
}

/** The same number of digits on every line, so that times stand below each other. */
function offsetText(ms: number): string {
  if (ms < 1_000) return `+${Math.round(ms)} ms`;
  return ms < 60_000 ? `+${(ms / 1_000).toFixed(2)} s` : `+${formatMs(ms)}`;
}

/** `before` stands in front of every line: a time, and perhaps whose line it is. */
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

/** What one entry says. `opened` remembers names and times of commands, for the entries that settle them. */
function lineOf(entry: JournalEntry, opened: Map<string, { name: string; at: Date }>, startedAt: number): Line {
  const fields = fieldsOf(entry);
  const command = entry.command ?? "";
  const open = (name: unknown, text: string): Line => {
    const shown = plain(textOf(name, command));
    opened.set(command, { name: shown, at: entry.at });
    return { tone: "open", name: shown, text, under: [] };
  };
  const close = (tone: Tone, say: (took: string) => string, fallback?: unknown): Line => {
    const start = opened.get(command);
    const took = start === undefined ? "" : formatMs(entry.at.getTime() - start.at.getTime());
    const name = start?.name ?? plain(textOf(fallback, command));
    return { tone, name, text: say(took), under: failuresOf(fields) };
  };
  const nodeName = plain(textOf(fields["operationName"], command));
  switch (entry.type) {
    case "RunStarted":
      return line("quiet", "started", startedText(fields));
    case "NodeCompleted":
      if (isOfGraph(command)) return line("good", nodeName, completedText(entry, fields));
      return close(command.endsWith("[]") ? "quiet" : "good", () => flowCompletedText(command, fields));
    case "NodeFailed":
      if (isOfGraph(command)) return line("bad", nodeName, failedText(entry, fields));
      return close("bad", () => flowFailedText(fields));
    case "NodeRetried":
      return { ...line("quiet", nodeName, failedText(entry, fields)), under: [showValue(fields["error"])] };
    case "NodeSkipped":
      return line("quiet", nodeName, "skipped");
    case "ItemsSpread":
      return line("quiet", nodeName, itemsText(fields));
    case "StepCommitted":
      return line("quiet", `step ${String(fields["step"])}`, stepText(fields));
    case "TaskScheduled":
      return open(fields["taskType"], "task, scheduled");
    case "TaskCompleted":
      return close("good", (took) => `${tookText(took, fields)}${arrow(fields, "result")}`);
    case "TaskFailed":
      return close("bad", (took) => `${tookText(took, fields)}: ${showValue(fields["error"])}`);
    case "ChildWorkflowInitiated":
      return open(fields["childExecutionName"], `child run ${plain(textOf(fields["childExecutionId"], ""))}`);
    case "ChildWorkflowCompleted":
      return close("good", (took) => `child completed in ${took}${arrow(fields, "output")}`);
    case "ChildWorkflowFailed":
      return close("bad", (took) => `child failed after ${took}: ${showValue(fields["error"])}`);
    case "TimerStarted":
      return open(
        fields["timerId"] === "sleep" ? `sleep ${formatMs(Number(fields["ms"]))}` : "sleep until",
        sleepText(fields, entry, startedAt),
      );
    case "TimerFired":
      return close("good", (took) => `over after ${took}`);
    case "TimerCancelled":
      return close("quiet", () => "cancelled");
    case "OperationCompleted":
      return close("good", () => `operation${attemptText(fields)}${arrow(fields, "result")}`, fields["operationName"]);
    case "OperationFailed":
      return close(
        "bad",
        () => `operation${attemptText(fields)}: ${showValue(fields["error"])}`,
        fields["operationName"],
      );
    case "OperationRetried":
      return {
        ...close(
          "quiet",
          () => `operation, attempt ${attemptOf(fields)} failed, next in ${formatMs(Number(fields["delay"]))}`,
          fields["operationName"],
        ),
        under: [showValue(fields["error"])],
      };
    case "PromiseCreated":
      return open(
        fields["promiseId"],
        `${"receives" in fields ? "signal" : "promise"}${"timeout" in fields ? `, waits ${formatMs(Number(fields["timeout"]))} at most` : ", waits"}`,
      );
    case "PromiseResolved":
      return close(
        "good",
        (took) => `resolved${took === "" ? "" : ` after ${took}`}${arrow(fields, "value")}`,
        fields["promiseId"],
      );
    case "PromiseRejected":
      return close(
        "bad",
        (took) => `rejected${took === "" ? "" : ` after ${took}`}: ${showValue(fields["error"])}`,
        fields["promiseId"],
      );
    case "PromiseTimedOut":
      return close("quiet", (took) => `ran out after ${took}`);
    case "SignalReceived":
      return close(
        "good",
        (took) => `signal${took === "" ? "" : ` after ${took}`}${arrow(fields, "value")}`,
        fields["name"],
      );
    case "UpdateRequested":
      return open(fields["name"], `update${"args" in fields ? ` with ${showValue(fields["args"])}` : ""}`);
    case "UpdateCompleted":
      return close("good", (took) => `update answered in ${took}${arrow(fields, "result")}`);
    case "UpdateFailed":
      return close("bad", (took) => `update failed after ${took}: ${showValue(fields["error"])}`);
    case "ChildSignalled":
      return line(
        "quiet",
        `signal ${plain(textOf(fields["name"], ""))}`,
        `to ${plain(textOf(fields["childExecutionId"], ""))}${arrow(fields, "value")}`,
      );
    case "ChildCancelRequested":
      return line("quiet", "cancel", `to ${plain(textOf(fields["childExecutionId"], ""))}`);
    case "StateSet":
      return line("quiet", `state ${plain(textOf(fields["key"], ""))}`, `= ${showValue(fields["value"])}`);
    case "StateCleared":
      return line("quiet", `state ${plain(textOf(fields["key"], ""))}`.trim(), "cleared");
    case "MessageSent":
      return line("quiet", `to ${plain(textOf(fields["destination"], ""))}`, `message${arrow(fields, "payload")}`);
    case "PatchMarked":
      return line("quiet", `patched ${plain(textOf(fields["id"], ""))}`, "the run follows the changed code");
    case "RunRetried":
      return line(
        "quiet",
        "retried",
        "step" in fields ? `step ${String(fields["step"])} again` : `from entry ${String(fields["from"])}`,
      );
    case "DeadlineExceeded":
      return line("bad", "deadline", "has passed");
    case "CancelRequested":
      return line("bad", "cancel requested", "reason" in fields ? plain(textOf(fields["reason"], "")) : "");
    case "RunCompleted":
      return line("good", "completed", arrow(fields, "output").trimStart());
    case "RunFailed":
      return line("bad", "failed", showValue(fields["error"]));
    case "RunContinued":
      return line("good", "continued", `as the next generation, version ${textOf(String(fields["version"]), "")}`);
    case "RunCancelled":
      return line("bad", "terminated" in fields ? "terminated" : "cancelled", plain(textOf(fields["reason"], "")));
  }
  // Written by a newer version than this one: better said as it is than not at all.
  return unknownLine(entry);
}

function unknownLine({ type, data }: { readonly type: string; readonly data: unknown }): Line {
  return line("quiet", plain(type), showValue(data));
}

function startedText(fields: Fields): string {
  const forked = forkedOf(fields);
  if (forked !== undefined) return `as a fork of ${plain(forked.run)}, from step ${forked.step}`;
  return "input" in fields ? `with ${showValue(fields["input"])}` : "";
}

function line(tone: Tone, name: string, text: string): Line {
  return { tone, name, text, under: [] };
}

function sleepText(fields: Fields, { at }: JournalEntry, startedAt: number): string {
  return `until ${offsetText(dueOf(fields, at).getTime() - startedAt)}`;
}

/** Attempts count from 0 in the data and from 1 for people. */
function attemptOf(fields: Fields): number {
  return Number(fields["attempt"] ?? 0) + 1;
}
function attemptText(fields: Fields): string {
  return "attempt" in fields ? `, attempt ${attemptOf(fields)}` : "";
}
function tookText(took: string, fields: Fields): string {
  return `took ${took}${attemptText(fields)}`;
}

function arrow(fields: Fields, field: string): string {
  return field in fields ? ` → ${showValue(fields[field])}` : "";
}

function failuresOf(fields: Fields): string[] {
  const failures = fields["failures"];
  if (!Array.isArray(failures)) return [];
  const first = attemptOf(fields) - failures.length;
  return failures.map((failure, index) => `attempt ${first + index}: ${showValue(failure)}`);
}

/** Items of a spread. */
function itemsText(fields: Fields): string {
  const from = Number(fields["from"]);
  const count = Array.isArray(fields["items"]) ? fields["items"].length : 0;
  return count === 1 ? `item ${from}` : `items ${from} to ${from + count - 1}`;
}
