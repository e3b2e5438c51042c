// Statements: the SQL of the rules and of the store, prepared once per connection when it is first used.
//
// Payloads are bound as text, and SQLite casts them to blobs: no Buffer is made per row. `indexed by` turns a plan that would scan
// the table into an error.

import type { DatabaseSync } from "node:sqlite";
import {
  HISTORY_END,
  HISTORY_PREFIX,
  INCARNATION_KEY,
  ISOLATED_AFTER,
  QueueItemState,
  SUSPECT_AFTER,
  TurnDue,
} from "../../kernel/index.ts";
import type { SqlitePayloadCipher } from "./sqlite-payload-cipher.ts";
import { preparedFrom, type Prepared } from "./prepared-statements.ts";
import { statementWithCodec } from "./statement-payloads.ts";
import { BACKLOG_SQL } from "./backlog-statements.ts";
import { distinctScan } from "./distinct-scan.ts";
import { FLOW_SQL } from "./flow-statements.ts";
import { QUEUE_SQL } from "./queue-statements.ts";
import { OUTBOX_SQL } from "./outbox-statements.ts";
import {
  ITEM,
  READY_IN_DEFAULT_QUEUE,
  READY_IN_NAMED_QUEUE,
  START_IS_PENDING,
  SUSPECT_TURN_IS_DUE,
  TURN,
  TURN_IS_DUE,
} from "./row-state-sql.ts";
import { SCHEDULE_SQL } from "./schedule-statements.ts";

/** A run's row as `RunRow` names it, without its evidence: that can be large, and lists do not show it. */
export const LISTED_COLUMNS = `run, id, generation, definition, kind, version, status, parent,
  parent_command as parentCommand, priority, head, chain, arrivals, read, unread, created_at as createdAt,
  ended_at as endedAt, runtime, null as evidence`;
const RUN_COLUMNS = LISTED_COLUMNS.replace("null as evidence", "cast(evidence as text) as evidence");

/** `turn_due` of a turn that becomes due again, by its number of takeovers. */
const dueAfter = (takeovers: string): string =>
  `iif(${takeovers} >= ${SUSPECT_AFTER}, ${TurnDue.suspect}, ${TurnDue.yes})`;
/** `state` of an item that becomes ready again, by its number of takeovers. */
const readyAfter = (takeovers: string): string =>
  `iif(${takeovers} >= ${SUSPECT_AFTER}, ${QueueItemState.suspect}, ${QueueItemState.ready})`;
const LIVE = "status in ('expected', 'queued', 'running', 'waiting', 'paused', 'blocked', 'determinism_violation')";

/** When a run ended. An expected run that is never started counts as ended when its row was created. */
const OVER = "coalesce(ended_at, case status when 'expected' then created_at end)";

const MOVE_HEAD = "update runs set head = ?1, chain = ?2, read = ?3, takeovers = 0";
const FENCE = "where run = ?4 and turn_token = ?5 and head = ?6 and chain = ?7";
// Without entries the run made no progress, so a suspect stays a suspect: `takeovers` does not change.
const HOLD_EMPTY = `update runs set head = ?1, chain = ?2, read = ?3 ${FENCE}`;
// Touches no indexed column.
const HOLD = `${MOVE_HEAD} ${FENCE}`;
// A paused run stays paused, and its turn does not become due when the turn is released or returned (control.C1).
const RELEASE = `${MOVE_HEAD}, status = iif(status = 'paused', 'paused', 'waiting'),
  turn_due = status <> 'paused' and arrivals > ?3, turn_token = null, turn_worker = null ${FENCE}`;
const RETURNED = `status = iif(status = 'paused', 'paused', 'queued'),
  turn_due = iif(status = 'paused', ${TurnDue.no}, ${dueAfter("takeovers")}), turn_token = null, turn_worker = null`;
const END = `${MOVE_HEAD}, status = ?8, ended_at = ?9, unread = arrivals - ?3 + ?10, ${TURN.no}, turn_token = null,
  turn_worker = null ${FENCE}`;

