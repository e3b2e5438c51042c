// Fit answer: bounds the size of what a tool or a resource answers.
//
// fit-answer.F1. An answer has at most 32 KB. What is longer is cut where it hurts least (long texts first, then long lists), remains valid
//   JSON, and says that it was cut and how to get the rest. A list with pages is asked for again in a smaller page instead, so that its
//   cursor is right.

import { isObject } from "./rpc.ts";

export const MAX_ANSWER_BYTES = 32 * 1024;

/** Room for the note. */
const NOTE_BYTES = 512;

export function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value) ?? "");
}

export function fits(value: unknown): boolean {
  return sizeOf(value) <= MAX_ANSWER_BYTES;
}

const STEPS = [
  { text: 4_000, items: Number.POSITIVE_INFINITY },
  { text: 1_000, items: 200 },
  { text: 400, items: 50 },
  { text: 200, items: 20 },
  { text: 100, items: 8 },
  { text: 40, items: 3 },
  { text: 20, items: 1 },
] as const;

/** fit-answer.F1. `rest`: how the whole is reached. */
export function fitAnswer(value: unknown, rest: string): unknown {
  if (fits(value)) return value;
  const note = `Cut to 32 KB of ${Math.ceil(sizeOf(value) / 1024)} KB. ${rest}`;
  for (const step of STEPS) {
    const cut = cutTo(value, step);
    if (sizeOf(cut) <= MAX_ANSWER_BYTES - NOTE_BYTES) return isObject(cut) ? { note, ...cut } : { note, value: cut };
  }
  return { note };
}

function cutTo(value: unknown, step: (typeof STEPS)[number]): unknown {
  if (typeof value === "string")
    return value.length <= step.text ? value : `${value.slice(0, step.text)}… (${value.length - step.text} more)`;
  if (Array.isArray(value)) {
    const kept = value.slice(0, step.items).map((one) => cutTo(one, step));
    return kept.length === value.length ? kept : [...kept, `… (${value.length - kept.length} more)`];
  }
  if (!isObject(value)) return value;
  const entries = Object.entries(value);
  const kept = entries.slice(0, step.items).map(([name, one]) => [cutName(name, step.text), cutTo(one, step)] as const);
  if (kept.length < entries.length) kept.push(["…", `${entries.length - kept.length} more`]);
  return Object.fromEntries(kept);
}

function cutName(name: string, length: number): string {
  return name.length <= length ? name : `${name.slice(0, length)}…`;
}

/** The first part of a text that fits, with a note at its end. */
export function fitText(text: string, rest: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= MAX_ANSWER_BYTES) return text;
  const part = Buffer.from(text)
    .subarray(0, MAX_ANSWER_BYTES - NOTE_BYTES)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
  return `${part}\n\n(Cut to 32 KB of ${Math.ceil(bytes / 1024)} KB. ${rest})`;
}
