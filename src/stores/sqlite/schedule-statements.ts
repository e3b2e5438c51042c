// Schedule statements: part of `Statements`.

import { distinctScan } from "./distinct-scan.ts";

/** The columns of `ScheduleRow`. `lastStatus` is the status of the last run's newest generation. */
const COLUMNS = `name, token, definition, version, cast(input as text) as input, cron, time_zone as timeZone, every, anchor,
  overlap, catch_up as catchUp, jitter, paused, next_at as nextAt, due_at as dueAt, last_at as lastAt, last_run as lastRun,
  line, created_at as createdAt,
  (select status from runs where runs.id = schedules.last_run order by generation desc limit 1) as lastStatus`;

const HAS_BACKLOG = "line <> '[]' and paused = 0";

export const SCHEDULE_SQL = {
  schedule: `select ${COLUMNS} from schedules where name = ?`,
  schedulesAfter: `select ${COLUMNS} from schedules where name > ? order by name limit ?`,
  scheduleToken: "select token from schedules where name = ?",
  insertSchedule: `insert into schedules (name, token, definition, version, input, cron, time_zone, every, anchor, overlap,
      catch_up, jitter, paused, next_at, due_at, last_at, last_run, line, created_at)
    values (?1, ?2, ?3, ?4, cast(?5 as blob), ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)`,
  updateSchedule: `update schedules set token = ?2, definition = ?3, version = ?4, input = cast(?5 as blob), cron = ?6,
      time_zone = ?7, every = ?8, anchor = ?9, overlap = ?10, catch_up = ?11, jitter = ?12, paused = ?13, next_at = ?14,
      due_at = ?15, last_at = ?16, last_run = ?17, line = ?18
    where name = ?1`,
  deleteSchedule: "delete from schedules where name = ?",
  scheduledDefinitions: distinctScan("definition", "schedules indexed by schedules_due", "due_at is not null"),
  nextSchedule: `select min(due_at) as at from schedules indexed by schedules_due
    where due_at is not null and definition = ?`,
  dueSchedules: `select ${COLUMNS} from schedules indexed by schedules_due
    where due_at is not null and definition = ? and due_at <= ? order by due_at limit ?`,
  definitionsWithBacklog: distinctScan("definition", "schedules indexed by schedules_in_line", HAS_BACKLOG),
  schedulesWithBacklog: `select ${COLUMNS} from schedules indexed by schedules_in_line where ${HAS_BACKLOG} and definition = ?`,
} as const;
