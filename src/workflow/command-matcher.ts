// Command matcher: the identity of commands, and their comparison with the journal.
//
// command-matcher.D1. A command gets its id `(type, per-type sequence)` and its global index synchronously, when it is created.
// command-matcher.D2. A recorded command is found by its id. The matrix compares its fields; strict mode also compares
//   order and input.
// command-matcher.D3. Without a journal there is nothing to compare: a command only gets its identity.
// command-matcher.D4. The input of a command that a graph's node requests is always compared: a request never gets the answer
//   to another request.
// command-matcher.D5. Where the mode does not compare inputs strictly, an input that differs is noted. A recorded result
//   stays the result.
// command-matcher.D6. Inputs that a fork shares with its origin are not compared: they may contain the id of the origin.

import { digest, encode } from "../base/index.ts";
import { commandSequenceOf, isInNode, type CommandType, type EntryFields, type EntryType } from "../kernel/index.ts";
import { compareMessage, newTooEarly, otherInput, otherRequest, type InputMismatch } from "./command-mismatches.ts";
import type { Determinism } from "./context.ts";
import { encodeInput } from "./entry-data.ts";
import {
  childMessageKey,
  type CancelEntry,
  inputChangeKey,
  type ChildMessageEntry,
  type CommandEntry,
  type FailedAttempt,
  type RecordedJournal,
} from "./recorded-journal.ts";
import type { OpeningEntry } from "./open-commands.ts";
import type { NodeScope } from "./scope.ts";
import { compareFields, type CommandName, type Mismatch } from "./validation-matrix.ts";

export interface IssuedCommand {
  readonly id: string;
  readonly index: number;
  /** The journal already has it. */
  readonly known: boolean;
  /** Its last failed attempt, when the journal has no end of it. */
  readonly retried: FailedAttempt | undefined;
  /** fork.F5. Its entry in the history that a fork shares, if that has no answer to it. */
  readonly reopened?: OpeningEntry | undefined;
}

/** A difference between code and journal. */
export interface Violation extends Mismatch {
  readonly where: string;
  readonly seq: number | undefined;
  /** What to do about it, where the usual advice does not help. */
  readonly advice?: string;
}

export type RecordedCommand = CommandEntry | FailedAttempt | ChildMessageEntry | CancelEntry;

/** An input that differs from the recorded one and does not stop the run (command-matcher.D5). */
export interface InputChange extends Violation {
  readonly what: string;
  /** Digest of what the code passes; undefined if it passes nothing. */
  readonly given: string | undefined;
  /** The journal already has an entry about it. */
  readonly isNoted: boolean;
}

/** Decides what differences from the journal mean. */
export interface Differences {
  /** True: a lenient replay notes the difference and uses the recorded result. */
  tolerates(found: Violation): boolean;
  /** command-matcher.D5 */
  noteInputChange(found: InputChange): void;
}

/** What strict mode compares beyond the matrix. In other modes, a difference is an `InputChange`. */
export type StrictCheck = (recorded: RecordedCommand) => InputMismatch | undefined;

/** `inputs`: the input of each command, in any order, as in a graph's replay. */
export type Comparison = Determinism | "inputs";

export function isViolation(found: IssuedCommand | Violation): found is Violation {
  return "message" in found;
}

/** Shared by runs without a recorded journal. Entries are only ever removed. */
const NOTHING = new Map<string, RecordedCommand>();

