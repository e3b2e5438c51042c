// Run view: texts about one run: its status, what it waits for, its error and the next command.

import { formatMs, userFrames } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import type { NotedInputChange } from "../workflow/index.ts";
import { withStoreOption } from "./next-command.ts";
import { wrapWords } from "./explanation.ts";
import { lineWidth, paint, type Paint } from "./output.ts";
import { isoOf, paintStatus, type RunErrorInfo } from "./run-format.ts";
import { pluralize, plain, showValue } from "./text.ts";

/** `order-7  order v1  completed in 2.1 s` */
export function titleLine(record: RunRecord, now: number, painted: Paint = paint): string {
  const { id, definition, version, status, generation } = record;
  const name = `${plain(definition)} v${version}${generation === 0 ? "" : `, generation ${generation}`}`;
  return `${painted("bold", plain(id))}  ${name}  ${statusText(record, now, painted, status)}`;
}

export function statusText(
  { createdAt, endedAt }: RunRecord,
  now: number,
  painted: Paint,
  status: RunRecord["status"],
): string {
  const time =
    endedAt === undefined ? `for ${formatMs(Math.max(0, now - createdAt))}` : `in ${formatMs(endedAt - createdAt)}`;
  return `${paintStatus(painted, status)} ${time}`;
}

export function headLines(record: RunRecord, now: number): string[] {
  const { createdAt, head, tags, unread, chain } = record;
  const lines = [
    titleLine(record, now),
    paint("dim", `started ${isoOf(createdAt)}  ${pluralize(head, "entry", "entries")}  sha256:${chain.slice(0, 16)}…`),
  ];
  if (tags.length > 0) lines.push(paint("dim", `tags ${tags.map(plain).join(", ")}`));
  if (unread > 0)
    lines.push(paint("yellow", `${pluralize(unread, "message", "messages")} arrived after the run ended`));
  return lines;
}

/** The inputs that differed when a worker replayed the run. */
export function inputChangeLines(changes: readonly NotedInputChange[]): string[] {
  return changes
    .slice(0, MAX_CHANGES)
    .map(({ where, what }) => `${plain(where)}: a replay passed another ${plain(what)} than the journal recorded`)
    .concat(changes.length > MAX_CHANGES ? [`… ${changes.length - MAX_CHANGES} more changed inputs`] : [])
    .map((line) => paint("yellow", line));
}
const MAX_CHANGES = 5;

export function errorLines(
  record: RunRecord,
  { code, message, next, where, expected, actual, stack }: RunErrorInfo,
): string[] {
  const title = `${record.status} ${code}:`;
  const [first = "", ...more] = wrapOnTerminal(`${title} ${plain(withStoreOption(message))}`, 2);
  const lines = [`${paint(["red", "bold"], title)}${first.slice(title.length)}`, ...more];
  if (where !== null) lines.push(`  ${paint("dim", "where:")} ${plain(where)}`);
  if (code === "DETERMINISM_VIOLATION") {
    lines.push(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
    lines.push(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
  }
  for (const frame of userFrames(stack ?? "").slice(0, SHOWN_FRAMES)) lines.push(paint("dim", `    ${frame}`));
  const [advice = "", ...rest] = wrapOnTerminal(`  next: ${next}`, 4);
  return [...lines, advice.replace("next:", paint("dim", "next:")), ...rest];
}

const SHOWN_FRAMES = 6;

/** Lines of at most the terminal's width; a pipe gets one line. */
function wrapOnTerminal(text: string, indent: number): readonly string[] {
  if (!process.stdout.isTTY) return [text];
  const [first = "", ...rest] = wrapWords(text, lineWidth() - indent);
  return [first, ...rest.map((line) => `${" ".repeat(indent)}${line}`)];
}
