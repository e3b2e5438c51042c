// Run attempts: every execution of a run's steps, from its journal and its attempt records.

import { decode } from "../base/index.ts";
import type { AttemptOutcome, AttemptRecord } from "./attempts.ts";
import { errorOf, type FailureData } from "./entry-data.ts";
import type { Entry, EntryType, JournalEntry } from "./journal.ts";

/** One execution of user code: which step, on which worker, from when, for how long, and how it ended. */
export interface RunAttempt {
  /** The command or node; absent: the run itself, with every operation that its worker was executing. */
  readonly step?: string;
  /** The name of the task, operation or node. */
  readonly name?: string;
  /** Counts the executions of the step, from 1, including those whose worker was lost. */
  readonly execution?: number;
  /** Counts the attempts of the step, from 1: executions that ended with an error or a result. */
  readonly attempt?: number;
  /** `lost`: the worker's lease expired. `returned`: the worker shut down or restarted before the code ended. */
  readonly outcome: "completed" | AttemptOutcome;
  readonly endedAt: Date;
  readonly worker?: string;
  readonly startedAt?: Date;
  readonly tookMs?: number;
  /** What the attempt failed with; its `stack` has the frames of the user's code. */
  readonly error?: unknown;
}

const ENDS: Partial<Record<EntryType, "completed" | "failed">> = {
  TaskCompleted: "completed",
  TaskFailed: "failed",
  OperationCompleted: "completed",
  OperationFailed: "failed",
  OperationRetried: "failed",
  NodeCompleted: "completed",
  NodeFailed: "failed",
  NodeRetried: "failed",
};

/** The highest execution of each step that an entry or a record names. */
export function lastExecutions(
  entries: readonly Entry[],
  records: readonly AttemptRecord[] = [],
): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  const note = (step: string, execution: number): void => void last.set(step, Math.max(execution, last.get(step) ?? 0));
  for (const { type, command, execution, data } of entries)
    if (ENDS[type] !== undefined) note(command, execution ?? attemptOf(decode(data)) + 1);
  for (const { step, execution } of records) note(step, execution);
  return last;
}

function attemptOf(data: unknown): number {
  return Number((data as { readonly attempt?: number } | undefined)?.attempt ?? 0);
}

/** Reads the entries of a run in order, and tells which executions ended between two of them. */
export class AttemptReader {
  /** In order of time. */
  readonly #records: AttemptRecord[];
  readonly #names = new Map<string, string>();

  constructor(records: readonly AttemptRecord[]) {
    this.#records = [...records];
  }

  /** The executions that ended before the entry, or with it. */
  read(entry: JournalEntry): readonly RunAttempt[] {
    const before = this.before(entry.at.getTime());
    const own = this.own(entry);
    return own === undefined ? before : [...before, own];
  }

  /** The executions without an entry that ended after the last entry. */
  rest(): readonly RunAttempt[] {
    return this.before(Number.POSITIVE_INFINITY);
  }

  /** The executions without an entry that ended up to this time, and were not returned before. */
  before(at: number): readonly RunAttempt[] {
    const next = this.#records.findIndex((record) => record.at > at);
    return this.#records.splice(0, next < 0 ? this.#records.length : next).map((record) => this.#recorded(record));
  }

  /** The execution that the entry ends. */
  own(entry: JournalEntry): RunAttempt | undefined {
    const { type, command, at, execution, worker, startedAt, tookMs } = entry;
    const data = (entry.data ?? {}) as Readonly<Record<string, unknown>>;
    if (command === undefined) return undefined;
    if (type === "TaskScheduled") this.#names.set(command, String(data["taskType"]));
    const outcome = ENDS[type];
    // memo.M2. Nothing was executed for a reused result.
    if (data["reused"] !== undefined) return undefined;
    // Values that a flow derives, and spreads, have entries too, but run no code of their own.
    if (outcome === undefined || (tookMs === undefined && outcome === "completed" && type === "NodeCompleted"))
      return undefined;
    return {
      step: command,
      name: this.#nameOf(command, data["operationName"]),
      ...(execution !== undefined && { execution }),
      attempt: Number(data["attempt"] ?? 0) + 1,
      outcome,
      endedAt: startedAt !== undefined && tookMs !== undefined ? new Date(startedAt.getTime() + tookMs) : at,
      ...(worker !== undefined && { worker }),
      ...(startedAt !== undefined && { startedAt }),
      ...(tookMs !== undefined && { tookMs }),
      ...(outcome === "failed" && { error: errorOf(data as Partial<FailureData>) }),
    };
  }

  #recorded({ step, execution, attempt, outcome, at, worker, startedAt, data }: AttemptRecord): RunAttempt {
    return {
      ...(step !== "" && { step, name: this.#nameOf(step, undefined), execution, attempt: attempt + 1 }),
      outcome,
      endedAt: new Date(at),
      ...(worker !== undefined && { worker }),
      ...(startedAt !== undefined && { startedAt: new Date(startedAt) }),
      ...(startedAt !== undefined && outcome === "failed" && { tookMs: Math.max(0, at - startedAt) }),
      ...(data !== undefined && { error: errorOf(decode(data) as Partial<FailureData>) }),
    };
  }

  #nameOf(step: string, given: unknown): string {
    return typeof given === "string" ? given : (this.#names.get(step) ?? step);
  }
}
