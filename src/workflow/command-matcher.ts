// Command matcher: the identity of commands, and their comparison with the journal.
//
// command-matcher.D1. A command gets its id `(type, per-type sequence)` and its global index synchronously, when it is created.
// command-matcher.D2. A recorded command is found by its id. The matrix compares its fields; strict mode also compares
//   order and input.
// command-matcher.D3. Without a journal there is nothing to compare: a command only gets its identity.
// command-matcher.D4. The input of a command that a graph's node requests is always compared: a request never gets the answer
//   to another request.

import { digest, encode } from "../base/index.ts";
import {
  commandSequenceOf,
  isInNode,
  nodeItemOf,
  type CommandType,
  type DecodedEntry,
  type EntryFields,
  type EntryType,
} from "../kernel/index.ts";
import type { Determinism } from "./context.ts";
import { encodeInput } from "./entry-data.ts";
import {
  childMessageKey,
  type ChildMessageEntry,
  type CommandEntry,
  type FailedAttempt,
  type RecordedJournal,
} from "./recorded-journal.ts";
import type { NodeScope } from "./scope.ts";
import { compareFields, type CommandName, type Mismatch } from "./validation-matrix.ts";

export interface IssuedCommand {
  readonly id: string;
  readonly index: number;
  /** The journal already has it. */
  readonly known: boolean;
  /** Its last failed attempt, when the journal has no end of it. */
  readonly retried: FailedAttempt | undefined;
}

/** A difference between code and journal. */
export interface Violation extends Mismatch {
  readonly where: string;
  readonly seq: number | undefined;
  /** What to do about it, where the usual advice does not help. */
  readonly advice?: string;
}

export type RecordedCommand = CommandEntry | FailedAttempt | ChildMessageEntry | DecodedEntry<"TimerCancelled">;