export class CommandMatcher {
  readonly strict: boolean;
  /** fork.F5 */
  readonly isFork: boolean;
  readonly #comparesInputs: boolean;
  readonly #differences: Differences;
  #recorded: RecordedJournal | undefined;
  /** Recorded commands that the code has not requested yet. Cancels and child messages have their own keys. */
  readonly #unmatched: Map<string, RecordedCommand>;
  readonly #counts: Record<CommandType, number> = {
    Task: 0,
    ChildWorkflow: 0,
    Timer: 0,
    Operation: 0,
    Promise: 0,
    Settle: 0,
    State: 0,
    Message: 0,
    Node: 0,
  };
  #index = 0;
  #takenIndexes: ReadonlySet<number> | undefined;
  #last: string | undefined;

  constructor(recorded: RecordedJournal, comparison: Comparison, differences: Differences) {
    this.strict = comparison === "strict";
    this.isFork = recorded.shared !== undefined;
    this.#comparesInputs = comparison !== "per-type";
    this.#differences = differences;
    this.#recorded = recorded;
    this.#unmatched =
      recorded.lastIndex < 0 && recorded.byCommand.size === 0
        ? NOTHING
        : new Map<string, RecordedCommand>(recorded.byCommand);
    for (const [id, entry] of recorded.cancels) this.#unmatched.set(cancelOf(id), entry);
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

  /** Canceling this timer or task has no effect: it has ended, or the cancel of the run closed it. */
  isClosed(id: string, survivesCancel: boolean): boolean {
    if (this.#recorded === undefined || this.isCancelUnmatched(id)) return false;
    const { ended, cancelledByRun } = this.#recorded;
    return ended.has(id) || (!survivesCancel && cancelledByRun.has(id));
  }

  /** The journal has the cancel of this timer or task, and the code has not requested it yet. */
  isCancelUnmatched(id: string): boolean {
    return this.#unmatched.has(cancelOf(id));
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
    const reopened = journal.shared?.reopened.get(id);
    if (recorded === undefined && reopened !== undefined) return reopen(name, index, fields, reopened);
    if (recorded === undefined) {
      // An operation has no entry before it ends, so it may be new below the last index, but not in the place of another command.
      const isEarly =
        this.strict &&
        (type === "Operation" ? node === undefined && this.#isTaken(journal, index) : index < journal.lastIndex);
      return isEarly ? newTooEarly(type, id, index, fields, journal.lastIndex) : { id, index, known: false, retried };
    }
    this.#unmatched.delete(id);
    // command-matcher.D6
    const compare = recorded.seq < 1 ? undefined : strictly;
    const mismatch =
      compareFields(name, id, fields, recorded) ??
      this.#compareStrictly(id, index, recorded, compare) ??
      this.#compareInNode(id, type, recorded, compare, node);
    const found = mismatch && { ...mismatch, where: id, seq: recorded.seq };
    if (found !== undefined && !this.#differences.tolerates(found)) return found;
    if (node === undefined) this.#noteChange(id, journal, recorded, compare, id);
    return { id, index, known: recorded !== retried, retried };
  }

  /** Whether the journal has another command at this index. */
  #isTaken({ byCommand, cancels, childMessages, lastIndex }: RecordedJournal, index: number): boolean {
    if (index > lastIndex) return false;
    this.#takenIndexes ??= new Set(
      [...byCommand.values(), ...cancels.values(), ...childMessages.values()].map(
        ({ data }) => (data as { readonly index?: number }).index ?? -1,
      ),
    );
    return this.#takenIndexes.has(index);
  }

  /** The cancel of a timer or a task: a separate command with the id of what it cancels. */
  issueCancel(id: string, name: CommandName, fields: EntryFields, strictly?: StrictCheck): IssuedCommand | Violation {
    const index = this.#index++;
    const recorded = this.#recorded?.cancels.get(id);
    if (recorded === undefined) return { id, index, known: false, retried: undefined };
    this.#unmatched.delete(cancelOf(id));
    const mismatch = compareFields(name, id, fields, recorded) ?? this.#compareStrictly(id, index, recorded, strictly);
    const found = mismatch && { ...mismatch, where: id, seq: recorded.seq };
    if (found !== undefined && !this.#differences.tolerates(found)) return found;
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
    const journal = this.#recorded;
    const recorded = journal?.childMessages.get(key);
    if (journal === undefined || recorded === undefined) {
      const lastIndex = journal?.lastIndex ?? -1;
      const isSentAgain = journal?.shared?.reopened.has(child) === true;
      if (this.strict && index < lastIndex && !isSentAgain)
        return newTooEarly("ChildWorkflow", key, index, fields, lastIndex, type);
      return { id: child, index, known: false, retried: undefined };
    }
    this.#unmatched.delete(key);
    const mismatch =
      compareMessage(key, type, fields, recorded) ?? this.#compareStrictly(key, index, recorded, strictly);
    const found = mismatch && { ...mismatch, where: child, seq: recorded.seq };
    if (found !== undefined && !this.#differences.tolerates(found)) return found;
    this.#noteChange(key, journal, recorded, strictly, child);
    return { id: child, index, known: true, retried: undefined };
  }

  /** The id of the child that the journal recorded for a command. */
  findRecordedChild(command: string): string | undefined {
    const recorded = this.#recorded?.byCommand.get(command);
    return recorded?.type === "ChildWorkflowInitiated" ? recorded.data.childExecutionId : undefined;
  }

  /** fork.F5. The same, if the fork shares the child with its origin. */
  findSharedChild(command: string): string | undefined {
    return (this.#recorded?.byCommand.get(command)?.seq ?? 1) < 1 ? this.findRecordedChild(command) : undefined;
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
    return found && otherInput(id, found);
  }

  /** command-matcher.D5. `where`: the command; `key` also tells the messages to a child apart. */
  #noteChange(
    key: string,
    { inputChanges }: RecordedJournal,
    recorded: RecordedCommand,
    strictly: StrictCheck | undefined,
    where: string,
  ): void {
    if (this.#comparesInputs) return;
    const found = strictly?.(recorded);
    if (found === undefined) return;
    const given = found.expected === undefined ? undefined : digest(encode(found.expected));
    const isNoted = inputChanges.has(inputChangeKey(where, found.what, given));
    this.#differences.noteInputChange({
      ...otherInput(key, found),
      where,
      seq: recorded.seq,
      what: found.what,
      given,
      isNoted,
    });
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

  /** The recorded cancel that the code has not requested, of something it waits for. */
  findUnrequestedCancel(id: string): Violation | undefined {
    const recorded = this.#unmatched.get(cancelOf(id));
    // A task that finishes after its cancel settles anyway.
    if (recorded === undefined || recorded.type === "TaskCancelRequested") return undefined;
    return {
      message: `the journal recorded '${recorded.type}'; the code now waits without requesting it (at ${id})`,
      expected: undefined,
      actual: recorded.type,
      where: id,
      seq: recorded.seq,
    };
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

  /** Recorded promises that the code has not requested again, except shielded ones: a cancel closes them. */
  unrequestedPromises(): readonly string[] {
    return [...this.#unmatched.values()].flatMap(({ type, command, data }) =>
      type === "PromiseCreated" && data.receives === undefined && data.shielded !== true ? [command] : [],
    );
  }

  /** The seq of a recorded delivery. */
  findDelivery(type: EntryType, command: string): number | undefined {
    return this.#recorded?.deliveries.find((entry) => entry.type === type && entry.command === command)?.seq;
  }
}

function idIn({ prefix, counts }: NodeScope, type: CommandType): string {
  return `${prefix}${type}(${counts?.get(type) ?? 0})`;
}

function nextIn(node: NodeScope, type: CommandType): string {
  const id = idIn(node, type);
  const counts = (node.counts ??= new Map());
  counts.set(type, (counts.get(type) ?? 0) + 1);
  return id;
}

/** fork.F5. Its answer is not shared, so the fork requests it as its own; a child gets another id. */
function reopen(
  name: CommandName,
  index: number,
  fields: EntryFields,
  reopened: OpeningEntry,
): IssuedCommand | Violation {
  const { command: id, data, seq } = reopened;
  const { childExecutionId } = data as { readonly childExecutionId?: string };
  const compared = childExecutionId === undefined ? fields : { ...fields, childExecutionId };
  const mismatch = compareFields(name, id, compared, reopened);
  return mismatch === undefined
    ? { id, index, known: false, retried: undefined, reopened }
    : { ...mismatch, where: id, seq };
}

function cancelOf(id: string): string {
  return `${id} cancel`;
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
