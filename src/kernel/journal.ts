// Journal: the ordered record of a run.
//
// journal.J1. `seq` is dense from 1. An entry is never removed while its run exists, and never changed after its run started.
// journal.J2. chain(n) = SHA-256(domain ‖ chain(n-1) ‖ type ‖ command ‖ data), each prefixed with its length in bytes. Times
//   are not hashed.
// journal.J3. Each row stores 48 bits of its chain value (`mark`), so that a check names the damaged entry. The run's row
//   stores the complete chain value of its head.
// journal.J4. A command has at most one terminal entry that counts, and a run has one end that counts: void entries do not
//   (retry-record.V2).

import {
  decode,
  digestOf,
  invariant,
  sha256HexOf,
  unreadableReason,
  type EpochMs,
  type ErrorCode,
} from "../base/index.ts";
import type { NewMemo } from "./memo.ts";
import type { Charge } from "./spending.ts";
import type { Traced } from "./telemetry.ts";

export type CommandType =
  | "Task"
  | "ChildWorkflow"
  | "Timer"
  | "Operation"
  | "Promise"
  | "Settle"
  | "State"
  | "Message"
  | "Node";

/** The type of `Task(3)`, also of a command of a node: `Node(2.0)#0/Task(3)`. */
export function commandTypeOf(command: string): CommandType {
  const own = command.slice(command.lastIndexOf("/") + 1);
  return own.slice(0, own.indexOf("(")) as CommandType;
}

export type EntryType =
  | "RunStarted"
  | "TaskScheduled"
  | "TaskCompleted"
  | "TaskFailed"
  | "TaskCancelled"
  | "TaskCancelRequested"
  | "ChildWorkflowInitiated"
  | "ChildWorkflowCompleted"
  | "ChildWorkflowFailed"
  | "TimerStarted"
  | "TimerFired"
  | "TimerCancelled"
  | "OperationCompleted"
  | "OperationFailed"
  | "OperationRetried"
  | "PromiseCreated"
  | "PromiseResolved"
  | "PromiseRejected"
  | "PromiseTimedOut"
  | "SettleRequested"
  | "SettleAnswered"
  | "SignalReceived"
  | "UpdateRequested"
  | "UpdateCompleted"
  | "UpdateFailed"
  | "ChildSignalled"
  | "ChildCancelRequested"
  | "NodeCompleted"
  | "NodeFailed"
  | "NodeRetried"
  | "NodeSkipped"
  | "ItemsSpread"
  | "StepCommitted"
  | "StateSet"
  | "StateCleared"
  | "MessageSent"
  | "PatchMarked"
  | "InputChanged"
  | "BudgetRaised"
  | "BudgetDeclined"
  | "CancelRequested"
  | "DeadlineExceeded"
  | "RunCompleted"
  | "RunFailed"
  | "RunRetried"
  | "RunMigrated"
  | "RunCancelled"
  | "RunContinued";

/** An entry as it is stored: `data` is the canonical text, byte for byte. */
export interface Entry extends Traced {
  readonly seq: number;
  readonly type: EntryType;
  /** The command it belongs to, such as `Task(3)`; empty: none. */
  readonly command: string;
  readonly data: string;
  readonly at: EpochMs;
  readonly mark: number;
  /** The execution of user code that this entry ends (attempts.X2). */
  readonly execution?: number | undefined;
  readonly worker?: string | undefined;
  readonly startedAt?: EpochMs | undefined;
  readonly tookMs?: number | undefined;
  /** Only on its way into the store. */
  readonly memo?: NewMemo | undefined;
  /** Only on its way into the store. */
  readonly charge?: Charge | undefined;
}

/** The last entry of a run, for callers that wait for its end. */
export type EndEntry = Omit<Entry, "mark">;

/** An entry of a run's journal, decoded. */
export interface JournalEntry {
  readonly seq: number;
  /** The run that wrote it, if a fork shares the entry with its origin; `seq` is its number there. */
  readonly run?: string;
  readonly type: EntryType;
  readonly command?: string;
  readonly data: unknown;
  readonly at: Date;
  /** In an entry that ends a call of user code: which execution of it, counted from 1, on which worker, from when, for how long. */
  readonly execution?: number;
  readonly worker?: string;
  readonly startedAt?: Date;
  readonly tookMs?: number;
}

export function journalEntryOf(entry: Entry): JournalEntry {
  const { seq, type, command, data, at, execution, worker, startedAt, tookMs } = entry;
  invariant(seq >= 1, "journal.J1: seq counts from 1");
  return {
    seq,
    type,
    ...(command !== "" && { command }),
    data: decode(data),
    at: new Date(at),
    ...(execution !== undefined && { execution }),
    ...(worker !== undefined && { worker }),
    ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
    ...(tookMs !== undefined && { tookMs }),
  };
}

