// Schema: the tables of rows/tables.ts in PostgreSQL, as numbered migrations. sqlite/schema.ts explains the tables.
//
// Texts are compared and ordered by bytes (collate "C"), as in every store. Keys start with the run's number if there is one. There
// are no foreign keys and no defaults: rows are inserted complete. Fixed-width columns come first: PostgreSQL finds columns after a
// text only by scanning it.
//
// A claim scans a partial index from its start, so every index ends with the key: oldest first among equals. An update of a column
// that an index mentions, even in its condition, writes to all indexes of the table. `head`, `chain`, `read` and `arrivals` are in no
// index, so that commits of a held turn stay on their page (HOT updates), for which `fillfactor` leaves room. Claims leave dead
// entries at the start of an index, so those tables are vacuumed early.
//
// While PostgreSQL's statistics say that a table is empty, it considers all indexes equally good, and keeps that plan. So only the
// right index may fit a frequent query: an index that reaches the same rows in another way is partial, on a condition that is always
// true and that only its own queries contain (`OPT_IN`), or does not contain the run's number.

import { UNHAPPY } from "../rows/indexes.ts";
import type { TableName } from "../rows/tables.ts";
import { viewQuery, VIEWS, type ViewDialect } from "../rows/views.ts";

const IS_UNHAPPY = `status in ('${UNHAPPY.join("', '")}')`;

const BUSY_TABLE = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05";

const BOOKS = `
create table meta (key text collate "C" primary key, value text collate "C" not null);
create table counters (name text collate "C" primary key, value bigint not null) with (fillfactor = 50);
create table writers (
  writer text collate "C" primary key,
  batch bigint not null,
  mark bigint not null
) with (fillfactor = 20);
create table workers (
  worker bigint primary key,
  name text collate "C" not null,
  until bigint not null,
  started_at bigint not null,
  about text collate "C",
  doing text collate "C"
) with (fillfactor = 50);
`;

const RUNS = `
create table runs (
  run bigint primary key,
  generation bigint not null,
  version bigint not null,
  root bigint not null,
  priority bigint not null,
  head bigint not null,
  arrivals bigint not null,
  read bigint not null,
  unread bigint not null,
  turn_due bigint not null,
  takeovers bigint not null,
  created_at bigint not null,
  chain text collate "C" not null,
  id text collate "C" not null,
  definition text collate "C" not null,
  kind text collate "C" not null,
  status text collate "C" not null,
  runtime text collate "C" not null,
  parent bigint,
  turn_worker bigint,
  ended_at bigint,
  turn_token text collate "C",
  parent_command text collate "C",
  evidence bytea,
  unique (id, generation)
) with (fillfactor = 60, ${BUSY_TABLE});
create index runs_due on runs (definition, version, priority desc, run) where turn_due = 1 and turn_token is null;
create index runs_suspect on runs (definition, version, run) where turn_due = 2;
create index runs_held on runs (turn_worker, run) where turn_worker is not null;
create index runs_by_definition on runs (definition, run) where run > 0;
create index runs_unhappy on runs (status, run) where ${IS_UNHAPPY};
create index runs_by_root on runs (root);
create index runs_live on runs (definition, version, run) where ended_at is null;

create table tags (
  run bigint not null,
  tag text collate "C" not null,
  position bigint not null,
  primary key (run, tag)
);
create index tags_by_tag on tags (tag, run) where position >= 0;

create table journal (
  run bigint not null,
  seq bigint not null,
  at bigint not null,
  mark bigint not null,
  type text collate "C" not null,
  command text collate "C" not null,
  data bytea not null,
  took_ms bigint,
  primary key (run, seq)
);

create table inbox (
  run bigint not null,
  arrival bigint not null,
  type text collate "C" not null,
  target text collate "C" not null,
  data bytea not null,
  primary key (run, arrival)
) with (${BUSY_TABLE});
create table once (
  run bigint not null,
  target text collate "C" not null,
  at bigint not null,
  primary key (run, target)
);
create index once_by_time on once (at) where at > 0;
create table leftovers (run bigint primary key);
`;

