// How one run is described to people: where it stands, what it waits for, what went wrong and what to do.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { itemText, turnLines, type Holding } from "./holding.ts";
import { paint, type Paint } from "./output.ts";
import { isOwnFrame } from "./own-files.ts";
import { isoOf, paintStatus, type Trouble } from "./shown-run.ts";
import type { Step } from "./steps.ts";
import { countOf, plain, plainLines, showValue } from "./text.ts";

/** `order-7  order v1  completed in 2.1 s` */
export function titleOf(record: RunRecord, now: number, painted: Paint = paint): string {
  const { id, definition, version, status, generation } = record;
  const name = `${plain(definition)} v${version}${generation === 0 ? "" : `, generation ${generation}`}`;
  return `${painted("bold", plain(id))}  ${name}  ${statusOf(record, now, painted, status)}`;
}

export function statusOf(
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
    titleOf(record, now),
    paint("dim", `started ${isoOf(createdAt)}  ${countOf(head, "entry", "entries")}  sha256:${chain.slice(0, 16)}…`),
  ];
  if (tags.length > 0) lines.push(paint("dim", `tags ${tags.map(plain).join(", ")}`));
  if (unread > 0) lines.push(paint("yellow", `${countOf(unread, "message", "messages")} came too late to be read`));
  return lines;
}

export function waitsFor(record: RunRecord, steps: readonly Step[]): readonly Step[] {
  return hasEnded(record.status) ? [] : steps.filter(({ endedAt }) => endedAt === undefined);
}

export interface WaitOptions {
  readonly painted?: Paint;
  /** What it waits for besides has been said already. */
  readonly isTold?: boolean;
  readonly holding?: Holding | undefined;
}

export function waitLines(
  record: RunRecord,
  steps: readonly Step[],
  now: number,
  { painted = paint, isTold = false, holding }: WaitOptions = {},
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
      const open = waitsFor(record, steps).map((step) => waitLine(step, now, painted, holding));
      const worker = `a worker that has the definition ${plain(record.definition)}`;
      const news = record.arrivals - record.read;
      if (record.status === "queued") open.unshift(worker);
      else if (record.status === "waiting" && news > 0)
        open.unshift(`${worker}, to take in ${countOf(news, "message", "messages")}`);
      else if (record.status === "running")
        open.unshift(...(holding === undefined ? ["a worker"] : turnLines(holding, now)));
      else if (record.status === "waiting" && open.length === 0 && !isTold)
        open.push("an update, if its code takes one; otherwise nothing that can come: see `reprise doctor`");
      else if (record.status === "paused") open.unshift("somebody who resumes it");
      return open;
    }
  }
}

/** What to type for the promises and signals it waits for, in the order it asked for them. */
export function answerLines(record: RunRecord, waits: readonly Step[]): string[] {
  const { id, status, arrivals, read } = record;
  // What has come and was not read yet may be the answer.
  if (status !== "waiting" || arrivals > read) return [];
  const asked = waits.filter(({ kind, endedAt }) => (kind === "promise" || kind === "signal") && endedAt === undefined);
  const commands = asked.map(({ kind, name }) => [kind === "promise" ? "resolve" : "signal", id, name]);
  return commands
    .slice(0, MAX_ANSWERS)
    .map((words) => `  ${paint("dim", "next:")} reprise ${words.map(shellWord).join(" ")} '<value as JSON>'`);
}
const MAX_ANSWERS = 3;

function shellWord(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : `'${plain(word).replaceAll("'", `'\\''`)}'`;
}

export function waitLine(step: Step, now: number, painted: Paint, holding?: Holding): string {
  const { kind, name, command, until, attempts, show, child } = step;
  const shown = painted("bold", plain(name));
  const left = until === undefined ? "" : untilText(until.getTime() - now);
  const limit = until === undefined ? "" : `, ${limitText(until.getTime() - now)}`;
  const place = painted("dim", command);
  switch (kind) {
    case "task":
      return `task ${shown}: ${(holding && itemText(holding, command, now)) ?? "a worker that has it"} ${place}`;
    case "child":
      return `child ${shown}${child === undefined ? "" : `, run ${plain(child)}`} ${place}`;
    case "sleep":
      return `${left === "" ? "a timer" : `a timer, ${left}`} ${place}`;
    case "promise":
      return `promise ${shown} from outside${limit}${show === undefined ? "" : `, for ${showValue(show, SHOW_WIDTH)}`} ${place}`;
    case "signal":
      return `signal ${shown}${limit} ${place}`;
    case "update":
      return `its own answer to update ${shown} ${place}`;
    case "operation":
    case "node":
      return `${kind} ${shown}, attempt ${attempts + 1} ${place}`;
  }
}

/** Enough to see what somebody is asked. */
const SHOW_WIDTH = 200;

function untilText(ms: number): string {
  return ms > 0 ? `in ${formatMs(ms)}` : `due since ${formatMs(-ms)}`;
}

function limitText(ms: number): string {
  return ms > 0 ? `runs out in ${formatMs(ms)}` : `ran out ${formatMs(-ms)} ago, which a worker has yet to see`;
}

export function troubleLines(
  record: RunRecord,
  { code, message, next, where, expected, actual, stack }: Trouble,
): string[] {
  const lines = [`${paint(["red", "bold"], `${record.status} ${code}:`)} ${plain(message)}`];
  if (where !== null) lines.push(`  ${paint("dim", "where:")} ${plain(where)}`);
  if (code === "DETERMINISM_VIOLATION") {
    lines.push(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
    lines.push(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
  }
  const userFrames = frames(stack ?? "");
  if (userFrames !== "") lines.push(paint("dim", userFrames));
  return [...lines, `  ${paint("dim", "next:")} ${next}`];
}

/** The user's own frames; how the engine called them helps nobody here. */
function frames(stack: string): string {
  return plainLines(stack)
    .split("\n")
    .filter((frame) => /^\s+at /.test(frame) && !isOwnFrame(frame) && !frame.includes("(node:"))
    .slice(0, 6)
    .map((frame) => `    ${frame.trim()}`)
    .join("\n");
}
