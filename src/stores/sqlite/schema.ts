// Schema: the tables of a Reprise database, as numbered migrations. The numbers in state columns are in kernel/row-states.ts.
//
// `runs` has one row per run: its identity, the end of its journal (`head`, `chain`), how many messages it received (`arrivals`)
// and read (`read`), and its turn. A turn is due (`turn_due`), and free or held by a worker under a token. A held turn is also due
// when a message arrived since the claim. A turn that two workers lost is due as a suspect, and workers claim it in small
// groups. `journal` holds the entries of all runs. `queue` holds tasks, flow nodes and timers; a row refers to the journal
// entry with its input and holds no payload. A node is queued when all its inputs have arrived: `arrivals` has one row per edge,
// and `readiness` counts them. `inbox` holds messages that are not in the journal yet. `once` holds targets that accept only one
// message, and for a day the dedup ids of senders. `workers` has one lease per worker. `writers` has one row per open store: the
// number of its last batch, which says whether a batch was committed, and its clock. `leftovers` names runs that ended or were
// pruned with more rows than one transaction deletes.
//
// Every key starts with the run's number; only `runs` holds the public id. Payloads are blobs, byte for byte as encoded. Times
// are milliseconds. There are no foreign keys: every row is written under the run's fence, `check-store.ts` finds orphaned rows,
// and every step would pay for a lookup of the run per journal row.
//
// `journal` is a rowid table: rows are appended to the file, and only the small (run, seq) index is scattered. Rejected forms, each
// with 200 turns of one entry per batch over 2,000 runs, in rows/s with 100 bytes (two runs on a busy machine) and with
// 1 KB of payload (one run):
//   this form                                93k to 124k, 61k
//   one integer key run * 2^22 + seq         56k to 68k, 19k
//   (run, seq) WITHOUT ROWID                 60k to 62k, 15k
// A 64 MB cache (75k) and a WAL checkpoint every 10,000 pages (83k) were not faster, in one run each.

import { BUDGETS as ELEVENTH } from "./budget-tables.ts";
import { NINTH, TENTH } from "./schema-additions.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import { viewQuery, VIEWS, type ViewDialect } from "../rows/views.ts";

/** "Repr" in the header of the file identifies a Reprise database. */
export const APPLICATION_ID = 0x52657072;

/** The partial index and the listing must use the same text. */
export const IS_UNHAPPY = `status in ('${UNHAPPY.join("', '")}')`;

const FIRST = `
create table meta (key text primary key, value text not null) strict, without rowid;

create table runs (
  run integer primary key,
  id text not null,
  generation integer not null default 0,
  definition text not null,
  kind text not null,
  version integer not null,
  status text not null,
  parent integer,
  parent_command text,
  root integer not null,
  priority integer not null,
  head integer not null,
  chain text not null,
  arrivals integer not null default 0,
  read integer not null default 0,
  unread integer not null default 0,
  turn_due integer not null,
  turn_token text,
  turn_worker integer,
  takeovers integer not null default 0,
  created_at integer not null,
  ended_at integer,
  runtime text not null,
  evidence blob,
  unique (id, generation)
) strict;
-- The run number ends every index by itself: oldest first among equals.
create index runs_due on runs (definition, priority desc) where turn_due = 1 and turn_token is null;
create index runs_suspect on runs (definition) where turn_due = 2;
create index runs_held on runs (turn_worker) where turn_worker is not null;
create index runs_by_definition on runs (definition);
create index runs_unhappy on runs (status) where ${IS_UNHAPPY};
create index runs_by_root on runs (root) where root <> run;

create table tags (run integer not null, tag text not null, primary key (run, tag)) strict;
create index tags_by_tag on tags (tag, run);

create table journal (
  run integer not null,
  seq integer not null,
  type text not null,
  command text not null,
  data blob not null,
  at integer not null,
  mark integer not null,
  primary key (run, seq)
) strict;

create table queue (
  run integer not null,
  item text not null,
  kind text not null,
  name text not null,
  priority integer not null,
  available_at integer not null,
  seq integer not null,
  attempt integer not null default 0,
  state integer not null,
  token text,
  worker integer,
  takeovers integer not null default 0,
  failures blob,
  primary key (run, item)
) strict, without rowid;
create index queue_ready on queue (name, priority desc, available_at) where state = 1;
create index queue_suspect on queue (name) where state = 4;
create index queue_delayed on queue (available_at) where state = 0;
create index queue_leased on queue (worker) where state = 2;

create table inbox (
  run integer not null,
  arrival integer not null,
  type text not null,
  target text not null,
  data blob not null,
  primary key (run, arrival)
) strict;
create table once (run integer not null, target text not null, primary key (run, target)) strict, without rowid;

create table leftovers (run integer primary key) strict;
create table workers (
  worker integer primary key autoincrement,
  name text not null,
  until integer not null,
  started_at integer not null
) strict;
create table writers (writer text primary key, batch integer not null, mark integer not null) strict, without rowid;
`;

