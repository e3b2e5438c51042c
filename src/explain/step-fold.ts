// Step fold: the journal of a workflow's or a graph's run, grouped by command: what each step waited for, executed and returned. What a run
// waits for, `steps` of `show --json` and the rows of the timeline come from it. A flow has a fold of its own (flow-run.ts).
//
// step-fold.F1. The fold is incremental: entries that were read are not read again for a longer journal.
// step-fold.F2. Of a payload only names are kept, and errors of failed executions. What a promise shows is kept if the entry is decoded already.
// step-fold.F3. Entries that a retry made void do not count (retry-record.V2): a fold is given the retries of the journal. One that reads a
//   retry it was not given is stale, and the reader starts again. Executions of void entries stay, as history.

import { decode } from "../base/index.ts";
import {
  END_ENTRIES,
  isCancel,
  isTerminal,
  nodeItemOf,
  retryRecordOf,
  timerDueAt,
  VoidEntries,
  type Entry,
  type EntryData,
  type EntryType,
  type FrontierItemData,
  type JournalEntry,
  type RetryRecord,
  type RunRetriedData,
} from "../kernel/index.ts";
import { attemptOf, nodeOf } from "./typed-entry.ts";

/** An execution that ended with an entry. Times are milliseconds. */
export interface EndedExecution {
  readonly kind: "work" | "failed";
  readonly from: number;
  readonly to: number;
  readonly worker?: string | undefined;
  readonly execution?: number | undefined;
  /** From 1. */
  readonly attempt: number;
  readonly error?: { readonly error: unknown; readonly stack: unknown } | undefined;
  /** Of a failed one: when the next attempt starts. */
  readonly retryAt?: number | undefined;
}

/** `send`: it waits for nothing. `spread`: of a flow, with all its items. */
export type StepKind =
  | "task"
  | "child"
  | "sleep"
  | "operation"
  | "promise"
  | "settle"
  | "signal"
  | "update"
  | "node"
  | "spread"
  | "send";

export type StepState = "open" | "completed" | "failed" | "cancelled" | "timed_out" | "skipped";

export interface Step {
  readonly command: string;
  readonly kind: StepKind;
  /** Of a promise, its id, which contains its key. */
  readonly name: string;
  /** The key of a promise. */
  readonly key?: string | undefined;
  /** The node whose code requested it. */
  readonly parent?: string | undefined;
  /** The run id of a child. */
  readonly child?: string | undefined;
  /** The step of a graph. */
  readonly step?: number | undefined;
  /** When it was requested, queued or opened; undefined: its first entry is the end of an execution. */
  readonly startedAt: number | undefined;
  /** When a wait times out or a sleep ends. */
  readonly until?: number | undefined;
  /** A cancellation does not end it. */
  readonly shielded: boolean;
  /** What a promise shows to the person who resolves it (step-fold.F2). */
  readonly show?: unknown;
  /** The names of the signals that a receive waits for. */
  readonly signals: readonly string[];
  executions: readonly EndedExecution[];
  /** Attempts that the journal shows. */
  attempts: number;
  state: StepState;
  endedAt: number | undefined;
  /** The type of the entry that settled it. */
  ending: EntryType | undefined;
  /** Who settled it and why, as the caller said. */
  by?: string | undefined;
  reason?: string | undefined;
  /** Of a spread. */
  readonly items?: SpreadTimes | undefined;
}

export interface SpreadTimes {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly firstAt: number | undefined;
  readonly lastAt: number;
  readonly error?: EndedExecution["error"];
}

/** When workers showed that they held the run's turn. */
export interface HolderSign {
  readonly worker: string;
  readonly from: number;
  readonly to: number;
}

export interface CurrentStep {
  readonly step: number;
  readonly at: number;
  readonly frontier: readonly FrontierItemData[];
}

type Data = Readonly<Record<string, unknown>>;

/** An entry as the fold reads it: its data is parsed on demand. */
interface FoldEntry extends Pick<
  Entry,
  "seq" | "type" | "command" | "at" | "startedAt" | "tookMs" | "worker" | "execution"
> {
  readonly data: () => Data;
  readonly thrown: () => EndedExecution["error"];
  readonly isDecoded: boolean;
}

