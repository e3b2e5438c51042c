// WorkingSet: the rows of one transaction, in memory. The rules speak to it in words (words.ts) as they speak to SQLite.
//
// W1. Nothing is guessed: whoever asks for what was not loaded gets a `Miss` with the question that would load it, or for
//     rows somebody assumed, a commit that checks them.
// W2. An answer is what the database said, with everything changed here applied: the same as if each change had been written
//     at once.
// W3. `reset` forgets every change and keeps what was loaded: the whole list is applied anew after a miss.
// W4. `changes` are net: a row that was inserted and removed again is not among them, one that was changed ten times once.

import { invariant } from "../../base/index.ts";
import type { Answer, Change } from "./backend.ts";
import { compareValues, matches } from "./evaluate.ts";
import type { Count, Distinct, Lock, Lookup, Question, Select } from "./query.ts";
import {
  columnsOf,
  keyColumns,
  TABLES,
  type AnyRow,
  type ColumnName,
  type RowOf,
  type TableName,
  type Value,
} from "./tables.ts";

/** W1. Not a failure: the runner loads what is asked for. */
export class Miss extends Error {
  readonly question: Question;
  constructor(question: Question) {
    super("not loaded");
    this.question = question;
  }
}

interface Held {
  readonly table: Table;
  /** As the database has it; undefined when it has no such row. */
  base: AnyRow | undefined;
  /** As it is here. A copy, once it was changed. */
  row: AnyRow | undefined;
  /** Columns that were set; undefined while none was. */
  dirty: Set<string> | undefined;
  /** Not loaded but remembered: the commit checks `EXPECTED`. */
  assumed: boolean;
  /** Somebody looked at it, or changed it. */
  used: boolean;
  /** Undefined when the database has said whether there is such a row; else where it stands until somebody asks. */
  unasked: string | undefined;
}

/** What is remembered of a selection that was loaded. */
interface Known {
  readonly limit: number;
  readonly rows: readonly Held[];
  /** Fewer came than were asked for: there are no others. */
  readonly isWhole: boolean;
}

/** Columns that rows are found by besides their key. Never changed while a row exists. */
const FOUND_BY: Partial<Record<TableName, readonly string[]>> = { runs: ["id"], checkpoints: ["key"] };

/** What of an assumed row others may change, and whoever changes anything else changes too. */
const EXPECTED: Partial<Record<TableName, readonly [string, ...string[]]>> = {
  runs: ["head", "turn_token", "arrivals", "status"],
  queue: ["token"],
};

class Table {
  readonly name: TableName;
  readonly rows = new Map<string, Held>();
  readonly indexes = new Map<string, Map<Value, Set<Held>>>();
  /** Lookups by other columns than the key, and runs all of whose rows are here. */
  readonly asked = new Set<string>();
  readonly selected = new Map<string, Known>();
  readonly counted = new Map<string, Answer>();

  constructor(name: TableName) {
    this.name = name;
    const { key, columns } = TABLES[name];
    if ("run" in columns && (key as readonly string[]).length > 1) this.indexes.set("run", new Map());
    for (const column of FOUND_BY[name] ?? []) this.indexes.set(column, new Map());
  }

  hold(held: Held, row: AnyRow): void {
    for (const [column, index] of this.indexes) {
      const value = row[column]!;
      const set = index.get(value);
      if (set === undefined) index.set(value, new Set([held]));
      else set.add(held);
    }
  }
}

export class WorkingSet {
  readonly #tables = new Map<TableName, Table>();
  #touched: Held[] = [];

  // ── asking ──