const QUEUES = `
create table queue (
  run bigint not null,
  priority bigint not null,
  available_at bigint not null,
  seq bigint not null,
  attempt bigint not null,
  state bigint not null,
  takeovers bigint not null,
  item text collate "C" not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  worker bigint,
  token text collate "C",
  queue text collate "C",
  key text collate "C",
  failures bytea,
  primary key (run, item)
) with (fillfactor = 80, ${BUSY_TABLE});
create index queue_ready on queue (name, priority desc, available_at, run, item) where state = 1 and queue is null;
create index queue_lined on queue (kind, queue, name, priority desc, available_at, run, item)
  where state = 1 and queue is not null;
create index queue_parked on queue (kind, queue, key, priority desc, available_at, run, item) where state = 5;
create index queue_busy on queue (kind, queue, key, state) where state in (2, 6) and queue is not null;
create index queue_suspect on queue (name, run, item) where state = 4;
create index queue_delayed on queue (available_at, run, item) where state = 0;
create index queue_leased on queue (worker, run, item) where state = 2;
-- To count what is put off without the timers, of which there may be millions.
create index queue_later on queue (queue, kind) where state = 0 and kind <> 'timer';

create table queues (
  name text collate "C" primary key,
  declared text collate "C" not null,
  limits text collate "C" not null,
  paused bigint not null
);
create table begun (
  kind text collate "C" not null,
  queue text collate "C" not null,
  key text collate "C" not null,
  until bigint not null,
  count bigint not null,
  primary key (kind, queue, key, until)
) with (fillfactor = 70, ${BUSY_TABLE});
create index begun_until on begun (until) where count >= 0;
create table lanes (
  kind text collate "C" not null,
  queue text collate "C" not null,
  key text collate "C" not null,
  opens_at bigint not null,
  primary key (kind, queue, key)
);
create index lanes_opening on lanes (opens_at);
create table start_keys (
  definition text collate "C" not null,
  kind text collate "C" not null,
  key text collate "C" not null,
  id text collate "C" not null,
  primary key (definition, kind, key)
);
`;

const SCHEDULES = `
create table schedules (
  name text collate "C" primary key,
  token text collate "C" not null,
  definition text collate "C" not null,
  version bigint not null,
  input bytea,
  cron text collate "C",
  time_zone text collate "C",
  every bigint,
  anchor bigint,
  overlap text collate "C" not null,
  catch_up text collate "C" not null,
  jitter bigint not null,
  paused bigint not null,
  next_at bigint,
  due_at bigint,
  last_at bigint,
  last_run text collate "C",
  line text collate "C" not null,
  created_at bigint not null
);
create index schedules_due on schedules (definition, due_at, name) where due_at is not null;
create index schedules_in_line on schedules (definition, name) where line <> '[]' and paused = 0;
`;

const STREAMS = `
create table chunks (
  run bigint not null,
  stream text collate "C" not null,
  position bigint not null,
  data bytea not null,
  primary key (run, stream, position)
);
create table emitted (
  run bigint not null,
  stream text collate "C" not null,
  count bigint not null,
  primary key (run, stream)
) with (fillfactor = 70);

create table outbox (
  line bigint not null,
  run bigint not null,
  seq bigint not null,
  state bigint not null,
  available_at bigint not null,
  sent_at bigint not null,
  attempt bigint not null,
  destination text collate "C" not null,
  token text collate "C",
  worker bigint,
  primary key (line, run, seq)
) with (${BUSY_TABLE});
create index outbox_next on outbox (destination, available_at, line, run, seq) where state = 1;
create index outbox_leased on outbox (worker, line, run, seq) where state = 2;
`;

