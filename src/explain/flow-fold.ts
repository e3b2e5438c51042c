// Flow fold: the journal of a flow's run, grouped by node. The table of `show`, pictures and timelines come from it.
//
// flow-fold.N1. An item of a spread takes one byte, and only the first failed items are kept, so memory grows with the number of nodes,
//   not of items.
// flow-fold.N2. Entries that a retry made void are not counted: after a retry the journal is read again without them. Executions of such
//   entries stay, as history.
// flow-fold.N3. A reader for pictures and timelines keeps no values and no damage: what cannot be decoded counts as empty.

import {
  decodeData,
  END_ENTRIES,
  FLOW_OUTPUT,
  journalEntryOf,
  parseItemName,
  type Entry,
  type EntryData,
  type JournalEntry,
} from "../kernel/index.ts";
import { errorIn, executionTimes, newStep, type EndedExecution, type Step } from "./step-fold.ts";
import { attemptOf } from "./typed-entry.ts";

export interface FailedItem {
  readonly item: string;
  readonly attempts: number;
  readonly error: unknown;
}

/** The number of failed items that are listed. */
export const FAILED_ITEMS = 10;
const MAX_EVENTS = 20;

/** Entries from `from`, up to but not including `to`. */
export interface VoidRange {
  readonly from: number;
  readonly to: number;
}

export interface EndedNode {
  readonly entry: Pick<Entry, "type" | "seq" | "at" | "tookMs">;
  /** Undefined: no code of it ran. */
  readonly execution: EndedExecution | undefined;
  readonly data: Partial<EntryData["NodeCompleted"] & EntryData["NodeFailed"]>;
}

export interface SpreadProgress {
  readonly seq: number;
  readonly at: number;
  readonly total: number;
  /** ENDED or WITH_CHILD by item. */
  readonly items: Uint8Array;
  completed: number;
  failed: number;
  attempts: number;
  firstAt: number | undefined;
  lastAt: number;
  readonly failures: (FailedItem & { readonly index: number; readonly stack: unknown })[];
}

interface StartedChild {
  readonly id: string;
  readonly definition: string;
  readonly at: number;
}

export const ENDED = 1;
export const WITH_CHILD = 2;

export class FlowReader {
  readonly voids: VoidRange[] = [];
  readonly events: JournalEntry[] = [];
  /** By node, in the order they ended; a spread by its name. */
  readonly ended = new Map<string, EndedNode>();
  readonly spreads = new Map<string, SpreadProgress>();
  /** The child run by node. */
  readonly children = new Map<string, StartedChild>();
  /** flow-fold.N2. Executions of nodes whose entries are void. */
  readonly #history = new Map<string, EndedExecution[]>();
  #endedAt: number | undefined;
  /** Times of the entries whose values other nodes may use. */
  readonly #times = new Map<number, number>();
  readonly #skip: readonly VoidRange[];
  readonly #keepsValues: boolean;

  constructor(skip: readonly VoidRange[] = [], { keepsValues = true } = {}) {
    this.#skip = skip;
    this.#keepsValues = keepsValues;
  }

  /** flow-fold.N2. It read a retry that it was not given. */
  get isStale(): boolean {
    return this.voids.length > this.#skip.length;
  }

  timeOf(seq: number): number | undefined {
    return this.#times.get(seq);
  }

