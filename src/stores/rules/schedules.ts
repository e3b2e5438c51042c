// Schedules: reads and writes the rows of schedules (schedule.C1 to schedule.C4).

import type { EpochMs } from "../../base/index.ts";
import {
  hasEnded,
  type CatchUp,
  type DueSchedules,
  type Overlap,
  type PutScheduleOutcome,
  type PutScheduleWrite,
  type RemoveScheduleOutcome,
  type RemoveScheduleWrite,
  type RunNumber,
  type RunRecord,
  type ScheduleRecord,
  type ScheduleState,
  type RunStatus,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import type { Statements, Tx } from "./statements.ts";
import { applyStart } from "./start.ts";

interface ScheduleRow {
  readonly name: string;
  readonly token: string;
  readonly definition: string;
  readonly version: number;
  readonly input: string | null;
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly every: number | null;
  readonly anchor: number | null;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitter: number;
  readonly paused: number;
  readonly nextAt: number | null;
  readonly dueAt: number | null;
  readonly lastAt: number | null;
  readonly lastRun: string | null;
  readonly line: string;
  readonly createdAt: number;
  readonly lastStatus: RunStatus | null;
}

function recordOf(row: unknown): ScheduleRecord {
  const { cron, timeZone, every, anchor, jitter, paused, line, ...rest } = row as ScheduleRow;
  return {
    ...rest,
    input: rest.input ?? undefined,
    timing: cron === null ? { everyMs: every!, anchor: anchor! } : { cron, timeZone: timeZone! },
    jitterMs: jitter,
    paused: paused === 1,
    nextAt: rest.nextAt ?? undefined,
    dueAt: rest.dueAt ?? undefined,
    lastAt: rest.lastAt ?? undefined,
    lastRun: rest.lastRun ?? undefined,
    queued: JSON.parse(line) as number[],
    lastStatus: rest.lastStatus ?? undefined,
  };
}

export function findSchedule(sql: Statements, name: string): ScheduleRecord | undefined {
  const row = sql.schedule.get(name);
  return row === undefined ? undefined : recordOf(row);
}

export function listSchedules(sql: Statements, after: string, limit: number): readonly ScheduleRecord[] {
  return sql.schedulesAfter.all(after, limit).map(recordOf);
}

export function findDueSchedules(
  sql: Statements,
  now: EpochMs,
  definitions: readonly string[],
  limit: number,
): DueSchedules {
  const known = new Set(definitions);
  const due = new Map<string, ScheduleRecord>();
  let nextAt: EpochMs | undefined;
  for (const { value: definition } of sql.scheduledDefinitions.all() as unknown as { value: string }[]) {
    if (!known.has(definition)) continue;
    const { at } = sql.nextSchedule.get(definition) as { at: number };
    nextAt = Math.min(nextAt ?? at, at);
    if (at > now) continue;
    for (const row of sql.dueSchedules.all(definition, now, limit)) {
      const record = recordOf(row);
      due.set(record.name, record);
    }
  }
  for (const { value: definition } of sql.definitionsWithBacklog.all() as unknown as { value: string }[]) {
    if (!known.has(definition)) continue;
    for (const record of sql.schedulesWithBacklog.all(definition).map(recordOf))
      if (record.lastStatus === undefined || hasEnded(record.lastStatus)) due.set(record.name, record);
  }
  return { due: [...due.values()], nextAt };
}

export function applyPutSchedule(tx: Tx, write: PutScheduleWrite): PutScheduleOutcome {
  const { sql, now } = tx;
  const { schedule, fence, token, starts, cancel } = write;
  const row = sql.scheduleToken.get(schedule.name) as { token: string } | undefined;
  if (row?.token !== fence) return { status: "changed" };
  // The cancel comes before the starts: a new run may have the id of the cancelled one.
  const cancelled = cancel === undefined ? undefined : cancelRun(tx, cancel);
  const started: RunRecord[] = [];
  for (const run of starts) {
    const outcome = applyStart(tx, { write: "start", run });
    if (outcome.status === "started") started.push(outcome.record);
  }
  const columns = columnsOf(schedule, token);
  if (row === undefined) sql.insertSchedule.run(...columns, now);
  else sql.updateSchedule.run(...columns);
  return { status: "committed", record: recordOf(sql.schedule.get(schedule.name)), started, cancelled };
}

function cancelRun(tx: Tx, { to, arrival }: NonNullable<PutScheduleWrite["cancel"]>): RunNumber | undefined {
  const newest = tx.sql.newestStatus.get(to) as { run: number } | undefined;
  return newest !== undefined && appendToInbox(tx, newest.run, arrival) ? newest.run : undefined;
}

/** The columns in the order of `insertSchedule` and `updateSchedule`. */
function columnsOf(schedule: ScheduleState, token: string): (string | number | null)[] {
  const { timing } = schedule;
  const isCron = "cron" in timing;
  return [
    schedule.name,
    token,
    schedule.definition,
    schedule.version,
    schedule.input ?? null,
    isCron ? timing.cron : null,
    isCron ? timing.timeZone : null,
    isCron ? null : timing.everyMs,
    isCron ? null : timing.anchor,
    schedule.overlap,
    schedule.catchUp,
    schedule.jitterMs,
    schedule.paused ? 1 : 0,
    schedule.nextAt ?? null,
    schedule.dueAt ?? null,
    schedule.lastAt ?? null,
    schedule.lastRun ?? null,
    JSON.stringify(schedule.queued),
  ];
}

export function applyRemoveSchedule({ sql }: Tx, { name }: RemoveScheduleWrite): RemoveScheduleOutcome {
  return sql.deleteSchedule.run(name).changes === 0 ? { status: "no_schedule" } : { status: "committed" };
}
