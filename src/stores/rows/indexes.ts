// Indexes: the paths by which rows are found, besides the primary keys (tables.ts).
//
// indexes.X1. Rows of an index come in the order of its columns; "-" means descending. The order of rows that are equal in all
//   columns is not defined. The key is listed where every database has it at the end of the index.
// indexes.X2. The schemas of SQLite and PostgreSQL have every index under its name. MySQL has no partial indexes: an index there
//   serves several of these (mysql/schema.ts).

import { OutboxState, QueueItemState, ReservationState, TurnDue, type RunStatus } from "../../kernel/index.ts";
import { TABLES, type AnyRow, type ColumnName, type RowOf, type TableName, type Value } from "./tables.ts";

/** A test of one column: a value that it equals, or a comparison. Null equals null. */
export type Test<V = Value> =
  | V
  | { readonly not: V | null }
  | { readonly in: readonly V[] }
  | { readonly above: V }
  | { readonly least: V }
  | { readonly most: V }
  | { readonly least: V; readonly most: V }
  | { readonly contains: string };

/** Tests of columns; a row must pass all of them. */
export type Filter<T extends TableName> = { readonly [C in ColumnName<T>]?: Test<RowOf<T>[C]> };

/** Any table's filter. */
export type AnyFilter = Readonly<Record<string, Test>>;

interface IndexOptions {
  readonly unique?: true;
  /** Claims select from it: they skip rows that another transaction has locked. */
  readonly claimed?: true;
  /** Sweeps select from it: any transaction may delete these rows, and skips those that another one deletes. */
  readonly swept?: true;
}

interface Index<T extends TableName> extends IndexOptions {
  readonly table: T;
  readonly columns: readonly string[];
  readonly where?: AnyFilter;
  readonly apart?: readonly [string, string];
}

interface NewIndex<T extends TableName> extends IndexOptions {
  readonly columns: readonly (ColumnName<T> | `-${ColumnName<T>}`)[];
  /** The rows that the index contains. */
  readonly where?: Filter<T>;
  /**
   * The index has only rows that differ in these two columns: SQLite's index omits the others, remote stores filter them. It is
   * read below a prefix, and not counted.
   */
  readonly apart?: readonly [ColumnName<T>, ColumnName<T>];
}

function index<T extends TableName>(table: T, shape: NewIndex<T>): Index<T> {
  return { table, ...shape } as Index<T>;
}

const IS_SET = { not: null } as const;

/** The statuses people search for. */
export const UNHAPPY: readonly RunStatus[] = ["paused", "blocked", "determinism_violation", "failed"];

export const INDEXES = {
  runs_by_id: index("runs", { columns: ["id", "generation"], unique: true }),
  runs_due: index("runs", {
    columns: ["definition", "version", "-priority", "run"],
    where: { turn_due: TurnDue.yes, turn_token: null },
    claimed: true,
  }),
  runs_suspect: index("runs", {
    columns: ["definition", "version"],
    where: { turn_due: TurnDue.suspect, turn_token: null },
    claimed: true,
  }),
  runs_held: index("runs", { columns: ["turn_worker", "run"], where: { turn_worker: IS_SET } }),
  runs_by_definition: index("runs", { columns: ["definition", "run"] }),
  runs_unhappy: index("runs", { columns: ["status", "run"], where: { status: { in: UNHAPPY } } }),
  runs_by_root: index("runs", { columns: ["root", "run"], apart: ["root", "run"] }),
  runs_live: index("runs", { columns: ["definition", "version", "run"], where: { ended_at: null } }),
  runs_ended: index("runs", {
    columns: ["status", "definition", "ended_at"],
    where: { parent: null, ended_at: IS_SET },
  }),
  tags_by_tag: index("tags", { columns: ["tag", "run"] }),
  queue_ready: index("queue", {
    columns: ["name", "-priority", "available_at", "run", "item"],
    where: { state: QueueItemState.ready, queue: null },
    claimed: true,
  }),
  queue_lined: index("queue", {
    columns: ["kind", "queue", "name", "-priority", "available_at", "run", "item"],
    where: { state: QueueItemState.ready, queue: IS_SET },
    claimed: true,
  }),
  queue_parked: index("queue", {
    columns: ["kind", "queue", "key", "-priority", "available_at", "run", "item"],
    where: { state: QueueItemState.parked },
  }),
  queue_busy: index("queue", {
    columns: ["kind", "queue", "key"],
    where: { state: { in: [QueueItemState.leased, QueueItemState.admitted] }, queue: IS_SET },
  }),
  queue_suspect: index("queue", { columns: ["name"], where: { state: QueueItemState.suspect }, claimed: true }),
  queue_delayed: index("queue", {
    columns: ["available_at", "run", "item"],
    where: { state: QueueItemState.delayed },
  }),
  queue_leased: index("queue", { columns: ["worker", "run", "item"], where: { state: QueueItemState.leased } }),
  queue_later: index("queue", {
    columns: ["queue", "kind"],
    where: { state: QueueItemState.delayed, kind: { not: "timer" } },
  }),
  run_promises_by_name: index("run_promises", { columns: ["name", "run", "command"] }),
  budget_reservations_waiting: index("budget_reservations", {
    columns: ["budget", "at", "run", "command"],
    where: { state: ReservationState.waiting },
  }),
  memo_by_key: index("memo", { columns: ["memo", "run", "seq"] }),
  run_log_by_run: index("run_log", { columns: ["run", "n"], where: { run: IS_SET } }),
  ended_runs_noted: index("ended_runs", { columns: ["at", "run"], where: { n: null } }),
  chunks_by_step: index("chunks", { columns: ["run", "step", "stream", "position"], where: { step: IS_SET } }),
  once_by_time: index("once", { columns: ["at"], where: { at: { above: 0 } }, swept: true }),
  keyed_answers_by_age: index("keyed_answers", { columns: ["at"], swept: true }),
  begun_until: index("begun", { columns: ["until"], swept: true }),
  lanes_opening: index("lanes", { columns: ["opens_at"] }),
  schedules_due: index("schedules", { columns: ["definition", "due_at"], where: { due_at: IS_SET } }),
  schedules_in_line: index("schedules", { columns: ["definition"], where: { line: { not: "[]" }, paused: 0 } }),
  outbox_next: index("outbox", {
    columns: ["destination", "available_at", "line", "run", "seq"],
    where: { state: OutboxState.next },
    claimed: true,
  }),
  outbox_leased: index("outbox", { columns: ["worker", "line", "run", "seq"], where: { state: OutboxState.leased } }),
  checkpoints_key: index("checkpoints", { columns: ["key"], unique: true }),
  checkpoints_label: index("checkpoints", { columns: ["run", "label", "step"], where: { label: IS_SET } }),
  checkpoints_whole: index("checkpoints", { columns: ["run", "step"], where: { state: IS_SET } }),
  forks_by_origin: index("forks", { columns: ["origin", "run"] }),
  langgraph_checkpoints_key: index("langgraph_checkpoints", { columns: ["thread", "namespace", "id"], unique: true }),
  langgraph_checkpoints_by_thread: index("langgraph_checkpoints", { columns: ["thread", "id", "checkpoint"] }),
  langgraph_checkpoints_by_id: index("langgraph_checkpoints", { columns: ["id", "checkpoint"] }),
  langgraph_values_by_place: index("langgraph_values", { columns: ["thread", "place", "value"] }),
} satisfies Record<string, Index<TableName>>;

