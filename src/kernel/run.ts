// Run: one execution of a definition, and the states it can be in.

import { RepriseError, toMs, type Duration, type EpochMs } from "../base/index.ts";
import type { DefinitionKind } from "./definition.ts";

/** The integer a database knows a run by; the public id stands only in the run's own row. */
export type RunNumber = number;

const NUMBERS_SINCE = Date.UTC(2026, 0, 1);
const NUMBERS_PER_MS = 100;

/**
 * Numbers that a store gives at a time are at least this. A database that goes back to an earlier state takes its counters
 * with it; time does not go back, so a number that was given in the lost history is not given again.
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

/** In the order of `RunStatus`. */
export const RUN_STATUSES: readonly RunStatus[] = Object.values(RunStatus);

/** An end needs a live run; nothing leaves an ended one. */
export function hasEnded(status: RunStatus): status is EndedRunStatus {
  return ENDED.has(status);
}

/** The whole time a run may take, in milliseconds; refused when it cannot be kept. */
export function checkDeadline(deadline: Duration, what: string): number {
  const ms = toMs(deadline, `${what}: deadline`);
  if (ms > 0) return ms;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a deadline above 0, got ${String(deadline)}.`);
}

/** A run's row, without payloads: the input is in entry 1, the output in the last one. */
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
  /** How many messages have come. */
  readonly arrivals: number;
  /** How many of them the run has taken in. */
  readonly read: number;
  /** Messages that came after the last one the run read before it ended. */
  readonly unread: number;
  readonly createdAt: EpochMs;
  readonly endedAt: EpochMs | undefined;
  /** Node, V8, ICU and time zone data of the process that started the run; never hashed. */
  readonly runtime: string;
  /** Why a run is `blocked`, in `determinism_violation`, or `paused` by its own holder: kept beside the journal, as encoded data. */
  readonly evidence: string | undefined;
}
