// Backlog statements: count claimable work up to a limit, from the front of the indexes that claims read.

import { HOLDS_SLOT, ITEM, READY_IN_DEFAULT_QUEUE, READY_IN_NAMED_QUEUE, TURN, TURN_IS_DUE } from "./row-state-sql.ts";

/** Delayed tasks and starts: the condition of the index `queue_later`. */
const DELAYED_WORK = `${ITEM.delayed} and kind <> 'timer'`;

/** The index starts with the highest priority: the first row of the lowest priority may be older than all counted rows. */
const counted = (index: string, where: string, limit: string): string => `select count(*) as count, min(at) as oldest,
    (select available_at from queue indexed by ${index} where ${where} and priority = (
      select priority from queue indexed by ${index} where ${where} order by priority limit 1)
    order by available_at limit 1) as least
  from (select available_at as at from queue indexed by ${index} where ${where} limit ${limit})`;

const firstDue = (where: string): string => `select * from (select head, created_at from runs indexed by runs_due
    where ${TURN_IS_DUE} and definition = ?1 and version = ?2 ${where} order by priority desc, run limit 1)`;

export const BACKLOG_SQL = {
  nextDueVersion: `select version from runs indexed by runs_due where ${TURN_IS_DUE} and definition = ? and version > ?
    order by version limit 1`,
  dueUpTo: `select count(*) as count, (select min(created_at) from (
      ${firstDue("")} union all
      ${firstDue(`and priority = (select priority from runs indexed by runs_due
        where ${TURN_IS_DUE} and definition = ?1 and version = ?2 order by priority limit 1)`)}) where head = 1) as oldest
    from (select 1 from runs indexed by runs_due where ${TURN_IS_DUE} and definition = ?1 and version = ?2 limit ?3)`,
  suspectTurnsUpTo: `select definition as name, version, count(*) as count from (
      select definition, version from runs indexed by runs_suspect where ${TURN.suspect} and turn_token is null limit ?)
    group by 1, 2`,
  readyUpTo: counted("queue_ready", `${READY_IN_DEFAULT_QUEUE} and name = ?1`, "?2"),
  readyInQueueUpTo: counted("queue_lined", `${READY_IN_NAMED_QUEUE} and kind = ?1 and queue = ?2 and name = ?3`, "?4"),
  suspectItemsUpTo: `select name, queue, count(*) as count, min(available_at) as oldest from (
      select name, queue, available_at from queue indexed by queue_suspect where ${ITEM.suspect} limit ?)
    group by 1, 2`,
  nextParkedQueue: `select queue from queue indexed by queue_parked where ${ITEM.parked} and kind = ? and queue > ?
    order by queue limit 1`,
  parkedUpTo: `select name, count(*) as count, min(available_at) as oldest from (
      select name, available_at from queue indexed by queue_parked where ${ITEM.parked} and kind = ? and queue = ? limit ?)
    group by 1`,
  leasedUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_leased where ${ITEM.leased} and queue is null limit ?)`,
  nextBusyQueue: `select queue from queue indexed by queue_busy where ${HOLDS_SLOT} and kind = ? and queue > ?
    order by queue limit 1`,
  busyUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_busy where ${HOLDS_SLOT} and kind = ? and queue = ? limit ?)`,
  delayedUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_later where ${DELAYED_WORK} and queue is null and kind = 'task' limit ?)`,
  nextDelayedQueue: `select queue from queue indexed by queue_later where ${DELAYED_WORK} and queue > ? order by queue limit 1`,
  delayedInQueueUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_later where ${DELAYED_WORK} and queue = ? limit ?)`,
} as const;
