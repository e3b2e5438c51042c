// Run view: texts about one run: its status, what it waits for, its error and the next command.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { itemText, turnLines, type RunLeases } from "./run-leases.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, type Paint } from "./output.ts";
import { isPackageFrame } from "./package-files.ts";
import { isoOf, paintStatus, type RunErrorInfo } from "./run-format.ts";
import type { Step } from "./steps.ts";
import { pluralize, plain, plainLines, showValue } from "./text.ts";

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

export function openSteps(record: RunRecord, steps: readonly Step[]): readonly Step[] {
  return hasEnded(record.status) ? [] : steps.filter(({ endedAt }) => endedAt === undefined);
}

export interface WaitOptions {
  readonly painted?: Paint;
  /** The output already shows the nodes that the run waits for. */
  readonly hasNodeLines?: boolean;
  readonly leases?: RunLeases | undefined;
}

export function waitLines(
  record: RunRecord,
  steps: readonly Step[],
  now: number,
  { painted = paint, hasNodeLines = false, leases }: WaitOptions = {},
): string[] {
  switch (record.status) {
    case "completed":
    case "failed":
    case "cancelled":
    case "continued":
    case "blocked":
    case "determinism_violation":
      return [];
    case "queued":
    case "expected":
    case "paused":
    case "running":
    case "waiting": {
      const open = openSteps(record, steps).map((step) => waitLine(step, now, painted, leases));
      const worker = `a worker with the definition ${plain(record.definition)}`;
      const unread = record.arrivals - record.read;
      if (record.status === "queued") open.unshift(worker);
      else if (record.status === "waiting" && unread > 0)
        open.unshift(`${worker}, to process ${pluralize(unread, "unread message", "unread messages")}`);
      else if (record.status === "running")
        open.unshift(...(leases === undefined ? ["a worker"] : turnLines(leases, now)));
      else if (record.status === "waiting" && open.length === 0 && !hasNodeLines)
        open.push(
          withStoreOption("an update, if its code handles updates; otherwise it is stuck, run `reprise doctor`"),
        );
      else if (record.status === "paused") open.unshift(pausedText(record));
      return open;
    }
  }
}

export function pausedText({ id }: RunRecord): string {
  return withStoreOption(`Paused; run \`reprise resume ${shellWord(id)}\` to continue`);
}

/** The commands that resolve the promises and send the signals the run waits for, in journal order. */
export function nextCommandLines(record: RunRecord, waits: readonly Step[]): string[] {
  const { id, status, arrivals, read } = record;
  // An unread message may be the answer.
  if (status !== "waiting" || arrivals > read) return [];
  const awaited = waits.filter(
    ({ kind, endedAt }) => (kind === "promise" || kind === "signal") && endedAt === undefined,
  );
  const commands = awaited.flatMap(({ kind, name, signals }) =>
    kind === "promise" ? [["resolve", id, name]] : signals.map((signal) => ["signal", id, signal]),
  );
  return commands
    .slice(0, MAX_ANSWERS)
    .map((words) => withStoreOption(`reprise ${words.map(shellWord).join(" ")} '<value as JSON>'`))
    .map((command) => `  ${paint("dim", "next:")} ${command}`);
}
const MAX_ANSWERS = 3;

export function waitLine(step: Step, now: number, painted: Paint, leases?: RunLeases): string {
  const { kind, name, command, until, attempts, show, child } = step;
  const shown = painted("bold", plain(name));
  const left = until === undefined ? "" : untilText(until.getTime() - now);
  const limit = until === undefined ? "" : `, ${limitText(until.getTime() - now)}`;
  const place = painted("dim", ` ${command}`);
  switch (kind) {
    case "task":
      return `task ${shown}: ${(leases && itemText(leases, command, now)) ?? "no worker has claimed it"} ${place}`;
    case "child":
      return `child ${shown}${child === undefined ? "" : `, run ${plain(child)}`} ${place}`;
    case "sleep":
      return `${left === "" ? "timer" : `timer, ${left}`} ${place}`;
    case "promise":
      return `promise ${shown}${limit}${show === undefined ? "" : `, showing ${showValue(show, SHOW_WIDTH)}`} ${place}`;
    case "signal":
      return `signal ${shown}${limit} ${place}`;
    case "update":
      return `answer of its code to update ${shown} ${place}`;
    case "operation":
    case "node":
      return `${kind} ${shown}, attempt ${attempts + 1} ${place}`;
  }
}

/** The maximum width of the value that a promise shows. */
const SHOW_WIDTH = 200;

function untilText(ms: number): string {
  return ms > 0 ? `fires in ${formatMs(ms)}` : `overdue by ${formatMs(-ms)}`;
}

function limitText(ms: number): string {
  return ms > 0
    ? `times out in ${formatMs(ms)}`
    : `timed out ${formatMs(-ms)} ago; a worker has not processed that yet`;
}

export function errorLines(
  record: RunRecord,
  { code, message, next, where, expected, actual, stack }: RunErrorInfo,
): string[] {
  const lines = [`${paint(["red", "bold"], `${record.status} ${code}:`)} ${plain(withStoreOption(message))}`];
  if (where !== null) lines.push(`  ${paint("dim", "where:")} ${plain(where)}`);
  if (code === "DETERMINISM_VIOLATION") {
    lines.push(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
    lines.push(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
  }
  const shownFrames = userFrames(stack ?? "");
  if (shownFrames !== "") lines.push(paint("dim", shownFrames));
  return [...lines, `  ${paint("dim", "next:")} ${next}`];
}

/** The stack frames of the user's code. */
function userFrames(stack: string): string {
  return plainLines(stack)
    .split("\n")
    .filter((frame) => /^\s+at /.test(frame) && !isPackageFrame(frame) && !frame.includes("(node:"))
    .slice(0, 6)
    .map((frame) => `    ${frame.trim()}`)
    .join("\n");
}