const GRAPHS = `
create table checkpoints (
  run bigint not null,
  step bigint not null,
  seq bigint not null,
  chain text collate "C" not null,
  key text collate "C" not null,
  label text collate "C",
  state bytea,
  primary key (run, step)
);
create unique index checkpoints_key on checkpoints (key);
create index checkpoints_label on checkpoints (run, label, step) where label is not null;
create index checkpoints_whole on checkpoints (run, step) where state is not null;
create table forks (run bigint primary key, origin bigint not null, step bigint not null);
create index forks_by_origin on forks (origin);
`;

const FLOWS = `
create table arrivals (
  run bigint not null,
  idx bigint not null,
  kind bigint not null,
  seq bigint not null,
  target text collate "C" not null,
  edge text collate "C" not null,
  primary key (run, target, edge, idx)
);
create table readiness (
  run bigint not null,
  required bigint not null,
  completed bigint not null,
  node text collate "C" not null,
  queued bigint,
  "window" bigint,
  first_seq bigint,
  per_entry bigint,
  primary key (run, node)
) with (fillfactor = 70);
`;

const LANGGRAPH = `
create table langgraph_checkpoints (
  checkpoint bigint primary key,
  thread text collate "C" not null,
  namespace text collate "C" not null,
  id text collate "C" not null,
  parent text collate "C",
  body bigint not null,
  metadata bigint not null,
  channels text collate "C" not null,
  unique (thread, namespace, id)
);
create index langgraph_checkpoints_by_thread on langgraph_checkpoints (thread, id);
create index langgraph_checkpoints_by_id on langgraph_checkpoints (id);
create table langgraph_values (
  value bigint primary key,
  thread text collate "C" not null,
  place text collate "C" not null,
  type text collate "C" not null,
  form text collate "C" not null,
  data bytea not null
);
create index langgraph_values_by_place on langgraph_values (thread, place);
create table langgraph_writes (
  thread text collate "C" not null,
  namespace text collate "C" not null,
  id text collate "C" not null,
  task text collate "C" not null,
  position bigint not null,
  channel text collate "C" not null,
  type text collate "C" not null,
  form text collate "C" not null,
  data bytea not null,
  primary key (thread, namespace, id, task, position)
);
`;

/** By table and column: the condition that lets a query about this column use the index for it. */
export const OPT_IN: Readonly<Partial<Record<TableName, Readonly<Record<string, string>>>>> = {
  runs: { definition: 'and t."run" > 0' },
  begun: { until: 'and t."count" >= 0' },
  tags: { tag: 'and t."position" >= 0' },
  run_promises: { name: 'and t."seq" >= 0' },
  memo: { memo: 'and t."seq" >= 0' },
};

const FIRST = [BOOKS, RUNS, QUEUES, SCHEDULES, STREAMS, GRAPHS, FLOWS, LANGGRAPH].join("\n");

const SECOND = "alter table queues add column paused_at bigint;";

const THIRD = `
alter table runs add column lost_turns bigint;
alter table runs add column turn_at bigint;
alter table runs add column error_code text collate "C";
alter table journal add column worker text collate "C";
alter table journal add column execution bigint;
alter table journal add column started_at bigint;
alter table queue add column executions bigint;
alter table queue add column leased_at bigint;
alter table inbox add column worker text collate "C";
alter table inbox add column execution bigint;
alter table inbox add column started_at bigint;
alter table inbox add column took_ms bigint;
create table run_attempts (
  run bigint not null,
  at bigint not null,
  execution bigint not null,
  attempt bigint not null,
  seq bigint not null,
  step text collate "C" not null,
  outcome text collate "C" not null,
  worker text collate "C",
  started_at bigint,
  data bytea,
  primary key (run, step, at, execution)
);
create table run_promises (
  run bigint not null,
  seq bigint not null,
  at bigint not null,
  command text collate "C" not null,
  name text collate "C" not null,
  key text collate "C",
  primary key (run, command)
);
create index run_promises_by_name on run_promises (name, run, command) where seq >= 0;
alter table chunks add column step text collate "C";
alter table chunks add column execution bigint;
alter table chunks add column reset bigint;
create index chunks_by_step on chunks (run, step, stream, position) where step is not null;
create index runs_ended on runs (status, definition, ended_at) where parent is null and ended_at is not null;
alter table langgraph_checkpoints add column stored_at bigint;
alter table once add column data bytea;
`;