export class StepFold {
  /** Without those that a retry made void. */
  readonly steps = new Map<string, Step>();
  readonly signs: HolderSign[] = [];
  /** The last committed step of a graph that has not ended. */
  current: CurrentStep | undefined;
  /** step-fold.F3. Every retry that was read. */
  readonly retries: RetryRecord[] = [];
  readonly #given: readonly RetryRecord[];
  readonly #voids: VoidEntries;
  #void: StepFold | undefined;
  /** How promises were settled, by id: one that is created later is settled at once. */
  readonly #settled = new Map<string, FoldEntry>();
  readonly #innerOf = new Map<string, Step[]>();

  constructor(retries: readonly RetryRecord[] = []) {
    this.#given = retries;
    this.#voids = new VoidEntries(retries);
  }

  /** step-fold.F3 */
  get isStale(): boolean {
    return this.retries.length > this.#given.length;
  }

  /** All that happened, also before a retry, by command. */
  get history(): ReadonlyMap<string, Step> {
    if (this.#void === undefined) return this.steps;
    const all = new Map(this.steps);
    for (const [command, before] of this.#void.steps) {
      const step = this.steps.get(command);
      if (step !== undefined) all.set(command, { ...step, executions: [...before.executions, ...step.executions] });
      else all.set(command, before.state === "open" ? { ...before, state: "cancelled" } : before);
    }
    return all;
  }

  read(entry: Entry): void {
    let parsed: Data | undefined;
    this.#read({
      ...entry,
      data: () => (parsed ??= parse(entry)),
      thrown: () => errorIn(entry),
      isDecoded: false,
    });
  }

  readDecoded({ command = "", at, startedAt, data, ...entry }: JournalEntry): void {
    const fields = (typeof data === "object" && data !== null ? data : {}) as Data;
    this.#read({
      ...entry,
      command,
      at: at.getTime(),
      startedAt: startedAt?.getTime(),
      tookMs: entry.tookMs,
      worker: entry.worker,
      execution: entry.execution,
      data: () => fields,
      thrown: () => ({ error: fields["error"], stack: fields["stack"] }),
      isDecoded: true,
    });
  }

  #read(entry: FoldEntry): void {
    const { seq, type, command } = entry;
    if (type === "RunRetried") this.retries.push(retryRecordOf(seq, entry.data() as unknown as RunRetriedData));
    const isVoid =
      this.#given.length > 0 &&
      this.#voids.classify({ seq, type, command }, () => entry.data() as unknown as EntryData[EntryType]) !== "counts";
    if (isVoid) (this.#void ??= new StepFold()).#fold(entry);
    else this.#fold(entry);
  }

  #fold(entry: FoldEntry): void {
    const { type, command, at } = entry;
    if (type === "StepCommitted") {
      const { step, frontier } = entry.data() as { step?: number; frontier?: readonly FrontierItemData[] };
      this.current = { step: step ?? 0, at, frontier: frontier ?? [] };
      return;
    }
    if (isCancel(type)) for (const step of this.steps.values()) if (!step.shielded) close(step, "cancelled", at);
    if (END_ENTRIES.includes(type)) {
      this.current = undefined;
      for (const step of this.steps.values()) close(step, "cancelled", at);
    }
    if (type === "PromiseResolved" || type === "PromiseRejected")
      this.#settled.set(text(entry.data()["promiseId"]) ?? "", entry);
    if (command !== "") return this.#readCommand(entry);
    if (type !== "SignalReceived") return;
    // A message that arrived before the code waits for it belongs to no command.
    const early = { ...entry, command: `Signal(${entry.seq})` };
    close(this.#open(early, "signal", entry.data()["name"]), "completed", at);
  }

  #readCommand(entry: FoldEntry): void {
    const { type, command, at } = entry;
    switch (type) {
      case "ItemsSpread":
      case "StateSet":
      case "StateCleared":
      case "PatchMarked":
      case "InputChanged":
      case "BudgetRaised":
      case "BudgetDeclined":
        return;
      case "TaskScheduled":
        return void this.#open(entry, "task", entry.data()["taskType"]);
      case "ChildWorkflowInitiated": {
        const { childExecutionName, childExecutionId } = entry.data();
        return void this.#open(entry, "child", childExecutionName, { child: text(childExecutionId) });
      }
      case "TimerStarted": {
        const { timerId: id, ms, until: isMoment } = entry.data();
        const timerId = text(id) ?? "sleep";
        const until = timerDueAt({ timerId, ms: Number(ms ?? 0), until: isMoment === true }, at);
        return void this.#open(entry, "sleep", timerId, { until });
      }
      case "PromiseCreated":
        return this.#openPromise(entry);
      case "SettleRequested":
        return void this.#open(entry, "settle", entry.data()["promiseId"]);
      case "UpdateRequested":
        return void this.#open(entry, "update", entry.data()["name"]);
      case "MessageSent":
      case "ChildSignalled":
      case "ChildCancelRequested": {
        const { destination, name, childExecutionId } = entry.data();
        return close(this.#open(entry, "send", destination ?? name ?? childExecutionId), "completed", at);
      }
      case "OperationCompleted":
      case "OperationFailed":
      case "OperationRetried":
        return this.#endTurnExecution(entry, "operation");
      case "NodeCompleted":
      case "NodeFailed":
      case "NodeRetried":
        // When an attempt of a node ends, the node no longer waits for the steps of that attempt.
        for (const inner of this.#innerOf.get(command) ?? []) close(inner, "cancelled", at);
        return this.#endTurnExecution(entry, "node");
      default:
        return this.#end(entry);
    }
  }

  #openPromise(entry: FoldEntry): void {
    const { promiseId, timeout, receives, key, show } = entry.data();
    const step = this.#open(entry, receives === undefined ? "promise" : "signal", promiseId, {
      until: typeof timeout === "number" ? entry.at + timeout : undefined,
      key: text(key),
      signals: (receives as readonly string[] | undefined) ?? [],
      ...(entry.isDecoded && { show }),
    });
    // The code does not wait for a promise that was settled before.
    const settled = this.#settled.get(text(promiseId) ?? "");
    if (settled !== undefined) settle(step, settled.type, settled.data(), entry.at);
  }

  #open(entry: FoldEntry, kind: StepKind, name: unknown, more: Partial<Step> = {}): Step {
    const { command, at } = entry;
    const known = this.steps.get(command);
    if (known === undefined)
      return this.#add({ ...newStep(command, kind, name, at), shielded: entry.data()["shielded"] === true, ...more });
    if (known.state !== "completed") Object.assign(known, { state: "open", endedAt: undefined, ending: undefined });
    return known;
  }

  #add(step: Step): Step {
    this.steps.set(step.command, step);
    if (step.parent === undefined) return step;
    const inner = this.#innerOf.get(step.parent);
    if (inner === undefined) this.#innerOf.set(step.parent, [step]);
    else inner.push(step);
    return step;
  }

  /** An operation or a node of a graph runs in the worker that holds the turn; a task in any. */
  #endTurnExecution(entry: FoldEntry, kind: "operation" | "node"): void {
    const { command, type, worker, at } = entry;
    const data = entry.data();
    const step = this.steps.get(command) ?? this.#add(newStep(command, kind, data["operationName"], undefined));
    const execution = executionOf(entry, type.endsWith("Completed") ? "work" : "failed");
    addExecution(step, execution, data);
    if (worker !== undefined) this.signs.push({ worker, from: execution.from, to: execution.to });
    const isRetried = type.endsWith("Retried");
    step.state = isRetried ? "open" : execution.kind === "work" ? "completed" : "failed";
    step.endedAt = isRetried ? undefined : at;
    step.ending = isRetried ? undefined : type;
  }

  #end(entry: FoldEntry): void {
    const { type, command, at } = entry;
    const data = entry.data();
    const step = this.steps.get(command) ?? this.#answered(entry, data);
    if (step === undefined) return;
    if (type === "TaskCompleted" || type === "TaskFailed")
      addExecution(step, executionOf(entry, type === "TaskCompleted" ? "work" : "failed"), data);
    settle(step, type, data, at);
  }

  /** A command that a fork shares with its origin is requested there, and answered here. */
  #answered({ type, command, at }: FoldEntry, data: Data): Step | undefined {
    const kind = ANSWERED[type];
    const name = data["promiseId"] ?? data["name"] ?? data["childExecutionId"];
    return kind && this.#add(newStep(command, kind, name, at));
  }
}

