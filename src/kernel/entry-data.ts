// Entry data: what an entry of each type holds, decoded. `src/workflow/entry-data.ts` writes the texts.
//
// The hash chain covers the text of an entry, so the name of a field never changes. A field that is absent reads as
// undefined. Attempts and indexes count from 0.

import { decode, RepriseError, type EpochMs } from "../base/index.ts";
import type { BudgetOptions, Cost } from "./budget.ts";
import type { Delta } from "./checkpoint.ts";
import type { ModelNames, StoredForkOrigin } from "./fork.ts";
import type { Entry, EntryType } from "./journal.ts";
import type { QueueSlot } from "./queue.ts";
import type { SentTrace, TraceContext } from "./telemetry.ts";

/** The fields of an entry by name, where the type of the entry is not known. */
export type EntryFields = Readonly<Record<string, unknown>>;

export interface RunStartedData {
  readonly definition: string;
  readonly version: number;
  readonly flags: readonly number[];
  /** Its own budget; absent: none, or that of its parent. */
  readonly budget?: BudgetOptions;
  readonly input?: unknown;
  /** Milliseconds from the start of the run. */
  readonly deadline?: number;
  readonly forked?: StoredForkOrigin;
  /** The queue the run waits in. */
  readonly line?: QueueSlot;
  /** Names of models that the run replaces (fork.F8). */
  readonly models?: ModelNames;
  readonly payloadLimit?: number;
  readonly salt?: string;
  readonly seed?: bigint;
  readonly singleton?: string;
  /** telemetry.T2 */
  readonly trace?: TraceContext;
  readonly updates?: boolean;
}

/** Durations in milliseconds. */
export interface StoredRetryPolicy {
  readonly maxAttempts: number;
  readonly baseDelay?: number;
  readonly maxDelay?: number;
}

export interface TaskScheduledData {
  readonly index: number;
  readonly taskType: string;
  readonly input?: unknown;
  /** Digest of the value the code passed, where a schema parsed it. */
  readonly given?: string;
  readonly retry?: StoredRetryPolicy;
  readonly timeout?: number;
  readonly shielded?: boolean;
  /** The epoch of the run the task belongs to; absent in the first. */
  readonly life?: number;
  readonly trace?: SentTrace;
}

export interface ChildInitiatedData {
  readonly index: number;
  readonly childExecutionId: string;
  readonly childExecutionName: string;
  readonly childWorkflowKind: string;
  readonly input?: unknown;
  readonly given?: string;
  readonly shielded?: boolean;
}

export interface FailureData {
  readonly error: unknown;
  readonly stack?: string;
}

export interface TaskCompletedData {
  readonly attempt?: number;
  readonly failures?: readonly unknown[];
  readonly result?: unknown;
  /** The key of the memo that the result was reused from; absent: the task was executed. */
  readonly reused?: string;
}

export interface TaskFailedData extends FailureData {
  readonly attempt?: number;
  readonly failures?: readonly unknown[];
}

/** The code canceled one task. */
export interface TaskCancelledData {
  readonly index: number;
  readonly reason?: string;
}

export interface OperationCompletedData {
  readonly index: number;
  readonly operationName: string;
  readonly attempt?: number;
  readonly input?: unknown;
  readonly result?: unknown;
  /** The key of the memo that the result was reused from; absent: the function was called. */
  readonly reused?: string;
}

export interface OperationFailedData extends FailureData {
  readonly index: number;
  readonly operationName: string;
  readonly attempt?: number;
  readonly input?: unknown;
}

export interface OperationRetriedData extends OperationFailedData {
  /** Milliseconds from the entry's time to the next attempt. */
  readonly delay: number;
}

/** A node of a graph is recorded as an operation; a node of a flow has the fields from `caught` on. */
export interface NodeCompletedData extends Partial<OperationCompletedData> {
  /** The error that the node's `recover` turned into its value. */
  readonly caught?: unknown;
  readonly failures?: readonly unknown[];
  /** Values derived from this one, by node. */
  readonly kept?: EntryFields;
  readonly skipped?: readonly string[];
}

export interface NodeFailedData extends FailureData, Partial<Omit<OperationFailedData, "error" | "stack">> {
  readonly failures?: readonly unknown[];
}

/** A part of the items of a spread, from an index on. */
export interface ItemsSpreadData {
  readonly from: number;
  readonly items: readonly unknown[];
  /** Of each item, for the queue's limits per key; null: no key. */
  readonly keys?: readonly (string | null)[];
}

/** An item of a graph's frontier. */
export interface FrontierItemData {
  readonly node: string;
  readonly path: string;
  readonly orderKey: string;
  readonly parent: string;
  readonly edge: number;
  readonly spread?: number;
  readonly input?: unknown;
}

/** A join that waits for more branches. */
export interface WaitingJoinData {
  readonly node: string;
  readonly arrived: readonly { readonly node: string; readonly path: string; readonly edge: number }[];
}

