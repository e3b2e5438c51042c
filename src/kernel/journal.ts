// Journal: a run's ordered record.
//
// J1. `seq` is dense from 1; an entry is never removed while its run exists, and never changed once its run has begun.
// J2. chain(n) = SHA-256(domain ‖ chain(n-1) ‖ type ‖ command ‖ data), each length-prefixed. Never `at`: times are not hashed.
// J3. A row keeps 48 bits of its chain value (`mark`), so that a damaged entry is named; the run's row keeps the whole head.
// J4. A command has at most one terminal entry, and a run one end, that counts: what a retry makes void does not (V2).

import { decode, digestOf, sha256HexOf, unreadableReason, type EpochMs, type ErrorCode } from "../base/index.ts";

export type CommandType = "Task" | "ChildWorkflow" | "Timer" | "Operation" | "Promise" | "State" | "Message" | "Node";

/** The type of `Task(3)`, also of one asked for inside a node: `Node(2.0)#0/Task(3)`. */
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

/** One line of the journal as it is stored: `data` is the canonical text, byte for byte. */
export interface Entry {
  readonly seq: number;
  readonly type: EntryType;
  /** The command it belongs to, `Task(3)`; empty where there is none. */
  readonly command: string;
  readonly data: string;
  readonly at: EpochMs;
  readonly mark: number;
  /** How long the call took that this entry ends. Beside the data: a time is never hashed (J2). */
  readonly tookMs?: number | undefined;
}

/** The last entry of a run, for those who wait for its end. */
export type EndEntry = Omit<Entry, "mark">;

/** One line of a run's journal, decoded. */
export interface JournalEntry {
  readonly seq: number;
  readonly type: EntryType;
  readonly command?: string;
  readonly data: unknown;
  readonly at: Date;
  /** How long the call took, of an entry that ends an operation or a node: the attempt it tells of. */
  readonly tookMs?: number;
}

export function journalEntryOf({ seq, type, command, data, at, tookMs }: Entry): JournalEntry {
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
 * J2. `chain` and the result are 64 hex digits. The bytes are those of `digestOf("reprise/entry/v1", chain, type, command,
 * data)`, written out because every step pays for it: only data can hold anything but ASCII (1.0 instead of 2.2 µs).
 */
export function chainAfter(chain: string, type: string, command: string, data: string): string {
  return sha256HexOf(
    `16:reprise/entry/v164:${chain}${type.length}:${type}${command.length}:${command}${Buffer.byteLength(data)}:`,
    data,
  );
}

/** J3. The first 48 bits: exact in a double, small in a row. */
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

/** Whether an entry of this type rejects what the run waits for, shielded waits excepted. */
export function isCancel(type: EntryType): boolean {
  return type === "CancelRequested" || type === "DeadlineExceeded";
}

/** The entry types that end a run; the last entry of an ended run is one of them, and no other that counts. */
export const END_ENTRIES: readonly EntryType[] = ["RunCompleted", "RunFailed", "RunCancelled", "RunContinued"];

export interface JournalFault {
  readonly seq: number;
  readonly problem: string;
  /** Set when the entry is not damaged but cannot be read here: a key is missing. */
  readonly code?: ErrorCode;
}

/** What to say of an entry whose mark does not match. */
export function faultOf({ seq, data }: Entry): JournalFault {
  const unreadable = unreadableReason(data);
  if (unreadable === undefined) return { seq, problem: `entry ${seq} does not match its mark` };
  return { seq, problem: unreadable.message.replace(/\.$/, ""), code: unreadable.code };
}

/** Checks J1 and J3 over a whole journal against the head its run claims. */
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
      problem: `the run claims ${head.head} entries, the journal has ${expected - 1}`,
    };
  if (chain !== head.chain) return { seq: expected - 1, problem: "the run's chain is not that of its last entry" };
  return undefined;
}
