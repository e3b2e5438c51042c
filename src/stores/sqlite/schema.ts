// Schema: what a Reprise database looks like, as numbered migrations.
//
// A tour. `runs` has one row per run: who it is, where its journal ends (`head`, `chain`), how many messages came
// (`arrivals`) and were taken in (`read`), and its turn. A turn is due (`turn_due`), and free or held by a worker under
// a token; both may be true at once, when a message came while somebody holds it. A turn that two workers died with is due
// as a suspect (2), like an item in state 4, and is claimed in small groups. `journal` is the record itself, in
// order. `queue` is work besides turns: tasks, nodes of flows and timers, delayed (0), ready (1), leased (2), or stopped (3)
// until its run is resumed; a row names the journal entry with its input and holds no payload. A node stands there when
// everything it waits for has come: `arrivals` has one row per edge, `readiness` counts them. `inbox` keeps entries that have no place in the journal yet; `once`
// remembers targets that take only one message, and for a day the ids senders gave to theirs. `workers` has one lease per worker, `writers` one line per open store:
// the number of its last batch, which says whether a batch is in, and its clock. `leftovers` names runs that ended or
// were pruned with more rows than one transaction should delete.
//
// Every key starts with the run's number; the public id stands only in `runs`. Payloads are blobs, byte for byte as
// encoded. Times are milliseconds. No foreign keys: every row is written under the run's own fence, `check` sees to the
// rest, and a parent lookup per journal row would be paid by every step.
//
// `journal` is a rowid table: rows go to the end of the file and only the small (run, seq) index is spread. Rejected, each
// with 200 turns of one entry per batch over 2,000 runs, in rows/s with 100 bytes (two runs on a busy machine) and with
// 1 KB of payload (one run):
//   this form                                93k to 124k, 61k
//   one integer key run * 2^22 + seq         56k to 68k, 19k
//   (run, seq) WITHOUT ROWID                 60k to 62k, 15k
// A 64 MB cache (75k) and a checkpoint every 10,000 pages (83k) showed no gain in one run each.

/** "Repr", in the header of the file: tells our databases from everybody else's. */
export const APPLICATION_ID = 0x52657072;

/** Statuses people look for among many runs; the index below and the listing must spell it the same way. */
export const UNHAPPY = "status in ('paused', 'blocked', 'determinism_violation', 'failed')";

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
create index runs_unhappy on runs (status) where ${UNHAPPY};
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

// Number two, one part per capability.
const MESSAGES = `
-- Zero: for as long as the run lives. Otherwise the id of a message, forgotten some time after this moment.
alter table once add column at integer not null default 0;
create index once_by_time on once (at) where at > 0;
`;
const CONTROL = "";
// A worker claims only the versions it has, each from the front of its own part of the index.
const GENERATIONS = `
drop index runs_due;
create index runs_due on runs (definition, version, priority desc) where turn_due = 1 and turn_token is null;
drop index runs_suspect;
create index runs_suspect on runs (definition, version) where turn_due = 2;
create index runs_live on runs (definition, version) where ended_at is null;
`;
// Work in a named queue has the queue on its row and stands in indexes of its own; everything else is where it was. Two more
// states: 5, it waits for its key, so that a claim never walks over it; 6, a run (kind 'start') that was let in and has its
// place until it ends. A run that has not begun has `turn_due` 3, which no message changes. `begun` counts what was handed
// out until it no longer does (`until`), `lanes` names the keys that a rate holds back and when it lets go. `start_keys`
// leads from the key of a singleton or debounced start to the id of its last run.
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
// One row per schedule. `token` changes with every write of the row and fences the next one. `due_at` is null while it is
// paused, or has no more times. `line` is a JSON list of planned times that wait for the run `last_run` to end.
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
// `chunks` stand under the number of their run's first generation, at `position`, dense from 1. `emitted` counts what the
// code of one generation has emitted; an operation's chunks are not among it.
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
// A run's messages stand in `outbox` one behind the other (0); only the first is next (1) or leased (2). `line` is the number
// of the run's first generation. The payload is in the journal, at (run, seq).
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

// Beside `at`, and like it never hashed: how long the call took that an entry ends.
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

// A fork, and the run whose steps before it are its own too.
const FORKS = `
create table forks (run integer primary key, origin integer not null, step integer not null) strict;
create index forks_by_origin on forks (origin);
`;

// What a LangGraph checkpointer keeps. A checkpoint names its values by number; a value is written once, and shared by the
// checkpoints of its thread that have it in common. `channels` is a JSON list of channel, version, value. `place` says what
// a value is. `form` says whether `data` is the serializer's text or base64 of its bytes.
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

// Nodes of flows. `arrivals` has what has come along each edge (kind 0: a value, 1: a skip, 2: a failure) and the entry
// that holds it; `readiness` counts them, under the node that waits. A barrier also knows the spread behind it: how many
// items have been queued, how many may be at once, and in which entries they lie. Both stay when the run ends, for a retry.
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

// What a worker says about itself, and with each heartbeat about its work. An index to count what is put off without the
// timers, of which there may be millions.
const THIRD = `
alter table workers add column about text;
alter table workers add column doing text;
create index queue_later on queue (queue, kind) where state = 0 and kind <> 'timer';
`;

/** Number n stands at n - 1. A published migration is never changed; a change is a new one. */
export const MIGRATIONS: readonly string[] = [FIRST, SECOND, THIRD];

export const SCHEMA_VERSION: number = MIGRATIONS.length;