/** The chain value before the first entry. */
export const CHAIN_START: string = digestOf("reprise/journal/v1");

/**
 * journal.J2. `chain` and the result are 64 hex digits. Hashes the bytes of `digestOf("reprise/entry/v1", chain, type,
 * command, data)`, written out because every step pays for it (1.0 instead of 2.2 µs). Every length counts bytes of UTF-8: a
 * command may contain the name of a flow's node, and the entries of a bundle from another machine have any text as their type.
 */
export function chainAfter(chain: string, type: string, command: string, data: string): string {
  invariant(chain.length === 64, "journal.J2: a chain value has 64 hex digits");
  return sha256HexOf(
    `16:reprise/entry/v164:${chain}${Buffer.byteLength(type)}:${type}${Buffer.byteLength(command)}:${command}${Buffer.byteLength(data)}:`,
    data,
  );
}

/** journal.J3. The first 48 bits: exact in a double, small in a row. */
export function markOf(chain: string): number {
  return Number.parseInt(chain.slice(0, 12), 16);
}

const TERMINAL: ReadonlySet<EntryType> = new Set<EntryType>([
  "TaskCompleted",
  "TaskFailed",
  "TaskCancelled",
  "ChildWorkflowCompleted",
  "ChildWorkflowFailed",
  "TimerFired",
  "TimerCancelled",
  "OperationCompleted",
  "OperationFailed",
  "NodeCompleted",
  "NodeFailed",
  "PromiseResolved",
  "PromiseRejected",
  "PromiseTimedOut",
  "SettleAnswered",
  "SignalReceived",
  "UpdateCompleted",
  "UpdateFailed",
]);

/** Whether an entry of this type settles the command it names. */
export function isTerminal(type: EntryType): boolean {
  return TERMINAL.has(type);
}

/** Whether an entry of this type rejects the pending waits of the run, except shielded ones. */
export function isCancel(type: EntryType): boolean {
  return type === "CancelRequested" || type === "DeadlineExceeded";
}

/** Whether calls that wait for their budget have an answer: of a person, or because others left room. Code does not receive it. */
export function isBudgetAnswer(type: EntryType): type is "BudgetRaised" | "BudgetDeclined" {
  return type === "BudgetRaised" || type === "BudgetDeclined";
}

/** The entry types that end a run. The last entry of an ended run has one of them, and no other entry that counts has. */
export const END_ENTRIES: readonly EntryType[] = ["RunCompleted", "RunFailed", "RunCancelled", "RunContinued"];

export interface JournalFault {
  readonly seq: number;
  readonly problem: string;
  /** Set if the entry is intact, but this process cannot decode it: a key is missing. */
  readonly code?: ErrorCode;
  /** The entry is not there; what is there may be intact. */
  readonly isMissing?: boolean;
}

/** The fault of an entry whose mark does not match. */
export function faultOf({ seq, data }: Entry): JournalFault {
  const unreadable = unreadableReason(data);
  if (unreadable === undefined) return { seq, problem: `entry ${seq} does not match its mark` };
  return { seq, problem: unreadable.message.replace(/\.$/, ""), code: unreadable.code };
}

/** A place in a journal: the entry, and the chain after it. */
export interface ChainPlace {
  readonly seq: number;
  readonly chain: string;
}

const BEGINNING: ChainPlace = { seq: 0, chain: CHAIN_START };

/** Checks journal.J1 and journal.J3 for the next entries of a journal; the first fault, or the place after them. */
export function followChain(entries: readonly Entry[], from: ChainPlace = BEGINNING): ChainPlace | JournalFault {
  let { seq, chain } = from;
  for (const entry of entries) {
    seq += 1;
    if (entry.seq !== seq) return { seq, problem: `entry ${seq} is missing; found ${entry.seq}`, isMissing: true };
    chain = chainAfter(chain, entry.type, entry.command, entry.data);
    if (markOf(chain) !== entry.mark) return faultOf(entry);
  }
  return { seq, chain };
}

/** Compares the end of a journal with the head in the row of its run. */
export function findHeadFault(
  { seq, chain }: ChainPlace,
  head: { readonly head: number; readonly chain: string },
): JournalFault | undefined {
  if (seq !== head.head)
    return {
      seq: seq + 1,
      problem: `the run's row says ${head.head} entries, the journal has ${seq}`,
      ...(seq < head.head && { isMissing: true }),
    };
  if (chain !== head.chain) return { seq, problem: "the chain in the run's row is not that of its last entry" };
  return undefined;
}

/** Checks journal.J1 and journal.J3 for a complete journal, against the head in the row of its run. */
export function findJournalFault(
  entries: readonly Entry[],
  head: { readonly head: number; readonly chain: string },
  from: ChainPlace = BEGINNING,
): JournalFault | undefined {
  const place = followChain(entries, from);
  return "problem" in place ? place : findHeadFault(place, head);
}
