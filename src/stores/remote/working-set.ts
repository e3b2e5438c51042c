// WorkingSet: the rows of one transaction, in memory. The rules speak to it in words (words.ts) as they speak to SQLite.
//
// W1. Nothing is guessed: whoever asks for what was not loaded, or not as firmly as is needed, gets a `Miss`, and the
//     question that would load it is noted. Rows that somebody assumed are checked by the commit.
// W2. An answer is what the database said, with everything changed here applied: the same as if each change had been written
//     at once.
// W3. `reset` forgets every change and keeps what was loaded: the whole list is applied anew after a miss.
// W4. `changes` are net: a row that was inserted and removed again is not among them, one that was changed ten times once.

import { invariant } from "../../base/index.ts";
import { blindKey, covers, further, groupText, isSame, keyRow, lookup, reaching, selectText } from "./asking.ts";
import type { Answer, Change } from "./backend.ts";
import { compareValues, matches } from "./evaluate.ts";
import {
  FIRMNESS,
  keyOf,
  keyText,
  nameOf,
  newHeld,
  OURS,
  Table,
  UNASKED,
  type Firmness,
  type Held,
  type Key,
} from "./held.ts";
import { mergeQuestions } from "./merge-questions.ts";
import { EXPECTED, netChanges } from "./net-changes.ts";
import type { Condition, Count, Distinct, Lock, Lookup, Question, Select } from "./query.ts";
import { columnsOf, keyColumns, type AnyRow, type RowOf, type TableName, type Value } from "./tables.ts";

/** W1. Not a failure: the runner loads what is wanted. */
export class Miss extends Error {
  constructor() {
    super("not loaded");
  }
}

/** One for all: nobody asks where it comes from, and a trace of calls costs more than the rest of a miss. */
const MISS = new Miss();

const RUN: readonly string[] = ["run"];

export class WorkingSet {
  readonly #tables = new Map<TableName, Table>();
  readonly #fresh = new Set<Value>();
  #touched: Held[] = [];
  #wanted: Question[] = [];

  // ── asking ──

  /** By primary key. */
  get<T extends TableName>(table: T, lock: Lock, ...key: readonly Value[]): RowOf<T> | undefined {
    const held = this.#known(table, lock, key);
    if (held === undefined) this.miss(lookup(table, keyColumns(table), [key], lock));
    if (held === "none") return undefined;
    this.#use(held);
    return held.row as RowOf<T> | undefined;
  }

  /** As `get`; undefined also when it is not known, which is noted. */
  tryGet<T extends TableName>(table: T, lock: Lock, ...key: readonly Value[]): RowOf<T> | undefined {
    const held = this.#known(table, lock, key);
    if (held === undefined) this.#wanted.push(lookup(table, keyColumns(table), [key], lock));
    return held === undefined || held === "none" ? undefined : (held.row as RowOf<T> | undefined);
  }