/** The steps of a run, without those that a retry made void. */
export function stepsOf(entries: Iterable<JournalEntry>): Step[] {
  const all = [...entries];
  const retries = all.flatMap(({ seq, type, data }) =>
    type === "RunRetried" ? [retryRecordOf(seq, data as RunRetriedData)] : [],
  );
  const fold = new StepFold(retries);
  for (const entry of all) fold.readDecoded(entry);
  return [...fold.steps.values()].filter(({ kind, command }) => kind !== "send" && !EARLY.test(command));
}
const EARLY = /^Signal\(\d+\)$/;

export function newStep(command: string, kind: StepKind, name: unknown, startedAt: number | undefined): Step {
  return {
    command,
    kind,
    name: text(name) ?? command,
    startedAt,
    shielded: false,
    signals: [],
    executions: [],
    attempts: 1,
    state: "open",
    endedAt: undefined,
    ending: undefined,
    parent: nodeOf(command),
    step: nodeItemOf(command)?.step,
  };
}

const ANSWERED: Partial<Record<EntryType, StepKind>> = {
  TaskCompleted: "task",
  TaskFailed: "task",
  ChildWorkflowCompleted: "child",
  ChildWorkflowFailed: "child",
  TimerFired: "sleep",
  PromiseResolved: "promise",
  PromiseRejected: "promise",
  PromiseTimedOut: "promise",
  SignalReceived: "signal",
};

