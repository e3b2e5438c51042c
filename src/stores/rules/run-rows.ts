// Run rows: converts rows of `runs` to the kernel's records, and finds runs by id.

import {
  dueOrSuspect,
  SUSPECT_AFTER,
  TurnDue,
  withRuntime,
  type RunNumber,
  type RunRecord,
  type RunStatus,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import type { RowOf } from "../rows/tables.ts";
import { tagsOf } from "./tags.ts";

/** The columns of a record. */
export const RUN_COLUMNS = [
  "run",
  "id",
  "generation",
  "definition",
  "kind",
  "version",
  "status",
  "parent",
  "parent_command",
  "priority",
  "head",
  "chain",
  "arrivals",
  "read",
  "unread",
  "created_at",
  "ended_at",
  "runtime",
  "evidence",
  "lost_turns",
  "error_code",
  "budget",
] as const;
export type RunRow = Part<"runs", (typeof RUN_COLUMNS)[number]>;

export function recordOf(rows: Rows, row: RunRow): RunRecord {
  return taggedRecord(row, tagsOf(rows, row.run));
}

/** Rows of lists have no evidence. */
export function taggedRecord(
  row: Omit<RunRow, "evidence"> & Partial<Pick<RunRow, "evidence">>,
  tags: readonly string[],
): RunRecord {
  return {
    run: row.run,
    id: row.id,
    generation: row.generation,
    definition: row.definition,
    kind: row.kind,
    version: row.version,
    status: row.status,
    parent: row.parent ?? undefined,
    parentCommand: row.parent_command ?? undefined,
    priority: row.priority,
    tags,
    head: row.head,
    chain: row.chain,
    arrivals: row.arrivals,
    read: row.read,
    unread: row.unread,
    lostTurns: row.lost_turns ?? 0,
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
    errorCode: row.error_code ?? undefined,
    runtime: row.runtime,
    budget: row.budget ?? undefined,
    evidence: row.evidence ?? undefined,
  };
}

const NEWEST = ["run", "status", "definition", "kind"] as const;

/** The newest generation of a run. */
export function findNewest(rows: Rows, id: string): RunRow | undefined {
  return newestOf(rows, id, rows.first("runs_by_id", [id], RUN_COLUMNS, BACKWARDS));
}

/** As `findNewest`, with few columns. */
export function newestStatus(rows: Rows, id: string): Part<"runs", (typeof NEWEST)[number]> | undefined {
  const row = rows.first("runs_by_id", [id], NEWEST, BACKWARDS);
  return row?.status === "continued" ? findNewest(rows, id) : row;
}

export const BACKWARDS = { backwards: true } as const;

/**
 * A transaction that waited for the lock of the newest generation may get one that has continued meanwhile: the next one did not
 * exist when its query began.
 */
export function newestOf(rows: Rows, id: string, row: RunRow | undefined): RunRow | undefined {
  if (row?.status !== "continued") return row;
  const next = rows.first("runs_by_id", [id, row.generation + 1], RUN_COLUMNS);
  return next === undefined ? row : newestOf(rows, id, next);
}

const RUNTIME = ["runtime"] as const;

/** runtimes.M2. The column is in no other rule of a live run, so flow-rows.R1 does not concern it. */
export function addRuntime(rows: Rows, run: RunNumber, text: string): void {
  const row = rows.get("runs", [run], RUNTIME);
  const runtime = row && withRuntime(row.runtime, text);
  if (runtime !== undefined) rows.set("runs", [run], { runtime });
}

/** Whether the run continues only after a resume. */
export function isStopped(status: RunStatus): boolean {
  return status === "paused" || status === "blocked" || status === "determinism_violation";
}

/** Whether a worker may work on the run now or later, without a resume. */
export function isMovable(status: RunStatus): boolean {
  return status === "queued" || status === "running" || status === "waiting";
}

/** No worker holds the turn, and it is not due. */
export const NO_TURN = { turn_due: TurnDue.no, turn_token: null, turn_worker: null } as const;

/** The columns of a turn that goes back. A paused run stays paused, and its turn does not become due (control.C1). */
export function returnedTurn(status: RunStatus, takeovers: number) {
  if (status === "paused") return NO_TURN;
  const due = dueOrSuspect(takeovers >= SUSPECT_AFTER);
  return { status: "queued", turn_due: due, turn_token: null, turn_worker: null } as const;
}

/** The columns of every new run that has no other values for them. */
export const NEW_RUN = {
  generation: 0,
  parent: null,
  parent_command: null,
  priority: 0,
  arrivals: 0,
  read: 0,
  unread: 0,
  turn_token: null,
  turn_worker: null,
  takeovers: 0,
  ended_at: null,
  evidence: null,
  lost_turns: 0,
  turn_at: null,
  error_code: null,
  budget: null,
} as const satisfies Partial<RowOf<"runs">>;