  /** By primary key. */
  get<T extends TableName>(table: T, lock: Lock, ...key: readonly Value[]): RowOf<T> | undefined {
    const held = this.#table(table).rows.get(keyText(key));
    if (held !== undefined) {
      this.#use(held);
      return held.row as RowOf<T> | undefined;
    }
    if (this.#isWhole(table, key)) return undefined;
    throw new Miss({ ask: "lookup", table, columns: keyColumns(table), keys: [key], lock });
  }

  /** Misses for all of them at once, instead of one by one. */
  need<T extends TableName>(table: T, lock: Lock, keys: readonly (readonly Value[])[]): void {
    const { rows } = this.#table(table);
    const missing = keys.filter((key) => !rows.has(keyText(key)) && !this.#isWhole(table, key));
    if (missing.length > 0) throw new Miss({ ask: "lookup", table, columns: keyColumns(table), keys: missing, lock });
  }

  /** All rows with this value, of a column that rows are found by. */
  find<T extends TableName>(table: T, column: ColumnName<T>, value: Value, lock: Lock): RowOf<T>[] {
    const { asked, indexes } = this.#table(table);
    if (!asked.has(lookupText(column, value)))
      throw new Miss({ ask: "lookup", table, columns: [column], keys: [[value]], lock });
    const index = indexes.get(column);
    invariant(index !== undefined, "rows are looked up by a column that is not indexed", { table, column });
    return this.#alive<T>(index.get(value) ?? []);
  }

  /** As `need`, by another column. */
  needFound<T extends TableName>(table: T, column: ColumnName<T>, values: readonly Value[], lock: Lock): void {
    const { asked } = this.#table(table);
    const keys = values.filter((value) => !asked.has(lookupText(column, value))).map((value) => [value]);
    if (keys.length > 0) throw new Miss({ ask: "lookup", table, columns: [column], keys, lock });
  }

  /** In the order asked for; without one, in any. */
  select<T extends TableName>(question: Select<T>): RowOf<T>[] {
    const { table, where, order = [], limit = Number.POSITIVE_INFINITY } = question;
    const known = this.#table(table).selected.get(selectText(question));
    if (known === undefined || !this.#covers(known, question, limit))
      throw new Miss(known === undefined ? question : further(question, known));
    const rows = this.#alive<T>(this.#candidates(question)).filter((row) => matches(where, row as AnyRow));
    rows.sort((a, b) => {
      for (const [column, direction] of order) {
        const difference = compareValues((a as AnyRow)[column]!, (b as AnyRow)[column]!);
        if (difference !== 0) return direction === "asc" ? difference : -difference;
      }
      return 0;
    });
    return rows.length > limit ? rows.slice(0, limit) : rows;
  }

  /** One answer, adjusted by what was changed here; only plain counts can be. */
  count<T extends TableName>(question: Count<T>): number {
    invariant(question.by === undefined && question.upTo === undefined, "this count cannot be adjusted");
    const [answer] = this.counts(question);
    let count = Number(answer!["count"]);
    for (const { table, base, row } of this.#touched) {
      if (table.name !== question.table) continue;
      if (base !== undefined && matches(question.where, base)) count -= 1;
      if (row !== undefined && matches(question.where, row)) count += 1;
    }
    return count;
  }

  /** As the database counted; what was changed here is not in it. */
  counts<T extends TableName>(question: Count<T> | Distinct<T>): Answer {
    const answer = this.#table(question.table).counted.get(JSON.stringify(question));
    if (answer === undefined) throw new Miss(question);
    return answer;
  }

  // ── changing ──

  /** False when a row with its key is known to be there; nobody needs to have asked, the commit finds out. */
  insert<T extends TableName>(table: T, row: RowOf<T>): boolean {
    const key = keyColumns(table).map((column) => (row as AnyRow)[column]!);
    const { rows } = this.#table(table);
    const held = rows.get(keyText(key));
    if (held?.row !== undefined) return false;
    if (held === undefined) {
      const made = this.#hold(table, keyText(key), row as AnyRow);
      made.unasked = keyText(key);
      made.row = row as AnyRow;
      this.#touch(made);
      return true;
    }
    held.table.hold(held, row as AnyRow);
    held.row = row as AnyRow;
    // In place of one that was removed.
    held.dirty = held.base === undefined ? undefined : new Set(columnsOf(table).filter((name) => !isKey(table, name)));
    this.#touch(held);
    return true;
  }

  /** Of a row this set has answered or inserted. Key columns are never set: a row that moves is removed and inserted. */
  update<T extends TableName>(table: T, row: RowOf<T>, values: Partial<RowOf<T>>): void {
    const held = this.#held(table, row as AnyRow);
    if (held.row === held.base) held.row = { ...held.base! };
    Object.assign(held.row!, values);
    if (held.base !== undefined) for (const column of Object.keys(values)) (held.dirty ??= new Set()).add(column);
    this.#touch(held);
  }

  remove<T extends TableName>(table: T, row: RowOf<T>): void {
    const held = this.#held(table, row as AnyRow);
    held.row = undefined;
    this.#touch(held);
  }

  // ── learning ──

  /** What the database answered to a question; after `reset`. */
  learn(question: Question, answer: Answer): void {
    const table = this.#table(question.table);
    if (question.ask === "count" || question.ask === "distinct")
      return void table.counted.set(JSON.stringify(question), answer);
    const rows = answer.map((row) => this.#load(question.table, row as AnyRow));
    if (question.ask === "lookup") return this.#learnKeys(table, question);
    const limit = question.limit ?? Number.POSITIVE_INFINITY;
    table.selected.set(selectText(question), { limit, rows, isWhole: rows.length < limit });
    const [only] = question.where;
    if (question.where.length === 1 && only?.column === "run" && only.is === "=" && rows.length < limit)
      table.asked.add(lookupText("run", only.value));
  }

  #learnKeys(table: Table, { columns, keys }: Lookup): void {
    const isByKey = columns.join() === keyColumns(table.name).join();
    for (const key of keys)
      if (!isByKey) table.asked.add(lookupText(columns[0]!, key[0]!));
      else if (!table.rows.has(keyText(key))) table.rows.set(keyText(key), absent(table));
  }

  /** A row this process wrote last, if nobody else has changed it; the commit finds out. */
  assume<T extends TableName>(table: T, row: RowOf<T>): void {
    invariant(EXPECTED[table] !== undefined, "rows of this table cannot be assumed", { table });
    this.#load(table, row as AnyRow).assumed = true;
  }

  /** Nobody has this id: the commit finds out, because the insert would be refused. */
  assumeAbsent<T extends TableName>(table: T, column: ColumnName<T>, value: Value): void {
    this.#table(table).asked.add(lookupText(column, value));
  }

  // ── the end ──

  /** W3 */
  reset(): void {
    for (const held of this.#touched) {
      held.row = held.base;
      held.dirty = undefined;
      held.used = false;
      if (held.unasked !== undefined) held.table.rows.delete(held.unasked);
    }
    this.#touched = [];
  }

  /** Rows that were changed, inserted or looked at, as they are now; for whoever wants to assume them next time. */
  *current<T extends TableName>(table: T): Iterable<RowOf<T>> {
    for (const { row } of this.#table(table).rows.values()) if (row !== undefined) yield row as RowOf<T>;
  }

  /** W4. Removed rows first, then changed ones, then new ones; tables in the order they are locked (L1). */
  changes(): readonly Change[] {
    const removed = new Map<TableName, Held[]>();
    const inserted = new Map<TableName, Held[]>();
    const updated = new Map<string, { readonly table: TableName; readonly columns: readonly string[]; rows: Held[] }>();
    const updates = (held: Held, columns: readonly string[]): void => {
      const shape = `${held.table.name} ${String(held.assumed)} ${columns.join()}`;
      const group = updated.get(shape);
      if (group === undefined) updated.set(shape, { table: held.table.name, columns, rows: [held] });
      else group.rows.push(held);
    };
    for (const held of this.#touched) {
      const { name } = held.table;
      if (held.base === undefined) {
        if (held.row !== undefined) push(inserted, name, held);
      } else if (held.row === undefined) push(removed, name, held);
      else if (held.dirty !== undefined && held.dirty.size > 0) updates(held, [...held.dirty].sort());
      // Nothing was changed, and yet something was decided by it.
      else if (held.assumed) updates(held, [EXPECTED[name]![0]]);
    }
    return [
      ...[...removed].flatMap(([table, rows]) => deletesOf(table, rows)),
      ...[...updated.values()].map(({ table, columns, rows }) => updateOf(table, columns, rows)),
      ...[...inserted].map(([table, rows]): Change => ({ change: "insert", table, rows: rows.map(({ row }) => row!) })),
    ].sort((a, b) => ORDER[a.table] - ORDER[b.table] || KINDS[a.change] - KINDS[b.change]);
  }

  // ── inside ──

  #table(name: TableName): Table {
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new Table(name)));
    return table;
  }

  #hold(name: TableName, key: string, row: AnyRow): Held {
    const table = this.#table(name);
    const held = absent(table);
    table.rows.set(key, held);
    table.hold(held, row);
    return held;
  }

