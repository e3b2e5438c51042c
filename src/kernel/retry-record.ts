// Retry record: which entries count in the journal of a run that failed and was retried. No entry is removed (journal.J1); a
// `RunRetried` entry says from where on the entries before it are void. Each retry starts a new epoch of the run.
//
// retry-record.V1. `from` is the entry that made the run fail; `commands` is the number of commands the code had requested
//   when that entry was delivered.
// retry-record.V2. From `from` on, these are void: ends, cancels, failures, answers to updates, every command requested
//   since, and every answer to a void command. Completions of older commands, and messages, still count.
// retry-record.V3. A command requested after the n-th retry belongs to epoch n: what derives from its name (an idempotency
//   key, a child's id) differs from that of the abandoned epoch.
// retry-record.V4. In a graph, commands are named by step and item instead of being counted. Void are ends, cancels,
//   rejections of ports that are open again, and in the failed step everything that belongs to an item without a result
//   (rules.G12). Such an item runs again, and the ids of its commands contain its epoch: `Node(3.1)~1#0/…`.

import { invariant } from "../base/index.ts";
import type { EntryData, RunRetriedData } from "./entry-data.ts";
import { END_ENTRIES, isCancel, type EntryType } from "./journal.ts";

export interface RetryRecord {
  /** The `seq` of the `RunRetried` entry. */
  readonly seq: number;
  readonly from: number;
  readonly commands: number;
  /** How many chunks earlier epochs emitted, per stream; those of the new epoch follow them. */
  readonly emitted: readonly (readonly [stream: string, count: number])[];
  /** The failed step; undefined: not a graph. */
  readonly step: number | undefined;
  /** retry-record.V4. The items of the step that keep their results, as ranges of positions. */
  readonly kept: readonly (readonly [from: number, to: number])[];
  /** retry-record.V4. Ports whose rejection is void. */
  readonly reopened: readonly string[];
}

interface Placed {
  readonly seq: number;
  readonly type: EntryType;
  readonly command: string;
}

const OPENINGS: ReadonlySet<EntryType> = new Set<EntryType>([
  "TaskScheduled",
  "ChildWorkflowInitiated",
  "TimerStarted",
  "PromiseCreated",
  "SettleRequested",
]);
const VOID: ReadonlySet<EntryType> = new Set<EntryType>([
  ...END_ENTRIES,
  "TaskFailed",
  "OperationFailed",
  "ChildWorkflowFailed",
  "SettleAnswered",
  "UpdateCompleted",
  "UpdateFailed",
]);
const MESSAGES: ReadonlySet<EntryType> = new Set<EntryType>(["PromiseResolved", "PromiseRejected", "SignalReceived"]);

export function retryRecordOf(seq: number, data: RunRetriedData): RetryRecord {
  const { from, commands, emitted = [], step, kept = [], reopened = [] } = data;
  return { seq, from, commands, emitted, step, kept, reopened };
}

/** retry-record.V3. The epoch of the command with this index; 0: the run was not retried before. */
export function epochOf(retries: readonly RetryRecord[], index: number): number {
  for (let epoch = retries.length; epoch > 0; epoch -= 1)
    if (index >= (retries[epoch - 1] as RetryRecord).commands) return epoch;
  return 0;
}

/** retry-record.V3. The name of a step, distinct in each epoch. */
export function stepPath(step: string, epoch: number): string {
  return epoch === 0 ? step : `${step}~${epoch}`;
}

/** Reads a journal in order and decides for each entry whether it counts. */
export class VoidEntries {
  readonly #retries: readonly RetryRecord[];
  readonly #voidCommands = new Set<string>();

  constructor(retries: readonly RetryRecord[]) {
    this.#retries = retries;
  }

  /** Calls `data` only if needed. `orphan`: a message that counts, whose wait is void. */
  classify(entry: Placed, data: () => EntryData[EntryType]): "counts" | "void" | "orphan" {
    const { seq, type, command } = entry;
    let isVoid = false;
    for (const retry of this.#retries) {
      if (seq >= retry.seq) continue;
      if (retry.step !== undefined && isOfVoidItem(retry, command)) return MESSAGES.has(type) ? "orphan" : "void";
      if (retry.step !== undefined) isVoid ||= isVoidInGraph(retry, type, data);
      else if (seq >= retry.from) isVoid ||= isVoidBy(retry, entry, data);
    }
    if (OPENINGS.has(type)) {
      if (isVoid) this.#voidCommands.add(command);
      else this.#voidCommands.delete(command);
    }
    if (isVoid) return "void";
    if (!this.#voidCommands.has(command)) return "counts";
    return MESSAGES.has(type) ? "orphan" : "void";
  }
}

const NODE = /^Node\((\d+)\.(\d+)\)/;

/** retry-record.V4 */
function isOfVoidItem({ step, kept }: RetryRecord, command: string): boolean {
  const [, ofStep, position] = NODE.exec(command) ?? [];
  if (ofStep === undefined || Number(ofStep) !== step) return false;
  return !kept.some(([from, to]) => Number(position) >= from && Number(position) <= to);
}

function isVoidInGraph(retry: RetryRecord, type: EntryType, data: () => EntryData[EntryType]): boolean {
  if (END_ENTRIES.includes(type) || isCancel(type)) return true;
  if (type !== "PromiseRejected") return false;
  const { promiseId } = data() as EntryData["PromiseRejected"];
  return retry.reopened.includes(promiseId);
}

/** retry-record.V4. Ranges of consecutive positions; `positions` ascend. */
export function rangesOf(positions: readonly number[]): RetryRecord["kept"] {
  const ranges: [number, number][] = [];
  for (const position of positions) {
    const last = ranges.at(-1);
    invariant(last === undefined || last[1] < position, "retry-record.V4: positions ascend");
    if (last !== undefined && last[1] === position - 1) last[1] = position;
    else ranges.push([position, position]);
  }
  return ranges;
}

/** The step and the position of the item a command belongs to; undefined outside nodes. */
export function nodeItemOf(command: string): { readonly step: number; readonly position: number } | undefined {
  const [, step, position] = NODE.exec(command) ?? [];
  return step === undefined ? undefined : { step: Number(step), position: Number(position) };
}

/** retry-record.V2, except for answers. */
function isVoidBy(retry: RetryRecord, { seq, type }: Placed, data: () => EntryData[EntryType]): boolean {
  if (seq === retry.from || VOID.has(type) || isCancel(type)) return true;
  const { index } = data() as { readonly index?: unknown };
  return typeof index === "number" && index >= retry.commands;
}