/** `what`: "task input". */
interface InputMismatch {
  readonly what: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** What strict mode compares beyond the matrix. */
export type StrictCheck = (recorded: RecordedCommand) => InputMismatch | undefined;

/** `inputs`: the input of each command, in any order, as in a graph's replay. */
export type Comparison = Determinism | "inputs";

export function isViolation(found: IssuedCommand | Violation): found is Violation {
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

/** Shared by runs without a recorded journal. Entries are only ever removed. */
const NOTHING = new Map<string, RecordedCommand>();

export class CommandMatcher {
  readonly strict: boolean;
  readonly #comparesInputs: boolean;
  /** True: a lenient replay notes the difference and uses the recorded result. */
  readonly #tolerates: ((found: Violation) => boolean) | undefined;
  #recorded: RecordedJournal | undefined;
  /** Recorded commands that the code has not requested yet. Timer cancels and child messages have their own keys. */
  readonly #unmatched: Map<string, RecordedCommand>;
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

  constructor(recorded: RecordedJournal, comparison: Comparison, tolerates?: (found: Violation) => boolean) {
    this.strict = comparison === "strict";
    this.#comparesInputs = comparison !== "per-type";
    this.#tolerates = tolerates;
    this.#recorded = recorded;
    this.#unmatched =
      recorded.lastIndex < 0 && recorded.byCommand.size === 0
        ? NOTHING
        : new Map<string, RecordedCommand>(recorded.byCommand);
    for (const [id, entry] of recorded.timerCancels) this.#unmatched.set(cancelOf(id), entry);
    for (const [key, entry] of recorded.childMessages) this.#unmatched.set(key, entry);
  }

  /** How many commands there are: the index the next one gets. */
  get issued(): number {
    return this.#index;
  }

  /** The command requested last. */
  get last(): string | undefined {
    return this.#last;
  }

  /** The sequence number of the next command of a type; inside a node, its id. */
  peekNext(type: CommandType, node: NodeScope | undefined): number | string {
    return node === undefined ? this.#counts[type] : idIn(node, type);
  }

  /** The journal has commands that the code has not requested yet. */
  get hasUnmatched(): boolean {
    return this.#unmatched.size > 0;
  }

  /** The journal has a command, or a failed attempt, that the code has not reached yet. */
  get isBehind(): boolean {
    if (this.#unmatched.size > 0) return true;
    const issued = this.#counts.Operation;
    for (const id of this.#recorded?.failedAttempts.keys() ?? [])
      if (!isInNode(id) && commandSequenceOf(id) >= issued) return true;
    return false;
  }

  isUnmatched(id: string): boolean {
    return this.#unmatched.has(id);
  }

  /** Canceling it has no effect: it fired, or the cancel of the run closed it. */
  isTimerClosed(id: string, shielded: boolean): boolean {
    if (this.#recorded === undefined) return false;
    const { firedTimers, cancelledTimers } = this.#recorded;
    return firedTimers.has(id) || (!shielded && cancelledTimers.has(id));
  }

  /** command-matcher.D3. Keeps the journal while there is something left to compare. */
  releaseJournal(): void {
    if (this.#unmatched.size > 0) return;
    // The code of a node that runs again may still request an operation whose attempt failed.
    for (const id of this.#recorded?.failedAttempts.keys() ?? []) if (isInNode(id)) return;
    this.#recorded = undefined;
  }

  /** command-matcher.D1, command-matcher.D2 */
  issue(
    type: CommandType,
    name: CommandName,
    fields: EntryFields,
    strictly?: StrictCheck,
    node?: NodeScope,
  ): IssuedCommand | Violation {
    const id = node === undefined ? `${type}(${this.#counts[type]++})` : nextIn(node, type);
    return this.#match(type, id, name, fields, strictly, node);
  }

  /** A command whose id does not depend on the order in which commands are requested. */
  issueNamed(id: string, type: CommandType, name: CommandName, fields: EntryFields): IssuedCommand | Violation {
    return this.#match(type, id, name, fields, undefined);
  }

  #match(
    type: CommandType,
    id: string,
    name: CommandName,
    fields: EntryFields,
    strictly: StrictCheck | undefined,
    node?: NodeScope,
  ): IssuedCommand | Violation {
    this.#last = id;
    const index = this.#index++;
    const journal = this.#recorded;
    if (journal === undefined) return { id, index, known: false, retried: undefined };
    const retried = journal.failedAttempts.get(id);
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

  /** The cancel of a timer: a separate command with the timer's id. */
  issueTimerCancel(id: string, timerId: string): IssuedCommand | Violation {
    const index = this.#index++;
    const recorded = this.#recorded?.timerCancels.get(id);
    if (recorded === undefined) return { id, index, known: false, retried: undefined };
    this.#unmatched.delete(cancelOf(id));
    const mismatch =
      compareFields("CancelTimer", id, { timerId }, recorded) ?? this.#compareStrictly(id, index, recorded, undefined);
    if (mismatch !== undefined) return { ...mismatch, where: id, seq: recorded.seq };
    return { id, index, known: true, retried: undefined };
  }

  /** The n-th message to a child: a separate command with the child's id. */
  issueChildMessage(
    child: string,
    n: number,
    type: EntryType,
    fields: EntryFields,
    strictly?: StrictCheck,
  ): IssuedCommand | Violation {
    const index = this.#index++;
    const key = childMessageKey(child, n);
    const recorded = this.#recorded?.childMessages.get(key);
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

  /** The recorded answer to an update. */
  takeRecordedAnswer(command: string): CommandEntry | undefined {
    this.#unmatched.delete(command);
    return this.#recorded?.byCommand.get(command);
  }

  #compareStrictly(
    id: string,
    index: number,
    recorded: RecordedCommand,
    strictly: StrictCheck | undefined,
  ): Mismatch | undefined {
    if (!this.#comparesInputs) return undefined;
    const { index: actual } = recorded.data as { readonly index?: number };
    if (this.strict && actual !== index)
      return {
        message: `the journal recorded this command at index ${String(actual)}; the code now requests it at index ${index} (at ${id})`,
        expected: index,
        actual,
      };
    const found = strictly?.(recorded);
    if (found === undefined) return undefined;
    const { what, expected, actual: then } = found;
    return {
      message: `the journal recorded another ${what} than the code now passes (at ${id})`,
      expected,
      actual: then,
    };
  }

  /** command-matcher.D4. Only the port of a promise is compared: what it shows, and its timeout, may change. */
  #compareInNode(
    id: string,
    type: CommandType,
    recorded: RecordedCommand,
    strictly: StrictCheck | undefined,
    node: NodeScope | undefined,
  ): Mismatch | undefined {
    if (node === undefined || this.#comparesInputs || type === "Promise") return undefined;
    const found = strictly?.(recorded);
    return found && otherRequest(id, node, found.expected, found.actual);
  }

  /** Recorded commands that the code did not request. */
  orphans(): readonly Violation[] {
    // The code of a node that has ended does not run again, so it does not request its commands again.
    const left = [...this.#unmatched.values()].filter(({ command }) => !isInNode(command));
    return left.map(({ type, command, seq }) => ({
      message: `the journal recorded '${type}'; the code now ends without requesting it (at ${command})`,
      expected: undefined,
      actual: type,
      where: command,
      seq,
    }));
  }

  /** Recorded waits for a port, older than the entry `before`, whose nodes have not run again yet. */
  waitersOf(port: string, before: number): readonly string[] {
    const { byCommand = [] } = this.#recorded ?? {};
    return [...byCommand].flatMap(([id, { type, seq, data }]) =>
      type === "PromiseCreated" && seq < before && data.promiseId === port && this.isUnmatched(id) ? [id] : [],
    );
  }

  /** The seq of a recorded delivery. */
  findDelivery(type: EntryType, command: string): number | undefined {
    return this.#recorded?.deliveries.find((entry) => entry.type === type && entry.command === command)?.seq;
  }
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
  fields: EntryFields,
  recorded: ChildMessageEntry,
): Mismatch | undefined {
  const data: EntryFields = { ...recorded.data };
  const expected = [type, ...Object.values(fields)].join(" ");
  const actual = [recorded.type, ...Object.keys(fields).map((field) => String(data[field]))].join(" ");
  if (expected === actual) return undefined;
  return {
    message: `the journal recorded message '${actual}' to the child; the code now sends '${expected}' (at ${key})`,
    expected,
    actual,
  };
}

function newTooEarly(
  type: CommandType,
  id: string,
  index: number,
  fields: EntryFields,
  lastIndex: number,
  entry: EntryType = ENTRY_OF[type],
): Violation {
  return {
    message: `the journal recorded no '${entry}' before index ${lastIndex}; the code now requests one at index ${index} (at ${id})`,
    expected: `command ${index}: ${id} ${JSON.stringify(fields)}`,
    actual: `the journal's last command is ${lastIndex}`,
    where: id,
    seq: undefined,
  };
}

/** The journal has the completion of a command that the code has not requested yet. */
export function requestedTooLate(command: string): Violation {
  return {
    message: `the journal recorded this command before its completion; the code now requests it after (at ${command})`,
    expected: "before its completion",
    actual: "after its completion",
    where: command,
    seq: undefined,
  };
}

function otherRequest(
  id: string,
  { command, name }: NodeScope,
  expected: unknown,
  actual: unknown,
): Mismatch & Pick<Violation, "advice"> {
  const step = nodeItemOf(command)!.step;
  return {
    message: `the journal recorded another request of node '${name}' in step ${step} than its code now makes (at ${id}). A node's requests must follow from its state, its item, the answers it received, ctx.now, ctx.random and ctx.uuid`,
    expected,
    actual,
    advice: `Restore the code, or fork the run from step ${step - 1}, which runs step ${step} again.`,
  };
}

/** Strict mode: compares the input that the code passes with the recorded one. */
export function compareInput(label: string, input: unknown): StrictCheck {
  return ({ data }) => {
    const what = `${label} input`;
    const recorded = data as { readonly given?: string; readonly input?: unknown };
    if (recorded.given !== undefined) {
      const expected = digest(encode(input));
      return recorded.given === expected ? undefined : { what, expected, actual: recorded.given };
    }
    const expected = encodeInput(input);
    const actual = encodeInput(recorded.input);
    return expected === actual ? undefined : { what, expected, actual };
  };
}
