// Timeline: a journal for people. One line per entry, with the time since the start of the run.
//
//      +3 ms  ○ charge   task, scheduled
//    +215 ms  ● charge   took 212 ms, attempt 2 of 5 → { receipt: 'ch_1' }
//                        └ attempt 1: Error: the card network did not answer

import { offsetText, TimelineReader, type Line, type TimelineMark, type Tone } from "../explain/index.ts";
import type { AttemptRecord, JournalEntry } from "../kernel/index.ts";
import type { Paint } from "./output.ts";
import { clip, clipMiddle, plain } from "./text.ts";

export { TimelineReader, type Line, type TimelineMark } from "../explain/index.ts";

export interface TimelineOptions {
  readonly width: number;
  readonly paint: Paint;
  readonly marks?: readonly TimelineMark[];
  /** The executions that ended without an entry. */
  readonly attempts?: readonly AttemptRecord[];
}

const SIGNS = {
  good: { sign: "●", style: "green" },
  bad: { sign: "✖", style: "red" },
  open: { sign: "○", style: "cyan" },
  quiet: { sign: "·", style: "dim" },
} as const;

const TIME_WIDTH = 11;
const MAX_NAME_WIDTH = 28;

export function nameWidthOf(line: Line): number {
  return Math.min(MAX_NAME_WIDTH, line.name.length);
}

/** The lines of a timeline, from the first entry to the last. */
export function renderTimeline(entries: readonly JournalEntry[], options: TimelineOptions): string[] {
  const [first] = entries;
  if (first === undefined) return [];
  const startedAt = first.at.getTime();
  const reader = new TimelineReader(undefined, options.attempts);
  const lines = entries.map((entry) => ({ entry, line: reader.read(entry) }));
  const nameWidth = lines.reduce((width, { line }) => Math.max(width, nameWidthOf(line)), 0);
  const marks = [...(options.marks ?? []), ...reader.takeMarks(true)].toSorted(
    (a, b) => a.at.getTime() - b.at.getTime(),
  );
  const markLine = (mark: TimelineMark): string => renderMark(mark, mark.at.getTime() - startedAt, options);
  const rendered: string[] = [];
  for (const { entry, line } of lines) {
    while (marks[0] !== undefined && marks[0].at < entry.at) rendered.push(markLine(marks.shift()!));
    rendered.push(...renderLine(line, offsetOf(entry.at.getTime() - startedAt), nameWidth, options));
  }
  rendered.push(...marks.map(markLine));
  return rendered;
}

/** The line of an entry or a mark, and its time since the start in milliseconds. */
export type TimelineEntry = { readonly at: number } & ({ readonly line: Line } | { readonly mark: TimelineMark });

/** Renders some entries of a run. */
export function renderEvents(
  entries: readonly TimelineEntry[],
  options: Pick<TimelineOptions, "width" | "paint">,
): string[] {
  const width = entries.reduce((most, one) => Math.max(most, "line" in one ? nameWidthOf(one.line) : 0), 0);
  return entries.flatMap((one) =>
    "line" in one ? renderLine(one.line, offsetOf(one.at), width, options) : [renderMark(one.mark, one.at, options)],
  );
}

/** The entry for `renderEvents`, after the marks that precede it. */
export function timelineEntries(reader: TimelineReader, entry: JournalEntry, startedAt: number): TimelineEntry[] {
  const line = reader.read(entry);
  return [...markEntries(reader.takeMarks(), startedAt), { at: entry.at.getTime() - startedAt, line }];
}

/** Marks for `renderEvents`. */
export function markEntries(marks: readonly TimelineMark[], startedAt: number): TimelineEntry[] {
  return marks.map((mark) => ({ at: mark.at.getTime() - startedAt, mark }));
}

/** The time since the start, padded. */
export function offsetOf(ms: number): string {
  return offsetText(ms).padStart(TIME_WIDTH);
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
  return [head.trimEnd(), ...line.under.map((under) => paint("yellow", `${indent}  └ ${clipUnder(under, room - 2)}`))];
}

/** The file and the line are at the end of a stack frame. */
function clipUnder(text: string, width: number): string {
  return text.startsWith("at ") ? clipMiddle(text, width) : clip(text, width);
}

function nameStyle(tone: Tone): "bold" | "dim" | "reset" {
  if (tone === "quiet") return "dim";
  return tone === "open" ? "reset" : "bold";
}

function renderMark(
  { text, bad }: TimelineMark,
  atMs: number,
  { width, paint }: Pick<TimelineOptions, "width" | "paint">,
): string {
  const body = clip(`━━ ${plain(text)} `, width - TIME_WIDTH - 2);
  const rule = body.padEnd(Math.min(width, 100) - TIME_WIDTH - 2, "━");
  return `${paint("dim", offsetOf(atMs))}  ${paint(bad ? ["red", "bold"] : ["cyan"], rule)}`;
}
