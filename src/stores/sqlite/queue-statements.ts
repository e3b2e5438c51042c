// Queue statements: limits, slots and rates of named queues, and runs that have not started.

import { HOLDS_SLOT, ITEM, READY_IN_NAMED_QUEUE, START_IS_PENDING, TURN } from "./row-state-sql.ts";

const ITEM_COLUMNS = `run, item, name, priority, available_at as availableAt, seq, attempt, cast(failures as text) as failures,
      queue, key`;

export const QUEUE_SQL = {
  // queues
  queueLimits: "select limits, paused from queues where name = ?",
  declaredQueue: "select declared from queues where name = ?",
  declareQueue: `insert into queues (name, declared, limits) values (?1, ?2, ?2)
    on conflict (name) do update set declared = excluded.declared, limits = excluded.limits`,
  changeQueue: `update queues set paused = coalesce(?2, paused), limits = coalesce(?3, limits) where name = ?1`,
  queues: "select name, limits, paused from queues order by name",

  // items of named queues
  insertItemInQueue: `insert into queue (run, item, kind, name, priority, available_at, seq, state, queue, key)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // Two seeks: with (queue, name) > (?, ?) SQLite scans every row of the name it skips (10 ms for 100,000).
  nextQueue: `select queue from queue indexed by queue_lined where ${READY_IN_NAMED_QUEUE} and kind = ? and queue > ?
    order by queue limit 1`,
  nextNameInQueue: `select name from queue indexed by queue_lined where ${READY_IN_NAMED_QUEUE} and kind = ? and queue = ? and name > ?
    order by name limit 1`,
  readyItemsInQueue: `select ${ITEM_COLUMNS} from queue indexed by queue_lined where ${READY_IN_NAMED_QUEUE} and kind = ? and queue = ? and name = ?
    order by priority desc, available_at, run, item limit ?`,
  countBusyInQueue: `select count(*) as count from queue indexed by queue_busy where ${HOLDS_SLOT} and kind = ? and queue = ?`,
  countBusyInKey: `select count(*) as count from queue indexed by queue_busy where ${HOLDS_SLOT} and kind = ? and queue = ? and key = ?`,
  slotOfItem: "select kind, queue, key from queue where run = ? and item = ?",
  keysOfRun: "select kind, queue, key, count(*) as count from queue where run = ? and key is not null group by 1, 2, 3",
  keysOfWorker: `select kind, queue, key, count(*) as count from queue indexed by queue_leased
    where ${ITEM.leased} and worker = ? and key is not null group by 1, 2, 3`,
  parkItem: `update queue set ${ITEM.parked} where run = ? and item = ?`,
  hasParked: `select 1 from queue indexed by queue_parked where ${ITEM.parked} and kind = ? limit 1`,
  unparkItems: `update queue set ${ITEM.ready} where (run, item) in (
    select run, item from queue indexed by queue_parked where ${ITEM.parked} and kind = ? and queue = ? and key = ?
    order by priority desc, available_at, run, item limit ?)`,
  unparkQueue: `update queue indexed by queue_parked set ${ITEM.ready} where ${ITEM.parked} and kind = ? and queue = ?`,
  admitRun: `update queue set ${ITEM.admitted} where run = ? and item = 'Start'`,

  // rates
  addRateUse: `insert into begun (kind, queue, key, until, count) values (?, ?, ?, ?, 1)
    on conflict (kind, queue, key, until) do update set count = count + 1`,
  rateUse: `select sum(count) as count, min(until) as until from begun
    where kind = ? and queue = ? and key = ? and until > ?`,
  deleteExpiredRateUse: `delete from begun where (kind, queue, key, until) in (
    select kind, queue, key, until from begun indexed by begun_until where until <= ? limit 20)`,
  insertRateGate: `insert into lanes (kind, queue, key, opens_at) values (?, ?, ?, ?)
    on conflict (kind, queue, key) do update set opens_at = excluded.opens_at`,
  dueRateGates:
    "select kind, queue, key from lanes indexed by lanes_opening where opens_at <= ? order by opens_at limit ?",
  nextRateGate: "select min(opens_at) as at from lanes indexed by lanes_opening",
  deleteRateGate: "delete from lanes where kind = ? and queue = ? and key = ?",
  deleteRateGates: "delete from lanes where kind = ? and queue = ?",

  // runs that have not started
  pendingStart: `select queue, key from queue where run = ? and item = 'Start' and ${START_IS_PENDING}`,
  makeStartDue: `update runs set ${TURN.yes} where run = ? and ${TURN.notStarted}`,
  // Times are not hashed: the clock of the run's code starts with the code.
  setStartTime: "update journal set at = ? where run = ? and seq = 1",
  postponeStart: `update queue set ${ITEM.delayed}, available_at = ?, name = ?, priority = ?, queue = ?, key = ?
    where run = ? and item = 'Start'`,
  startKey: "select id from start_keys where definition = ? and kind = ? and key = ?",
  saveStartKey: `insert into start_keys (definition, kind, key, id) values (?, ?, ?, ?)
    on conflict (definition, kind, key) do update set id = excluded.id`,
  deleteOrphanedStartKeys: "delete from start_keys where not exists (select 1 from runs where runs.id = start_keys.id)",
  rewriteRun: "update runs set version = ?, priority = ?, chain = ?, runtime = ? where run = ?",
  rewriteFirstEntry: "update journal set data = cast(? as blob), at = ?, mark = ? where run = ? and seq = 1",
} as const;