// Migration 2, one part per feature.
const MESSAGES = `
-- Zero: for as long as the run lives. Otherwise the id of a message, forgotten some time after this moment.
alter table once add column at integer not null default 0;
create index once_by_time on once (at) where at > 0;
`;
const CONTROL = "";
// A worker claims only the versions it has: the index orders turns by version.
const GENERATIONS = `
drop index runs_due;
create index runs_due on runs (definition, version, priority desc) where turn_due = 1 and turn_token is null;
drop index runs_suspect;
create index runs_suspect on runs (definition, version) where turn_due = 2;
create index runs_live on runs (definition, version) where ended_at is null;
`;
// An item of a named queue has the queue on its row, and its own indexes. A parked item waits for a slot of its key, and no claim
// scans it. The item of a started run (kind 'start') holds the run's slot until the run ends. `begun` counts the items that a rate
// admitted, until they no longer count (`until`). `lanes` holds the rate gates: the keys that a rate holds back, and when it
// admits more. `start_keys` maps the key of a singleton or debounced start to the id of its last run.
const QUEUES = `
create table queues (
  name text primary key,
  declared text not null,
  limits text not null,
  paused integer not null default 0
) strict, without rowid;

alter table queue add column queue text;
alter table queue add column key text;
drop index queue_ready;
create index queue_ready on queue (name, priority desc, available_at) where state = 1 and queue is null;
create index queue_lined on queue (kind, queue, name, priority desc, available_at) where state = 1 and queue is not null;
create index queue_parked on queue (kind, queue, key, priority desc, available_at) where state = 5;
create index queue_busy on queue (kind, queue, key, state) where state in (2, 6) and queue is not null;

create table begun (
  kind text not null,
  queue text not null,
  key text not null,
  until integer not null,
  count integer not null,
  primary key (kind, queue, key, until)
) strict, without rowid;
create index begun_until on begun (until);
create table lanes (
  kind text not null,
  queue text not null,
  key text not null,
  opens_at integer not null,
  primary key (kind, queue, key)
) strict, without rowid;
create index lanes_opening on lanes (opens_at);

create table start_keys (
  definition text not null,
  kind text not null,
  key text not null,
  id text not null,
  primary key (definition, kind, key)
) strict, without rowid;
`;
// One row per schedule. `token` changes with every write of the row and fences the next one. `due_at` is null while the schedule is
// paused or has no next time. `line` is a JSON list of planned times that wait for the end of the run `last_run`.
const SCHEDULES = `
create table schedules (
  name text primary key,
  token text not null,
  definition text not null,
  version integer not null,
  input blob,
  cron text,
  time_zone text,
  every integer,
  anchor integer,
  overlap text not null,
  catch_up text not null,
  jitter integer not null,
  paused integer not null,
  next_at integer,
  due_at integer,
  last_at integer,
  last_run text,
  line text not null,
  created_at integer not null
) strict;
create index schedules_due on schedules (definition, due_at) where due_at is not null;
create index schedules_in_line on schedules (definition) where line <> '[]' and paused = 0;
`;
// `chunks` have the number of their run's first generation, and positions that are dense from 1. `emitted` counts the chunks that
// the code of one generation emitted; chunks of an operation do not count.
const STREAMS = `
create table chunks (
  run integer not null,
  stream text not null,
  position integer not null,
  data blob not null,
  primary key (run, stream, position)
) strict;
create table emitted (
  run integer not null,
  stream text not null,
  count integer not null,
  primary key (run, stream)
) strict, without rowid;
`;
// Only the first undelivered message of a run is due or leased; the others are blocked. `line` is the number of the run's first
// generation. The payload is in the journal, at (run, seq).
const OUTBOX = `
create table outbox (
  line integer not null,
  run integer not null,
  seq integer not null,
  destination text not null,
  state integer not null,
  available_at integer not null,
  sent_at integer not null,
  attempt integer not null default 0,
  token text,
  worker integer,
  primary key (line, run, seq)
) strict, without rowid;
create index outbox_next on outbox (destination, available_at) where state = 1;
create index outbox_leased on outbox (worker) where state = 2;
`;