  /** All rows with these values, of columns that rows are found by. */
  find<T extends TableName>(table: T, columns: readonly string[], key: readonly Value[], lock: Lock): RowOf<T>[] {
    if (!this.#isFound(table, columns, key, lock)) this.miss(lookup(table, columns, [key], lock));
    const index = this.#table(table).indexOf(nameOf(columns));
    invariant(index !== undefined, "rows are looked up by columns that are not indexed", { table, columns });
    return this.#alive<T>(index.rows.get(keyText(key)) ?? [], UNASKED, []);
  }

  /** In the order asked for; without one, in any. `ahead`: load at least that many, others will be wanted soon. */
  select<T extends TableName>(question: Select<T>, ahead = 0): RowOf<T>[] {
    const rows = this.trySelect(question, ahead);
    if (rows === undefined) throw MISS;
    return rows;
  }

  /** As `select`; undefined when it is not known, which is noted. */
  trySelect<T extends TableName>(question: Select<T>, ahead = 0): RowOf<T>[] | undefined {
    const { table, where, order = [], lock, limit = Number.POSITIVE_INFINITY } = question;
    const known = this.#table(table).selected.get(selectText(question));
    const rows = this.#alive<T>(this.#candidates(question), FIRMNESS[lock], where);
    const isKnown = known === undefined ? this.#isRunHere(question) : covers(known, question, limit);
    if (!isKnown && (known === undefined || order.length > 0 || rows.length < limit)) {
      this.#wanted.push(known === undefined ? reaching(question, ahead) : further(question, known, ahead));
      return undefined;
    }
    rows.sort((a, b) => {
      for (const [column, direction] of order) {
        const difference = compareValues((a as AnyRow)[column]!, (b as AnyRow)[column]!);
        if (difference !== 0) return direction === "asc" ? difference : -difference;
      }
      return 0;
    });
    return rows.length > limit ? rows.slice(0, limit) : rows;
  }

  /** Whether all rows of a selection are here. */
  isWhole(question: Select): boolean {
    return this.#table(question.table).selected.get(selectText(question))?.isWhole ?? this.#isRunHere(question);
  }

  /** Of a row looked up with `skip`: somebody else has it. */
  isTaken(table: TableName, ...key: readonly Value[]): boolean {
    return this.#table(table).taken.has(keyText(key));
  }

  /** Whether `find` would answer. */
  isFound(table: TableName, columns: readonly string[], key: readonly Value[], lock: Lock): boolean {
    return this.#isFound(table, columns, key, lock);
  }

  /** Rows with these values that are here, whatever else there may be. */
  here<T extends TableName>(table: T, columns: readonly string[], key: readonly Value[]): RowOf<T>[] {
    return this.#alive<T>(this.#table(table).indexOf(nameOf(columns))?.rows.get(keyText(key)) ?? [], UNASKED, []);
  }

  /** The rows that came with a selection, as they are now and as far as they still match. */
  loaded<T extends TableName>(question: Select<T>): RowOf<T>[] {
    const known = this.#table(question.table).selected.get(selectText(question));
    return this.#alive<T>(known?.rows ?? [], UNASKED, question.where);
  }

  /** A row as the database has it, if it was loaded. */
  before<T extends TableName>(table: T, ...key: readonly Value[]): RowOf<T> | undefined {
    return this.#table(table).rows.get(keyText(key))?.base as RowOf<T> | undefined;
  }

  /** A row that is known not to be there, or no more. */
  isGone(table: TableName, ...key: readonly Value[]): boolean {
    const held = this.#table(table).rows.get(keyText(key));
    return held !== undefined && held.row === undefined && (held.firmness !== UNASKED || held.dropped !== undefined);
  }

  /** One answer, adjusted by what was changed here; without `by` and `upTo`. */
  count<T extends TableName>(question: Count<T>): number {
    invariant(question.by === undefined && question.upTo === undefined, "this count cannot be adjusted");
    return Number(this.groups(question)[0]!["count"]);
  }

  /** Counts by group, adjusted by what was changed here; `least` and `most` are not. */
  groups<T extends TableName>(question: Count<T>): Answer {
    const { table, where, by = [] } = question;
    const groups = new Map(this.counts(question).map((answer) => [groupText(by, answer as AnyRow), { ...answer }]));
    const add = (row: AnyRow | undefined, change: number): void => {
      if (row === undefined || !matches(where, row)) return;
      const text = groupText(by, row);
      const group = groups.get(text) ?? { ...Object.fromEntries(by.map((column) => [column, row[column]!])), count: 0 };
      group["count"] = Number(group["count"]) + change;
      groups.set(text, group);
    };
    const changed = this.#touched.filter((held) => held.table.name === table);
    // What were they? Only the database knows.
    const blindly = changed.filter(({ dropped, patch }) => (dropped ?? patch) !== undefined);
    if (blindly.length > 0) this.miss(lookup(table, keyColumns(table), blindly.map(blindKey), "update"));
    for (const { base, row } of changed) {
      add(base, -1);
      add(row, 1);
    }
    const all = [...groups.values()];
    return question.by === undefined ? all : all.filter(({ count }) => Number(count) > 0);
  }

  /** As the database counted; what was changed here is not in it. */
  counts<T extends TableName>(question: Count<T> | Distinct<T>): Answer {
    const answer = this.tryCounts(question);
    if (answer === undefined) throw MISS;
    return answer;
  }

  tryCounts<T extends TableName>(question: Count<T> | Distinct<T>): Answer | undefined {
    const answer = this.#table(question.table).counted.get(JSON.stringify(question));
    if (answer === undefined) this.#wanted.push(question);
    return answer;
  }

  /** Rows of a table that match, changed or made here and nowhere else. */
  changed<T extends TableName>(table: T, where: readonly Condition[]): { was: RowOf<T>[]; is: RowOf<T>[] } {
    const was: RowOf<T>[] = [];
    const is: RowOf<T>[] = [];
    for (const { table: its, base, row } of this.#touched) {
      if (its.name !== table || base === row) continue;
      if (base !== undefined && matches(where, base)) was.push(base as RowOf<T>);
      if (row !== undefined && matches(where, row)) is.push(row as RowOf<T>);
    }
    return { was, is };
  }

  // ── wanting ──

  /** Notes what is not known of a question. */
  want(question: Question): void {
    if (question.ask === "select") return void this.trySelect(question);
    if (question.ask !== "lookup") return void this.tryCounts(question);
    const { table, columns, keys, lock } = question;
    const isByKey = isSame(columns, keyColumns(table));
    const missing = keys.filter((key) =>
      isByKey ? this.#known(table, lock, key) === undefined : !this.#isFound(table, columns, key, lock),
    );
    if (missing.length > 0) this.#wanted.push({ ...question, keys: missing });
  }

  wantRows(table: TableName, lock: Lock, keys: readonly (readonly Value[])[]): void {
    this.want(lookup(table, keyColumns(table), keys, lock));
  }

  wantFound(table: TableName, columns: readonly string[], keys: readonly (readonly Value[])[], lock: Lock): void {
    this.want(lookup(table, columns, keys, lock));
  }

  /** A miss when any of it is not known: for all of it at once, instead of one by one. */
  need(wanting: () => void): void {
    const before = this.#wanted.length;
    wanting();
    if (this.#wanted.length > before) throw MISS;
  }

  miss(question: Question): never {
    this.#wanted.push(question);
    throw MISS;
  }

  /** What was wanted since the last time, merged, in the order rows are to be locked. */
  takeWanted(): readonly Question[] {
    const wanted = mergeQuestions(this.#wanted);
    this.#wanted = [];
    return wanted;
  }

  // ── changing ──

  /** False when a row with its key is known to be there; nobody needs to have asked, the commit finds out. */
  insert<T extends TableName>(table: T, row: RowOf<T>): boolean {
    const held = this.#hold(table, keyOf(keyColumns(table), row as AnyRow));
    if (held.row !== undefined) return false;
    held.table.index(held, row as AnyRow);
    held.row = row as AnyRow;
    held.patch = undefined;
    // In place of one that was removed.
    if (held.base !== undefined)
      for (const name of columnsOf(table)) if (!keyColumns(table).includes(name)) held.dirty |= held.table.bits[name]!;
    this.#touch(held);
    return true;
  }

  /** Of a row this set has answered or inserted. Key columns are never set: a row that moves is removed and inserted. */
  update<T extends TableName>(table: T, row: RowOf<T>, values: Partial<RowOf<T>>): void {
    const held = this.#held(table, row as AnyRow);
    if (held.row === held.base) held.row = { ...held.base! };
    const { bits } = held.table;
    let dirty = 0;
    for (const column in values) {
      held.row![column] = (values as AnyRow)[column]!;
      dirty |= bits[column]!;
    }
    if (held.base !== undefined) held.dirty |= dirty;
    this.#touch(held);
  }

  remove<T extends TableName>(table: T, row: RowOf<T>): void {
    const held = this.#held(table, row as AnyRow);
    held.row = undefined;
    this.#touch(held);
  }

  /** Sets columns of a row, if there is one, without asking for it. */
  patch<T extends TableName>(table: T, key: readonly Value[], values: Partial<RowOf<T>>): void {
    const held = this.#hold(table, keyText(key));
    if (held.row !== undefined) return this.update(table, held.row as RowOf<T>, values);
    if (held.firmness !== UNASKED || held.dropped !== undefined || this.#isRunKnown(table, key, OURS)) return;
    held.patch = { ...held.patch, ...keyRow(table, key), ...(values as AnyRow) };
    this.#touch(held);
  }

  /** Removes a row, if there is one, without asking for it. */
  drop(table: TableName, key: readonly Value[]): void {
    const held = this.#hold(table, keyText(key));
    held.row = undefined;
    held.patch = undefined;
    if (held.firmness === UNASKED && !this.#isRunKnown(table, key, OURS)) held.dropped = keyRow(table, key);
    this.#touch(held);
  }

  /** A run that this transaction makes: nothing of it is in the database. */
  makeRun(run: number): void {
    this.#fresh.add(run);
  }

  // ── learning ──

  /** What the database answered to a question; after `reset`. */
  learn(question: Question, answer: Answer): void {
    const table = this.#table(question.table);
    if (question.ask === "count" || question.ask === "distinct")
      return void table.counted.set(JSON.stringify(question), answer);
    const firmness = FIRMNESS[question.lock];
    const rows = answer.map((row) => this.#load(table, row as AnyRow, firmness));
    if (question.ask === "lookup") return this.#learnKeys(table, question, new Set(rows));
    const limit = question.limit ?? Number.POSITIVE_INFINITY;
    const isWhole = rows.length < limit;
    table.selected.set(selectText(question), { limit, rows, isWhole });
    const [only] = question.where;
    if (isWhole && question.where.length === 1 && only?.column === "run" && only.is === "=" && question.lock !== "skip")
      table.noteAsked(["run"], [only.value], firmness);
  }

  #learnKeys(table: Table, { columns, keys, lock }: Lookup, answered: ReadonlySet<Held>): void {
    const isByKey = isSame(columns, keyColumns(table.name));
    const index = table.indexOf(nameOf(columns));
    for (const key of keys) {
      const text = keyText(key);
      if (!isByKey && lock !== "skip") table.noteAsked(columns, key, FIRMNESS[lock]);
      if (isByKey && lock === "skip" && !answered.has(this.#hold(table.name, text))) table.taken.add(text);
      if (lock === "skip") continue;
      for (const held of isByKey ? [this.#hold(table.name, text)] : (index?.rows.get(text) ?? []))
        if (!answered.has(held) && held.firmness <= FIRMNESS[lock]) {
          // It was there when somebody looked, and is no more.
          held.base = held.row = undefined;
          held.firmness = FIRMNESS[lock];
          held.assumed = false;
        }
    }
  }

  /** A row this process wrote last, if nobody else has changed it; the commit finds out. */
  assume<T extends TableName>(table: T, row: RowOf<T>): void {
    invariant(EXPECTED[table] !== undefined, "rows of this table cannot be assumed", { table });
    const held = this.#hold(table, keyOf(keyColumns(table), row as AnyRow));
    if (held.firmness === OURS) return;
    this.#fill(held, row as AnyRow, OURS);
    held.assumed = true;
  }

  /** Nobody has this: the commit finds out, because the insert would be refused. */
  assumeAbsent(table: TableName, columns: readonly string[], key: readonly Value[]): void {
    if (!isSame(columns, keyColumns(table))) this.#table(table).noteAsked(columns, key, OURS);
    else {
      const held = this.#hold(table, keyText(key));
      if (held.firmness === UNASKED) held.firmness = OURS;
    }
  }

  // ── the end ──

  /** W3 */
  reset(): void {
    for (const held of this.#touched) {
      held.row = held.base;
      held.dirty = 0;
      held.patch = undefined;
      held.dropped = undefined;
      held.used = false;
      if (held.firmness === UNASKED) held.table.rows.delete(held.key);
    }
    this.#touched = [];
    this.#wanted = [];
  }

  /** Forgets everything, for another transaction. */
  clear(): void {
    this.#tables.clear();
    this.#fresh.clear();
    this.#touched = [];
    this.#wanted = [];
  }

  /** Rows as they are now, of which nobody else has another idea; for whoever wants to assume them next time. */
  *current<T extends TableName>(table: T): Iterable<RowOf<T>> {
    for (const { row, firmness } of this.#table(table).rows.values())
      if (row !== undefined && (firmness === OURS || firmness === UNASKED)) yield row as RowOf<T>;
  }

  /** As `current`, without what was only looked at. */
  *ours<T extends TableName>(table: T): Iterable<RowOf<T>> {
    for (const { row, base, firmness } of this.#table(table).rows.values())
      if (row !== undefined && (base === undefined || firmness === OURS)) yield row as RowOf<T>;
  }

  /** W4 */
  changes(): readonly Change[] {
    return netChanges(this.#touched);
  }

  // ── inside ──

  #table(name: TableName): Table {
    let table = this.#tables.get(name);
    if (table === undefined) this.#tables.set(name, (table = new Table(name)));
    return table;
  }

  /** "none": all rows it could be among are here. Undefined: nobody knows, or not firmly enough. */
  #known(name: TableName, lock: Lock, key: readonly Value[]): Held | "none" | undefined {
    const held = this.#table(name).rows.get(keyText(key));
    if (held !== undefined) {
      if (held.firmness >= FIRMNESS[lock]) return held;
      // Made or removed here without asking: that much is known.
      if (held.firmness === UNASKED && (held.row !== undefined || held.dropped !== undefined)) return held;
    }
    return this.#isRunKnown(name, key, FIRMNESS[lock]) ? "none" : undefined;
  }

  #isFound(name: TableName, columns: readonly string[], key: readonly Value[], lock: Lock): boolean {
    if (columns.length === 1 && columns[0] === "run" && this.#fresh.has(key[0]!)) return true;
    return this.#table(name).firmnessOf(columns, key) >= FIRMNESS[lock];
  }

  /** Whether all rows of the run of this key are here. */
  #isRunKnown(name: TableName, key: readonly Value[], firmness: Firmness): boolean {
    if (keyColumns(name)[0] !== "run") return false;
    return this.#fresh.has(key[0]!) || this.#table(name).firmnessOf(RUN, key) >= firmness;
  }

  /** Whether all rows of the run that is asked about are here. */
  #isRunHere({ table, where, lock }: Select): boolean {
    return where.some((one) => one.column === "run" && one.is === "=" && this.#isFound(table, RUN, [one.value], lock));
  }

  /** There from now on, if only to say that nobody knows. */
  #hold(name: TableName, key: Key): Held {
    const table = this.#table(name);
    let held = table.rows.get(key);
    if (held === undefined) table.rows.set(key, (held = newHeld(table, key, UNASKED)));
    return held;
  }

  /** What was known as firmly stays what it is. */
  #load(table: Table, row: AnyRow, firmness: Firmness): Held {
    const held = this.#hold(table.name, keyOf(keyColumns(table.name), row));
    if (held.firmness < firmness || (held.assumed && firmness === OURS)) this.#fill(held, row, firmness);
    return held;
  }

  #fill(held: Held, row: AnyRow, firmness: Firmness): void {
    if (held.base === undefined) held.table.index(held, row);
    held.base = held.row = row;
    held.firmness = firmness;
    held.assumed = false;
  }

  #held(name: TableName, row: AnyRow): Held {
    const held = this.#table(name).rows.get(keyOf(keyColumns(name), row));
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

  *#candidates({ table, where }: Pick<Select, "table" | "where">): Iterable<Held> {
    const held = this.#table(table);
    for (const one of where) {
      const index = one.is === "=" ? held.indexOf(one.column) : undefined;
      if (index !== undefined && one.is === "=") return yield* index.rows.get(one.value as Key) ?? [];
    }
    yield* held.rows.values();
  }

  #alive<T extends TableName>(some: Iterable<Held>, firmness: Firmness, where: readonly Condition[]): RowOf<T>[] {
    const rows: RowOf<T>[] = [];
    for (const held of some) {
      if (held.row === undefined || (held.base !== undefined && held.firmness < firmness)) continue;
      if (!matches(where, held.row)) continue;
      this.#use(held);
      rows.push(held.row as RowOf<T>);
    }
    return rows;
  }
}
