// Schedules: reads and writes the rows of schedules (schedule.C1 to schedule.C4).

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  hasEnded,
  type DueSchedules,
  type PutScheduleOutcome,
  type PutScheduleWrite,
  type RemoveScheduleOutcome,
  type RemoveScheduleWrite,
  type RunNumber,
  type RunRecord,
  type RunStatus,
  type ScheduleRecord,
  type ScheduleState,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { columnsOf, type RowOf } from "../rows/tables.ts";
import { appendToInbox } from "./inbox.ts";
import { newestStatus } from "./run-rows.ts";
import { applyStart } from "./start.ts";
import type { Tx } from "./transaction.ts";

type ScheduleRow = RowOf<"schedules">;

const SCHEDULE = columnsOf("schedules");
const STATUS = ["status"] as const;
const NEWEST = { backwards: true, peek: true } as const;

/** The status of the last run, in its newest generation. */
function lastStatus(rows: Rows, id: string | null | undefined): RunStatus | undefined {
  return id === null || id === undefined ? undefined : rows.first("runs_by_id", [id], STATUS, NEWEST)?.status;
}

function readRecord(rows: Rows, row: ScheduleRow): ScheduleRecord {
  return recordOf(row, lastStatus(rows, row.last_run));
}

function recordOf(row: ScheduleRow, status: RunStatus | undefined): ScheduleRecord {
  const queued: number[] = JSON.parse(row.line);
  return {
    name: row.name,
    token: row.token,
    definition: row.definition,
    version: row.version,
    input: row.input ?? undefined,
    timing: timingOf(row),
    overlap: row.overlap,
    catchUp: row.catch_up,
    jitterMs: row.jitter,
    paused: row.paused === 1,
    nextAt: row.next_at ?? undefined,
    dueAt: row.due_at ?? undefined,
    lastAt: row.last_at ?? undefined,
    lastRun: row.last_run ?? undefined,
    queued,
    createdAt: row.created_at,
    lastStatus: status,
  };
}

function timingOf({ cron, time_zone: timeZone, every, anchor }: ScheduleRow): ScheduleState["timing"] {
  return cron === null ? { everyMs: every!, anchor: anchor! } : { cron, timeZone: timeZone! };
}

export function findSchedule(rows: Rows, name: string): ScheduleRecord | undefined {
  const row = rows.get("schedules", [name], SCHEDULE);
  return row && readRecord(rows, row);
}

/** By name. A negative limit means no limit. */
export function listSchedules(rows: Rows, after: string, limit: number): readonly ScheduleRecord[] {
  const span = limit < 0 ? { after } : { after, limit };
  return rows.select("schedules", [], SCHEDULE, span).map((row) => readRecord(rows, row));
}

const DEFINITION = ["definition"] as const;
const DUE_AT = ["due_at"] as const;

export function findDueSchedules(
  rows: Rows,
  now: EpochMs,
  definitions: readonly string[],
  limit: number,
): DueSchedules {
  const known = new Set(definitions);
  const scheduled = rows.distinct("schedules_due", [], DEFINITION);
  const waiting = rows.distinct("schedules_in_line", [], DEFINITION);
  const due = new Map<string, ScheduleRecord>();
  let nextAt: EpochMs | undefined;
  for (const { definition } of scheduled) {
    if (!known.has(definition)) continue;
    const at = rows.first("schedules_due", [definition], DUE_AT)?.due_at ?? undefined;
    if (at !== undefined) nextAt = Math.min(nextAt ?? at, at);
    if (at !== undefined && at > now) continue;
    for (const row of rows.select("schedules_due", [definition], SCHEDULE, { upTo: now, limit }))
      due.set(row.name, readRecord(rows, row));
  }
  for (const { definition } of waiting) {
    if (!known.has(definition)) continue;
    for (const row of rows.select("schedules_in_line", [definition], SCHEDULE)) {
      const record = readRecord(rows, row);
      if (record.lastStatus === undefined || hasEnded(record.lastStatus)) due.set(record.name, record);
    }
  }
  return { due: [...due.values()], nextAt };
}

export function applyPutSchedule(tx: Tx, write: PutScheduleWrite): PutScheduleOutcome {
  const { rows, now } = tx;
  const { schedule, fence, token, starts, cancel } = write;
  if (!isAsRead(rows, schedule.name, fence)) return { status: "changed" };
  // The cancel comes before the starts: a new run may have the id of the cancelled one.
  const cancelled = cancel === undefined ? undefined : cancelRun(tx, cancel);
  const started: RunRecord[] = [];
  for (const run of starts) {
    const outcome = applyStart(tx, { write: "start", run });
    if (outcome.status === "started") started.push(outcome.record);
  }
  const values = valuesOf(schedule, token);
  if (fence === undefined) rows.insert("schedules", { name: schedule.name, ...values, created_at: now });
  else rows.set("schedules", [schedule.name], values);
  const status = lastStatus(rows, schedule.lastRun);
  const row = rows.get("schedules", [schedule.name], SCHEDULE);
  invariant(row !== undefined, "A schedule that was put must have a row.");
  return { status: "committed", record: recordOf(row, status), started, cancelled };
}

const TOKEN = ["token"] as const;

/** Whether the schedule has this token. Undefined: whether it does not exist. */
function isAsRead(rows: Rows, name: string, token: string | undefined): boolean {
  if (token === undefined) return rows.get("schedules", [name], TOKEN) === undefined;
  return rows.is("schedules", [name], { token });
}

function cancelRun(tx: Tx, { to, arrival }: NonNullable<PutScheduleWrite["cancel"]>): RunNumber | undefined {
  const newest = newestStatus(tx.rows, to);
  return newest !== undefined && appendToInbox(tx, newest.run, arrival) ? newest.run : undefined;
}

function valuesOf(schedule: ScheduleState, token: string): Omit<ScheduleRow, "name" | "created_at"> {
  const { timing } = schedule;
  const isCron = "cron" in timing;
  return {
    token,
    definition: schedule.definition,
    version: schedule.version,
    input: schedule.input ?? null,
    cron: isCron ? timing.cron : null,
    time_zone: isCron ? timing.timeZone : null,
    every: isCron ? null : timing.everyMs,
    anchor: isCron ? null : timing.anchor,
    overlap: schedule.overlap,
    catch_up: schedule.catchUp,
    jitter: schedule.jitterMs,
    paused: schedule.paused ? 1 : 0,
    next_at: schedule.nextAt ?? null,
    due_at: schedule.dueAt ?? null,
    last_at: schedule.lastAt ?? null,
    last_run: schedule.lastRun ?? null,
    line: JSON.stringify(schedule.queued),
  };
}

export function applyRemoveSchedule({ rows }: Tx, { name }: RemoveScheduleWrite): RemoveScheduleOutcome {
  return rows.remove("schedules", [name]) ? { status: "committed" } : { status: "no_schedule" };
}
