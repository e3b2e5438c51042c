// Queue statements: lines, places, rates, and runs that have not begun.

const LINED = "state = 1 and queue is not null";
const BUSY = "state in (2, 6) and queue is not null";
const ITEM = `run, item, name, priority, available_at as availableAt, seq, attempt, cast(failures as text) as failures,
      queue, key`;

export const QUEUE_SQL = {
  // queues
  queue: "select limits, paused from queues where name = ?",
  declaredQueue: "select declared from queues where name = ?",
  declareQueue: `insert into queues (name, declared, limits) values (?1, ?2, ?2)
    on conflict (name) do update set declared = excluded.declared, limits = excluded.limits`,
  changeQueue: `update queues set paused = coalesce(?2, paused), limits = coalesce(?3, limits) where name = ?1`,
  queues: "select name, limits, paused from queues order by name",

  // lines
  insertLined: `insert into queue (run, item, kind, name, priority, available_at, seq, state, queue, key)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  // Two seeks: with (queue, name) > (?, ?) SQLite walks over every row of the line it is to leave (10 ms for 100,000).
  nextQueue: `select queue from queue indexed by queue_lined where ${LINED} and kind = ? and queue > ?
    order by queue limit 1`,
  nextName: `select name from queue indexed by queue_lined where ${LINED} and kind = ? and queue = ? and name > ?
    order by name limit 1`,
  linedItems: `select ${ITEM} from queue indexed by queue_lined where ${LINED} and kind = ? and queue = ? and name = ?
    order by priority desc, available_at, run, item limit ?`,
  busyInQueue: `select count(*) as count from queue indexed by queue_busy where ${BUSY} and kind = ? and queue = ?`,
  busyInKey: `select count(*) as count from queue indexed by queue_busy where ${BUSY} and kind = ? and queue = ? and key = ?`,
  lineOfItem: "select kind, queue, key from queue where run = ? and item = ?",
  keysOfRun: "select kind, queue, key, count(*) as count from queue where run = ? and key is not null group by 1, 2, 3",
  keysOfWorker: `select kind, queue, key, count(*) as count from queue indexed by queue_leased
    where state = 2 and worker = ? and key is not null group by 1, 2, 3`,
  park: "update queue set state = 5 where run = ? and item = ?",
  anyParked: "select 1 from queue indexed by queue_parked where state = 5 and kind = ? limit 1",
  unpark: `update queue set state = 1 where (run, item) in (
    select run, item from queue indexed by queue_parked where state = 5 and kind = ? and queue = ? and key = ?
    order by priority desc, available_at, run, item limit ?)`,
  unparkQueue: "update queue indexed by queue_parked set state = 1 where state = 5 and kind = ? and queue = ?",
  admitRun: "update queue set state = 6 where run = ? and item = 'Start'",

  // rates
  countBegun: `insert into begun (kind, queue, key, until, count) values (?, ?, ?, ?, 1)
    on conflict (kind, queue, key, until) do update set count = count + 1`,
  begun: `select sum(count) as count, min(until) as until from begun
    where kind = ? and queue = ? and key = ? and until > ?`,
  forgetBegun: `delete from begun where (kind, queue, key, until) in (
    select kind, queue, key, until from begun indexed by begun_until where until <= ? limit 20)`,
  insertLane: `insert into lanes (kind, queue, key, opens_at) values (?, ?, ?, ?)
    on conflict (kind, queue, key) do update set opens_at = excluded.opens_at`,
  dueLanes: "select kind, queue, key from lanes indexed by lanes_opening where opens_at <= ? order by opens_at limit ?",
  nextLane: "select min(opens_at) as at from lanes indexed by lanes_opening",
  dropLane: "delete from lanes where kind = ? and queue = ? and key = ?",
  dropLanes: "delete from lanes where kind = ? and queue = ?",

  // runs that have not begun
  isUnbegun: "select queue, key from queue where run = ? and item = 'Start' and state in (0, 1, 5)",
  beginRun: "update runs set turn_due = 1 where run = ? and turn_due = 3",
  // Times are not hashed: the code's clock begins when the code does.
  beginEntry: "update journal set at = ? where run = ? and seq = 1",
  postponeStart: `update queue set state = 0, available_at = ?, name = ?, priority = ?, queue = ?, key = ?
    where run = ? and item = 'Start'`,
  startKey: "select id from start_keys where definition = ? and kind = ? and key = ?",
  keepStartKey: `insert into start_keys (definition, kind, key, id) values (?, ?, ?, ?)
    on conflict (definition, kind, key) do update set id = excluded.id`,
  dropStartKeys: "delete from start_keys where not exists (select 1 from runs where runs.id = start_keys.id)",
  rewriteRun: "update runs set version = ?, priority = ?, chain = ?, runtime = ? where run = ?",
  rewriteFirst: "update journal set data = cast(? as blob), at = ?, mark = ? where run = ? and seq = 1",
} as const;