export interface StepCommittedData {
  readonly step: number;
  readonly key: string;
  readonly label?: string;
  readonly delta: Delta;
  readonly frontier: readonly FrontierItemData[];
  readonly waiting?: readonly WaitingJoinData[];
}

export interface TimerStartedData {
  readonly index: number;
  /** The id that the code gave; otherwise one of `DEFAULT_TIMER_IDS`, the name of the call. */
  readonly timerId: string;
  /** A duration, or for `sleepUntil` a moment. */
  readonly ms: number;
  readonly shielded?: boolean;
  /** True for `sleepUntil` with an id: `ms` is a moment. */
  readonly until?: boolean;
}

/** The ids of timers without an id of their own. The second also says that `ms` is a moment. */
const DEFAULT_TIMER_IDS = ["sleep", "sleepUntil"] as const;

export function isDefaultTimerId(timerId: string): boolean {
  return (DEFAULT_TIMER_IDS as readonly string[]).includes(timerId);
}

/** When a timer fires whose entry was written at `at`. */
export function timerDueAt({ timerId, ms, until }: Omit<TimerStartedData, "index">, at: EpochMs): EpochMs {
  return until === true || timerId === DEFAULT_TIMER_IDS[1] ? ms : at + ms;
}

export interface PromiseCreatedData {
  readonly index: number;
  readonly promiseId: string;
  /** The signals that a `ctx.receive` waits for. */
  readonly receives?: readonly string[];
  /** promise-id.I1 */
  readonly key?: string;
  readonly show?: unknown;
  readonly timeout?: number;
  readonly shielded?: boolean;
}

/** How a promise was settled, without its value or its error. */
export interface SettledData {
  readonly promiseId: string;
  /** promise-id.I1 */
  readonly key?: string;
  /** Who settled it and why, as the caller says. */
  readonly by?: string;
  readonly reason?: string;
}

/** A promise of another run that the code settles. */
export interface SettleRequestedData extends SettledData {
  readonly index: number;
  readonly runId: string;
  readonly definition: string;
  /** `error` is set if the code rejects it. */
  readonly value?: unknown;
  readonly error?: unknown;
  readonly given?: string;
  readonly shielded?: boolean;
}

/** What became of it. */
export interface SettleAnsweredData {
  readonly runId: string;
  readonly promiseId: string;
  /** `repeated`: it had the same value already. `already_settled`: it had another one. */
  readonly status: "accepted" | "repeated" | "already_settled" | "no_run" | "ended" | "other_definition";
  /** How the other run ended, or its definition. */
  readonly as?: string;
  readonly definition?: string;
  /** How the promise was settled before. */
  readonly settled?: unknown;
}

export interface UpdateRequestedData {
  readonly id: string;
  readonly name: string;
  readonly args?: unknown;
}

export interface ChildSignalledData {
  readonly index: number;
  readonly childExecutionId: string;
  readonly name: string;
  readonly value?: unknown;
  readonly given?: string;
}

/** A replay passed another input than the journal recorded, and the run continued. */
export interface InputChangedData {
  /** Digest of what the code passed; absent if it passed nothing. */
  readonly given?: string;
  /** What differs: "task input". */
  readonly what: string;
}

/** A person raised the budget of the run, or declined to; or other calls left room. */
export interface BudgetAnswerData {
  /** What was added to the cap. */
  readonly add?: Cost;
  /** No person did anything: other calls left room, and these commands try to reserve again. Absent: all that wait do. */
  readonly woken?: readonly string[];
  readonly by?: string;
  readonly reason?: string;
}

export interface RunFailedData extends FailureData {
  /** The command that failed, and the number of commands at that moment. */
  readonly at?: string;
  readonly commands?: number;
  readonly begun?: boolean;
  readonly undone?: boolean;
  /** Flows: the number of entries before this one that belong to the failure, and the node to derive from again. */
  readonly entries?: number;
  readonly again?: string;
}

export interface RunRetriedData {
  readonly from: number;
  readonly commands: number;
  readonly emitted?: readonly (readonly [stream: string, count: number])[];
  readonly step?: number;
  readonly kept?: readonly (readonly [from: number, to: number])[];
  readonly reopened?: readonly string[];
}

/** The run continues with another version of its definition. */
export interface RunMigratedData {
  readonly from: number;
  readonly to: number;
}

export interface RunCancelledData {
  readonly reason?: string;
  readonly begun?: boolean;
  readonly terminated?: boolean;
}

interface CancelData {
  readonly reason?: string;
}

