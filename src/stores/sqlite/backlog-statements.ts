// Backlog statements: counting what waits, no further than asked, from the front of the indexes that claims walk.

const DUE = "turn_due = 1 and turn_token is null";
const READY = "state = 1 and queue is null";
const LINED = "state = 1 and queue is not null";
const BUSY = "state in (2, 6) and queue is not null";
const LATER = "state = 0 and kind <> 'timer'";

/** The most urgent come first in the index: the first of the least urgent may be older than all that are counted. */
const counted = (index: string, where: string, limit: string): string => `select count(*) as count, min(at) as oldest,
    (select available_at from queue indexed by ${index} where ${where} and priority = (
      select priority from queue indexed by ${index} where ${where} order by priority limit 1)
    order by available_at limit 1) as least
  from (select available_at as at from queue indexed by ${index} where ${where} limit ${limit})`;

const firstDue = (where: string): string => `select * from (select head, created_at from runs indexed by runs_due
    where ${DUE} and definition = ?1 and version = ?2 ${where} order by priority desc, run limit 1)`;

export const BACKLOG_SQL = {
  nextDueVersion: `select version from runs indexed by runs_due where ${DUE} and definition = ? and version > ?
    order by version limit 1`,
  dueUpTo: `select count(*) as count, (select min(created_at) from (
      ${firstDue("")} union all
      ${firstDue(`and priority = (select priority from runs indexed by runs_due
        where ${DUE} and definition = ?1 and version = ?2 order by priority limit 1)`)}) where head = 1) as oldest
    from (select 1 from runs indexed by runs_due where ${DUE} and definition = ?1 and version = ?2 limit ?3)`,
  suspectTurnsUpTo: `select definition as name, version, count(*) as count from (
      select definition, version from runs indexed by runs_suspect where turn_due = 2 and turn_token is null limit ?)
    group by 1, 2`,
  readyUpTo: counted("queue_ready", `${READY} and name = ?1`, "?2"),
  linedUpTo: counted("queue_lined", `${LINED} and kind = ?1 and queue = ?2 and name = ?3`, "?4"),
  suspectItemsUpTo: `select name, queue, count(*) as count, min(available_at) as oldest from (
      select name, queue, available_at from queue indexed by queue_suspect where state = 4 limit ?)
    group by 1, 2`,
  nextParkedQueue: `select queue from queue indexed by queue_parked where state = 5 and kind = ? and queue > ?
    order by queue limit 1`,
  parkedUpTo: `select name, count(*) as count, min(available_at) as oldest from (
      select name, available_at from queue indexed by queue_parked where state = 5 and kind = ? and queue = ? limit ?)
    group by 1`,
  leasedUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_leased where state = 2 and queue is null limit ?)`,
  nextBusyQueue: `select queue from queue indexed by queue_busy where ${BUSY} and kind = ? and queue > ?
    order by queue limit 1`,
  busyUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_busy where ${BUSY} and kind = ? and queue = ? limit ?)`,
  laterUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_later where ${LATER} and queue is null and kind = 'task' limit ?)`,
  nextLaterQueue: `select queue from queue indexed by queue_later where ${LATER} and queue > ? order by queue limit 1`,
  laterInQueueUpTo: `select count(*) as count from (
    select 1 from queue indexed by queue_later where ${LATER} and queue = ? limit ?)`,
} as const;