/** `undefined`: the entry does not end the command. */
function stateAfter(type: EntryType, data: Data): StepState | undefined {
  if (!isTerminal(type)) return undefined;
  switch (type) {
    case "SettleAnswered":
      return data["status"] === "accepted" || data["status"] === "repeated" ? "completed" : "failed";
    case "TaskFailed":
    case "ChildWorkflowFailed":
    case "PromiseRejected":
    case "UpdateFailed":
      return "failed";
    case "PromiseTimedOut":
      return "timed_out";
    case "TaskCancelled":
    case "TimerCancelled":
      return "cancelled";
    default:
      return "completed";
  }
}

function settle(step: Step, type: EntryType, data: Data, at: number): void {
  step.attempts = Math.max(step.attempts, attemptOf(data));
  const state = stateAfter(type, data);
  if (state === undefined) return;
  Object.assign(step, { state, endedAt: at, ending: type, by: text(data["by"]), reason: text(data["reason"]) });
}

function close(step: Step, state: StepState, at: number): void {
  if (step.state !== "open") return;
  step.state = state;
  step.endedAt = at;
}

/** memo.M2. Nothing was executed for a reused result. */
function addExecution(step: Step, execution: EndedExecution, data: Data): void {
  step.attempts = Math.max(step.attempts, execution.attempt);
  if (data["reused"] === undefined) (step.executions as EndedExecution[]).push(execution);
}

function executionOf(entry: FoldEntry, kind: "work" | "failed"): EndedExecution {
  const data = entry.data();
  const { delay } = data;
  return {
    ...executionTimes(entry),
    kind,
    attempt: attemptOf(data),
    error: kind === "failed" ? entry.thrown() : undefined,
    retryAt: typeof delay === "number" ? entry.at + delay : undefined,
  };
}

/** When and where an execution ran that ended with an entry. */
export function executionTimes({
  at,
  startedAt = at,
  tookMs,
  worker,
  execution,
}: Pick<Entry, "at" | "startedAt" | "tookMs" | "worker" | "execution">): Pick<
  EndedExecution,
  "from" | "to" | "worker" | "execution"
> {
  return { from: startedAt, to: tookMs === undefined ? at : startedAt + Math.round(tookMs), worker, execution };
}

/** What an execution threw; neither, if the data cannot be read. */
export function errorIn({ data }: Pick<Entry, "data">): EndedExecution["error"] {
  try {
    const { error, stack } = decode(data) as { readonly error?: unknown; readonly stack?: unknown };
    return { error, stack };
  } catch {
    return { error: undefined, stack: undefined };
  }
}

/** The fields of an entry as JSON: names and numbers are not tagged. A payload that cannot be read has none. */
function parse({ data }: Entry): Data {
  try {
    return JSON.parse(data) as Data;
  } catch {
    return {};
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
