// Run: one execution of a definition, its row and its statuses.

import { RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { DefinitionKind } from "./definition.ts";

/** The number that identifies a run in a store; only the run's row has the public id. */
export type RunNumber = number;

const NUMBERS_SINCE = Date.UTC(2026, 0, 1);
const NUMBERS_PER_MS = 100;

/**
 * The least number that a store assigns at this time. If the database goes back to an earlier state, so do its counters, but
 * not the time: a store never assigns a number of the lost history again.
 */
export function leastNumberAt(now: EpochMs): number {
  return Math.max(0, Math.floor((now - NUMBERS_SINCE) * NUMBERS_PER_MS));
}

/**
 * Every status of a run. The first seven are live, the last four have ended.
 *
 * @example
 * ```ts
 * import { createEngine, RunStatus } from "reprise";
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [] });
 * for await (const run of engine.list({ status: RunStatus.failed })) console.log(run.id);
 * ```
 */
export const RunStatus = {
  /** Messages arrived before the run was started. */
  expected: "expected",
  /** A turn is due, or the run waits for its delay or for room in its queue. */
  queued: "queued",
  /** A worker holds the run's turn. */
  running: "running",
  /** The run waits for a timer, a message, a task or a child. */
  waiting: "waiting",
  /** A person, or the engine, paused it; `resume` continues it. */
  paused: "paused",
  /** The engine stopped it, with evidence; `resume` continues it. */
  blocked: "blocked",
  /** The code does not match the journal; `resume` continues it once the code is fixed. */
  determinism_violation: "determinism_violation",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  /** A later generation of the same id took over: `ctx.continueAsNew`. */
  continued: "continued",
} as const;
/** The status of a run. */
export type RunStatus = (typeof RunStatus)[keyof typeof RunStatus];
export type EndedRunStatus = "completed" | "failed" | "cancelled" | "continued";
export type LiveRunStatus = Exclude<RunStatus, EndedRunStatus>;

const ENDED: ReadonlySet<RunStatus> = new Set<RunStatus>(["completed", "failed", "cancelled", "continued"]);

/**
 * Every status of a run, in the order of `RunStatus`.
 *
 * @example
 * ```ts
 * import { RUN_STATUSES, type RunStatus } from "reprise";
 * const isStatus = (text: string): text is RunStatus => (RUN_STATUSES as readonly string[]).includes(text);
 * console.log(isStatus("completed"));
 * ```
 */
export const RUN_STATUSES: readonly RunStatus[] = Object.values(RunStatus);

/** Whether the run has ended. A run that has ended changes only by a retry. */
export function hasEnded(status: RunStatus): status is EndedRunStatus {
  return ENDED.has(status);
}

/** The deadline in milliseconds; refuses one of 0. */
export function checkDeadline(deadline: Duration, what: string): number {
  const ms = toMs(deadline, `${what}: deadline`);
  if (ms > 0) return ms;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a deadline above 0, got ${String(deadline)}.`);
}

/** The row of a run, without payloads: entry 1 holds the input, the last entry the output. */
export interface RunRecord {
  readonly run: RunNumber;
  readonly id: string;
  readonly generation: number;
  readonly definition: string;
  readonly kind: DefinitionKind;
  readonly version: number;
  readonly status: RunStatus;
  readonly parent: RunNumber | undefined;
  /** The parent's command this run answers, such as `ChildWorkflow(0)`. */
  readonly parentCommand: string | undefined;
  readonly priority: number;
  readonly tags: readonly string[];
  readonly head: number;
  readonly chain: string;
  /** The number of messages that arrived. */
  readonly arrivals: number;
  /** The number of arrivals that the run has read. */
  readonly read: number;
  /** Messages that the run had not read when it ended. */
  readonly unread: number;
  /** How often a worker lost or returned the run's turn (attempts.X1). */
  readonly lostTurns: number;
  readonly createdAt: EpochMs;
  readonly endedAt: EpochMs | undefined;
  /** The code of the error that a failed run ended with; undefined: it has none. */
  readonly errorCode: string | undefined;
  /** runtimes.M1. The processes that started and moved the run, one text per line; `runtimesOf` reads it. Not hashed. */
  readonly runtime: string;
  /** The run whose budget it pays from: itself, an earlier generation, or an ancestor. Undefined: it has none. */
  readonly budget?: RunNumber | undefined;
  /** Why the run is `blocked`, in `determinism_violation`, or `paused` by its holder; encoded, and not in the journal. */
  readonly evidence: string | undefined;
}
