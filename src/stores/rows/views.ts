// Views: what reports and dashboards of other tools may read with SQL: runs, the ends of their steps, and executions of user code.
//
// views.V1. The columns of version 1 never change their name, type or meaning; later versions may add columns at the end.
// views.V2. A view shows no payload: no input, output, error text or name that a payload holds.
// views.V3. The text is part of a published migration, so what this file returns for a dialect never changes.

import type { EntryType } from "../../kernel/index.ts";

/** What differs between the databases. */
export interface ViewDialect {
  /** The name of a table of Reprise, as a statement writes it. */
  readonly table: (name: string) => string;
  /** A text column as text of the database. */
  readonly text: (column: string) => string;
  /** Milliseconds since 1970 as a time of the database; null stays null. */
  readonly time: (column: string) => string;
}

export const VIEWS = ["runs", "steps", "attempts"] as const;
export type ViewName = (typeof VIEWS)[number];

/** The kind and the outcome of a step, by the type of the entry that ends it. */
const STEP_ENDS: Partial<Record<EntryType, readonly [kind: string, outcome: string]>> = {
  TaskCompleted: ["task", "completed"],
  TaskFailed: ["task", "failed"],
  TaskCancelled: ["task", "cancelled"],
  OperationCompleted: ["operation", "completed"],
  OperationFailed: ["operation", "failed"],
  NodeCompleted: ["node", "completed"],
  NodeFailed: ["node", "failed"],
  NodeSkipped: ["node", "skipped"],
  ChildWorkflowCompleted: ["child", "completed"],
  ChildWorkflowFailed: ["child", "failed"],
  TimerFired: ["timer", "completed"],
  TimerCancelled: ["timer", "cancelled"],
  PromiseResolved: ["promise", "completed"],
  PromiseRejected: ["promise", "failed"],
  PromiseTimedOut: ["promise", "timed_out"],
  SignalReceived: ["signal", "completed"],
  UpdateCompleted: ["update", "completed"],
  UpdateFailed: ["update", "failed"],
};

/** Entries that end one execution of user code; one that is retried has an entry only in workflows and graphs. */
const EXECUTION_ENDS: Partial<Record<EntryType, "completed" | "failed">> = {
  TaskCompleted: "completed",
  TaskFailed: "failed",
  OperationCompleted: "completed",
  OperationFailed: "failed",
  OperationRetried: "failed",
  NodeCompleted: "completed",
  NodeFailed: "failed",
  NodeRetried: "failed",
};

/** Where the entry is the end of an execution, it has no start of its own: the start follows from the duration. */
const STARTED_AT = "coalesce(j.started_at, j.at - j.took_ms)";

/** The query of a view. */
export function viewQuery(name: ViewName, dialect: ViewDialect): string {
  if (name === "runs") return runsQuery(dialect);
  return name === "steps" ? stepsQuery(dialect) : attemptsQuery(dialect);
}

function runsQuery({ table, text, time }: ViewDialect): string {
  return `select r.run as number, ${text("r.id")} as id, r.generation as generation, ${text("r.definition")} as definition,
  ${text("r.kind")} as kind, r.version as version, ${text("r.status")} as status, ${time("r.created_at")} as created_at,
  ${time("r.ended_at")} as ended_at, r.ended_at - r.created_at as duration_ms, r.head as entries, ${text("r.chain")} as digest,
  ${text("r.error_code")} as error_code, ${text("p.id")} as parent_id, r.priority as priority, coalesce(r.lost_turns, 0) as lost_turns
from ${table("runs")} r left join ${table("runs")} p on p.run = r.parent`;
}

function stepsQuery({ table, text, time }: ViewDialect): string {
  const ends = Object.entries(STEP_ENDS);
  return `select j.run as run_number, ${text("r.id")} as run_id, r.generation as generation, ${text("r.definition")} as definition,
  j.seq as seq, ${text("j.command")} as command, ${caseOf(ends.map(([type, [kind]]) => [type, kind]))} as kind,
  ${caseOf(ends.map(([type, [, outcome]]) => [type, outcome]))} as outcome, ${time(STARTED_AT)} as started_at,
  ${time("j.at")} as ended_at, j.took_ms as took_ms, ${text("j.worker")} as worker, j.execution as execution
from ${table("journal")} j join ${table("runs")} r on r.run = j.run
where j.type in (${listOf(ends.map(([type]) => type))})`;
}

function attemptsQuery({ table, text, time }: ViewDialect): string {
  const ends = Object.entries(EXECUTION_ENDS);
  return `select a.run as run_number, ${text("r.id")} as run_id, r.generation as generation, ${text("r.definition")} as definition,
  ${text("a.step")} as command, a.execution as execution, ${text("a.outcome")} as outcome, ${text("a.worker")} as worker,
  ${time("a.started_at")} as started_at, ${time("a.at")} as ended_at
from ${table("run_attempts")} a join ${table("runs")} r on r.run = a.run
union all
select j.run, ${text("r.id")}, r.generation, ${text("r.definition")}, ${text("j.command")}, j.execution,
  ${caseOf(ends)}, ${text("j.worker")}, ${time(STARTED_AT)}, ${time("j.at")}
from ${table("journal")} j join ${table("runs")} r on r.run = j.run
where j.type in (${listOf(ends.map(([type]) => type))})`;
}

function caseOf(values: readonly (readonly [type: string, value: string])[]): string {
  return `case j.type ${values.map(([type, value]) => `when '${type}' then '${value}'`).join(" ")} end`;
}

function listOf(types: readonly string[]): string {
  return types.map((type) => `'${type}'`).join(", ");
}
