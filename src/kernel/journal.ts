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

export type CommandType = "Task" | "ChildWorkflow" | "Timer" | "Operation" | "Promise" | "State" | "Message" | "Node";

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
  | "CancelRequested"
  | "DeadlineExceeded"
  | "RunCompleted"
  | "RunFailed"
  | "RunRetried"
  | "RunCancelled"
  | "RunContinued";

/** An entry as it is stored: `data` is the canonical text, byte for byte. */
export interface Entry {
  readonly seq: number;
  readonly type: EntryType;
  /** The command it belongs to, such as `Task(3)`; empty: none. */
  readonly command: string;
  readonly data: string;
  readonly at: EpochMs;
  readonly mark: number;
  /** The duration of the call that this entry ends. Not in `data`: times are not hashed (journal.J2). */
  readonly tookMs?: number | undefined;
}

/** The last entry of a run, for callers that wait for its end. */
export type EndEntry = Omit<Entry, "mark">;

/** An entry of a run's journal, decoded. */
export interface JournalEntry {
  readonly seq: number;
  readonly type: EntryType;
  readonly command?: string;
  readonly data: unknown;
  readonly at: Date;
  /** The duration of the attempt, in an entry that ends an operation or a node. */
  readonly tookMs?: number;
}

export function journalEntryOf({ seq, type, command, data, at, tookMs }: Entry): JournalEntry {
  invariant(seq >= 1, "journal.J1: seq counts from 1");
  return {
    seq,
    type,
    ...(command !== "" && { command }),
    data: decode(data),
    at: new Date(at),
    ...(tookMs !== undefined && { tookMs }),
  };
}

/** The chain value before the first entry. */
export const CHAIN_START: string = digestOf("reprise/journal/v1");

/**
 * journal.J2. `chain` and the result are 64 hex digits. Hashes the bytes of `digestOf("reprise/entry/v1", chain, type,
 * command, data)`, written out because every step pays for it (1.0 instead of 2.2 µs). A type is ASCII; a command may contain
 * the name of a flow's node, which need not be.
 */
export function chainAfter(chain: string, type: string, command: string, data: string): string {
  invariant(chain.length === 64, "journal.J2: a chain value has 64 hex digits");
  return sha256HexOf(
    `16:reprise/entry/v164:${chain}${type.length}:${type}${Buffer.byteLength(command)}:${command}${Buffer.byteLength(data)}:`,
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

/** The entry types that end a run. The last entry of an ended run has one of them, and no other entry that counts has. */
export const END_ENTRIES: readonly EntryType[] = ["RunCompleted", "RunFailed", "RunCancelled", "RunContinued"];

export interface JournalFault {
  readonly seq: number;
  readonly problem: string;
  /** Set if the entry is intact, but this process cannot decode it: a key is missing. */
  readonly code?: ErrorCode;
}

/** The fault of an entry whose mark does not match. */
export function faultOf({ seq, data }: Entry): JournalFault {
  const unreadable = unreadableReason(data);
  if (unreadable === undefined) return { seq, problem: `entry ${seq} does not match its mark` };
  return { seq, problem: unreadable.message.replace(/\.$/, ""), code: unreadable.code };
}

/** Checks journal.J1 and journal.J3 for a complete journal, against the head in the row of its run. */
export function findJournalFault(
  entries: readonly Entry[],
  head: { readonly head: number; readonly chain: string },
  from: { readonly seq: number; readonly chain: string } = { seq: 0, chain: CHAIN_START },
): JournalFault | undefined {
  let { chain } = from;
  let expected = from.seq + 1;
  for (const entry of entries) {
    if (entry.seq !== expected) return { seq: expected, problem: `entry ${expected} is missing; found ${entry.seq}` };
    chain = chainAfter(chain, entry.type, entry.command, entry.data);
    if (markOf(chain) !== entry.mark) return faultOf(entry);
    expected += 1;
  }
  if (expected - 1 !== head.head)
    return {
      seq: expected,
      problem: `the run's row says ${head.head} entries, the journal has ${expected - 1}`,
    };
  if (chain !== head.chain)
    return { seq: expected - 1, problem: "the chain in the run's row is not that of its last entry" };
  return undefined;
}
