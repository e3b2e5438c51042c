// State diff: what a step changed, as lines: removed, added, unchanged. Objects and lists are compared inside, so that a message that was
// appended is one line and not the whole list.
//
// state-diff.D1. The number of lines and the work are bounded; what was left out is counted.

import { preview } from "./preview.ts";

export interface DiffLine {
  readonly kind: "add" | "del" | "same";
  /** `order`, `messages[5]`, `order.status`; the name stands on the first line of a pair only. */
  readonly name: string;
  readonly text: string;
}

export interface StateDiff {
  readonly lines: readonly DiffLine[];
  readonly leftOut: number;
}

const MAX_LINES = 200;
const MAX_DEPTH = 4;
const LINE = 400;

/** The lines of one channel, or of one value of two runs. */
export function diffValues(name: string, before: unknown, after: unknown): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  compare(name, before, after, lines, 0);
  return lines;
}

/** What a step changed, then what it did not change if `all`. */
export function diffState(
  state: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>> | undefined,
  changed: readonly string[],
  all: boolean,
): StateDiff {
  const lines: DiffLine[] = [];
  for (const name of changed) compare(name, ownValue(before, name), ownValue(state, name), lines, 0);
  if (all)
    for (const name of Object.keys(state))
      if (!changed.includes(name)) lines.push({ kind: "same", name, text: preview(state[name], LINE) });
  return { lines: lines.slice(0, MAX_LINES), leftOut: Math.max(0, lines.length - MAX_LINES) };
}

function ownValue(values: Readonly<Record<string, unknown>> | undefined, name: string): unknown {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

function compare(name: string, before: unknown, after: unknown, lines: DiffLine[], depth: number): void {
  if (lines.length > MAX_LINES || isEqual(before, after)) return;
  if (depth < MAX_DEPTH && Array.isArray(before) && Array.isArray(after))
    return compareLists(name, before, after, lines, depth);
  if (depth < MAX_DEPTH && isObject(before) && isObject(after))
    return compareObjects(name, before, after, lines, depth);
  if (before !== undefined) lines.push({ kind: "del", name, text: preview(before, LINE) });
  if (after !== undefined)
    lines.push({ kind: "add", name: before === undefined ? name : "", text: preview(after, LINE) });
}

function compareLists(
  name: string,
  before: readonly unknown[],
  after: readonly unknown[],
  lines: DiffLine[],
  depth: number,
): void {
  const length = Math.max(before.length, after.length);
  for (let index = 0; index < length && lines.length <= MAX_LINES; index += 1)
    compare(`${name}[${index}]`, before[index], after[index], lines, depth + 1);
}

function compareObjects(
  name: string,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  lines: DiffLine[],
  depth: number,
): void {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of keys) {
    if (lines.length > MAX_LINES) return;
    compare(`${name}.${key.slice(0, 80)}`, ownValue(before, key), ownValue(after, key), lines, depth + 1);
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Values of JSON; depth is bounded by the parser of the browser, width by the answer's size. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  return JSON.stringify(a) === JSON.stringify(b);
}
