// Retried: what counts of the journal of a run that failed and was retried. Nothing is removed (J1); a `RunRetried`
// entry says from where on the entries before it are void.
//
// V1. `from` is the entry that made the run fail, `commands` how many commands the code had asked for when it heard of it.
// V2. From `from` on, these are void: ends, cancels, failures, answers to updates, every command asked for since, and what
//     answers a void command. Completions of older commands and messages stay.
// V3. A command that was asked for after the n-th retry belongs to life n: what is derived from its name (a key handed to
//     the outside, a child's id) is another one than in the life that was given up.
// V4. In a graph commands are named by step and item, not counted. Void are ends, cancels, rejections of ports that are
//     open again, and of the step that failed everything that belongs to an item without a result (G12). Such an item
//     is run anew: what it asks for then carries its life in its id, `Node(3.1)~1#0/…`.

import { END_ENTRIES, isCancel, type EntryType } from "./journal.ts";

export interface Retried {
  /** The place of the `RunRetried` entry. */
  readonly seq: number;
  readonly from: number;
  readonly commands: number;
  /** How many chunks of each stream the lives before have shown; those of the new one come after them. */
  readonly emitted: readonly (readonly [stream: string, count: number])[];
  /** Of a graph: the step that failed. */
  readonly step: number | undefined;
  /** V4. Which items of it keep their results, from and to by position. */
  readonly kept: readonly (readonly [from: number, to: number])[];
  /** V4. Ports whose rejection is void. */
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
]);
const VOID: ReadonlySet<EntryType> = new Set<EntryType>([
  ...END_ENTRIES,
  "TaskFailed",
  "OperationFailed",
  "ChildWorkflowFailed",
  "UpdateCompleted",
  "UpdateFailed",
]);
const MESSAGES: ReadonlySet<EntryType> = new Set<EntryType>(["PromiseResolved", "PromiseRejected", "SignalReceived"]);

export function retriedOf(seq: number, data: Readonly<Record<string, unknown>>): Retried {
  const { emitted = [], step, kept = [], reopened = [] } = data as Partial<Retried>;
  return { seq, from: Number(data["from"]), commands: Number(data["commands"]), emitted, step, kept, reopened };
}

/** V3. 0 for a command of the first life. */
export function lifeOf(retries: readonly Retried[], index: number): number {
  for (let life = retries.length; life > 0; life -= 1)
    if (index >= (retries[life - 1] as Retried).commands) return life;
  return 0;
}

/** V3. A step by its name; in a later life of its run it is another one. */
export function stepPath(step: string, life: number): string {
  return life === 0 ? step : `${step}~${life}`;
}

/** Goes through a journal in order and says of each entry whether it counts. */
export class VoidEntries {
  readonly #retries: readonly Retried[];
  readonly #voidCommands = new Set<string>();

  constructor(retries: readonly Retried[]) {
    this.#retries = retries;
  }

  /** `data` is asked for only where it matters. `orphan`: a message that stays, whose wait does not. */
  judge(entry: Placed, data: () => Readonly<Record<string, unknown>>): "counts" | "void" | "orphan" {
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

/** V4 */
function isOfVoidItem({ step, kept }: Retried, command: string): boolean {
  const [, ofStep, position] = NODE.exec(command) ?? [];
  if (ofStep === undefined || Number(ofStep) !== step) return false;
  return !kept.some(([from, to]) => Number(position) >= from && Number(position) <= to);
}

function isVoidInGraph(retry: Retried, type: EntryType, data: () => Readonly<Record<string, unknown>>): boolean {
  if (END_ENTRIES.includes(type) || isCancel(type)) return true;
  return type === "PromiseRejected" && retry.reopened.includes(String(data()["promiseId"]));
}

/** V4. As they are written: runs of positions in ascending order, without gaps. */
export function runsOf(positions: readonly number[]): Retried["kept"] {
  const runs: [number, number][] = [];
  for (const position of positions) {
    const last = runs.at(-1);
    if (last !== undefined && last[1] === position - 1) last[1] = position;
    else runs.push([position, position]);
  }
  return runs;
}

/** The step and the position of the item a command belongs to; undefined outside nodes. */
export function itemOfCommand(command: string): { readonly step: number; readonly position: number } | undefined {
  const [, step, position] = NODE.exec(command) ?? [];
  return step === undefined ? undefined : { step: Number(step), position: Number(position) };
}

/** V2, but for answers. */
function isVoidBy(retry: Retried, { seq, type }: Placed, data: () => Readonly<Record<string, unknown>>): boolean {
  if (seq === retry.from || VOID.has(type) || isCancel(type)) return true;
  const { index } = data();
  return typeof index === "number" && index >= retry.commands;
}