  /** Loaded again, a row stays what it is here. */
  #load(name: TableName, row: AnyRow): Held {
    const key = keyText(keyColumns(name).map((column) => row[column]!));
    const held = this.#table(name).rows.get(key);
    if (held?.base !== undefined) return held;
    if (held !== undefined) {
      // It was absent when somebody asked, and is there now.
      held.table.hold(held, row);
      held.base = held.row = row;
      return held;
    }
    const loaded = this.#hold(name, key, row);
    loaded.base = loaded.row = row;
    return loaded;
  }

  #held(name: TableName, row: AnyRow): Held {
    const held = this.#table(name).rows.get(keyText(keyColumns(name).map((column) => row[column]!)));
    invariant(held?.row !== undefined, "a row is changed that is not here", { table: name });
    return held;
  }

  #use(held: Held): void {
    if (held.assumed && !held.used) this.#touch(held);
  }

  #touch(held: Held): void {
    if (held.used) return;
    held.used = true;
    this.#touched.push(held);
  }

  /** Whether all rows of the run of this key are here. */
  #isWhole(table: TableName, key: readonly Value[]): boolean {
    return keyColumns(table)[0] === "run" && this.#table(table).asked.has(lookupText("run", key[0]!));
  }

  *#candidates({ table, where }: Pick<Select, "table" | "where">): Iterable<Held> {
    const { indexes, rows } = this.#table(table);
    const run = where.find((one) => one.column === "run" && one.is === "=");
    const index = run === undefined ? undefined : indexes.get("run");
    yield* index === undefined ? rows.values() : (index.get((run as { value: Value }).value) ?? []);
  }

  #alive<T extends TableName>(some: Iterable<Held>): RowOf<T>[] {
    const rows: RowOf<T>[] = [];
    for (const held of some) {
      if (held.row === undefined) continue;
      this.#use(held);
      rows.push(held.row as RowOf<T>);
    }
    return rows;
  }

  /** W2. Whether what was loaded is enough to answer with: rows that do not match any more may have hidden others. */
  #covers(known: Known, { where }: Pick<Select, "where">, limit: number): boolean {
    if (known.isWhole) return true;
    let matching = 0;
    for (const { row } of known.rows) if (row !== undefined && matches(where, row)) matching += 1;
    return matching >= limit;
  }
}

