// Diff of workflows: command by command, from the first one that differs.
//
// diff-commands.W1. Entries that both runs share, because one was forked from the other or both from a third, are not read.
// diff-commands.W2. Commands are in the order in which the code requested them; "input" is before the first and "output" after the
//   last. A signal is listed where it arrived: whether the code already waited for it depends on time, and so do the numbers of
//   later promises. So promises are paired by their ports.

import {
  errorOf,
  type DecodedEntry,
  type EntryFields,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { decodeEffectiveEntries, originIn } from "../workflow/index.ts";
import { diffItems, type DiffItem, type StepAnswer, type ValueDiff } from "./diff-items.ts";
import type { Side } from "./diff-runs.ts";

/** A command that two runs of a workflow differ in, in `WorkflowDiff.commands`. */
export interface CommandDiff {
  /** As in the journal, such as `Task(3)`; "input" and "output" are those of the run. */
  readonly command: string;
  /** Which runs have it; one of them may have ended or not reached it. */
  readonly in: "both" | "here" | "there";
  /** The task, step, child, promise, key or destination, if it differs. */
  readonly name?: ValueDiff<string>;
  readonly input?: ValueDiff;
  readonly answer?: ValueDiff<StepAnswer>;
}
/** How two runs of a workflow differ, as `run.diff` returns it. */
export interface WorkflowDiff {
  /** The first command that differs; undefined if none does. */
  readonly firstDivergence: string | undefined;
  readonly commands: readonly CommandDiff[];
  /** True if further commands differ; raise the limit to read them. */
  readonly more: boolean;
}

export async function diffCommands(here: Side, there: Side, limit: number): Promise<WorkflowDiff> {
  const [a, b] = await Promise.all([readParts(here), readParts(there)]);
  // diff-commands.W1
  const shared = here.store === there.store ? sharedParts(a, b) : 0;
  const [mine, other] = await Promise.all([readCommands(here.store, a, shared), readCommands(there.store, b, shared)]);
  const places = new Map([...other.places, ...mine.places]);
  const keys = [...places.keys()].toSorted((one, two) => placeOf(places, one) - placeOf(places, two));
  const { items, more } = diffItems(keys, mine.items, other.items, limit);
  const commandOf = (key: string): string => mine.commands.get(key) ?? other.commands.get(key) ?? key;
  const commands = items.map(({ key, ...rest }): CommandDiff => ({ command: commandOf(key), ...rest }));
  return { firstDivergence: commands[0]?.command, commands, more };
}

function placeOf(places: ReadonlyMap<string, number>, key: string): number {
  return places.get(key) ?? 0;
}

/** The first `upTo` entries of a run, as part of the history of a fork. */
interface Part {
  readonly run: RunNumber;
  readonly upTo: number;
}

/** The runs that a run comes from, the oldest first, and the run itself. */
async function readParts({ store, record }: Side): Promise<readonly Part[]> {
  return [...(await readOrigins(store, record)), { run: record.run, upTo: record.head }];
}

async function readOrigins(store: Store, { run }: RunRecord): Promise<readonly Part[]> {
  const [first] = await store.readJournal(run, 0, 1);
  const forked = originIn(first);
  const origin = forked && (await store.findRun(forked.run, forked.generation));
  if (forked === undefined || origin === undefined) return [];
  const before = await readOrigins(store, origin);
  if (forked.seq >= 1) return [...before, { run: origin.run, upTo: forked.seq }];
  // shared-history.S1. The origin shares the place of the fork with its own origin.
  let left = before.reduce((sum, { upTo }) => sum + upTo, forked.seq);
  const kept: Part[] = [];
  for (const part of before) {
    if (left <= 0) break;
    kept.push({ run: part.run, upTo: Math.min(part.upTo, left) });
    left -= part.upTo;
  }
  return kept;
}

/** How many entries, from the first on, both histories have of the same runs. */
function sharedParts(a: readonly Part[], b: readonly Part[]): number {
  let shared = 0;
  for (const [index, one] of a.entries()) {
    const other = b[index];
    if (other?.run !== one.run) return shared;
    shared += Math.min(one.upTo, other.upTo);
    if (one.upTo !== other.upTo) return shared;
  }
  return shared;
}

interface Commands {
  readonly items: ReadonlyMap<string, DiffItem>;
  /** diff-commands.W2 */
  readonly places: ReadonlyMap<string, number>;
  /** The commands of promises, which have other keys. */
  readonly commands: ReadonlyMap<string, string>;
}

async function readCommands(store: Store, parts: readonly Part[], shared: number): Promise<Commands> {
  const list = new CommandList();
  let before = 0;
  for (const [index, { run, upTo }] of parts.entries()) {
    const from = Math.max(0, Math.min(upTo, shared - before));
    before += upTo;
    const entries = from < upTo ? await store.readJournal(run, from, upTo - from) : [];
    // The input of a fork is that of its origin.
    for (const entry of decodeEffectiveEntries(entries))
      if (entry.type !== "RunStarted" || index === 0) list.add(entry);
  }
  return list;
}

class CommandList implements Commands {
  readonly items = new Map<string, DiffItem>();
  readonly places = new Map<string, number>();
  readonly commands = new Map<string, string>();
  /** The keys of promises, by command. */
  readonly #promises = new Map<string, string>();
  /** Answers of ports that came before the code waited. */
  readonly #settled = new Map<string, StepAnswer>();
  readonly #counts = new Map<string, number>();
  #last = -1;

  add(entry: DecodedEntry): void {
    const { command } = entry;
    const { index } = entry.data as EntryFields;
    if (typeof index === "number") this.#last = Math.max(this.#last, index);
    switch (entry.type) {
      case "RunStarted":
        return this.#put("input", -1, { isRequested: true, input: entry.data.input });
      case "TaskScheduled":
        return this.#request(command, entry.data.index, entry.data.taskType, entry.data.input);
      case "ChildWorkflowInitiated":
        return this.#request(command, entry.data.index, entry.data.childExecutionName, entry.data.input);
      case "TimerStarted": {
        // A time of the clock varies.
        const isTime = entry.data.until === true || entry.data.timerId === "sleepUntil";
        return this.#request(command, entry.data.index, entry.data.timerId, isTime ? undefined : entry.data.ms);
      }
      case "PromiseCreated":
        if (entry.data.receives !== undefined) return;
        return this.#waitFor(command, entry.data.index, entry.data.promiseId);
      case "SettleRequested": {
        const { promiseId, value, error } = entry.data;
        return this.#request(command, entry.data.index, promiseId, error ?? value);
      }
      case "StateSet":
        return this.#request(command, entry.data.index, entry.data.key, entry.data.value);
      case "StateCleared":
        return this.#request(command, entry.data.index, entry.data.key, undefined);
      case "MessageSent":
        return this.#request(command, entry.data.index, entry.data.destination, entry.data.payload);
      case "ChildSignalled":
        return this.#request(this.#nth(command), entry.data.index, entry.data.name, entry.data.value);
      case "ChildCancelRequested":
        return this.#request(this.#nth(command), entry.data.index, "cancel", undefined);
      case "UpdateRequested":
        return this.#request(command, this.#last, entry.data.name, entry.data.args);
      case "OperationCompleted":
      case "OperationFailed":
        this.#request(command, entry.data.index, entry.data.operationName, entry.data.input);
        return this.#answer(command, answerOf(entry));
      case "SignalReceived": {
        const { name, value } = entry.data;
        return this.#request(this.#nth(`Signal(${name})`), this.#last, name, value);
      }
      case "PromiseResolved":
      case "PromiseRejected":
        this.#settled.set(entry.data.promiseId, answerOf(entry)!);
        if (command === "") return;
        if (!this.#promises.has(command)) this.#promises.set(command, this.#nth(`Promise(${entry.data.promiseId})`));
        return this.#answer(command, answerOf(entry));
      case "CancelRequested":
      case "DeadlineExceeded":
        return this.#request(this.#nth(entry.type), this.#last, undefined, undefined);
      case "RunCompleted":
      case "RunFailed":
      case "RunCancelled":
        return this.#put("output", Number.POSITIVE_INFINITY, { isRequested: true, answer: answerOf(entry) });
      case "RunContinued":
        return this.#put("output", Number.POSITIVE_INFINITY, { isRequested: true, name: "continueAsNew" });
      default: {
        const answer = answerOf(entry);
        if (answer !== undefined && command !== "") this.#answer(command, answer);
      }
    }
  }

  #waitFor(command: string, index: number, port: string): void {
    const key = this.#nth(`Promise(${port})`);
    this.#promises.set(command, key);
    this.commands.set(key, command);
    this.#request(key, index, port, undefined);
    this.#answer(command, this.#settled.get(port));
  }

  #nth(command: string): string {
    const n = this.#counts.get(command) ?? 0;
    this.#counts.set(command, n + 1);
    return `${command} ${n}`;
  }

  #request(command: string, index: number, name: string | undefined, input: unknown): void {
    this.#put(command, index, { ...this.items.get(command), isRequested: true, name, input });
  }

  #answer(command: string, answer: StepAnswer | undefined): void {
    if (answer === undefined) return;
    const key = this.#promises.get(command) ?? command;
    // diff-items.I2
    const known = this.items.get(key) ?? { isRequested: false };
    this.#put(key, this.places.get(key) ?? this.#last, { ...known, answer });
  }

  #put(command: string, place: number, item: DiffItem): void {
    this.items.set(command, item);
    this.places.set(command, place);
  }
}

/** Undefined: the entry answers nothing. */
function answerOf(entry: DecodedEntry): StepAnswer | undefined {
  switch (entry.type) {
    case "TaskCompleted":
    case "OperationCompleted":
    case "UpdateCompleted":
      return { status: "completed", value: entry.data.result };
    case "ChildWorkflowCompleted":
    case "RunCompleted":
      return { status: "completed", value: entry.data.output };
    case "PromiseResolved":
      return { status: "completed", value: entry.data.value };
    case "SettleAnswered":
      return { status: "completed", value: entry.data.status };
    case "TimerFired":
      return { status: "completed", value: undefined };
    case "TaskFailed":
    case "OperationFailed":
    case "UpdateFailed":
    case "ChildWorkflowFailed":
    case "PromiseRejected":
    case "RunFailed":
      return { status: "failed", error: errorOf(entry.data) };
    case "TaskCancelled":
    case "TimerCancelled":
    case "RunCancelled":
      return { status: "cancelled" };
    case "PromiseTimedOut":
      return { status: "timed_out" };
    default:
      return undefined;
  }
}
