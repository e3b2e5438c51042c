// Recorded journal: a journal indexed for replay. Lookups go by command id, so a replay takes time linear in the entries.

import { invariant, RepriseError, type Timers } from "../base/index.ts";
import {
  decodeEntriesOf,
  decodeEntry,
  isCancel,
  isTerminal,
  retryRecordOf,
  VoidEntries,
  type DecodedEntry,
  type Entry,
  type EntryType,
  type RetryRecord,
} from "../kernel/index.ts";
import { EarlierExecutions } from "./earlier-executions.ts";
import { OpenCommands, type OpeningEntry } from "./open-commands.ts";

type CreationType =
  | "TaskScheduled"
  | "ChildWorkflowInitiated"
  | "TimerStarted"
  | "PromiseCreated"
  | "SettleRequested"
  | "StateSet"
  | "StateCleared"
  | "MessageSent";
/** Operations and nodes have no entry before they end. */
type CallEndType = "OperationCompleted" | "OperationFailed" | "NodeCompleted" | "NodeFailed";
type AnswerType = "UpdateCompleted" | "UpdateFailed";
type EndType = "RunCompleted" | "RunFailed" | "RunCancelled" | "RunContinued";

/** The entry that records a command: its creation, the end of an operation, the answer to an update. */
export type CommandEntry = DecodedEntry<CreationType | CallEndType | AnswerType>;
export type FailedAttempt = DecodedEntry<"OperationRetried" | "NodeRetried">;
export type ChildMessageEntry = DecodedEntry<"ChildSignalled" | "ChildCancelRequested">;
/** The code canceled a timer or a task. */
export type CancelEntry = DecodedEntry<"TimerCancelled" | "TaskCancelled" | "TaskCancelRequested">;
export type EndEntry = DecodedEntry<EndType>;

export interface RecordedJournal {
  readonly started: DecodedEntry<"RunStarted">;
  /** The entries that the code receives, in journal order. */
  readonly deliveries: readonly DecodedEntry[];
  readonly byCommand: ReadonlyMap<string, CommandEntry>;
  /** By the id of the timer or task: starting and canceling it are two commands with one id. */
  readonly cancels: ReadonlyMap<string, CancelEntry>;
  /** By `childMessageKey`: a child and the messages to it share one id. */
  readonly childMessages: ReadonlyMap<string, ChildMessageEntry>;
  /** Timers and tasks that have ended: canceling one of them has no effect. */
  readonly ended: ReadonlySet<string>;
  /** Timers and tasks that were open when the run was canceled. The cancel closed those that do not survive it. */
  readonly cancelledByRun: ReadonlySet<string>;
  /** The last failed attempt of operations and nodes that have no terminal entry. */
  readonly failedAttempts: ReadonlyMap<string, FailedAttempt>;
  /** The ids for which `ctx.patched` returned true. */
  readonly patches: ReadonlySet<string>;
  /** By `inputChangeKey`: the changed inputs that earlier replays noted. */
  readonly inputChanges: ReadonlySet<string>;
  /** Checkpoints of a graph, by step. */
  readonly steps: ReadonlyMap<number, DecodedEntry<"StepCommitted">>;
  /** The highest index of a command that is recorded when it is created; strict mode accepts no new command below it. */
  readonly lastIndex: number;
  readonly end: EndEntry | undefined;
  /** One per `RunRetried` entry, in order (retry-record.V3). */
  readonly runRetries: readonly RetryRecord[];
  /** Set if the run was retried. */
  readonly earlier?: EarlierExecutions;
  /** The commands of a fork that have no answer. */
  readonly open: readonly OpeningEntry[];
  /** fork.F5. Set if the run is a fork at a command. */
  readonly shared?: SharedPart;
}

/** What a fork shares with its origins. */
export interface SharedPart {
  /** The first entries of the forks in the history, oldest first; the last one is the run's own. */
  readonly forks: readonly DecodedEntry<"RunStarted">[];
  /** The first entry of the run that none of them is a part of: the oldest origin. */
  readonly origin: DecodedEntry<"RunStarted">;
  /** Commands that have no answer in the shared entries, and that the fork has not requested again yet. */
  readonly reopened: ReadonlyMap<string, OpeningEntry>;
}

/** The key of the n-th message to a child. */
export function childMessageKey(child: string, n: number): string {
  return `${child} message ${n}`;
}

/** Identifies a changed input: the same one is noted once. */
export function inputChangeKey(command: string, what: string, given: string | undefined): string {
  return `${command} ${what} ${given ?? ""}`;
}

