// Tables: the schema of a remote store as data, so that loading, inserting, updating and deleting rows is written once per
// database, not once per table. sqlite/schema.ts explains the tables.
//
// Two differences from SQLite: tags have a position, because other databases do not keep rows in insertion order; and numbers
// that SQLite assigns (runs, workers, values of threads) are reserved in blocks from `counters`.

interface Column<T> {
  readonly type: "int" | "text" | "payload";
  readonly nullable: boolean;
  readonly "~value"?: T;
}

const int: Column<number> = { type: "int", nullable: false };
const text: Column<string> = { type: "text", nullable: false };
/** Text in memory, bytes in the database; encoded on the way when the store has a codec. */
const payload: Column<string> = { type: "payload", nullable: false };
const maybeInt: Column<number | null> = { type: "int", nullable: true };
const maybeText: Column<string | null> = { type: "text", nullable: true };
const maybePayload: Column<string | null> = { type: "payload", nullable: true };

/** Columns in the order of the schema; `key` is the primary key, which starts with the run's number if there is one. */
export const TABLES = {
  meta: { key: ["key"], columns: { key: text, value: text } },
  counters: { key: ["name"], columns: { name: text, value: int } },
  writers: { key: ["writer"], columns: { writer: text, batch: int, mark: int } },
  workers: {
    key: ["worker"],
    columns: { worker: int, name: text, until: int, started_at: int, about: maybeText, doing: maybeText },
  },
  runs: {
    key: ["run"],
    columns: {
      run: int,
      id: text,
      generation: int,
      definition: text,
      kind: text,
      version: int,
      status: text,
      parent: maybeInt,
      parent_command: maybeText,
      root: int,
      priority: int,
      head: int,
      chain: text,
      arrivals: int,
      read: int,
      unread: int,
      turn_due: int,
      turn_token: maybeText,
      turn_worker: maybeInt,
      takeovers: int,
      created_at: int,
      ended_at: maybeInt,
      runtime: text,
      evidence: maybePayload,
    },
  },
  tags: { key: ["run", "tag"], columns: { run: int, tag: text, position: int } },
  journal: {
    key: ["run", "seq"],
    columns: { run: int, seq: int, type: text, command: text, data: payload, at: int, mark: int, took_ms: maybeInt },
  },
  queue: {
    key: ["run", "item"],
    columns: {
      run: int,
      item: text,
      kind: text,
      name: text,
      priority: int,
      available_at: int,
      seq: int,
      attempt: int,
      state: int,
      token: maybeText,
      worker: maybeInt,
      takeovers: int,
      failures: maybePayload,
      queue: maybeText,
      key: maybeText,
    },
  },
  inbox: {
    key: ["run", "arrival"],
    columns: { run: int, arrival: int, type: text, target: text, data: payload },
  },
  once: { key: ["run", "target"], columns: { run: int, target: text, at: int } },
  leftovers: { key: ["run"], columns: { run: int } },
  queues: { key: ["name"], columns: { name: text, declared: text, limits: text, paused: int } },
  begun: {
    key: ["kind", "queue", "key", "until"],
    columns: { kind: text, queue: text, key: text, until: int, count: int },
  },
  lanes: { key: ["kind", "queue", "key"], columns: { kind: text, queue: text, key: text, opens_at: int } },
  start_keys: {
    key: ["definition", "kind", "key"],
    columns: { definition: text, kind: text, key: text, id: text },
  },
  schedules: {
    key: ["name"],
    columns: {
      name: text,
      token: text,
      definition: text,
      version: int,
      input: maybePayload,
      cron: maybeText,
      time_zone: maybeText,
      every: maybeInt,
      anchor: maybeInt,
      overlap: text,
      catch_up: text,
      jitter: int,
      paused: int,
      next_at: maybeInt,
      due_at: maybeInt,
      last_at: maybeInt,
      last_run: maybeText,
      line: text,
      created_at: int,
    },
  },
  chunks: {
    key: ["run", "stream", "position"],
    columns: { run: int, stream: text, position: int, data: payload },
  },
  emitted: { key: ["run", "stream"], columns: { run: int, stream: text, count: int } },
  outbox: {
    key: ["line", "run", "seq"],
    columns: {
      line: int,
      run: int,
      seq: int,
      destination: text,
      state: int,
      available_at: int,
      sent_at: int,
      attempt: int,
      token: maybeText,
      worker: maybeInt,
    },
  },
  checkpoints: {
    key: ["run", "step"],
    columns: { run: int, step: int, seq: int, chain: text, key: text, label: maybeText, state: maybePayload },
  },
  forks: { key: ["run"], columns: { run: int, origin: int, step: int } },
  arrivals: {
    key: ["run", "target", "edge", "idx"],
    columns: { run: int, target: text, edge: text, idx: int, kind: int, seq: int },
  },
  readiness: {
    key: ["run", "node"],
    columns: {
      run: int,
      node: text,
      required: int,
      completed: int,
      queued: maybeInt,
      window: maybeInt,
      first_seq: maybeInt,
      per_entry: maybeInt,
    },
  },
  langgraph_checkpoints: {
    key: ["checkpoint"],
    columns: {
      checkpoint: int,
      thread: text,
      namespace: text,
      id: text,
      parent: maybeText,
      body: int,
      metadata: int,
      channels: text,
    },
  },
  langgraph_values: {
    key: ["value"],
    columns: { value: int, thread: text, place: text, type: text, form: text, data: payload },
  },
  langgraph_writes: {
    key: ["thread", "namespace", "id", "task", "position"],
    columns: {
      thread: text,
      namespace: text,
      id: text,
      task: text,
      position: int,
      channel: text,
      type: text,
      form: text,
      data: payload,
    },
  },
} as const satisfies Record<string, TableShape>;