const FOURTH = `
create table memo (
  run bigint not null,
  seq bigint not null,
  memo text collate "C" not null,
  value bytea not null,
  by text collate "C" not null,
  primary key (run, seq, memo)
);
create index memo_by_key on memo (memo, run, seq) where seq >= 0;
`;

const FIFTH = `
create table run_log (
  n bigint not null,
  run bigint,
  head bigint,
  rec text collate "C" not null,
  primary key (n)
);
create index run_log_by_run on run_log (run, n) where run is not null;
create table ended_runs (
  run bigint not null,
  at bigint not null,
  head bigint not null,
  adopted bigint not null,
  n bigint,
  primary key (run)
);
create index ended_runs_noted on ended_runs (at, run) where n is null;
`;

const VIEW_DIALECT: ViewDialect = {
  table: (name) => `%2$I.${name}`,
  text: (column) => column,
  time: (column) => `to_timestamp(${column} / 1000.0)`,
};

/** What other tools may read (rows/views.ts), in a schema of its own: a role may be granted that schema without the tables. */
export const VIEW_STATEMENTS: readonly string[] = [
  "create schema if not exists %1$I",
  ...VIEWS.map((name) => `create or replace view %1$I.${name} as ${viewQuery(name, VIEW_DIALECT)}`),
];

// A role that may not create schemas gets none of the views, and everything else works: `reprise views` prints the statements.
const SIXTH = `
do $views$
declare
  home text := current_schema();
begin
${VIEW_STATEMENTS.map((sql) => `  execute format($view$${sql}$view$, home || '_v1', home);`).join("\n")}
exception when insufficient_privilege then
  null;
end $views$;
`;

const SEVENTH = `
create table keyed_answers (
  request text collate "C" not null,
  body text collate "C" not null,
  at bigint not null,
  held_until bigint not null,
  status bigint,
  answer bytea,
  primary key (request)
);
create index keyed_answers_by_age on keyed_answers (at);
`;

const EIGHTH = `
create table run_contents (
  run bigint not null,
  size bigint not null,
  content text collate "C" not null,
  data bytea,
  primary key (run, content)
);
`;

const NINTH = `
alter table runs add column budget bigint;
create table run_budgets (
  budget bigint not null,
  parent bigint,
  closed bigint not null,
  cap_usd bigint,
  cap_tokens bigint,
  cap_calls bigint,
  moved_usd bigint not null,
  moved_tokens bigint not null,
  moved_calls bigint not null,
  spent_usd bigint not null,
  spent_tokens bigint not null,
  spent_calls bigint not null,
  reserved_usd bigint not null,
  reserved_tokens bigint not null,
  reserved_calls bigint not null,
  lost_usd bigint not null,
  lost_tokens bigint not null,
  lost_calls bigint not null,
  owner text collate "C" not null,
  on_reached text collate "C" not null,
  primary key (budget)
);
create table budget_reservations (
  run bigint not null,
  budget bigint not null,
  execution bigint not null,
  state bigint not null,
  item bigint not null,
  usd bigint not null,
  tokens bigint not null,
  calls bigint not null,
  at bigint not null,
  command text collate "C" not null,
  primary key (run, command)
);
create index budget_reservations_waiting on budget_reservations (budget, at, run, command) where state = 1;
`;

/** Migration n is at index n - 1; it runs with the schema as its search path. A published migration is never changed. */
export const MIGRATIONS: readonly string[] = [FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH];

export const SCHEMA_VERSION: number = MIGRATIONS.length;