/** As many again as are gone, and some. */
function further(question: Select, known: Known): Select {
  return { ...question, limit: known.limit * 2 + (question.limit ?? 0) };
}

function absent(table: Table): Held {
  return { table, base: undefined, row: undefined, dirty: undefined, assumed: false, used: false, unasked: undefined };
}

function push<K>(groups: Map<K, Held[]>, key: K, held: Held): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [held]);
  else group.push(held);
}

function deletesOf(table: TableName, rows: readonly Held[]): readonly Change[] {
  const keys = keyColumns(table);
  const deletion = (some: readonly Held[], expect?: readonly string[]): Change[] =>
    some.length === 0
      ? []
      : [
          {
            change: "delete",
            table,
            rows: some.map(({ base }) => pick(base!, keys)),
            ...(expect && { expect, old: some.map(({ base }) => pick(base!, expect)) }),
          },
        ];
  return [
    ...deletion(rows.filter(({ assumed }) => !assumed)),
    ...deletion(
      rows.filter(({ assumed }) => assumed),
      EXPECTED[table],
    ),
  ];
}

function updateOf(table: TableName, columns: readonly string[], rows: readonly Held[]): Change {
  const named = [...keyColumns(table), ...columns];
  const expect = rows[0]!.assumed ? EXPECTED[table] : undefined;
  return {
    change: "update",
    table,
    columns,
    rows: rows.map(({ row }) => pick(row!, named)),
    ...(expect && { expect, old: rows.map(({ base }) => pick(base!, expect)) }),
  };
}

function pick(row: AnyRow, columns: readonly string[]): AnyRow {
  const picked: AnyRow = {};
  for (const column of columns) picked[column] = row[column]!;
  return picked;
}

/** L1 */
const ORDER = Object.fromEntries(
  ["runs", "queues", ...Object.keys(TABLES).filter((name) => name !== "runs" && name !== "queues")].map(
    (name, index) => [name, index],
  ),
) as Record<TableName, number>;
const KINDS = { delete: 0, update: 1, insert: 2 } as const;

function isKey(table: TableName, column: string): boolean {
  return keyColumns(table).includes(column);
}

/** No text of ours holds a line feed between two parts that could be taken for another key: lengths keep them apart. */
function keyText(key: readonly Value[]): string {
  if (key.length === 1) return String(key[0]);
  let text = "";
  for (const part of key) text += typeof part === "string" ? `${part.length}:${part}` : `${String(part)};`;
  return text;
}

function lookupText(column: string, value: Value): string {
  return `${column}=${String(value)}`;
}

/** The same whatever the limit. */
function selectText({ where, order, lock }: Select): string {
  return JSON.stringify([where, order, lock]);
}