const SQL = {
  begin: "begin immediate",
  beginReading: "begin",
  commit: "commit",
  rollback: "rollback",
  dataVersion: "pragma data_version",

  // writers (rules.A5, rules.A8)
  addWriter: "insert into writers (writer, batch, mark) values (?, ?, ?)",
  stamp: `update writers set batch = ?2, mark = ?3 where writer = ?1 and batch = ?4
    and (select value from meta where key = '${INCARNATION_KEY}') is ?5`,
  incarnation: `select value from meta where key = '${INCARNATION_KEY}'`,
  putMeta: "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
  writer: "select batch from writers where writer = ?",
  highestMark: "select max(mark) as mark from writers",
  saveMark: `insert into writers (writer, batch, mark) values ('', 0, ?)
    on conflict (writer) do update set mark = max(mark, excluded.mark)`,
  deleteWriter: "delete from writers where writer = ?",
  deleteOldWriters: "delete from writers where writer <> '' and mark < ?",

  // runs
  highestRun: `select max(coalesce((select max(run) from runs), 0),
    coalesce((select cast(value as integer) from meta where key = 'highest run'), 0)) as run`,
  saveHighestRun: `insert into meta (key, value) values ('highest run', cast(cast(? as integer) as text))
    on conflict (key) do update set value = excluded.value`,
  insertRun: `insert into runs (run, id, definition, kind, version, status, parent, parent_command, root, priority, head,
      chain, turn_due, turn_token, turn_worker, created_at, runtime)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?) on conflict (id, generation) do nothing`,
  insertExpected: `insert into runs (run, id, definition, kind, version, status, root, priority, head, chain, turn_due,
      created_at, runtime)
    values (?, ?, ?, ?, ?, 'expected', ?, 0, 0, ?, ${TurnDue.no}, ?, ?)`,
  startExpected: `update runs set kind = ?2, version = ?3, status = ?4, parent = ?5, parent_command = ?6, root = ?7,
      priority = ?8, head = 1, chain = ?9, turn_due = ?10, turn_token = ?11, turn_worker = ?12, created_at = ?13,
      runtime = ?14
    where run = ?1 and status = 'expected'`,
  insertTag: "insert into tags (run, tag) values (?, ?) on conflict do nothing",
  tagsOf: "select tag from tags where run = ? order by rowid",
  run: `select ${RUN_COLUMNS} from runs where run = ?`,
  newestRun: `select ${RUN_COLUMNS} from runs where id = ? order by generation desc limit 1`,
  runOfGeneration: `select ${RUN_COLUMNS} from runs where id = ? and generation = ?`,
  firstRunOfId: "select run from runs where id = ? order by generation limit 1",
  newestStatus: "select run, status, definition, kind from runs where id = ? order by generation desc limit 1",
  childById: "select run from runs where id = ? and parent = ? order by generation desc limit 1",
  runSummary: "select id, generation, status from runs where run = ?",
  rootOf: "select root from runs where run = ?",
  turnState: "select run, status, arrivals, turn_token as token from runs where run = ?",

  // The turn: one statement checks the fence and moves the head. The rules first run the form for a run without unread messages,
  // whose number of changes says whether it matched; when it did not, they run the form that returns `arrivals`. RETURNING
  // builds a table per call: 88k turns/s instead of 120k, medians of five.
  holdTurn: `${HOLD} and arrivals = ?3`,
  releaseTurn: `${RELEASE} and arrivals = ?3`,
  endRun: `${END} and arrivals = ?3`,
  holdEmptyTurn: `${HOLD_EMPTY} and arrivals = ?3`,
  holdEmptyTurnWithUnread: `${HOLD_EMPTY} returning arrivals`,
  holdTurnWithUnread: `${HOLD} returning arrivals`,
  releaseTurnWithUnread: `${RELEASE} returning arrivals`,
  endRunWithUnread: `${END} returning arrivals`,
  turnFence: "select turn_token as token, head, chain from runs where run = ?",
  stopRun: `update runs set status = ?, evidence = cast(? as blob), ${TURN.no}, turn_token = null, turn_worker = null
    where run = ? and turn_token = ?`,
  returnTurn: `update runs set ${RETURNED}
    where run = ? and turn_token = ?`,
  // A run that has not started keeps waiting for its start.
  resumeRun: `update runs set status = iif(turn_token is null, 'queued', 'running'), takeovers = 0, evidence = null,
      turn_due = case when exists (select 1 from queue where queue.run = runs.run and item = 'Start' and ${START_IS_PENDING})
        then ${TurnDue.notStarted} else turn_token is null end
    where run = ?`,
  pauseRun: `update runs set status = 'paused', ${TURN.no} where run = ? and status in ('queued', 'running', 'waiting')`,
  pauseSelf: `update runs set status = 'paused', ${TURN.no}, evidence = cast(? as blob)
    where run = ? and coalesce(turn_token, ?3) = ?3 and status in ('queued', 'running', 'waiting')`,
  terminateRun: `update runs set head = ?1, chain = ?2, status = 'cancelled', ended_at = ?3, unread = arrivals - read,
      evidence = null, ${TURN.no}, turn_token = null, turn_worker = null
    where run = ?4`,
  statusOf: "select status from runs where run = ?",
  retryRun: `update runs set head = ?1, chain = ?2, status = 'queued', ended_at = null, unread = 0, read = arrivals,
      ${TURN.yes}, takeovers = 0, evidence = null
    where run = ?3`,
  liveChildren: `select run from runs indexed by runs_by_root where root = ? and root <> run and parent = ? and ${LIVE}`,
  resumeItems: `update queue set ${ITEM.ready}, takeovers = 0 where run = ? and ${ITEM.stopped}`,
  dueDefinitions: distinctScan("definition", "runs indexed by runs_due", TURN_IS_DUE),
  dueTurns: `select run, priority from runs indexed by runs_due where ${TURN_IS_DUE} and definition = ? and version = ?
    order by priority desc, run limit ?`,
  suspectTurns: `select takeovers from runs indexed by runs_suspect where ${SUSPECT_TURN_IS_DUE} and definition = ? and version = ?
    limit ?`,
  suspectTurnGroup: `select run from runs indexed by runs_suspect where ${SUSPECT_TURN_IS_DUE} and definition = ? and version = ?
    and takeovers = ? limit ?`,
  suspectDefinitions: distinctScan("definition", "runs indexed by runs_suspect", TURN.suspect),
  holdsIsolatedTurn: `select 1 from runs indexed by runs_held where turn_worker = ? and takeovers >= ${ISOLATED_AFTER} limit 1`,
  claimTurn: `update runs set status = 'running', ${TURN.no}, turn_token = ?, turn_worker = ? where run = ?`,

  // generations and versions
  insertNextGeneration: `insert into runs (run, id, generation, definition, kind, version, status, parent, parent_command, root,
      priority, head, chain, turn_due, turn_token, turn_worker, created_at, runtime)
    select ?1, id, generation + 1, definition, kind, ?2, ?3, parent, parent_command, root, priority, 1, ?4, ?5, ?6, ?7, ?8, ?9
    from runs where run = ?10`,
  copyTags: "insert into tags (run, tag) select ?1, tag from tags where run = ?2 order by rowid",
  moveDedupIds: "update once set run = ?1 where run = ?2 and at > 0",
  moveTimer: "update queue set run = ?1 where run = ?2 and item = ?3",
  moveAdmittedStart: `update queue set run = ?1 where run = ?2 and item = ?3 and ${ITEM.admitted}`,
  clearUnread: "update runs set unread = 0 where run = ?",
  // Two seeks: with (definition, version) > (?, ?) SQLite walks over every run of the version it is to leave (8 ms
  // for 100,000).
  nextDefinition: `select definition as name from runs indexed by runs_live where ended_at is null and definition > ?
    order by definition limit 1`,
  nextVersion: `select version from runs indexed by runs_live where ended_at is null and definition = ? and version > ?
    order by version limit 1`,
  countLive:
    "select count(*) as live from runs indexed by runs_live where ended_at is null and definition = ? and version = ?",
  countDue: `select count(*) as due from runs indexed by runs_due where ${TURN_IS_DUE} and definition = ? and version = ?`,

  // messages
  countArrival: `update runs set arrivals = arrivals + 1,
      turn_due = case when status in ('queued', 'running', 'waiting') then max(turn_due, ${TurnDue.yes}) else ${TurnDue.no} end
    where run = ? and ${LIVE}`,
  insertInbox: `insert into inbox (run, arrival, type, target, data)
    select run, arrivals, ?, ?, cast(? as blob) from runs where run = ?`,
  inboxAfter: `select arrival, type, target, cast(data as text) as data from inbox
    where run = ? and arrival > ? order by arrival`,
  deleteReadInbox: "delete from inbox where run = ? and arrival <= ?",
  insertDedupKey: "insert into once (run, target, at) values (?, ?, ?) on conflict do nothing",
  deleteDedupKey: "delete from once where run = ? and target = ?",
  oldDedupId: "select 1 from once indexed by once_by_time where at > 0 and at < ? limit 1",
  clearOldDedupIds: `delete from once where (run, target) in (
    select run, target from once indexed by once_by_time where at > 0 and at < ? limit ?)`,

  // journal
  insertEntry: `insert into journal (run, seq, type, command, data, at, mark, took_ms)
    values (?1, ?2, ?3, ?4, cast(?5 as blob), ?6, ?7, ?8)`,
  entry: "select seq, type, command, cast(data as text) as data, at, mark from journal where run = ? and seq = ?",
  entriesAfter: `select seq, type, command, cast(data as text) as data, at, mark, took_ms from journal
    where run = ? and seq > ? order by seq limit ?`,
  entryMark: "select mark from journal where run = ? and seq = ?",
  entryData: "select cast(data as text) as data from journal where run = ? and seq = ?",

  // streams
  firstGeneration: `select first.run from runs join runs as first on first.id = runs.id and first.generation = 0
    where runs.run = ?`,
  insertChunk: "insert into chunks (run, stream, position, data) values (?1, ?2, ?3, cast(?4 as blob))",
  lastChunk: "select max(position) as last from chunks where run = ? and stream = ?",
  chunksAfter: `select position as offset, cast(data as text) as data from chunks
    where run = ? and stream = ? and position > ? order by position limit ?`,
  emittedCount: "select count from emitted where run = ? and stream = ?",
  emittedCounts: "select stream, count from emitted where run = ?",
  saveEmittedCount: `insert into emitted (run, stream, count) values (?, ?, ?)
    on conflict (run, stream) do update set count = max(count, excluded.count)`,

  // checkpoints
  checkpointAt: "select run, step, key from checkpoints where run = ? and step = ?",
  checkpointByKey: "select run, step, key from checkpoints where key = ?",
  insertCheckpoint:
    "insert into checkpoints (run, step, seq, chain, key, label, state) values (?1, ?2, ?3, ?4, ?5, ?6, cast(?7 as blob))",
  insertFencedCheckpoint: `insert or ignore into checkpoints (run, step, seq, chain, key, label, state)
    select ?1, ?2, ?3, ?4, ?5, ?6, cast(?7 as blob) from runs where run = ?1 and turn_token = ?8 and head = ?9`,
  deleteCheckpoint: "delete from checkpoints where run = ? and step = ?",
  checkpointsAfter: `select step, seq, chain, key, label, null as state from checkpoints
    where run = ? and step > ? order by step limit ?`,
  checkpointUpTo: `select step, seq, chain, key, label, null as state from checkpoints
    where run = ? and step <= ? order by step desc limit 1`,
  wholeCheckpoint: `select step, seq, chain, key, label, cast(state as text) as state from checkpoints indexed by checkpoints_whole
    where run = ? and state is not null and step <= ? order by step desc limit 1`,

  labeledCheckpoint: `select step, seq, chain, key, label, null as state from checkpoints indexed by checkpoints_label
    where run = ? and label = ? and step <= ? order by step desc limit 1`,
  // Reads the rows first, then their entries: entries between two steps are not read.
  stepsAfter: `select journal.seq, type, command, cast(data as text) as data, at, mark, took_ms
    from checkpoints cross join journal on journal.run = checkpoints.run and journal.seq = checkpoints.seq
    where checkpoints.run = ?1 and checkpoints.step > ?2 and checkpoints.step <= ?3 order by checkpoints.step limit ?4`,

  // forks
  insertFork: "insert into forks (run, origin, step) values (?, ?, ?)",
  setForkHead: "update runs set head = 2, chain = ? where run = ?",
  isFork: "select 1 from forks where run = ?",
  deleteFork: "delete from forks where run = ?",
  forksOfFamily: `select run from forks indexed by forks_by_origin where origin = ?1 union all
    select forks.run from runs indexed by runs_by_root cross join forks indexed by forks_by_origin on forks.origin = runs.run
    where root = ?1 and root <> runs.run`,

  // queue
  insertItem: `insert into queue (run, item, kind, name, priority, available_at, seq, state, token, worker)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  itemToken: "select token from queue where run = ? and item = ?",
  itemState: `select state, attempt, available_at as availableAt, cast(failures as text) as failures from queue
    where run = ? and item = ?`,
  heldItem: "select 1 from queue where run = ? and item = ? and token = ?",
  deleteHeldItem: "delete from queue where run = ? and item = ? and token = ?",
  deleteItem: "delete from queue where run = ? and item = ?",
  returnItem: `update queue set state = ?, available_at = ?, attempt = ?, failures = coalesce(cast(? as blob), failures),
      takeovers = 0, token = null, worker = null
    where run = ? and item = ? and token = ?`,
  readyNames: distinctScan("name", "queue indexed by queue_ready", READY_IN_DEFAULT_QUEUE),
  readyItems: `select run, item, name, priority, available_at as availableAt, seq, attempt, cast(failures as text) as failures
    from queue indexed by queue_ready where ${READY_IN_DEFAULT_QUEUE} and name = ?
    order by priority desc, available_at, run, item limit ?`,
  suspectItems: `select takeovers, queue, key from queue indexed by queue_suspect where ${ITEM.suspect} and name = ? limit ?`,
  suspectItemGroup: `select run, item, name, priority, available_at as availableAt, seq, attempt,
      cast(failures as text) as failures, queue, key
    from queue indexed by queue_suspect where ${ITEM.suspect} and name = ? and takeovers = ? limit ?`,
  suspectNames: distinctScan("name", "queue indexed by queue_suspect", ITEM.suspect),
  holdsIsolatedItem: `select 1 from queue indexed by queue_leased
    where ${ITEM.leased} and worker = ? and takeovers >= ${ISOLATED_AFTER} limit 1`,
  claimItem: `update queue set ${ITEM.leased}, token = ?, worker = ? where run = ? and item = ?`,
  dueItems: `select run, item, kind, name from queue indexed by queue_delayed where ${ITEM.delayed} and available_at <= ?
    order by available_at, run, item limit ?`,
  nextDue: `select min(available_at) as at from queue indexed by queue_delayed where ${ITEM.delayed}`,
  markItemReady: `update queue set ${ITEM.ready} where run = ? and item = ?`,

  // leftovers of ended runs
  hasItems: "select 1 from queue where run = ? limit 1",
  hasDedupKeys: "select 1 from once where run = ? limit 1",
  clearQueue: "delete from queue where run = ?1 and item in (select item from queue where run = ?1 limit ?2)",
  clearInbox:
    "delete from inbox where run = ?1 and arrival in (select arrival from inbox where run = ?1 order by arrival limit ?2)",
  clearDedupKeys: "delete from once where run = ?1 and target in (select target from once where run = ?1 limit ?2)",
  clearJournal:
    "delete from journal where run = ?1 and seq in (select seq from journal where run = ?1 order by seq limit ?2)",
  clearChunks: "delete from chunks where rowid in (select rowid from chunks where run = ?1 limit ?2)",
  clearCheckpoints: "delete from checkpoints where rowid in (select rowid from checkpoints where run = ?1 limit ?2)",
  clearEmitted: "delete from emitted where run = ?1 and stream in (select stream from emitted where run = ?1 limit ?2)",
  insertLeftover: "insert into leftovers (run) values (?) on conflict do nothing",
  leftover: `select run, exists (select 1 from runs where runs.run = leftovers.run) as kept,
      exists (select 1 from runs where runs.run = leftovers.run and status = 'failed') as failed
    from leftovers limit 1`,
  deleteLeftover: "delete from leftovers where run = ?",

  // maintenance
  oldFamilies: `select run as root from runs where run >= ?1 and run < ?2 and root = run and ${OVER} < ?3 and not exists (
      select 1 from runs as other indexed by runs_by_root
      where other.root = runs.run and other.root <> other.run and (other.ended_at is null or other.ended_at >= ?3
        or exists (select 1 from outbox where line = other.run)))
    and not exists (select 1 from outbox where line = runs.run) order by run desc`,
  isFamilyActive: `select 1 from runs where run = ?1 and (${OVER} is null or ${OVER} >= ?2) union all
    select 1 from runs indexed by runs_by_root
    where root = ?1 and root <> run and (ended_at is null or ended_at >= ?2 or exists (
      select 1 from outbox where line = runs.run)) union all
    select 1 from outbox where line = ?1 limit 1`,
  family: `select run from runs where run = ?1 union all
    select run from runs indexed by runs_by_root where root = ?1 and root <> run`,
  deleteRun: "delete from runs where run = ?",
  deleteTags: "delete from tags where run = ?",
  runsBelow: "select run from runs where run < ?1 order by run desc limit 1 offset ?2",
  runsFrom: "select run from runs where run >= ?1 order by run limit 1 offset ?2",
  countStatuses: "select status, count(*) as count from runs where run >= ? and run < ? group by status",
  countItems: `select (select count(*) from queue indexed by queue_ready where ${READY_IN_DEFAULT_QUEUE})
      + (select count(*) from queue indexed by queue_lined where ${READY_IN_NAMED_QUEUE} and kind = 'task')
      + (select count(*) from queue indexed by queue_parked where ${ITEM.parked} and kind = 'task')
      + (select count(*) from queue indexed by queue_suspect where ${ITEM.suspect}) as ready,
    (select count(*) from queue indexed by queue_leased where ${ITEM.leased}) as leased,
    (select count(*) from queue indexed by queue_delayed where ${ITEM.delayed}) as delayed`,

  // leases, for people
  holder: `select turn_worker as worker, (select at from journal where journal.run = runs.run and seq = head) as committedAt
    from runs where run = ?`,
  itemsHeld: `select item, worker from queue where run = ? and ${ITEM.leased} and worker is not null order by item limit ?`,
  history: `select key, value from meta where key >= '${HISTORY_PREFIX}' and key < '${HISTORY_END}'`,

  // workers
  insertWorker: `insert into workers (worker, name, until, started_at, about) values (?, ?, ?, ?, ?)
    on conflict (worker) do nothing`,
  worker: "select name, until from workers where worker = ?",
  workers: "select worker, name, started_at as startedAt, until, about, doing from workers order by started_at, worker",
  renewWorker: "update workers set until = ?, doing = coalesce(?, doing) where worker = ?",
  deleteWorker: "delete from workers where worker = ?",
  expiredWorkers: "select worker from workers where until <= ? and worker <> ?",
  heldTurns: `select run, turn_token as token from runs indexed by runs_held
    where turn_worker is not null and turn_worker = ? order by run`,
  heldItems: `select run, item, token, attempt, queue, key from queue indexed by queue_leased
    where ${ITEM.leased} and worker = ? order by run, item`,
  turnHolders: distinctScan("turn_worker", "runs indexed by runs_held", "turn_worker is not null"),
  itemHolders: distinctScan("worker", "queue indexed by queue_leased", ITEM.leased),
  returnWorkerTurns: `update runs indexed by runs_held set ${RETURNED}
    where turn_worker = ?`,
  takeOverTurns: `update runs indexed by runs_held set takeovers = takeovers + 1, turn_token = null, turn_worker = null,
      status = case when status = 'paused' then 'paused' when takeovers + 1 < ?1 then 'queued' else 'blocked' end,
      turn_due = case when status = 'paused' then ${TurnDue.no} when takeovers + 1 < ?1 then ${dueAfter("takeovers + 1")} else ${TurnDue.no} end,
      evidence = case when status = 'paused' or takeovers + 1 < ?1 then evidence else cast(?2 as blob) end
    where turn_worker = ?3`,
  returnWorkerItems: `update queue indexed by queue_leased set state = ${readyAfter("takeovers")}, token = null, worker = null
    where ${ITEM.leased} and worker = ?`,
  poisonItems: `select run, item from queue indexed by queue_leased where ${ITEM.leased} and worker = ? and takeovers + 1 >= ?`,
  takeOverItems: `update queue indexed by queue_leased set
      state = iif(takeovers + 1 >= ?1, ${QueueItemState.stopped}, ${readyAfter("takeovers + 1")}),
      token = null, worker = null, takeovers = takeovers + 1
    where ${ITEM.leased} and worker = ?2`,
  blockRun: `update runs set status = 'blocked', evidence = cast(? as blob), ${TURN.no}, turn_token = null, turn_worker = null
    where run = ? and status in ('queued', 'running', 'waiting')`,

  ...QUEUE_SQL,
  ...BACKLOG_SQL,
  ...FLOW_SQL,
  ...SCHEDULE_SQL,
  ...OUTBOX_SQL,
} as const;

export type Statements = Prepared<keyof typeof SQL>;

const prepared = preparedFrom(SQL);

/** Arrays: objects without a prototype, copied into ordinary ones, took 48 ms for 10,000 entries instead of 15. */
const ARRAYS: ReadonlySet<keyof typeof SQL> = new Set<keyof typeof SQL>([
  "entriesAfter",
  "stepsAfter",
  "flowRun",
  "nodeReadiness",
  "inputsOfNode",
  "inputsOfNodes",
]);

export function prepareStatements(db: DatabaseSync, cipher: SqlitePayloadCipher | undefined): Statements {
  return prepared((name, text) => {
    const statement = db.prepare(cipher === undefined ? text : statementWithCodec(name, text));
    if (ARRAYS.has(name)) statement.setReturnArrays(true);
    return statement;
  });
}

/** For tests of query plans. */
export const STATEMENT_TEXTS: Readonly<Record<keyof typeof SQL, string>> = SQL;