const NO_ENTRIES: ReadonlyMap<string, never> = new Map<string, never>();
const NO_STEPS: ReadonlyMap<number, never> = new Map<number, never>();
const NO_COMMANDS: ReadonlySet<string> = new Set();
const NO_RETRIES: readonly RetryRecord[] = [];
const NO_OPENINGS: readonly OpeningEntry[] = [];

export function runRetriesOf(entries: readonly Entry[]): readonly RetryRecord[] {
  const retried = decodeEntriesOf("RunRetried", entries);
  return retried.length === 0 ? NO_RETRIES : retried.map(({ seq, data }) => retryRecordOf(seq, data));
}

/** The entries that retries of the run did not void (retry-record.V2). */
export function effectiveEntries(entries: readonly Entry[], retries: readonly RetryRecord[]): readonly Entry[] {
  if (retries.length === 0) return entries;
  const voids = new VoidEntries(retries);
  const kept: Entry[] = [];
  const failed = new Map<string, number>();
  for (const entry of entries) {
    const verdict = voids.classify(entry, () => decodeEntry(entry).data);
    if (verdict === "counts" && entry.type !== "RunRetried") kept.push(entry);
    else if (verdict === "orphan") kept.push({ ...entry, command: "" });
    else if (entry.type === "OperationFailed") failed.set(entry.command, entry.seq);
  }
  // A reopened operation starts again with its first attempt.
  return kept.filter(({ type, command, seq }) => type !== "OperationRetried" || seq > (failed.get(command) ?? 0));
}

export function decodeEffectiveEntries(entries: readonly Entry[]): readonly DecodedEntry[] {
  return effectiveEntries(entries, runRetriesOf(entries)).map(decodeEntry);
}

/** The journal of a run that has only its first entry. */
export function freshJournal(first: Entry): RecordedJournal {
  invariant(first.seq === 1 && first.type === "RunStarted", "The first entry of a journal is RunStarted.");
  return {
    started: decodeEntry(first) as DecodedEntry<"RunStarted">,
    deliveries: [],
    byCommand: NO_ENTRIES,
    cancels: NO_ENTRIES,
    childMessages: NO_ENTRIES,
    ended: NO_COMMANDS,
    cancelledByRun: NO_COMMANDS,
    failedAttempts: NO_ENTRIES,
    patches: NO_COMMANDS,
    inputChanges: NO_COMMANDS,
    steps: NO_STEPS,
    lastIndex: -1,
    end: undefined,
    runRetries: NO_RETRIES,
    open: NO_OPENINGS,
  };
}

/** Indexes a journal; its first entry must be among `entries`. */
export function indexJournal(entries: readonly Entry[]): RecordedJournal {
  const parts = indexInParts(entries);
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
  }
}

/** As `indexJournal`; a large journal takes several turns of the event loop. */
export async function indexJournalInTurns(entries: readonly Entry[], timers: Timers): Promise<RecordedJournal> {
  const parts = indexInParts(entries);
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
    await new Promise<void>((resolve) => timers.soon(resolve));
  }
}

/** How much data is decoded without a pause, in characters. */
const PART_SIZE = 1024 * 1024;