  read(entry: Entry): void {
    const { seq, type, command } = entry;
    if (this.#skip.some(({ from, to }) => seq >= from && seq < to)) return this.#noteVoid(entry);
    switch (type) {
      case "NodeCompleted":
      case "NodeFailed":
      case "NodeSkipped":
        return this.#readNode(entry);
      case "ChildWorkflowInitiated":
        return this.#readChild(command, entry);
      case "ItemsSpread":
        return;
      case "RunStarted":
        this.#times.set(seq, entry.at);
        return;
      case "RunRetried":
        this.voids.push({ from: decodeData("RunRetried", entry.data).from, to: seq });
        break;
      default:
        if (END_ENTRIES.includes(type)) this.#endedAt = entry.at;
    }
    this.events.push(journalEntryOf(entry));
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }

  /** The nodes of the journal, and its spreads, as steps: in the order in which they ended. */
  get steps(): readonly Step[] {
    const steps: Step[] = [];
    for (const [name, ended] of this.ended) steps.push(...this.#endedSteps(name, ended));
    for (const name of this.spreads.keys()) if (!this.ended.has(name)) steps.push(this.#openStep(name));
    for (const name of [...this.children.keys(), ...this.#history.keys()])
      if (!this.ended.has(name) && !steps.some(({ command }) => command === name)) steps.push(this.#openStep(name));
    return steps;
  }

  #endedSteps(name: string, { entry, data, execution }: EndedNode): readonly Step[] {
    const { at, type } = entry;
    const derived = (node: string, state: Step["state"]): Step => ({
      ...newStep(node, "node", node, at),
      state,
      endedAt: at,
    });
    const others = [
      ...Object.keys(data.kept ?? {}).map((node) => derived(node, "completed")),
      ...(data.skipped ?? []).map((node) => derived(node, "skipped")),
    ];
    if (name === "input") return others;
    const own: Step = {
      ...this.#openStep(name),
      executions: [...(this.#history.get(name) ?? []), ...(execution === undefined ? [] : [execution])],
      attempts: this.spreads.get(name)?.attempts ?? attemptOf(data),
      state: type === "NodeSkipped" ? "skipped" : type === "NodeFailed" ? "failed" : "completed",
      endedAt: at,
      ending: type,
    };
    return [own, ...others];
  }

  /** As far as the journal tells; when the run has ended, it was cancelled. */
  #openStep(name: string): Step {
    const spread = this.spreads.get(name);
    const child = this.children.get(name);
    const kind = spread !== undefined ? "spread" : child !== undefined ? "child" : "node";
    const shown = child?.definition ?? (name === FLOW_OUTPUT ? "output" : name);
    return {
      ...newStep(name, kind, shown, spread?.at ?? child?.at),
      ...(child !== undefined && { child: child.id }),
      ...(spread !== undefined && { items: timesOf(spread) }),
      executions: this.#history.get(name) ?? [],
      ...(this.#endedAt !== undefined && { state: "cancelled" as const, endedAt: this.#endedAt }),
    };
  }

  #readChild(command: string, entry: Entry): void {
    const { node, index } = parseItemName(command);
    const spread = index === undefined ? undefined : this.spreads.get(node);
    const { childExecutionId: id, childExecutionName: definition } = decodeData("ChildWorkflowInitiated", entry.data);
    if (spread !== undefined && index !== undefined) spread.items[index] = WITH_CHILD;
    else this.children.set(command, { id, definition, at: entry.at });
  }

  #readNode(entry: Entry): void {
    const { seq, at, type, command, tookMs } = entry;
    const { node, kind, index } = parseItemName(command);
    const spread = index === undefined ? undefined : this.spreads.get(node);
    if (spread !== undefined && index !== undefined) return readItem(spread, entry, index);
    const data = this.#dataOf(entry);
    this.#times.set(seq, at);
    if (kind === "spread" && type === "NodeCompleted") {
      const total = Number(data.result ?? 0);
      const counts = { completed: 0, failed: 0, attempts: 1, failures: [], firstAt: undefined, lastAt: at };
      this.spreads.set(node, { seq, at, total, items: new Uint8Array(total), ...counts });
      return;
    }
    const kept = this.#keepsValues ? data : withoutValues(data);
    this.ended.set(node, {
      entry: { type, seq, at, tookMs },
      data: kept,
      execution: executionOf(entry, data),
    });
  }

  /** flow-fold.N3 */
  #dataOf({ data }: Entry): EndedNode["data"] {
    if (this.#keepsValues) return decodeData("NodeCompleted", data);
    try {
      return decodeData("NodeCompleted", data);
    } catch {
      return {};
    }
  }

  #noteVoid(entry: Entry): void {
    const { type, command } = entry;
    if (type !== "NodeCompleted" && type !== "NodeFailed") return;
    const { node, kind } = parseItemName(command);
    const execution = kind === "item" || kind === "spread" ? undefined : executionOf(entry, this.#dataOf(entry));
    if (execution !== undefined) this.#history.set(node, [...(this.#history.get(node) ?? []), execution]);
  }
}

function withoutValues({ result: _result, kept, ...data }: EndedNode["data"]): EndedNode["data"] {
  return {
    ...data,
    ...(kept !== undefined && { kept: Object.fromEntries(Object.keys(kept).map((name) => [name, null])) }),
  };
}

/** memo.M2. Nothing was executed for a reused result, nor for a node that is derived or skipped. */
function executionOf(entry: Entry, data: EndedNode["data"]): EndedExecution | undefined {
  if (entry.tookMs === undefined || data.reused !== undefined || entry.type === "NodeSkipped") return undefined;
  const hasFailed = entry.type === "NodeFailed";
  return {
    ...executionTimes(entry),
    kind: hasFailed ? "failed" : "work",
    attempt: attemptOf(data),
    error: hasFailed ? errorIn(entry) : undefined,
  };
}

function timesOf({ total, completed, failed, firstAt, lastAt, failures }: SpreadProgress): Step["items"] {
  const [first] = failures;
  return {
    ...{ total, done: completed, failed, firstAt, lastAt },
    error: first && { error: first.error, stack: first.stack },
  };
}

/** flow-fold.N1. Keys are sorted, so `attempt` is the first one; the data of a completed item is not decoded. */
function readItem(spread: SpreadProgress, entry: Entry, index: number): void {
  const { type, command, data } = entry;
  const { from, to } = executionTimes(entry);
  spread.firstAt = Math.min(spread.firstAt ?? from, from);
  spread.lastAt = Math.max(spread.lastAt, to);
  const attempts = Number(/^\{"attempt":(\d+)/.exec(data)?.[1] ?? 0) + 1;
  spread.attempts = Math.max(spread.attempts, attempts);
  spread.items[index] = ENDED;
  if (type !== "NodeFailed") {
    spread.completed += 1;
    return;
  }
  spread.failed += 1;
  const { failures } = spread;
  if (failures.length >= FAILED_ITEMS && index > failures.at(-1)!.index) return;
  failures.push({ item: command, index, attempts, ...{ error: undefined, stack: undefined, ...errorIn(entry) } });
  failures.sort((a, b) => a.index - b.index);
  failures.length = Math.min(failures.length, FAILED_ITEMS);
}
