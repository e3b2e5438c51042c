// Schema: the tables of rows/tables.ts on MySQL and MariaDB, as numbered migrations. sqlite/schema.ts explains the tables.
//
// mysql.M1. Texts are bytes (VARBINARY, LONGBLOB): with every collation of both servers, `run-a` equals `run-a ` (rules.C7).
// mysql.M2. There are no partial indexes: the condition of SQLite's partial index is the first column of the key, followed by all
//   columns that a claim compares or sorts by. `urgency` is the negated priority, because MariaDB has descending indexes only since
//   10.8, and without an index a claim would lock all rows that it sorts.
// mysql.M3. A statement that changes the schema commits implicitly, so a migration may be killed between any two statements. Each
//   statement can be run again, and the schema's version is written last. `add column` and `create index` fail the second time,
//   because MySQL has no `if not exists` for them; `migrate` ignores exactly these errors. So such a statement adds one thing.
// mysql.M4. Every table has the comment `MARK`: a table without it belongs to another program.
//
// Sizes: a name has at most 200 UTF-16 units (600 bytes), an id 255 (765 bytes); names of items and nodes are composed of names. A key
// may have 3,072 bytes, including the primary key at its end: beyond that the servers sort. Texts that are in no key have no limit.

import { BUDGETS } from "./budget-tables.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import { viewQuery, VIEWS, type ViewDialect, type ViewName } from "../rows/views.ts";

/** mysql.M4. The comment of each table. */
export const MARK = "reprise";
export const PREFIX = "reprise_";

const INT = "bigint not null";
const MAYBE_INT = "bigint null";
const KIND = "varbinary(64) not null";
/** Tokens, hashes and generated ids. */
const TOKEN = "varbinary(255) not null";
const MAYBE_TOKEN = "varbinary(255) null";
const NAME = "varbinary(600) not null";
const MAYBE_NAME = "varbinary(600) null";
const ID = "varbinary(765) not null";
const MAYBE_ID = "varbinary(765) null";
/** Items, nodes, targets, edges. */
const PLACE = "varbinary(1100) not null";
const MAYBE_PLACE = "varbinary(1100) null";
/** The route of a node (`MAX_ROUTE_BYTES`). With more bytes, the primary key at the end of the index would not fit. */
const ROUTE = "varbinary(1224) not null";
const LONG = "longblob not null";
const MAYBE_LONG = "longblob null";

const URGENCY = "bigint generated always as (-`priority`) stored";

/** The statuses people search for have a column, so that changes between other statuses update no index. */
const UNHAPPY_COLUMN = `varbinary(64) generated always as (case when \`status\` in ('${UNHAPPY.join("', '")}') then \`status\` end) stored`;

/** Null until a run without a parent ends, so that changes between other statuses update no index. */
const ENDED_STATUS =
  "varbinary(64) generated always as (case when `ended_at` is not null and `parent` is null then `status` end) stored";

// The state of an item, once per index, and null where the index does not need it: a claim updates two indexes instead of five.
// (Insert, claim and delete of one item, CPU time of the server on a busy machine: 139 instead of 198 µs; with nothing but the
// primary key and the worker 88.) translate.ts chooses the column for a condition.
const OPEN_STATE =
  "bigint generated always as (case when `state` = 4 or (`state` = 1 and `queue` is null) or (`state` = 0 and `queue` is null and `kind` = 'task') then `state` end) stored";
const LINED_STATE =
  "bigint generated always as (case when `queue` is not null or `state` in (5, 6) then `state` end) stored";
const DUE_AT = "bigint generated always as (case when `state` = 0 then `available_at` end) stored";

export type Columns = readonly string[];

/** A table that a migration creates. */
interface NewTable {
  readonly name: string;
  readonly columns: Readonly<Record<string, string>>;
  readonly primary: Columns;
  readonly unique?: Readonly<Record<string, Columns>>;
  readonly indexes?: Readonly<Record<string, Columns>>;
}

/** A column that a migration adds at the end of a table. */
interface NewColumn {
  readonly table: string;
  readonly column: string;
  readonly type: string;
}

/** An index that a migration adds to a table. */
interface NewIndex {
  readonly table: string;
  readonly index: string;
  readonly columns: Columns;
}

/** A view that a migration creates, of rows/views.ts. A user without the privilege gets none. */
interface NewView {
  readonly view: ViewName;
}

/** One statement of a migration (mysql.M3). */
export type Step = NewTable | NewColumn | NewIndex | NewView;

