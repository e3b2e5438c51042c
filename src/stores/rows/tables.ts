// Tables: the schema of every store as data: the columns with their types, the primary keys, the payloads. Statements for all
// databases are made from it. sqlite/schema.ts explains the tables; indexes.ts has their indexes.
//
// tables.T1. The schemas of all databases match this description (test/stores/schemas.test.ts).
//
// SQLite differs in two ways: it has no column `tags.position`, because its rowid has the same order; and it has no `counters`,
// because one process writes at a time.

import type { ContentUse } from "../contents/content-batch.ts";
import type {
  AttemptOutcome,
  CatchUp,
  EntryType,
  OutboxState,
  Overlap,
  QueueItemState,
  ReservationState,
  RunRecord,
  RunStatus,
  TurnDue,
} from "../../kernel/index.ts";

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
/** A text of a known set. */
const textOf = <T extends string>(): Column<T> => ({ type: "text", nullable: false });
/** A number of a known set. */
const intOf = <T extends number>(): Column<T> => ({ type: "int", nullable: false });

/** What holds a slot of a queue: a task, or a run from its start to its end. */
export type SlotKind = "task" | "start";
/** A node of a flow has kind `task` and its route as name: it is claimed as a task is. */
export type ItemKind = SlotKind | "timer";

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
      kind: textOf<RunRecord["kind"]>(),
      version: int,
      status: textOf<RunStatus>(),
      parent: maybeInt,
      parent_command: maybeText,
      root: int,
      priority: int,
      head: int,
      chain: text,
      arrivals: int,
      read: int,
      unread: int,
      turn_due: intOf<TurnDue>(),
      turn_token: maybeText,
      turn_worker: maybeInt,
      takeovers: int,
      created_at: int,
      ended_at: maybeInt,
      runtime: text,
      evidence: maybePayload,
      lost_turns: maybeInt,
      turn_at: maybeInt,
      error_code: maybeText,
      budget: maybeInt,
    },
  },
  tags: { key: ["run", "tag"], columns: { run: int, tag: text, position: int } },
  journal: {
    key: ["run", "seq"],
    columns: {
      run: int,
      seq: int,
      type: textOf<EntryType>(),
      command: text,
      data: payload,
      at: int,
      mark: int,
      took_ms: maybeInt,
      worker: maybeText,
      execution: maybeInt,
      started_at: maybeInt,
    },
  },
  queue: {
    key: ["run", "item"],
    columns: {
      run: int,
      item: text,
      kind: textOf<ItemKind>(),
      name: text,
      priority: int,
      available_at: int,
      seq: int,
      attempt: int,
      state: intOf<QueueItemState>(),
      token: maybeText,
      worker: maybeInt,
      takeovers: int,
      failures: maybePayload,
      queue: maybeText,
      key: maybeText,
      executions: maybeInt,
      leased_at: maybeInt,
    },
  },
  inbox: {
    key: ["run", "arrival"],
    columns: {
      run: int,
      arrival: int,
      type: textOf<EntryType>(),
      target: text,
      data: payload,
      worker: maybeText,
      execution: maybeInt,
      started_at: maybeInt,
      took_ms: maybeInt,
    },
  },
  run_attempts: {
    key: ["run", "step", "at", "execution"],
    columns: {
      run: int,
      step: text,
      at: int,
      execution: int,
      attempt: int,
      seq: int,
      outcome: textOf<AttemptOutcome>(),
      worker: maybeText,
      started_at: maybeInt,
      data: maybePayload,
    },
  },
  run_promises: {
    key: ["run", "command"],
    columns: { run: int, command: text, name: text, key: maybeText, seq: int, at: int },
  },
  run_budgets: {
    key: ["budget"],
    columns: {
      budget: int,
      owner: text,
      parent: maybeInt,
      on_reached: textOf<"ask" | "fail">(),
      closed: int,
      cap_usd: maybeInt,
      cap_tokens: maybeInt,
      cap_calls: maybeInt,
      moved_usd: int,
      moved_tokens: int,
      moved_calls: int,
      spent_usd: int,
      spent_tokens: int,
      spent_calls: int,
      reserved_usd: int,
      reserved_tokens: int,
      reserved_calls: int,
      lost_usd: int,
      lost_tokens: int,
      lost_calls: int,
    },
  },
  budget_reservations: {
    key: ["run", "command"],
    columns: {
      run: int,
      command: text,
      budget: int,
      execution: int,
      state: intOf<ReservationState>(),
      item: int,
      usd: int,
      tokens: int,
      calls: int,
      at: int,
    },
  },
  memo: {
    key: ["run", "seq", "memo"],
    columns: { run: int, seq: int, memo: text, value: payload, by: text },
  },
  run_log: { key: ["n"], columns: { n: int, rec: text, run: maybeInt, head: maybeInt } },
  ended_runs: { key: ["run"], columns: { run: int, at: int, head: int, adopted: int, n: maybeInt } },
  once: { key: ["run", "target"], columns: { run: int, target: text, at: int, data: maybePayload } },
  leftovers: { key: ["run"], columns: { run: int } },
  queues: {
    key: ["name"],
    columns: { name: text, declared: text, limits: text, paused: int, paused_at: maybeInt },
  },
  begun: {
    key: ["kind", "queue", "key", "until"],
    // Of kind `slots`: the slots that a worker has leased (rules/leased-slots.ts).
    columns: { kind: textOf<SlotKind | "slots">(), queue: text, key: text, until: int, count: int },
  },
  lanes: {
    key: ["kind", "queue", "key"],
    columns: { kind: textOf<SlotKind>(), queue: text, key: text, opens_at: int },
  },
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
      overlap: textOf<Overlap>(),
      catch_up: textOf<CatchUp>(),
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
    columns: {
      run: int,
      stream: text,
      position: int,
      data: payload,
      step: maybeText,
      execution: maybeInt,
      reset: maybeInt,
    },
  },
  emitted: { key: ["run", "stream"], columns: { run: int, stream: text, count: int } },
  outbox: {
    key: ["line", "run", "seq"],
    columns: {
      line: int,
      run: int,
      seq: int,
      destination: text,
      state: intOf<OutboxState>(),
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
  run_contents: {
    key: ["run", "content"],
    columns: { run: int, content: text, size: int, data: maybePayload },
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
  keyed_answers: {
    key: ["request"],
    columns: { request: text, body: text, at: int, held_until: int, status: maybeInt, answer: maybePayload },
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
      stored_at: maybeInt,
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

/** A table whose rows belong to a run: its key starts with the run's number. */
export type RunTable = { [T in TableName]: (typeof TABLES)[T]["key"][0] extends "run" ? T : never }[TableName];

export const RUN_TABLES = (Object.keys(TABLES) as TableName[]).filter(
  (table): table is RunTable => keyColumns(table)[0] === "run",
);

/** All tables but `meta`, which identifies the database: with these empty it is as new, but federated if it was. */
export const EMPTIABLE = (Object.keys(TABLES) as TableName[]).filter((table) => table !== "meta");

const OWN: ReadonlySet<string> = new Set<TableName>(["meta", "counters", "writers"]);
/** Tables with the same rows in SQLite; the others SQLite lacks or uses differently. */
export const SHARED = (Object.keys(TABLES) as TableName[]).filter((table) => !OWN.has(table));

const COLUMNS = Object.fromEntries(
  Object.entries(TABLES).map(([table, { columns }]) => [table, Object.keys(columns)]),
) as unknown as Readonly<Record<TableName, readonly string[]>>;

export function columnsOf<T extends TableName>(table: T): readonly ColumnName<T>[] {
  return COLUMNS[table] as readonly ColumnName<T>[];
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

/**
 * How the codec knows a payload: its field, the number of its run (0 for a table without runs), and where its row is. None of it
 * ever changes: the codec authenticates it with every payload.
 */
export interface PayloadPlace {
  readonly column: string;
  readonly field: string;
  /**
   * The columns that say where the row is in its run, or in the store: one as text, or several. None: "0". A column that is not in
   * the key is set only together with the payload.
   */
  readonly place: readonly string[];
  /** How several columns become one text: joined by "/", or as a JSON list. */
  readonly form?: "path" | "json";
  /** What is stored apart from the row (../contents/run-contents.ts); undefined: nothing. Only in tables whose key starts with the run. */
  readonly contents?: ContentUse;
}

/** No table has more than one payload column. */
export const PAYLOADS: Partial<Record<TableName, PayloadPlace>> = {
  journal: { column: "data", field: "journal", place: ["seq"], contents: "shared" },
  run_contents: { column: "data", field: "content", place: ["content"] },
  inbox: { column: "data", field: "inbox", place: ["arrival"], contents: "large" },
  once: { column: "data", field: "settled", place: ["target"], contents: "large" },
  queue: { column: "failures", field: "failures", place: ["item"] },
  run_attempts: {
    column: "data",
    field: "attempt",
    place: ["step", "at", "execution"],
    form: "json",
    contents: "large",
  },
  memo: { column: "value", field: "memo", place: ["seq", "memo"], form: "path", contents: "large" },
  chunks: { column: "data", field: "chunk", place: ["stream", "position"], form: "path", contents: "large" },
  runs: { column: "evidence", field: "evidence", place: [] },
  checkpoints: { column: "state", field: "checkpoint", place: ["step"], contents: "shared" },
  schedules: { column: "input", field: "schedule", place: ["name"] },
  keyed_answers: { column: "answer", field: "answer", place: ["request"] },
  langgraph_values: { column: "data", field: "langgraph", place: ["value", "thread", "place"], form: "json" },
  langgraph_writes: {
    column: "data",
    field: "langgraph_write",
    place: ["thread", "namespace", "id", "task", "position", "channel"],
    form: "json",
  },
};

/** A row never changes, and its key says what it holds: inserting a row that exists has no effect. */
export const INSERTED_ONCE: ReadonlySet<TableName> = new Set<TableName>(["run_contents"]);

export function isNullable(table: TableName, column: string): boolean {
  return (TABLES[table].columns as Readonly<Record<string, Column<unknown>>>)[column]!.nullable;
}

export function columnType(table: TableName, column: string): Column<unknown>["type"] {
  return (TABLES[table].columns as Readonly<Record<string, Column<unknown>>>)[column]!.type;
}
