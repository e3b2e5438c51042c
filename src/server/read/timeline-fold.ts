// Timeline fold: reads the entries of a journal in order and keeps, per command, what a row of the Gantt chart needs.
//
// timeline-fold.F1. The fold is incremental: entries that were read are not read again for a longer journal.
// timeline-fold.F2. Nothing of a payload is kept but names, and errors of failed executions. The items of a spread are counted, and the data of
//   an item that completed is not parsed.

import { decode } from "../../base/index.ts";
import { isGraphNode, nodeOf } from "../../explain/index.ts";
import {
  FLOW_OUTPUT,
  isCancel,
  parseItemName,
  timerDueAt,
  type Entry,
  type EntryType,
  type FrontierItemData,
} from "../../kernel/index.ts";
import type { TimelineRow } from "../../contract/index.ts";

/** An execution that ended with an entry. */
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

export interface StepDraft {
  readonly command: string;
  readonly kind: TimelineRow["kind"];
  name: string;
  readonly key?: string | undefined;
  readonly parent?: string | undefined;
  child?: string | undefined;
  readonly step?: number | undefined;
  /** When it was requested, queued or opened; undefined: its first entry is the end of an execution. */
  readonly requestedAt: number | undefined;
  /** When an open wait ends at the latest. */
  readonly until?: number | undefined;
  readonly shielded: boolean;
  readonly executions: EndedExecution[];
  state: "open" | "completed" | "failed" | "cancelled" | "timed_out" | "skipped";
  endedAt: number | undefined;
  by?: string | undefined;
  reason?: string | undefined;
  spread?: SpreadDraft;
}

/** timeline-fold.F2 */
export interface SpreadDraft {
  readonly total: number;
  done: number;
  failed: number;
  firstAt: number | undefined;
  lastAt: number;
  error?: EndedExecution["error"];
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

/** An operation or a node of a graph runs in the worker that holds the turn; a task and a node of a flow in any. */
const TURN_ENDS: Partial<Record<EntryType, "work" | "failed">> = {
  OperationCompleted: "work",
  OperationFailed: "failed",
  OperationRetried: "failed",
};

type Data = Readonly<Record<string, unknown>>;

export class TimelineFold {
  readonly steps = new Map<string, StepDraft>();
  readonly signs: HolderSign[] = [];
  /** The times of entries, by seq - 1. */
  readonly times: number[] = [];
  current: CurrentStep | undefined;
  lastSeq = 0;
  lastMark = 0;
  /** Steps that are requested after a retry have other idempotency keys (retry-record.V3). */
  wasRetried = false;
  /** How promises were settled that the code had not created, by id. */
  readonly #early = new Map<string, Entry>();
  readonly #innerOf = new Map<string, StepDraft[]>();

  read(entry: Entry): void {
    this.lastSeq = entry.seq;
    this.lastMark = entry.mark;
    this.times.push(entry.at);
    const { type, command, at } = entry;
    if (type === "RunRetried") this.wasRetried = true;
    if (command !== "" && type.startsWith("Node") && !isGraphNode(command)) return this.#readFlowNode(entry);
    switch (type) {
      case "ItemsSpread":
      case "StateSet":
      case "StateCleared":
      case "PatchMarked":
      case "InputChanged":
      case "BudgetRaised":
      case "BudgetDeclined":
      case "RunStarted":
        return;
      case "StepCommitted": {
        const { step, frontier } = parse(entry) as { step?: number; frontier?: readonly FrontierItemData[] };
        this.current = { step: step ?? 0, at, frontier: frontier ?? [] };
        return;
      }
      default:
    }
    if (isCancel(type)) for (const step of this.steps.values()) if (!step.shielded) close(step, "cancelled", at);
    if (/^Run(?:Completed|Failed|Cancelled|Continued)$/.test(type)) {
      this.current = undefined;
      for (const step of this.steps.values()) close(step, "cancelled", at);
    }
    if (command === "") return this.#readEarly(entry);
    this.#readCommand(entry, parse(entry));
  }

  /** A message that arrived before the code waits for it belongs to no command. */
  #readEarly(entry: Entry): void {
    const { type, seq, at } = entry;
    if (type === "PromiseResolved" || type === "PromiseRejected")
      this.#early.set(text(parse(entry)["promiseId"]) ?? "", entry);
    if (type !== "SignalReceived") return;
    const data = parse(entry);
    const command = `Signal(${seq})`;
    this.#open({ ...entry, command }, data, "signal", data["name"]);
    close(this.steps.get(command), "completed", at);
  }

