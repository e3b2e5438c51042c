// Recorded: a journal, indexed for replay. Maps by command id, so that a replay is O(entries).

import { decode, RepriseError, type EpochMs } from "../base/index.ts";
import {
  isCancel,
  isTerminal,
  retriedOf,
  VoidEntries,
  type Entry,
  type EntryType,
  type Retried,
} from "../kernel/index.ts";

export interface RecordedEntry {
  readonly seq: number;
  readonly type: EntryType;
  readonly command: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly at: EpochMs;
}

export interface Recorded {
  readonly started: RecordedEntry;
  /** What the code is given, in journal order. */
  readonly deliveries: readonly RecordedEntry[];
  /** The entry that records each command: its creation, for an operation its end, for an update its answer. */
  readonly byCommand: ReadonlyMap<string, RecordedEntry>;
  /** `TimerCancelled` entries: two commands share a timer's id. */
  readonly cancels: ReadonlyMap<string, RecordedEntry>;
  /** Messages to children, by child and number: they share the child's id. */
  readonly sent: ReadonlyMap<string, RecordedEntry>;
  /** Timers that have fired: cancelling them changes nothing any more. */
  readonly firedTimers: ReadonlySet<string>;
  /** Timers that were open when the run was cancelled: closed with it, unless they were shielded. */
  readonly cancelledTimers: ReadonlySet<string>;
  /** Failed attempts of operations that have not ended. */
  readonly retries: ReadonlyMap<string, RecordedEntry>;
  /** What `ctx.patched` answered with true. */
  readonly patches: ReadonlySet<string>;
  /** Checkpoints of a graph, by step. */
  readonly steps: ReadonlyMap<number, RecordedEntry>;
  /** The highest command index journaled at creation; nothing new may come before it in strict mode. */
  readonly lastIndex: number;
  readonly end: RecordedEntry | undefined;
  /** V3. One per `RunRetried` entry, in order. */
  readonly lives: readonly Retried[];
}

const CREATIONS: ReadonlySet<EntryType> = new Set<EntryType>([
  "TaskScheduled",
  "ChildWorkflowInitiated",
  "TimerStarted",
  "PromiseCreated",
  "StateSet",
  "StateCleared",
  "MessageSent",
]);

/** What is no command's end and yet given to the code. */
const DELIVERED: ReadonlySet<EntryType> = new Set<EntryType>([
  "CancelRequested",
  "DeadlineExceeded",
  "UpdateRequested",
]);

/** The key of the n-th message to a child. */
export function messageOf(child: string, n: number): string {
  return `${child} message ${n}`;
}

/** Commands that have no entry until they end. */
const ENDS: ReadonlySet<EntryType> = new Set<EntryType>([
  "OperationCompleted",
  "OperationFailed",
  "NodeCompleted",
  "NodeFailed",
]);

export function decodeEntry(entry: Entry): RecordedEntry {
  const data = decode(entry.data);
  if (typeof data !== "object" || data === null)
    throw new RepriseError("STORE_CORRUPT", `Entry ${entry.seq} (${entry.type}) holds no object; run reprise doctor.`);
  return {
    seq: entry.seq,
    type: entry.type,
    command: entry.command,
    data: data as Record<string, unknown>,
    at: entry.at,
  };
}

const NO_ENTRIES: ReadonlyMap<string, RecordedEntry> = new Map();
const NO_STEPS: ReadonlyMap<number, RecordedEntry> = new Map();
const NO_COMMANDS: ReadonlySet<string> = new Set();
const NO_LIVES: readonly Retried[] = [];

/** The retries of a run, as its journal has them. */
export function livesOf(entries: readonly Entry[]): readonly Retried[] {
  const retried = entries.filter(({ type }) => type === "RunRetried");
  return retried.length === 0 ? NO_LIVES : retried.map((entry) => retriedOf(entry.seq, decodeEntry(entry).data));
}

