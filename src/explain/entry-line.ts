// Entry line: a journal entry as one line for people: a tone, a name, a sentence, and lines below it.
//
//      ○ charge   task, scheduled
//      ● charge   took 212 ms, attempt 2 of 5 → { receipt: 'ch_1' }
//                 └ attempt 1: Error: the card network did not answer

import { formatMs, plain, showValue, textOf } from "../base/index.ts";
import {
  AttemptReader,
  commandForkOriginOf,
  costText,
  forkOriginOf,
  isDefaultTimerId,
  parseItemName,
  type AttemptRecord,
  type BudgetAnswerData,
  type JournalEntry,
  type RunAttempt,
  type RunStartedData,
} from "../kernel/index.ts";
import { executionText, failedAttemptLines, markOf, thrownAt, type TimelineMark } from "./attempt-texts.ts";
import {
  completedText,
  failedText,
  flowCompletedText,
  flowFailedText,
  placeText,
  retriedText,
  stepText,
} from "./node-texts.ts";
import { attemptOf, isGraphNode, nodeOf, timerEndOf, typedEntryOf, type TypedEntry } from "./typed-entry.ts";

export type Tone = "good" | "bad" | "open" | "quiet";

/** The text of one entry. */
export interface Line {
  readonly tone: Tone;
  readonly name: string;
  readonly text: string;
  /** Lines below it: failed attempts. */
  readonly under: readonly string[];
}

/** Reads entries in order, and remembers the open commands of earlier entries. */
export class TimelineReader {
  readonly #opened: OpenCommands = new Map();
  readonly #attempts: AttemptReader;
  /** Failed attempts of steps that have not ended. */
  readonly #failed = new Map<string, RunAttempt[]>();
  #startedAt: number | undefined;
  #worker: string | undefined;
  #marks: TimelineMark[] = [];

  /**
   * `startedAt`: needed if the first entry of the run is not read. `attempts`: the executions that ended without an entry; an entry
   * shows those of its step.
   */
  constructor(startedAt?: number, attempts: readonly AttemptRecord[] = []) {
    this.#startedAt = startedAt;
    this.#attempts = new AttemptReader(attempts);
  }

  read(entry: JournalEntry): Line {
    this.#startedAt ??= entry.at.getTime();
    // Names the task of later attempts; the line of the entry itself shows how it ended.
    this.#attempts.own(entry);
    this.#note(this.#attempts.before(entry.at.getTime()));
    const line = this.#withExecution(lineOf(typedEntryOf(entry), this.#opened, this.#startedAt), entry);
    const { command = "" } = entry;
    // A command that the code of a node created shows the place of that node.
    return nodeOf(command) === undefined ? line : { ...line, name: `${placeText(command)}/${line.name}` };
  }

  /** The executions that were lost or returned since the last call. */
  takeMarks(isLast = false): readonly TimelineMark[] {
    if (isLast) this.#note(this.#attempts.rest());
    return this.#marks.splice(0);
  }

  #note(attempts: readonly RunAttempt[]): void {
    for (const attempt of attempts) {
      const mark = markOf(attempt);
      if (mark !== undefined) this.#marks.push(mark);
      else if (attempt.step !== undefined && attempt.outcome === "failed")
        this.#failed.set(attempt.step, [...(this.#failed.get(attempt.step) ?? []), attempt]);
    }
  }

  #withExecution(line: Line, entry: JournalEntry): Line {
    const { command = "", worker } = entry;
    if (entry.tookMs === undefined) return line;
    const note = executionText(entry, attemptOf(typedEntryOf(entry).data), this.#worker);
    this.#worker = worker;
    const earlier = this.#failed.get(command) ?? [];
    this.#failed.delete(command);
    const under =
      earlier.length === 0
        ? line.under
        : [...earlier.flatMap(failedAttemptLines), ...lastThrownBy(typedEntryOf(entry))];
    const [before, ...rest] = line.text.split(ARROW);
    return { ...line, text: [`${before}${note}`, ...rest].join(ARROW), under };
  }
}

/** A fixed number of decimals, so that times align. */
export function offsetText(ms: number): string {
  // A fork with recorded effects gets answers with the times of its origin.
  if (ms < 0) return "recorded";
  if (ms < 1_000) return `+${Math.round(ms)} ms`;
  return ms < 60_000 ? `+${(ms / 1_000).toFixed(2)} s` : `+${formatMs(ms)}`;
}

/**
 * A command that has no terminal entry yet, or that failed and may be retried. `queuedAt`: when a retry of the run queued it again.
 * `maxAttempts`: of a task, if it is retried.
 */