  #readCommand(entry: Entry, data: Data): void {
    const { type, command, at } = entry;
    switch (type) {
      case "TaskScheduled":
        return this.#open(entry, data, "task", data["taskType"]);
      case "ChildWorkflowInitiated":
        return this.#open(entry, data, "child", data["childExecutionName"], { child: text(data["childExecutionId"]) });
      case "TimerStarted": {
        const timerId = text(data["timerId"]) ?? "sleep";
        const until = timerDueAt({ timerId, ms: Number(data["ms"] ?? 0), until: data["until"] === true }, at);
        return this.#open(entry, data, "sleep", timerId, { until });
      }
      case "PromiseCreated": {
        const { timeout, receives, key } = data;
        const until = typeof timeout === "number" ? at + timeout : undefined;
        const kind = receives === undefined ? "promise" : "signal";
        this.#open(entry, data, kind, promiseName(data), { until, key: text(key) });
        const early = this.#early.get(text(data["promiseId"]) ?? "");
        if (early !== undefined) this.#end({ ...early, command, at }, parse(early));
        return;
      }
      case "SettleRequested":
        return this.#open(entry, data, "settle", data["promiseId"]);
      case "UpdateRequested":
        return this.#open(entry, data, "update", data["name"]);
      case "MessageSent":
      case "ChildSignalled":
      case "ChildCancelRequested":
        this.#open(entry, data, "send", data["destination"] ?? data["name"] ?? data["childExecutionId"]);
        return close(this.steps.get(command), "completed", at);
      case "OperationCompleted":
      case "OperationFailed":
      case "OperationRetried":
        return this.#endTurnExecution(entry, data, "operation", TURN_ENDS[type]!);
      case "NodeCompleted":
      case "NodeFailed":
      case "NodeRetried":
        for (const inner of this.#innerOf.get(command) ?? []) close(inner, "cancelled", at);
        return this.#endTurnExecution(entry, data, "node", type === "NodeCompleted" ? "work" : "failed");
      default:
        return this.#end(entry, data);
    }
  }

  #open(
    { command, at }: Entry,
    data: Data,
    kind: StepDraft["kind"],
    name: unknown,
    more: Partial<StepDraft> = {},
  ): void {
    const known = this.steps.get(command);
    if (known !== undefined) {
      // A retry of the run requests it again.
      if (known.state !== "completed") Object.assign(known, { state: "open", endedAt: undefined });
      return;
    }
    this.#add({
      command,
      kind,
      name: text(name) ?? command,
      requestedAt: at,
      shielded: data["shielded"] === true,
      executions: [],
      state: "open",
      endedAt: undefined,
      ...placeOf(command),
      ...more,
    });
  }

  #add(step: StepDraft): StepDraft {
    this.steps.set(step.command, step);
    if (step.parent === undefined) return step;
    const inner = this.#innerOf.get(step.parent);
    if (inner === undefined) this.#innerOf.set(step.parent, [step]);
    else inner.push(step);
    return step;
  }

  #endTurnExecution(entry: Entry, data: Data, kind: "operation" | "node", outcome: "work" | "failed"): void {
    const { command, type, worker } = entry;
    const step =
      this.steps.get(command) ??
      this.#add({
        command,
        kind,
        name: text(data["operationName"]) ?? command,
        requestedAt: undefined,
        shielded: false,
        executions: [],
        state: "open",
        endedAt: undefined,
        ...placeOf(command),
      });
    const execution = executionOf(entry, data, outcome);
    // memo.M2. Nothing was executed for a reused result.
    if (data["reused"] === undefined) step.executions.push(execution);
    if (worker !== undefined) this.signs.push({ worker, from: execution.from, to: execution.to });
    const isRetried = type === "OperationRetried" || type === "NodeRetried";
    step.state = isRetried ? "open" : outcome === "work" ? "completed" : "failed";
    step.endedAt = isRetried ? undefined : entry.at;
  }

  #end(entry: Entry, data: Data): void {
    const { type, command, at } = entry;
    const step = this.steps.get(command) ?? this.#answered(entry, data);
    if (step === undefined) return;
    if (type === "TaskCompleted" || type === "TaskFailed") {
      const outcome = type === "TaskCompleted" ? "work" : "failed";
      if (data["reused"] === undefined) step.executions.push(executionOf(entry, data, outcome));
    }
    const state = stateAfter(type, data);
    if (state === undefined) return;
    Object.assign(step, { state, endedAt: at, by: text(data["by"]), reason: text(data["reason"]) });
  }

  /** A command that a fork shares with its origin is requested there, and answered here. */
  #answered({ type, command, at }: Entry, data: Data): StepDraft | undefined {
    const kind = ANSWERED[type];
    if (kind === undefined) return undefined;
    const name = data["promiseId"] ?? data["name"] ?? data["childExecutionId"] ?? command;
    return this.#add({
      command,
      kind,
      name: text(name) ?? command,
      requestedAt: at,
      shielded: false,
      executions: [],
      state: "open",
      endedAt: undefined,
      ...placeOf(command),
    });
  }

  // ── flows ──

  #readFlowNode(entry: Entry): void {
    const { type, command, at } = entry;
    const { node, kind, index } = parseItemName(command);
    const spread = index === undefined ? undefined : this.steps.get(node)?.spread;
    if (spread !== undefined) return readItem(spread, entry);
    const data = parse(entry);
    if (kind === "spread" && type === "NodeCompleted") {
      const total = Number(data["result"] ?? 0);
      const step = this.#flowStep(node, "spread", at);
      step.spread = { total, done: 0, failed: 0, firstAt: undefined, lastAt: at };
      return;
    }
    for (const name of Object.keys((data["kept"] as object | undefined) ?? {}))
      close(this.#flowStep(name, "node", at), "completed", at);
    for (const name of (data["skipped"] as readonly string[] | undefined) ?? [])
      close(this.#flowStep(name, "node", at), "skipped", at);
    if (node === "input") return;
    const step = this.#flowStep(node, "node", entry.startedAt);
    if (type === "NodeSkipped") return close(step, "skipped", at);
    const outcome = type === "NodeCompleted" ? "work" : "failed";
    if (entry.tookMs !== undefined && data["reused"] === undefined)
      step.executions.push(executionOf(entry, data, outcome));
    Object.assign(step, { state: outcome === "work" ? "completed" : "failed", endedAt: at });
  }

  #flowStep(node: string, kind: "node" | "spread", requestedAt: number | undefined): StepDraft {
    const known = this.steps.get(node);
    if (known !== undefined) return known;
    return this.#add({
      command: node,
      kind,
      name: node === FLOW_OUTPUT ? "output" : node,
      requestedAt,
      shielded: false,
      executions: [],
      state: "open",
      endedAt: undefined,
    });
  }
}