/** What counts of a journal: everything, unless the run was retried (V2). */
export function entriesThatCount(entries: readonly Entry[], lives: readonly Retried[]): readonly Entry[] {
  if (lives.length === 0) return entries;
  const voids = new VoidEntries(lives);
  const kept: Entry[] = [];
  const failed = new Map<string, number>();
  for (const entry of entries) {
    const verdict = voids.judge(entry, () => decodeEntry(entry).data);
    if (verdict === "counts" && entry.type !== "RunRetried") kept.push(entry);
    else if (verdict === "orphan") kept.push({ ...entry, command: "" });
    else if (entry.type === "OperationFailed") failed.set(entry.command, entry.seq);
  }
  // An operation that is tried anew begins with its first attempt.
  return kept.filter(({ type, command, seq }) => type !== "OperationRetried" || seq > (failed.get(command) ?? 0));
}

/** What counts of a journal, decoded, in order. */
export function countedEntries(entries: readonly Entry[]): readonly RecordedEntry[] {
  return entriesThatCount(entries, livesOf(entries)).map(decodeEntry);
}

/** The journal of a run that has only been started: nothing to index. */
export function freshJournal(first: Entry): Recorded {
  return {
    started: decodeEntry(first),
    deliveries: [],
    byCommand: NO_ENTRIES,
    cancels: NO_ENTRIES,
    sent: NO_ENTRIES,
    firedTimers: NO_COMMANDS,
    cancelledTimers: NO_COMMANDS,
    retries: NO_ENTRIES,
    patches: NO_COMMANDS,
    steps: NO_STEPS,
    lastIndex: -1,
    end: undefined,
    lives: NO_LIVES,
  };
}

/** Indexes a whole journal; entry 1 must be there. */
export function indexJournal(entries: readonly Entry[]): Recorded {
  const deliveries: RecordedEntry[] = [];
  const byCommand = new Map<string, RecordedEntry>();
  const cancels = new Map<string, RecordedEntry>();
  const sent = new Map<string, RecordedEntry>();
  const sentTo = new Map<string, number>();
  const countOf = (child: string): number => {
    const count = sentTo.get(child) ?? 0;
    sentTo.set(child, count + 1);
    return count;
  };
  const retries = new Map<string, RecordedEntry>();
  const openTimers = new Set<string>();
  const firedTimers = new Set<string>();
  const cancelledTimers = new Set<string>();
  const patches = new Set<string>();
  const steps = new Map<number, RecordedEntry>();
  let started: RecordedEntry | undefined;
  let end: RecordedEntry | undefined;
  let lastIndex = -1;
  const lives = livesOf(entries);
  for (const raw of entriesThatCount(entries, lives)) {
    const entry = decodeEntry(raw);
    if (entry.type === "TimerStarted") openTimers.add(entry.command);
    else if (entry.type === "TimerCancelled") openTimers.delete(entry.command);
    else if (entry.type === "TimerFired") firedTimers.add(entry.command);
    else if (isCancel(entry.type)) for (const timer of openTimers) cancelledTimers.add(timer);
    if (CREATIONS.has(entry.type)) {
      byCommand.set(entry.command, entry);
      lastIndex = Math.max(lastIndex, Number(entry.data["index"]));
    } else if (entry.type === "TimerCancelled") {
      cancels.set(entry.command, entry);
      lastIndex = Math.max(lastIndex, Number(entry.data["index"]));
    } else if (entry.type === "OperationRetried" || entry.type === "NodeRetried") retries.set(entry.command, entry);
    else if (entry.type === "StepCommitted") steps.set(Number(entry.data["step"]), entry);
    else if (entry.type === "PatchMarked") patches.add(String(entry.data["id"]));
    else if (entry.type === "RunStarted") started = entry;
    else if (entry.type === "UpdateCompleted" || entry.type === "UpdateFailed") byCommand.set(entry.command, entry);
    else if (entry.type === "ChildSignalled" || entry.type === "ChildCancelRequested") {
      sent.set(messageOf(entry.command, countOf(entry.command)), entry);
      lastIndex = Math.max(lastIndex, Number(entry.data["index"]));
    } else if (DELIVERED.has(entry.type) || isTerminal(entry.type)) {
      deliveries.push(entry);
      if (ENDS.has(entry.type)) byCommand.set(entry.command, entry);
    } else end = entry;
  }
  if (started === undefined)
    throw new RepriseError("STORE_CORRUPT", "A journal has no RunStarted entry; run reprise doctor.");
  return {
    started,
    deliveries,
    byCommand,
    cancels,
    sent,
    firedTimers,
    cancelledTimers,
    retries,
    patches,
    steps,
    lastIndex,
    end,
    lives,
  };
}