// How long the call took that an entry ends. Like `at`, it is not hashed.
const DURATIONS = "alter table journal add column took_ms integer;";

const CHECKPOINTS = `
create table checkpoints (
  run integer not null,
  step integer not null,
  seq integer not null,
  chain text not null,
  key text not null,
  label text,
  state blob,
  primary key (run, step)
) strict;
create unique index checkpoints_key on checkpoints (key);
create index checkpoints_label on checkpoints (run, label, step) where label is not null;
create index checkpoints_whole on checkpoints (run, step) where state is not null;
`;

// A fork, and the run that holds the steps before it.
const FORKS = `
create table forks (run integer primary key, origin integer not null, step integer not null) strict;
create index forks_by_origin on forks (origin);
`;

// The tables of the LangGraph checkpointer. A checkpoint refers to its values by number; a value is written once, and the
// checkpoints of its thread share it. `channels` is a JSON list of [channel, version, value]. `place` says what a value is.
// `form` says whether `data` is the serializer's text or base64 of its bytes.
const LANGGRAPH = `
create table langgraph_checkpoints (
  checkpoint integer primary key,
  thread text not null,
  namespace text not null,
  id text not null,
  parent text,
  body integer not null,
  metadata integer not null,
  channels text not null,
  unique (thread, namespace, id)
) strict;
create index langgraph_checkpoints_by_thread on langgraph_checkpoints (thread, id);
create index langgraph_checkpoints_by_id on langgraph_checkpoints (id);
create table langgraph_values (
  value integer primary key,
  thread text not null,
  place text not null,
  type text not null,
  form text not null,
  data blob not null
) strict;
create index langgraph_values_by_place on langgraph_values (thread, place);
create table langgraph_writes (
  thread text not null,
  namespace text not null,
  id text not null,
  task text not null,
  position integer not null,
  channel text not null,
  type text not null,
  form text not null,
  data blob not null,
  primary key (thread, namespace, id, task, position)
) strict;
`;

// Nodes of flows. `arrivals` has one row per edge that delivered a value (kind 0), a skip (1) or a failure (2), with the entry that
// holds it; `readiness` counts the rows per target. The row of a barrier also describes its spread: how many items are queued,
// how many may be queued at once (null: all of them, in portions), and which entries hold them. Both tables stay when the run ends, for a retry.
//
// Forms of `arrivals`, 100,000 rows of one spread in batches of 100, CPU time on a busy machine (median of five), size:
//   this form                                3.3 µs, 31 bytes
//   `kind` as text                           3.4 µs, 37 bytes
//   with a rowid and an index                4.0 µs, 61 bytes
//   target, edge and index in one text       3.2 µs, 33 bytes, and in the order of text
const FLOWS = `
create table arrivals (
  run integer not null,
  target text not null,
  edge text not null,
  idx integer not null,
  kind integer not null,
  seq integer not null,
  primary key (run, target, edge, idx)
) strict, without rowid;
create table readiness (
  run integer not null,
  node text not null,
  required integer not null,
  completed integer not null,
  queued integer,
  window integer,
  first_seq integer,
  per_entry integer,
  primary key (run, node)
) strict, without rowid;
`;

const SECOND = [
  DURATIONS,
  CHECKPOINTS,
  FORKS,
  MESSAGES,
  CONTROL,
  GENERATIONS,
  QUEUES,
  SCHEDULES,
  STREAMS,
  OUTBOX,
  LANGGRAPH,
  FLOWS,
].join("\n");

// A worker's profile, and its activity with each heartbeat. The index counts delayed work without the timers, of which there may
// be millions.
const THIRD = `
alter table workers add column about text;
alter table workers add column doing text;
create index queue_later on queue (queue, kind) where state = 0 and kind <> 'timer';
`;

// When the queue was paused; null for a queue that is not paused, or was paused before this migration.
const FOURTH = "alter table queues add column paused_at integer;";