const FIRST: readonly Step[] = [
  { name: "meta", columns: { key: NAME, value: LONG }, primary: ["key"] },
  { name: "counters", columns: { name: NAME, value: INT }, primary: ["name"] },
  { name: "writers", columns: { writer: TOKEN, batch: INT, mark: INT }, primary: ["writer"] },
  {
    name: "workers",
    columns: { worker: INT, name: NAME, until: INT, started_at: INT, about: MAYBE_LONG, doing: MAYBE_LONG },
    primary: ["worker"],
  },
  {
    name: "runs",
    columns: {
      run: INT,
      id: ID,
      generation: INT,
      definition: NAME,
      kind: KIND,
      version: INT,
      status: KIND,
      parent: MAYBE_INT,
      parent_command: MAYBE_LONG,
      root: INT,
      priority: INT,
      head: INT,
      chain: TOKEN,
      arrivals: INT,
      read: INT,
      unread: INT,
      turn_due: INT,
      turn_token: MAYBE_TOKEN,
      turn_worker: MAYBE_INT,
      takeovers: INT,
      created_at: INT,
      ended_at: MAYBE_INT,
      runtime: LONG,
      evidence: MAYBE_LONG,
      urgency: URGENCY,
      unhappy: UNHAPPY_COLUMN,
    },
    primary: ["run"],
    unique: { runs_by_id: ["id", "generation"] },
    // Every index ends with the primary key: oldest first among equals.
    indexes: {
      runs_due: ["turn_due", "turn_token", "definition", "version", "urgency"],
      runs_held: ["turn_worker"],
      runs_by_definition: ["definition"],
      runs_unhappy: ["unhappy"],
      runs_by_root: ["root"],
      runs_live: ["ended_at", "definition", "version"],
    },
  },
  {
    name: "tags",
    columns: { run: INT, tag: NAME, position: INT },
    primary: ["run", "tag"],
    indexes: { tags_by_tag: ["tag", "run"] },
  },
  {
    name: "journal",
    columns: {
      run: INT,
      seq: INT,
      type: KIND,
      command: LONG,
      data: LONG,
      at: INT,
      mark: INT,
      took_ms: MAYBE_INT,
    },
    primary: ["run", "seq"],
  },
  {
    name: "queue",
    columns: {
      run: INT,
      item: PLACE,
      kind: KIND,
      name: ROUTE,
      priority: INT,
      available_at: INT,
      seq: INT,
      attempt: INT,
      state: INT,
      token: MAYBE_TOKEN,
      worker: MAYBE_INT,
      takeovers: INT,
      failures: MAYBE_LONG,
      queue: MAYBE_NAME,
      key: MAYBE_NAME,
      urgency: URGENCY,
      open_state: OPEN_STATE,
      lined_state: LINED_STATE,
      due_at: DUE_AT,
    },
    primary: ["run", "item"],
    // Of two that serve alike the first is taken.
    indexes: {
      queue_leased: ["worker"],
      queue_open: ["open_state", "name", "urgency", "available_at"],
      queue_lined: ["lined_state", "kind", "queue", "name", "urgency", "available_at"],
      // Also counts what is busy.
      queue_parked: ["lined_state", "kind", "queue", "key", "urgency", "available_at"],
      queue_delayed: ["due_at"],
    },
  },
  {
    name: "inbox",
    columns: { run: INT, arrival: INT, type: KIND, target: LONG, data: LONG },
    primary: ["run", "arrival"],
  },
  {
    name: "once",
    columns: { run: INT, target: PLACE, at: INT },
    primary: ["run", "target"],
    indexes: { once_by_time: ["at"] },
  },
  { name: "leftovers", columns: { run: INT }, primary: ["run"] },
  { name: "queues", columns: { name: NAME, declared: LONG, limits: LONG, paused: INT }, primary: ["name"] },
  {
    name: "begun",
    columns: { kind: KIND, queue: NAME, key: NAME, until: INT, count: INT },
    primary: ["kind", "queue", "key", "until"],
    indexes: { begun_until: ["until"] },
  },
  {
    name: "lanes",
    columns: { kind: KIND, queue: NAME, key: NAME, opens_at: INT },
    primary: ["kind", "queue", "key"],
    indexes: { lanes_opening: ["opens_at"] },
  },
  {
    name: "start_keys",
    columns: { definition: NAME, kind: KIND, key: NAME, id: ID },
    primary: ["definition", "kind", "key"],
  },
  {
    name: "schedules",
    columns: {
      name: NAME,
      token: TOKEN,
      definition: NAME,
      version: INT,
      input: MAYBE_LONG,
      cron: MAYBE_LONG,
      time_zone: MAYBE_LONG,
      every: MAYBE_INT,
      anchor: MAYBE_INT,
      overlap: KIND,
      catch_up: KIND,
      jitter: INT,
      paused: INT,
      next_at: MAYBE_INT,
      due_at: MAYBE_INT,
      last_at: MAYBE_INT,
      last_run: MAYBE_ID,
      line: LONG,
      created_at: INT,
    },
    primary: ["name"],
    indexes: { schedules_due: ["definition", "due_at"] },
  },
  {
    name: "chunks",
    columns: { run: INT, stream: PLACE, position: INT, data: LONG },
    primary: ["run", "stream", "position"],
  },
  { name: "emitted", columns: { run: INT, stream: PLACE, count: INT }, primary: ["run", "stream"] },
  {
    name: "outbox",
    columns: {
      line: INT,
      run: INT,
      seq: INT,
      destination: NAME,
      state: INT,
      available_at: INT,
      sent_at: INT,
      attempt: INT,
      token: MAYBE_TOKEN,
      worker: MAYBE_INT,
    },
    primary: ["line", "run", "seq"],
    indexes: { outbox_next: ["state", "destination", "available_at"], outbox_leased: ["worker"] },
  },
  {
    name: "checkpoints",
    columns: { run: INT, step: INT, seq: INT, chain: TOKEN, key: TOKEN, label: MAYBE_NAME, state: MAYBE_LONG },
    primary: ["run", "step"],
    unique: { checkpoints_key: ["key"] },
    indexes: { checkpoints_label: ["run", "label", "step"] },
  },
  {
    name: "forks",
    columns: { run: INT, origin: INT, step: INT },
    primary: ["run"],
    indexes: { forks_by_origin: ["origin"] },
  },
  {
    name: "arrivals",
    columns: { run: INT, target: PLACE, edge: PLACE, idx: INT, kind: INT, seq: INT },
    primary: ["run", "target", "edge", "idx"],
  },
  {
    name: "readiness",
    columns: {
      run: INT,
      node: PLACE,
      required: INT,
      completed: INT,
      queued: MAYBE_INT,
      window: MAYBE_INT,
      first_seq: MAYBE_INT,
      per_entry: MAYBE_INT,
    },
    primary: ["run", "node"],
  },
  {
    name: "langgraph_checkpoints",
    columns: {
      checkpoint: INT,
      thread: ID,
      namespace: PLACE,
      id: TOKEN,
      parent: MAYBE_TOKEN,
      body: INT,
      metadata: INT,
      channels: LONG,
    },
    primary: ["checkpoint"],
    unique: { langgraph_checkpoints_key: ["thread", "namespace", "id"] },
    indexes: { langgraph_checkpoints_by_thread: ["thread", "id"], langgraph_checkpoints_by_id: ["id"] },
  },
  {
    name: "langgraph_values",
    // A place has a namespace, a channel and a version in it.
    columns: { value: INT, thread: ID, place: "varbinary(2300) not null", type: LONG, form: KIND, data: LONG },
    primary: ["value"],
    indexes: { langgraph_values_by_place: ["thread", "place"] },
  },
  {
    name: "langgraph_writes",
    columns: {
      thread: ID,
      namespace: PLACE,
      id: TOKEN,
      task: TOKEN,
      position: INT,
      channel: LONG,
      type: LONG,
      form: KIND,
      data: LONG,
    },
    primary: ["thread", "namespace", "id", "task", "position"],
  },
];

