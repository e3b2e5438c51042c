// Plain text: payloads and names as text for people. No control character of a payload reaches a terminal or a page.

import { inspect } from "node:util";

// Control characters, and the marks that reorder the text around them.
export const UNSAFE_CHARACTERS = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

export function escapeOf(char: string): string {
  return SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Escapes control characters and line breaks. */
export function plain(text: string): string {
  return text.toWellFormed().replace(UNSAFE_CHARACTERS, escapeOf);
}

/** Escapes control characters, but keeps line breaks. */
export function plainLines(text: string): string {
  return text
    .split("\n")
    .map((line) => plain(line))
    .join("\n");
}

/** A value on one line, cut to `width`. */
export function showValue(value: unknown, width = Number.POSITIVE_INFINITY): string {
  if (value instanceof Error) return clip(plain(`${value.name}: ${value.message}`), width);
  const text = inspect(value, {
    breakLength: Number.POSITIVE_INFINITY,
    depth: 6,
    maxArrayLength: 20,
    maxStringLength: 2_000,
  });
  // Joins the lines of the layout and of error messages; breaks inside strings are already escaped.
  return clip(plain(text.replace(/\n\s*/g, " ")), width);
}

export function clip(text: string, width: number): string {
  if (text.length <= width) return text;
  let end = Math.max(1, width - 1);
  // Do not split a surrogate pair.
  if (!text.slice(0, end).isWellFormed()) end -= 1;
  return `${text.slice(0, end)}…`;
}

/** Like `clip`, but removes the middle: ids often differ at their end. */
export function clipMiddle(text: string, width: number): string {
  if (text.length <= width) return text;
  const tail = Math.floor((width - 1) / 2);
  const end = text.slice(text.length - tail);
  return `${clip(text, width - tail)}${end.isWellFormed() ? end : end.slice(1)}`;
}

export function pluralize(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}`;
}

export function sizeText(bytes: number): string {
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(0)} kB`;
  return bytes < 1_000_000_000 ? `${(bytes / 1_000_000).toFixed(1)} MB` : `${(bytes / 1_000_000_000).toFixed(2)} GB`;
}

/** The value if it is text, as in every journal of this version. */
export function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