/** The data of every type of entry. */
export interface EntryData {
  readonly RunStarted: RunStartedData;
  readonly TaskScheduled: TaskScheduledData;
  readonly TaskCompleted: TaskCompletedData;
  readonly TaskFailed: TaskFailedData;
  readonly TaskCancelled: TaskCancelledData;
  readonly TaskCancelRequested: TaskCancelledData;
  readonly ChildWorkflowInitiated: ChildInitiatedData;
  readonly ChildWorkflowCompleted: { readonly childExecutionId: string; readonly output?: unknown };
  readonly ChildWorkflowFailed: FailureData & { readonly childExecutionId: string };
  readonly TimerStarted: TimerStartedData;
  readonly TimerFired: EntryFields;
  readonly TimerCancelled: { readonly index: number; readonly timerId: string };
  readonly OperationCompleted: OperationCompletedData;
  readonly OperationFailed: OperationFailedData;
  readonly OperationRetried: OperationRetriedData;
  readonly PromiseCreated: PromiseCreatedData;
  readonly PromiseResolved: SettledData & { readonly value?: unknown };
  readonly PromiseRejected: SettledData & FailureData;
  readonly PromiseTimedOut: EntryFields;
  readonly SettleRequested: SettleRequestedData;
  readonly SettleAnswered: SettleAnsweredData;
  readonly SignalReceived: { readonly name: string; readonly value?: unknown };
  readonly UpdateRequested: UpdateRequestedData;
  readonly UpdateCompleted: { readonly id: string; readonly result?: unknown };
  readonly UpdateFailed: FailureData & { readonly id: string };
  readonly ChildSignalled: ChildSignalledData;
  readonly ChildCancelRequested: { readonly index: number; readonly childExecutionId: string };
  readonly NodeCompleted: NodeCompletedData;
  readonly NodeFailed: NodeFailedData;
  readonly NodeRetried: OperationRetriedData;
  readonly NodeSkipped: EntryFields;
  readonly ItemsSpread: ItemsSpreadData;
  readonly StepCommitted: StepCommittedData;
  readonly StateSet: { readonly index: number; readonly key: string; readonly value: unknown };
  readonly StateCleared: { readonly index: number; readonly key?: string };
  readonly MessageSent: {
    readonly index: number;
    readonly destination: string;
    readonly payload?: unknown;
    readonly trace?: SentTrace;
  };
  readonly PatchMarked: { readonly id: string };
  readonly InputChanged: InputChangedData;
  readonly BudgetRaised: BudgetAnswerData;
  readonly BudgetDeclined: BudgetAnswerData;
  readonly CancelRequested: CancelData;
  readonly DeadlineExceeded: CancelData;
  readonly RunCompleted: { readonly output?: unknown };
  readonly RunFailed: RunFailedData;
  readonly RunRetried: RunRetriedData;
  readonly RunMigrated: RunMigratedData;
  readonly RunCancelled: RunCancelledData;
  readonly RunContinued: { readonly version: number; readonly given?: string };
}

/** An entry that the code receives; its `type` tells the type of `data`. */
export type Delivery<T extends EntryType = EntryType> = {
  readonly [K in T]: {
    readonly type: K;
    readonly command: string;
    readonly data: EntryData[K];
    readonly at: EpochMs;
  };
}[T];

/** A decoded entry; its `type` tells the type of `data`. */
export type DecodedEntry<T extends EntryType = EntryType> = {
  readonly [K in T]: Delivery<K> & { readonly seq: number };
}[T];

/** The error of a failure entry, with its recorded stack. */
export function errorOf({ error, stack }: Partial<FailureData>): unknown {
  if (error instanceof Error && stack !== undefined)
    Object.defineProperty(error, "stack", { value: stack, configurable: true, writable: true, enumerable: false });
  return error;
}

/** Decodes the data of an entry of a known type. */
export function decodeData<T extends EntryType>(type: T, text: string): EntryData[T] {
  const data = decode(text);
  if (typeof data !== "object" || data === null)
    throw new RepriseError("STORE_CORRUPT", `An entry of type ${type} holds no object. Run \`reprise doctor\`.`);
  return data as EntryData[T];
}

export function decodeEntry<T extends EntryType>(entry: Entry & { readonly type: T }): DecodedEntry<T> {
  const { seq, type, command, at } = entry;
  const data = decode(entry.data);
  if (typeof data !== "object" || data === null)
    throw new RepriseError("STORE_CORRUPT", `Entry ${seq} (${type}) holds no object. Run \`reprise doctor\`.`);
  return { seq, type, command, data, at } as DecodedEntry as DecodedEntry<T>;
}

/** The entries of one type, decoded. */
export function decodeEntriesOf<T extends EntryType>(type: T, entries: readonly Entry[]): readonly DecodedEntry<T>[] {
  return entries
    .filter((entry) => entry.type === type)
    .map((entry) => decodeEntry(entry as Entry & { readonly type: T }));
}

/** Whether an entry has one of these types, as a type guard. */
export function isOfType<E extends { readonly type: EntryType }, T extends EntryType>(
  entry: E,
  ...types: readonly T[]
): entry is Extract<E, { readonly type: T }> {
  return types.includes(entry.type as T);
}