// What is known about each execution of user code, beside the journal's data and its hash: an entry has the worker, the number of the
// execution and its start; a message carries them to the run that appends it. `queue.executions` counts the claims of an item.
// `run_attempts` has one row per execution that left no entry: an attempt that failed and is retried, and an execution whose worker
// was lost or shut down. Its `step` is empty for the turn of a run, with all operations in progress then; `seq` is the head of the
// journal at that moment. `run_promises` has one row per open promise of a live run, so that all of them can be listed. A chunk has
// the step and the execution that emitted it, if an operation did; `reset` says that the chunks of its earlier executions are void.
// `runs_ended` has the ended runs without a parent, oldest end first: retention walks it. `stored_at` is the age of a LangGraph
// checkpoint; null for those of earlier versions.
// `once.data` is how a promise was settled, so that a second settlement can be compared with it.
const FIFTH = `
alter table runs add column lost_turns integer;
alter table runs add column turn_at integer;
alter table runs add column error_code text;
alter table journal add column worker text;
alter table journal add column execution integer;
alter table journal add column started_at integer;
alter table queue add column executions integer;
alter table queue add column leased_at integer;
alter table inbox add column worker text;
alter table inbox add column execution integer;
alter table inbox add column started_at integer;
alter table inbox add column took_ms integer;
create table run_attempts (
  run integer not null,
  step text not null,
  at integer not null,
  execution integer not null,
  attempt integer not null,
  seq integer not null,
  outcome text not null,
  worker text,
  started_at integer,
  data blob,
  primary key (run, step, at, execution)
) strict;
create table run_promises (
  run integer not null,
  command text not null,
  name text not null,
  key text,
  seq integer not null,
  at integer not null,
  primary key (run, command)
) strict, without rowid;
create index run_promises_by_name on run_promises (name, run, command);
alter table chunks add column step text;
alter table chunks add column execution integer;
alter table chunks add column reset integer;
create index chunks_by_step on chunks (run, step, stream, position) where step is not null;
create index runs_ended on runs (status, definition, ended_at) where parent is null and ended_at is not null;
alter table langgraph_checkpoints add column stored_at integer;
alter table once add column data blob;
`;

// The results of pure steps (kernel/memo.ts): one row per execution, by the entry of its step. `by` is the runtime of the process.
const SIXTH = `
create table memo (
  run integer not null,
  seq integer not null,
  memo text not null,
  value blob not null,
  by text not null,
  primary key (run, seq, memo)
) strict;
create index memo_by_key on memo (memo, run, seq);
`;

// The log of a federated store (kernel/log.ts): records by number, with the run they are about, and the number of its entries at the
// end that the record is of. `ended_runs` has the runs whose end has no record yet (`n` is null), and those that are pinned although
// they have one. `adopted` says that the run ended before the store was federated.
const SEVENTH = `
create table run_log (
  n integer primary key,
  rec text not null,
  run integer,
  head integer
) strict;
create index run_log_by_run on run_log (run, n) where run is not null;
create table ended_runs (
  run integer primary key,
  at integer not null,
  head integer not null,
  adopted integer not null,
  n integer
) strict;
create index ended_runs_noted on ended_runs (at, run) where n is null;
`;

/** The names of the views: `reprise_v1_runs`. A SQLite file has no schemas to put them in. */
const VIEW_PREFIX = "reprise_v1_";

/** Times are texts in ISO 8601, which SQLite's functions of time read. */
const VIEW_DIALECT: ViewDialect = {
  table: (name) => name,
  text: (column) => column,
  time: (column) => `strftime('%Y-%m-%dT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')`,
};

/** What other tools may read (rows/views.ts), one statement per view. */
export const VIEW_STATEMENTS: readonly string[] = VIEWS.map(
  (name) => `create view if not exists ${VIEW_PREFIX}${name} as ${viewQuery(name, VIEW_DIALECT)};`,
);

const EIGHTH = VIEW_STATEMENTS.join("\n");

/** Migration n has index n - 1. A published migration never changes: every change is a new migration. */
export const MIGRATIONS: readonly string[] = [
  FIRST,
  SECOND,
  THIRD,
  FOURTH,
  FIFTH,
  SIXTH,
  SEVENTH,
  EIGHTH,
  NINTH,
  TENTH,
  ELEVENTH,
];

export const SCHEMA_VERSION: number = MIGRATIONS.length;
