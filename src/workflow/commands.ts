// Commands: their identity, and their comparison with what a journal recorded.
//
// D1. A command gets its id `(type, per-type sequence)` and its global index synchronously, when it is created (E1).
// D2. A recorded command is found by its id; fields are compared by the matrix, in strict mode also order and input.
// D3. Without a journal to compare with, identity is all there is and nothing is looked up.
// D4. What code of a graph's node asks for is compared with its input always: no request gets the answer to another one.

import { digest, encode } from "../base/index.ts";
import type { CommandType, EntryType } from "../kernel/index.ts";
import type { Determinism } from "./context.ts";
import { encodeInput } from "./entry-data.ts";
import { compareFields, type CommandName, type Mismatch } from "./matrix.ts";
import { messageOf, type Recorded, type RecordedEntry } from "./recorded.ts";
import type { NodeScope } from "./scope.ts";

export interface Command {
  readonly id: string;
  readonly index: number;
  /** The journal already has it. */
  readonly known: boolean;
  /** Its last failed attempt, when the journal has no end of it. */
  readonly retried: RecordedEntry | undefined;
}

/** Where code and journal disagree. */
export interface Violation extends Mismatch {
  readonly where: string;
  readonly seq: number | undefined;
}

/** What strict mode compares beyond the matrix. */
export type StrictCheck = (
  recorded: RecordedEntry,
) => { readonly what: string; readonly expected: unknown; readonly actual: unknown } | undefined;

/** How much is compared. `inputs`: what was given with each command, in whatever order they come, as in a graph's replay. */
export type Comparison = Determinism | "inputs";

export function isViolation(found: Command | Violation): found is Violation {
  return "message" in found;
}

const ENTRY_OF: Readonly<Record<CommandType, EntryType>> = {
  Task: "TaskScheduled",
  ChildWorkflow: "ChildWorkflowInitiated",
  Timer: "TimerStarted",
  Operation: "OperationCompleted",
  Promise: "PromiseCreated",
  State: "StateSet",
  Message: "MessageSent",
  Node: "NodeCompleted",
};

/** Shared by runs without a past; commands are only ever taken out. */
const NOTHING = new Set<string>();