interface OpenCommand {
  readonly name: string;
  readonly at: Date;
  readonly queuedAt?: Date;
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
    const took = tookText(entry, start);
    const name = start?.name ?? plain(textOf(fallbackName, command));
    return { tone, name, text: text(took), under: [...failuresOf(entry.data), ...thrownBy(entry)] };
  };
  const attempt = (): string => attemptText(entry.data, opened.get(command)?.maxAttempts);
  switch (entry.type) {
    case "RunStarted":
      return line("quiet", "started", startedText(entry.data));
    case "NodeCompleted":
      if (isGraphNode(command)) return line("good", nodeName(entry), completedText(entry));
      return close(parseItemName(command).kind === "spread" ? "quiet" : "good", () => flowCompletedText(entry));
    case "NodeFailed":
      if (isGraphNode(command))
        return { ...line("bad", nodeName(entry), failedText(entry)), under: thrownAt(entry.data.stack) };
      return close("bad", () => flowFailedText(entry));
    case "NodeRetried":
      return {
        ...line("quiet", nodeName(entry), retriedText(entry)),
        under: [showValue(entry.data.error), ...thrownAt(entry.data.stack)],
      };
    case "NodeSkipped":
      return line("quiet", plain(command), "skipped");
    case "ItemsSpread":
      return line("quiet", plain(command), itemsText(entry.data));
    case "StepCommitted":
      return line("quiet", `step ${String(entry.data.step)}`, stepText(entry.data));
    case "TaskScheduled":
      return open(entry.data.taskType, "task, scheduled", entry.data.retry?.maxAttempts);
    case "TaskCompleted":
      return close(
        "good",
        (took) => `${howText(entry.data, `took ${took}`)}${attempt()}${arrow(entry.data, "result")}`,
      );
    case "TaskFailed":
      return close("bad", (took) => `took ${took}${attempt()}: ${showValue(entry.data.error)}`);
    case "TaskCancelled":
      return close("quiet", () => `cancelled${because(entry.data)}`);
    case "TaskCancelRequested":
      return close("quiet", () => `cancelled${because(entry.data)}; it finishes first, because it has an undo`);
    case "ChildWorkflowInitiated":
      return open(entry.data.childExecutionName, `child run ${plain(textOf(entry.data.childExecutionId, ""))}`);
    case "ChildWorkflowCompleted":
      return close("good", (took) => `child completed in ${took}${arrow(entry.data, "output")}`);
    case "ChildWorkflowFailed":
      return close("bad", (took) => `child failed after ${took}: ${showValue(entry.data.error)}`);
    case "TimerStarted": {
      const { ms, until } = entry.data;
      const timerId = textOf(entry.data.timerId, "sleepUntil");
      const end = `until ${offsetText(timerEndOf(entry).getTime() - startedAt)}`;
      const length = `sleep ${formatMs(Number(ms))}`;
      if (isDefaultTimerId(timerId)) return open(timerId === "sleep" ? length : "sleep until", end);
      return open(timerId, until === true ? `sleep ${end}` : `${length}, ${end}`);
    }
    case "TimerFired":
      return close("good", (took) => `ended after ${took}`);
    case "TimerCancelled":
      return close("quiet", () => "cancelled");
    case "OperationCompleted":
      return close(
        "good",
        () => `operation${howText(entry.data, "", ", ")}${attempt()}${arrow(entry.data, "result")}`,
        entry.data.operationName,
      );
    case "OperationFailed":
      return close("bad", () => `operation${attempt()}: ${showValue(entry.data.error)}`, entry.data.operationName);
    case "OperationRetried": {
      const { operationName, delay, error } = entry.data;
      const text = `operation, attempt ${attemptOf(entry.data)} failed, retry in ${formatMs(Number(delay))}`;
      return { ...close("quiet", () => text, operationName), under: [showValue(error), ...thrownAt(entry.data.stack)] };
    }
    case "PromiseCreated": {
      const { promiseId, receives, timeout } = entry.data;
      const limit = timeout === undefined ? "" : ` up to ${formatMs(Number(timeout))}`;
      return open(promiseId, `${receives === undefined ? "promise" : "signal"}, waiting${limit}`);
    }
    case "PromiseResolved":
      return close(
        "good",
        (took) => `resolved${after(took)}${byText(entry.data)}${arrow(entry.data, "value")}`,
        entry.data.promiseId,
      );
    case "PromiseRejected":
      return close(
        "bad",
        (took) => `rejected${after(took)}${byText(entry.data)}: ${showValue(entry.data.error)}`,
        entry.data.promiseId,
      );
    case "PromiseTimedOut":
      return close("quiet", (took) => `timed out after ${took}`);
    case "SettleRequested": {
      const { promiseId, runId } = entry.data;
      const verb = "error" in entry.data ? "reject" : "resolve";
      return open(`${verb} ${text(promiseId)}`, `of run ${text(runId)}${byText(entry.data)}`);
    }
    case "SettleAnswered": {
      const { status } = entry.data;
      const isDone = status === "accepted" || status === "repeated";
      return close(isDone ? "good" : "bad", () => (isDone ? "settled" : `not settled: ${text(status)}`));
    }
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
    case "InputChanged":
      return line("bad", "input changed", `at ${command}: a replay passed another ${text(entry.data.what)}`);
    case "BudgetRaised":
      if (entry.data.woken !== undefined)
        return line("quiet", "budget has room", "other calls cost less than they reserved");
      return line("quiet", "budget raised", `${costText(entry.data.add ?? {})}${answeredBy(entry.data)}`);
    case "BudgetDeclined":
      return line("bad", "budget declined", answeredBy(entry.data).trimStart());
    case "RunRetried": {
      const { step, from } = entry.data;
      for (const [name, start] of opened) opened.set(name, { ...start, queuedAt: entry.at });
      return line("quiet", "retried", step === undefined ? `from entry ${String(from)}` : `step ${step} again`);
    }
    case "RunMigrated":
      return line("quiet", "migrated", `from version ${entry.data.from} to version ${entry.data.to}`);
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

/** A reused result took no time. */
function howText({ reused }: { readonly reused?: string }, ran: string, before = ""): string {
  return reused === undefined ? ran : `${before}reused`;
}

/** How long the code ran; for an entry of an earlier version, and for a wait, the time since it was requested. */
function tookText({ at, execution, startedAt = at, tookMs }: TypedEntry, open: OpenCommand | undefined): string {
  if (tookMs === undefined) return open === undefined ? "" : waitText(at.getTime() - open.at.getTime());
  const waitedMs = startedAt.getTime() - (open?.queuedAt ?? open?.at ?? startedAt).getTime();
  // The delays between attempts are not a wait for a worker.
  return execution === 1 && waitedMs >= LONG_WAIT_MS
    ? `${formatMs(tookMs)} (${formatMs(waitedMs)} in the queue)`
    : formatMs(tookMs);
}
const LONG_WAIT_MS = 1_000;

function nodeName({ command = "", data }: TypedEntry<"NodeCompleted" | "NodeFailed" | "NodeRetried">): string {
  return plain(textOf(data.operationName, command));
}

function startedText(data: Partial<RunStartedData>): string {
  const origin = forkOriginOf(data as RunStartedData);
  if (origin !== undefined) return `as a fork of ${plain(origin.run)}, from step ${origin.step}`;
  const shared = commandForkOriginOf(data as RunStartedData);
  if (shared !== undefined) return `as a fork of ${plain(shared.run)}, at ${plain(shared.at)}`;
  return "input" in data ? `with ${showValue(data.input)}` : "";
}

function line(tone: Tone, name: string, text: string): Line {
  return { tone, name, text, under: [] };
}

function text(value: unknown): string {
  return plain(textOf(value, ""));
}

/** An answer that is older than its request comes from the origin of a fork, and takes no time. */
function waitText(ms: number): string {
  return formatMs(Math.max(0, ms));
}

function after(took: string): string {
  return took === "" ? "" : ` after ${took}`;
}

/** ` by Ann (all green)`; empty if the settlement does not say who decided and why. */
function byText({ by, reason }: { readonly by?: unknown; readonly reason?: unknown }): string {
  const who = typeof by === "string" ? ` by ${plain(by)}` : "";
  return typeof reason === "string" ? `${who} (${plain(reason)})` : who;
}

/** `, attempt 2 of 5`; empty for the only attempt. */
function attemptText(data: object, maxAttempts: number | undefined): string {
  if (!("attempt" in data)) return "";
  return `, attempt ${attemptOf(data)}${maxAttempts === undefined ? "" : ` of ${maxAttempts}`}`;
}

const ARROW = " → ";

function because({ reason }: { readonly reason?: unknown }): string {
  return reason === undefined ? "" : `: ${text(reason)}`;
}

function arrow(data: object, field: string): string {
  return field in data ? `${ARROW}${showValue((data as Readonly<Record<string, unknown>>)[field])}` : "";
}

/** Where a failed step threw. */
function thrownBy({ type, data }: TypedEntry): readonly string[] {
  return type === "TaskFailed" || type === "OperationFailed" || type === "NodeFailed" ? thrownAt(data.stack) : [];
}

/** Below the lines of earlier attempts, a place without its attempt would seem to belong to them. */
function lastThrownBy(entry: TypedEntry): readonly string[] {
  const frames = thrownBy(entry);
  return frames.length === 0 ? [] : [`attempt ${attemptOf(entry.data)} threw`, ...frames];
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

/** ` by ann: within this month` */
function answeredBy({ by, reason }: BudgetAnswerData): string {
  return `${by === undefined ? "" : ` by ${plain(by)}`}${reason === undefined ? "" : `: ${plain(reason)}`}`;
}