const SECOND: readonly Step[] = [{ table: "queues", column: "paused_at", type: MAYBE_INT }];

const THIRD: readonly Step[] = [
  { table: "runs", column: "lost_turns", type: MAYBE_INT },
  { table: "runs", column: "turn_at", type: MAYBE_INT },
  { table: "runs", column: "error_code", type: MAYBE_NAME },
  { table: "journal", column: "worker", type: MAYBE_NAME },
  { table: "journal", column: "execution", type: MAYBE_INT },
  { table: "journal", column: "started_at", type: MAYBE_INT },
  { table: "queue", column: "executions", type: MAYBE_INT },
  { table: "queue", column: "leased_at", type: MAYBE_INT },
  { table: "inbox", column: "worker", type: MAYBE_NAME },
  { table: "inbox", column: "execution", type: MAYBE_INT },
  { table: "inbox", column: "started_at", type: MAYBE_INT },
  { table: "inbox", column: "took_ms", type: MAYBE_INT },
  {
    name: "run_attempts",
    columns: {
      run: INT,
      step: PLACE,
      at: INT,
      execution: INT,
      attempt: INT,
      seq: INT,
      outcome: KIND,
      worker: MAYBE_NAME,
      started_at: MAYBE_INT,
      data: MAYBE_LONG,
    },
    primary: ["run", "step", "at", "execution"],
  },
  {
    name: "run_promises",
    columns: { run: INT, command: PLACE, name: NAME, key: MAYBE_ID, seq: INT, at: INT },
    primary: ["run", "command"],
    indexes: { run_promises_by_name: ["name", "run"] },
  },
  { table: "chunks", column: "step", type: MAYBE_PLACE },
  { table: "chunks", column: "execution", type: MAYBE_INT },
  { table: "chunks", column: "reset", type: MAYBE_INT },
  { table: "chunks", index: "chunks_by_step", columns: ["run", "step", "stream", "position"] },
  { table: "runs", column: "ended_status", type: ENDED_STATUS },
  { table: "runs", index: "runs_ended", columns: ["ended_status", "definition", "ended_at"] },
  { table: "langgraph_checkpoints", column: "stored_at", type: MAYBE_INT },
  { table: "once", column: "data", type: MAYBE_LONG },
];