export type IndexName = keyof typeof INDEXES;
/** An index, or a table for its primary key. */
export type Path = IndexName | TableName;
export type TableOf<P extends Path> = P extends IndexName
  ? (typeof INDEXES)[P]["table"]
  : P extends TableName
    ? P
    : never;

/** A path with everything that a store has to know about it. */
export interface PathInfo {
  readonly name: Path;
  readonly table: TableName;
  readonly columns: readonly { readonly name: string; readonly isDescending: boolean }[];
  readonly where: AnyFilter | undefined;
  readonly isPrimary: boolean;
  /** No two rows have the same values in its columns. */
  readonly isUnique: boolean;
  readonly isClaimed: boolean;
  readonly isSwept: boolean;
  readonly apart: readonly [string, string] | undefined;
}

/** Rows that no claim locks and any transaction may delete: the primary keys that sweeps walk. */
const SWEPT_TABLES: ReadonlySet<string> = new Set<TableName>(["leftovers"]);

function infoOf(name: Path): PathInfo {
  const found = (INDEXES as Readonly<Record<string, Index<TableName> | undefined>>)[name];
  const table = (found?.table ?? name) as TableName;
  const columns: readonly string[] = found?.columns ?? TABLES[table].key;
  return {
    name,
    table,
    columns: columns.map((column) => ({ name: column.replace("-", ""), isDescending: column.startsWith("-") })),
    where: found?.where,
    isPrimary: found === undefined,
    isUnique: found === undefined || found.unique === true,
    isClaimed: found?.claimed === true,
    isSwept: found === undefined ? SWEPT_TABLES.has(table) : found.swept === true,
    apart: found?.apart,
  };
}

const PATHS = Object.fromEntries(
  [...Object.keys(TABLES), ...Object.keys(INDEXES)].map((name) => [name, infoOf(name as Path)]),
) as Readonly<Record<Path, PathInfo>>;

export function pathInfo(path: Path): PathInfo {
  return PATHS[path];
}

/** Whether a row passes a test; comparisons are never true for null. */
export function passes(value: Value, test: Test, compare: (a: Value, b: Value) => number): boolean {
  if (typeof test !== "object" || test === null) return value === test;
  if ("not" in test) return value !== test.not && (test.not === null || value !== null);
  if ("in" in test) return test.in.includes(value);
  if (value === null) return false;
  if ("above" in test) return compare(value, test.above) > 0;
  if ("contains" in test) return String(value).includes(test.contains);
  if ("least" in test && compare(value, test.least) < 0) return false;
  return !("most" in test) || compare(value, test.most) <= 0;
}

/** Whether the index does not contain the row (`apart`). */
export function isOutside({ apart }: PathInfo, row: AnyRow): boolean {
  return apart !== undefined && row[apart[0]] === row[apart[1]];
}
