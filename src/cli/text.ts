// Text: lines for terminals.

import { escapeOf, UNSAFE_CHARACTERS } from "../base/index.ts";

export { clip, clipMiddle, plain, plainLines, pluralize, showValue, sizeText, textOf } from "../base/index.ts";

const STYLE = /\p{Cc}\[[\d;]*m/gu;

/** Like `clip`, for a line with colors: escape sequences have no width. */
export function clipPainted(line: string, width: number): string {
  if (line.replace(STYLE, "").length <= width) return line;
  let room = Math.max(1, width - 1);
  let kept = "";
  let from = 0;
  for (const { 0: style, index } of line.matchAll(STYLE)) {
    const text = line.slice(from, index).slice(0, room);
    kept += text + style;
    room -= text.length;
    from = index + style.length;
  }
  const end = line.slice(from).slice(0, room);
  return `${kept}${end.isWellFormed() ? end : end.slice(0, -1)}…`;
}

/** JSON on one line. Escapes the control characters that JSON allows inside strings. */
export function jsonText(value: unknown): string {
  return singleLine(JSON.stringify(value));
}

export function singleLine(json: string): string {
  return json.replace(UNSAFE_CHARACTERS, escapeOf);
}