const FOURTH: readonly Step[] = [
  {
    name: "memo",
    columns: { run: INT, seq: INT, memo: KIND, value: LONG, by: LONG },
    primary: ["run", "seq", "memo"],
    indexes: { memo_by_key: ["memo", "run", "seq"] },
  },
];

const FIFTH: readonly Step[] = [
  {
    name: "run_log",
    columns: { n: INT, rec: LONG, run: MAYBE_INT, head: MAYBE_INT },
    primary: ["n"],
    indexes: { run_log_by_run: ["run"] },
  },
  {
    name: "ended_runs",
    columns: { run: INT, at: INT, head: INT, adopted: INT, n: MAYBE_INT },
    primary: ["run"],
    indexes: { ended_runs_noted: ["n", "at"] },
  },
];

const VIEW_DIALECT: ViewDialect = {
  table: (name) => `\`${PREFIX}${name}\``,
  // mysql.M1
  text: (column) => `convert(${column} using utf8mb4)`,
  // Not `from_unixtime`: its result depends on the time zone of the connection.
  time: (column) => `timestampadd(microsecond, ${column} * 1000, timestamp '1970-01-01 00:00:00')`,
};

const SIXTH: readonly Step[] = VIEWS.map((view) => ({ view }));

const SEVENTH: readonly Step[] = [
  {
    name: "keyed_answers",
    columns: { request: KIND, body: KIND, at: INT, held_until: INT, status: MAYBE_INT, answer: MAYBE_LONG },
    primary: ["request"],
    indexes: { keyed_answers_by_age: ["at"] },
  },
];

const EIGHTH: readonly Step[] = [
  {
    name: "run_contents",
    columns: { run: INT, content: KIND, size: INT, data: MAYBE_LONG },
    primary: ["run", "content"],
  },
];

function quoted(names: Columns): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

function create({ name, columns, primary, unique = {}, indexes = {} }: NewTable): string {
  const parts = [
    ...Object.entries(columns).map(([column, type]) => `\`${column}\` ${type}`),
    `primary key (${quoted(primary)})`,
    ...Object.entries(unique).map(([index, parts]) => `unique key \`${index}\` (${quoted(parts)})`),
    ...Object.entries(indexes).map(([index, parts]) => `key \`${index}\` (${quoted(parts)})`),
  ];
  // mysql.M3
  return `create table if not exists \`${PREFIX}${name}\` (
  ${parts.join(",\n  ")}
) engine=InnoDB row_format=dynamic default charset=binary comment='${MARK}'`;
}

function statementOf(step: Step): string {
  if ("name" in step) return create(step);
  if ("view" in step)
    return `create or replace view \`${PREFIX}v1_${step.view}\` as ${viewQuery(step.view, VIEW_DIALECT)}`;
  const table = `\`${PREFIX}${step.table}\``;
  if ("column" in step) return `alter table ${table} add column \`${step.column}\` ${step.type}`;
  return `create index \`${step.index}\` on ${table} (${quoted(step.columns)})`;
}

/** Migration n is at index n - 1. A published migration is never changed; a change is a new one. */
export const STEPS: readonly (readonly Step[])[] = [
  ...[FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, BUDGETS],
];

export const MIGRATIONS: readonly (readonly string[])[] = STEPS.map((steps) => steps.map(statementOf));

/** What other tools may read (rows/views.ts), one statement per view. */
export const VIEW_STATEMENTS: readonly string[] = SIXTH.map(statementOf);

export const SCHEMA_VERSION: number = MIGRATIONS.length;