/** Pauses after each part. */
function* indexInParts(entries: readonly Entry[]): Generator<void, RecordedJournal> {
  let decoded = 0;
  const deliveries: DecodedEntry[] = [];
  const byCommand = new Map<string, CommandEntry>();
  const cancels = new Map<string, CancelEntry>();
  const childMessages = new Map<string, ChildMessageEntry>();
  const messageCounts = new Map<string, number>();
  const failedAttempts = new Map<string, FailedAttempt>();
  const open = new Set<string>();
  const ended = new Set<string>();
  const cancelledByRun = new Set<string>();
  const patches = new Set<string>();
  const inputChanges = new Set<string>();
  const steps = new Map<number, DecodedEntry<"StepCommitted">>();
  let started: DecodedEntry<"RunStarted"> | undefined;
  let end: EndEntry | undefined;
  let lastIndex = -1;
  let lastSeq = Number.NEGATIVE_INFINITY;
  const runRetries = runRetriesOf(entries);
  let origin: DecodedEntry<"RunStarted"> | undefined;
  const forks: DecodedEntry<"RunStarted">[] = [];
  const unanswered = new OpenCommands();
  const reopened = new Map<string, OpeningEntry>();
  const isFork = entries[0]?.data.includes('"forked"') === true || isShared(entries);
  for (const raw of effectiveEntries(entries, runRetries)) {
    if (decoded >= PART_SIZE) {
      decoded = 0;
      yield;
    }
    decoded += raw.data.length;
    const entry = decodeEntry(raw);
    const { type, command } = entry;
    invariant(entry.seq > lastSeq, "The entries of a journal are in order.");
    if (isFork) {
      unanswered.note(entry);
      reopened.delete(command);
    }
    lastSeq = entry.seq;
    if (isCancel(type)) for (const one of open) cancelledByRun.add(one);
    switch (entry.type) {
      case "TaskScheduled":
      case "TimerStarted":
        open.add(command);
        byCommand.set(command, entry);
        lastIndex = Math.max(lastIndex, entry.data.index);
        break;
      case "ChildWorkflowInitiated":
      case "PromiseCreated":
      case "SettleRequested":
      case "StateSet":
      case "StateCleared":
      case "MessageSent":
        byCommand.set(command, entry);
        lastIndex = Math.max(lastIndex, entry.data.index);
        break;
      case "TimerCancelled":
      case "TaskCancelled":
        open.delete(command);
        cancels.set(command, entry);
        lastIndex = Math.max(lastIndex, entry.data.index);
        break;
      case "TaskCancelRequested":
        cancels.set(command, entry);
        lastIndex = Math.max(lastIndex, entry.data.index);
        break;
      case "TimerFired":
      case "TaskCompleted":
      case "TaskFailed":
        open.delete(command);
        ended.add(command);
        deliveries.push(entry);
        break;
      case "ChildSignalled":
      case "ChildCancelRequested": {
        const n = messageCounts.get(command) ?? 0;
        messageCounts.set(command, n + 1);
        childMessages.set(childMessageKey(command, n), entry);
        lastIndex = Math.max(lastIndex, entry.data.index);
        break;
      }
      case "OperationRetried":
      case "NodeRetried":
        failedAttempts.set(command, entry);
        break;
      case "OperationCompleted":
      case "OperationFailed":
      case "NodeCompleted":
      case "NodeFailed":
        byCommand.set(command, entry);
        deliveries.push(entry);
        break;
      case "UpdateCompleted":
      case "UpdateFailed":
        byCommand.set(command, entry);
        break;
      case "StepCommitted":
        steps.set(entry.data.step, entry);
        break;
      case "PatchMarked":
        patches.add(entry.data.id);
        break;
      case "InputChanged":
        inputChanges.add(inputChangeKey(command, entry.data.what, entry.data.given));
        break;
      // They concern the run's row or its budget, and no command.
      case "BudgetRaised":
      case "BudgetDeclined":
      case "RunMigrated":
        break;
      case "RunStarted":
        if (started === undefined) started = entry;
        else {
          if (forks.length === 0) origin = started;
          forks.push(entry);
          // The code starts when the code of the first origin did, with what the fork says.
          started = { ...entry, at: started.at };
          for (const opening of unanswered.take()) {
            reopened.set(opening.command, opening);
            byCommand.delete(opening.command);
            for (let n = messageCounts.get(opening.command) ?? 0; n > 0; n -= 1)
              childMessages.delete(childMessageKey(opening.command, n - 1));
            messageCounts.delete(opening.command);
          }
          open.clear();
          failedAttempts.clear();
        }
        break;
      case "RunCompleted":
      case "RunFailed":
      case "RunCancelled":
      case "RunContinued":
        end = entry;
        break;
      default:
        if (!isDelivered(type))
          throw new RepriseError(
            "STORE_CORRUPT",
            `Entry ${entry.seq} has an unexpected type, ${type}. Run \`reprise doctor\`.`,
          );
        deliveries.push(entry);
    }
  }
  if (started === undefined)
    throw new RepriseError("STORE_CORRUPT", "A journal has no RunStarted entry. Run `reprise doctor`.");
  return {
    started,
    deliveries,
    byCommand,
    cancels,
    childMessages,
    ended,
    cancelledByRun,
    failedAttempts,
    patches,
    inputChanges,
    steps,
    lastIndex,
    end,
    runRetries,
    open: unanswered.all(),
    ...(runRetries.length > 0 && { earlier: new EarlierExecutions(entries, runRetries) }),
    ...(origin !== undefined && { shared: { forks, origin, reopened } }),
  };
}

/** shared-history.S1 */
function isShared([first]: readonly Entry[]): boolean {
  return first !== undefined && first.seq < 1;
}

/** The run ended before its code ran. */
export function isNotStarted(end: EndEntry | undefined): boolean {
  return (end?.type === "RunCancelled" || end?.type === "RunFailed") && end.data.begun === false;
}

/** Entries that settle a command, and requests from outside. */
function isDelivered(type: EntryType): boolean {
  return isTerminal(type) || isCancel(type) || type === "UpdateRequested";
}