const ANSWERED: Partial<Record<EntryType, StepDraft["kind"]>> = {
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
function stateAfter(type: EntryType, data: Data): StepDraft["state"] | undefined {
  switch (type) {
    case "TaskCompleted":
    case "ChildWorkflowCompleted":
    case "TimerFired":
    case "PromiseResolved":
    case "SignalReceived":
    case "UpdateCompleted":
      return "completed";
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
      return undefined;
  }
}

function close(step: StepDraft | undefined, state: StepDraft["state"], at: number): void {
  if (step === undefined || step.state !== "open") return;
  step.state = state;
  step.endedAt = at;
}

/** timeline-fold.F2. Keys are sorted, so `attempt` is the first one. */
function readItem(spread: SpreadDraft, entry: Entry): void {
  const { type, at, startedAt = at, tookMs = 0 } = entry;
  spread.firstAt = Math.min(spread.firstAt ?? startedAt, startedAt);
  spread.lastAt = Math.max(spread.lastAt, tookMs === 0 ? at : startedAt + tookMs);
  if (type === "NodeCompleted") spread.done += 1;
  if (type !== "NodeFailed") return;
  spread.failed += 1;
  spread.error ??= errorIn(entry);
}

function executionOf(entry: Entry, data: Data, kind: "work" | "failed"): EndedExecution {
  const { at, startedAt = at, tookMs, worker, execution } = entry;
  const delay = data["delay"];
  return {
    kind,
    from: startedAt,
    to: tookMs === undefined ? at : startedAt + Math.round(tookMs),
    worker,
    execution,
    attempt: Number(data["attempt"] ?? 0) + 1,
    error: kind === "failed" ? errorIn(entry) : undefined,
    retryAt: typeof delay === "number" ? at + delay : undefined,
  };
}

function errorIn({ data }: Entry): EndedExecution["error"] {
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

function placeOf(command: string): Pick<StepDraft, "parent" | "step"> {
  const [, step] = /^Node\((\d+)\.\d+\)/.exec(command) ?? [];
  return { parent: nodeOf(command), step: step === undefined ? undefined : Number(step) };
}

function promiseName({ promiseId, key }: Data): unknown {
  return typeof promiseId === "string" && typeof key === "string" && promiseId.endsWith(`[${key}]`)
    ? promiseId.slice(0, -key.length - 2)
    : promiseId;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