export class Commands {
  readonly strict: boolean;
  readonly #comparesInputs: boolean;
  /** A lenient replay goes on with what was recorded. */
  readonly #tolerates: ((found: Violation) => boolean) | undefined;
  #recorded: Recorded | undefined;
  readonly #unmatched: Set<string>;
  readonly #counts: Record<CommandType, number> = {
    Task: 0,
    ChildWorkflow: 0,
    Timer: 0,
    Operation: 0,
    Promise: 0,
    State: 0,
    Message: 0,
    Node: 0,
  };
  #index = 0;
  #last: string | undefined;

  constructor(recorded: Recorded, comparison: Comparison, tolerates?: (found: Violation) => boolean) {
    this.strict = comparison === "strict";
    this.#comparesInputs = comparison !== "per-type";
    this.#tolerates = tolerates;
    this.#recorded = recorded;
    this.#unmatched =
      recorded.lastIndex < 0 && recorded.byCommand.size === 0 ? NOTHING : new Set(recorded.byCommand.keys());
    for (const id of recorded.cancels.keys()) this.#unmatched.add(cancelOf(id));
    for (const key of recorded.sent.keys()) this.#unmatched.add(key);
  }

  /** How many commands there are: the index the next one gets. */
  get issued(): number {
    return this.#index;
  }

  /** The command asked for most recently. */
  get last(): string | undefined {
    return this.#last;
  }

  /** What tells the next command of a type from all others of the run: its sequence, or in a node its id. */
  nextOf(type: CommandType, node: NodeScope | undefined): number | string {
    return node === undefined ? this.#counts[type] : idIn(node, type);
  }

  /** The journal has commands the code has not asked for yet. */
  get hasUnmatched(): boolean {
    return this.#unmatched.size > 0;
  }

  /** An earlier life of this run got further than the code has now: it asked for something the code has not reached. */
  get isBehind(): boolean {
    if (this.#unmatched.size > 0) return true;
    const asked = this.#counts.Operation;
    for (const id of this.#recorded?.retries.keys() ?? []) if (sequenceOf(id) >= asked) return true;
    return false;
  }

  isUnmatched(id: string): boolean {
    return this.#unmatched.has(id);
  }

  /** Cancelling it changes nothing any more: it fired, or went with the run's cancel. */
  isClosedTimer(id: string, shielded: boolean): boolean {
    if (this.#recorded === undefined) return false;
    const { firedTimers, cancelledTimers } = this.#recorded;
    return firedTimers.has(id) || (!shielded && cancelledTimers.has(id));
  }

  /** D3. Only when nothing is left to compare with. */
  forgetJournal(): void {
    if (this.#unmatched.size > 0) return;
    // Of a call that failed and is to be tried again the code of its node, run again, has not asked yet.
    for (const id of this.#recorded?.retries.keys() ?? []) if (id.includes("#")) return;
    this.#recorded = undefined;
  }

  /** D1, D2 */
  next(
    type: CommandType,
    name: CommandName,
    fields: Readonly<Record<string, unknown>>,
    strictly?: StrictCheck,
    node?: NodeScope,
  ): Command | Violation {
    const id = node === undefined ? `${type}(${this.#counts[type]++})` : nextIn(node, type);
    return this.#match(type, id, name, fields, strictly, node);
  }

  /** A command whose id says what it is: the same in every life of the run, in whatever order commands come. */
  named(
    id: string,
    type: CommandType,
    name: CommandName,
    fields: Readonly<Record<string, unknown>>,
  ): Command | Violation {
    return this.#match(type, id, name, fields, undefined);
  }

  #match(
    type: CommandType,
    id: string,
    name: CommandName,
    fields: Readonly<Record<string, unknown>>,
    strictly: StrictCheck | undefined,
    node?: NodeScope,
  ): Command | Violation {
    this.#last = id;
    const index = this.#index++;
    const journal = this.#recorded;
    if (journal === undefined) return { id, index, known: false, retried: undefined };
    const retried = journal.retries.get(id);
    const recorded = journal.byCommand.get(id) ?? retried;
    if (recorded === undefined) {
      const isEarly = this.strict && type !== "Operation" && index < journal.lastIndex;
      return isEarly ? newTooEarly(type, id, index, fields, journal.lastIndex) : { id, index, known: false, retried };
    }
    this.#unmatched.delete(id);
    const mismatch =
      compareFields(name, id, fields, recorded) ??
      this.#compareStrictly(id, index, recorded, strictly) ??
      this.#compareInNode(id, type, recorded, strictly, node);
    const found = mismatch && { ...mismatch, where: id, seq: recorded.seq };
    if (found !== undefined && this.#tolerates?.(found) !== true) return found;
    return { id, index, known: recorded !== retried, retried };
  }

  /** The cancel of a timer: a command of its own that shares the timer's id. */
  nextCancel(id: string, timerId: string): Command | Violation {
    const index = this.#index++;
    const recorded = this.#recorded?.cancels.get(id);
    if (recorded === undefined) return { id, index, known: false, retried: undefined };
    this.#unmatched.delete(cancelOf(id));
    const mismatch =
      compareFields("CancelTimer", id, { timerId }, recorded) ?? this.#compareStrictly(id, index, recorded, undefined);
    if (mismatch !== undefined) return { ...mismatch, where: id, seq: recorded.seq };
    return { id, index, known: true, retried: undefined };
  }

  /** The n-th message to a child: a command of its own that shares the child's id. */
  nextMessage(
    child: string,
    n: number,
    type: EntryType,
    fields: Readonly<Record<string, unknown>>,
    strictly?: StrictCheck,
  ): Command | Violation {
    const index = this.#index++;
    const key = messageOf(child, n);
    const recorded = this.#recorded?.sent.get(key);
    if (recorded === undefined) {
      const lastIndex = this.#recorded?.lastIndex ?? -1;
      if (this.strict && index < lastIndex) return newTooEarly("ChildWorkflow", key, index, fields, lastIndex, type);
      return { id: child, index, known: false, retried: undefined };
    }
    this.#unmatched.delete(key);
    const mismatch =
      compareMessage(key, type, fields, recorded) ?? this.#compareStrictly(key, index, recorded, strictly);
    const found = mismatch && { ...mismatch, where: child, seq: recorded.seq };
    if (found !== undefined && this.#tolerates?.(found) !== true) return found;
    return { id: child, index, known: true, retried: undefined };
  }

  /** The recorded answer to an update, once. */
  takeAnswer(command: string): RecordedEntry | undefined {
    this.#unmatched.delete(command);
    return this.#recorded?.byCommand.get(command);
  }

  #compareStrictly(
    id: string,
    index: number,
    recorded: RecordedEntry,
    strictly: StrictCheck | undefined,
  ): Mismatch | undefined {
    if (!this.#comparesInputs) return undefined;
    const actual = recorded.data["index"];
    if (this.strict && actual !== index)
      return {
        message: `Command order mismatch at ${id}: expected command ${index}, got command ${String(actual)}`,
        expected: index,
        actual,
      };
    const found = strictly?.(recorded);
    return found && { message: `${found.what} mismatch at ${id}`, expected: found.expected, actual: found.actual };
  }

  /** D4. A promise is asked for by its port: what is shown with it, and for how long, may change. */
  #compareInNode(
    id: string,
    type: CommandType,
    recorded: RecordedEntry,
    strictly: StrictCheck | undefined,
    node: NodeScope | undefined,
  ): Mismatch | undefined {
    if (node === undefined || this.#comparesInputs || type === "Promise") return undefined;
    const found = strictly?.(recorded);
    return found && otherRequest(id, node, found.expected, found.actual);
  }

  /** What the journal has and nobody asked for. */
  leftovers(): readonly Violation[] {
    // What the code of a node asked for is served to it when it is run again, and it is not when it has ended.
    const left = [...this.#unmatched].filter((key) => !key.includes("#"));
    return left.map((key) => {
      const journal = this.#recorded;
      const command = journal?.byCommand.get(key) ?? journal?.sent.get(key);
      const where = command?.command ?? key.replace(/ cancel$/, "");
      const recorded = command ?? journal?.cancels.get(where);
      const text = `Orphaned command at ${where}: the journal has '${recorded?.type}', the code ended without asking for it`;
      return { message: text, expected: undefined, actual: recorded?.type, where, seq: recorded?.seq };
    });
  }

  /** Code of nodes that waited for a port before this entry and has not been run again yet. */
  waitersOf(port: string, before: number): readonly string[] {
    const { byCommand = [] } = this.#recorded ?? {};
    return [...byCommand].flatMap(([id, { type, seq, data }]) =>
      type === "PromiseCreated" && seq < before && data["promiseId"] === port && this.isUnmatched(id) ? [id] : [],
    );
  }

  /** The place in the journal of a delivery, for its evidence. */
  findDelivery(type: EntryType, command: string): number | undefined {
    return this.#recorded?.deliveries.find((entry) => entry.type === type && entry.command === command)?.seq;
  }
}

/** The 3 of `Operation(3)`. */
function sequenceOf(id: string): number {
  return Number(id.slice(id.indexOf("(") + 1, -1));
}

function idIn({ prefix, counts }: NodeScope, type: CommandType): string {
  return `${prefix}${type}(${counts.get(type) ?? 0})`;
}

function nextIn(node: NodeScope, type: CommandType): string {
  const id = idIn(node, type);
  node.counts.set(type, (node.counts.get(type) ?? 0) + 1);
  return id;
}

function cancelOf(id: string): string {
  return `${id} cancel`;
}

function compareMessage(
  key: string,
  type: EntryType,
  fields: Readonly<Record<string, unknown>>,
  recorded: RecordedEntry,
): Mismatch | undefined {
  const expected = [type, ...Object.values(fields)].join(" ");
  const actual = [recorded.type, ...Object.keys(fields).map((field) => String(recorded.data[field]))].join(" ");
  if (expected === actual) return undefined;
  return { message: `Message mismatch at ${key}: expected '${expected}', got '${actual}'`, expected, actual };
}

function newTooEarly(
  type: CommandType,
  id: string,
  index: number,
  fields: Readonly<Record<string, unknown>>,
  lastIndex: number,
  entry: EntryType = ENTRY_OF[type],
): Violation {
  return {
    message: `New command at ${id}: expected to find '${entry}' before command ${lastIndex} of the journal, got none`,
    expected: `command ${index}: ${id} ${JSON.stringify(fields)}`,
    actual: `the journal's last command is ${lastIndex}`,
    where: id,
    seq: undefined,
  };
}

function otherRequest(id: string, { command, name }: NodeScope, expected: unknown, actual: unknown): Mismatch {
  const step = Number(command.slice(5, command.indexOf(".")));
  return {
    message: `Request mismatch at ${id}: node ${name} of step ${step}, run again after an interruption, asks for something else than the journal has for this call (expected is its request now, actual the recorded one). What a node asks for must follow from its state, its item, the answers it got, ctx.now, ctx.random and ctx.uuid. Put that right, or fork the run from step ${step - 1}, which makes all calls of the step anew. With the right code, resume the run`,
    expected,
    actual,
  };
}

/** Strict mode: the input the code gives now against the one it gave then. */
export function compareInput(label: string, input: unknown): StrictCheck {
  return ({ data }) => {
    const what = `${label} input`;
    const { given } = data;
    if (typeof given === "string") {
      const expected = digest(encode(input));
      return given === expected ? undefined : { what, expected, actual: given };
    }
    const now = encodeInput(input);
    const then = encodeInput(data["input"]);
    return now === then ? undefined : { what, expected: now, actual: then };
  };
}