interface TableShape {
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, Column<unknown>>>;
}

export type TableName = keyof typeof TABLES;
type Columns<T extends TableName> = (typeof TABLES)[T]["columns"];
export type ColumnName<T extends TableName> = keyof Columns<T> & string;

/** A row as the rules read it: payloads are text. Only the working set that contains it changes it. */
export type RowOf<T extends TableName> = {
  -readonly [C in ColumnName<T>]: Columns<T>[C] extends Column<infer V extends Value> ? V : never;
};

/** The value of a column. */
export type Value = number | string | null;
/** Any table's row. */
export type AnyRow = Record<string, Value>;

export function keyColumns(table: TableName): readonly string[] {
  return TABLES[table].key;
}

/** All tables but `meta`, which identifies the database: with these empty it is as new. */
export const EMPTIABLE = (Object.keys(TABLES) as TableName[]).filter((table) => table !== "meta");

const OWN: ReadonlySet<string> = new Set<TableName>(["meta", "counters", "writers"]);
/** Tables with the same rows in SQLite; the others SQLite lacks or uses differently. */
export const SHARED = (Object.keys(TABLES) as TableName[]).filter((table) => !OWN.has(table));

const COLUMNS = Object.fromEntries(
  Object.entries(TABLES).map(([table, { columns }]) => [table, Object.keys(columns)]),
) as unknown as Readonly<Record<TableName, readonly string[]>>;

export function columnsOf(table: TableName): readonly string[] {
  return COLUMNS[table];
}

/** One bit per column, in the order of the schema; no table has more than thirty columns. */
const BITS = Object.fromEntries(
  Object.entries(COLUMNS).map(([table, columns]) => [
    table,
    Object.fromEntries(columns.map((name, at) => [name, 1 << at])),
  ]),
) as Readonly<Record<TableName, Readonly<Record<string, number>>>>;

export function bitsOf(table: TableName): Readonly<Record<string, number>> {
  return BITS[table];
}

const KEY_BITS = Object.fromEntries(
  Object.entries(TABLES).map(([table, { key }]) => [
    table,
    key.reduce((bits, column) => bits | BITS[table as TableName][column]!, 0),
  ]),
) as Readonly<Record<TableName, number>>;

export function keyBitsOf(table: TableName): number {
  return KEY_BITS[table];
}

export function columnType(table: TableName, column: string): Column<unknown>["type"] {
  return (TABLES[table].columns as Readonly<Record<string, Column<unknown>>>)[column]!.type;
}
