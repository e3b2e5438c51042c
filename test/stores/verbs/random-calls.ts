// RandomCalls: random calls of every verb of the row port, made from the rows that SQLite has at that moment. They keep what the
// rules keep: a new run has a new number, keys and looked-up columns never change, and numbered rows have no gaps
// (transaction-rows.R2).

import { INDEXES, pathInfo, type Path, type PathInfo } from "../../../src/stores/rows/indexes.ts";
import type { Key, Span } from "../../../src/stores/rows/rows.ts";
import {
  columnType,
  keyColumns,
  PAYLOADS,
  SHARED,
  TABLES,
  type AnyRow,
  type TableName,
  type Value,
} from "../../../src/stores/rows/tables.ts";
import { storedColumns } from "../../../src/stores/sqlite/row-sql.ts";
import { TEXTS, type RandomRows } from "./random-rows.ts";
import type { SqliteTwin } from "./row-twins.ts";

type LooseSpan = { -readonly [K in keyof Span]?: K extends "also" ? Record<string, unknown> : Span[K] };

/** The port without the types of its tables. */
export interface LooseRows {
  get(table: TableName, key: Key, columns: readonly string[]): AnyRow | undefined;
  first(path: Path, prefix: Key, columns: readonly string[], span?: LooseSpan): AnyRow | undefined;
  select(path: Path, prefix: Key, columns: readonly string[], span?: LooseSpan): readonly AnyRow[];
  count(path: Path, prefix: Key, upTo?: number): number;
  sum(path: Path, prefix: Key, column: string, after: number | string): number;
  distinct(path: Path, prefix: Key, columns: readonly string[]): readonly AnyRow[];
  among(path: Path, wanted: readonly string[]): readonly string[];
  is(table: TableName, key: Key, expected: AnyRow): boolean;
  own(table: TableName, key: Key): boolean;
  add(table: TableName, row: AnyRow, ...unique: readonly Path[]): boolean;
  change(table: TableName, key: Key, values: AnyRow, expected?: AnyRow): boolean;
  remove(table: TableName, key: Key, expected?: AnyRow): boolean;
  insert(table: TableName, row: AnyRow): void;
  set(table: TableName, key: Key, values: AnyRow): void;
  drop(table: TableName, key: Key): void;
  clear(table: TableName, prefix: Key, span: LooseSpan): number;
  barrier(): void;
}

export interface Call {
  readonly text: string;
  run(rows: LooseRows): unknown;
  /** What all implementations must answer alike; called after the transaction (rows.P3). */
  view(answer: never): unknown;
}

const PATHS = [...SHARED, ...(Object.keys(INDEXES) as (keyof typeof INDEXES)[])];
const UNIQUE = Object.keys(INDEXES).filter((name) => "unique" in INDEXES[name as keyof typeof INDEXES]) as Path[];
/** transaction-rows.R2. Rows are only appended, and deleted from the first on. */
const NUMBERED: ReadonlySet<TableName> = new Set(["journal", "inbox", "chunks"]);
const FREE = SHARED.filter((table) => !NUMBERED.has(table));
/** Columns that never change while a row exists, or only together with the inbox. */
const FIXED: ReadonlySet<string> = new Set([
  ...["runs.id", "runs.generation", "runs.read", "runs.arrivals", "runs.ended_at", "checkpoints.key", "tags.position"],
  ...["langgraph_checkpoints.thread", "langgraph_checkpoints.namespace", "langgraph_checkpoints.id"],
]);
/** More names than remote stores query one by one. */
const MANY = 20;

const same = (answer: unknown): unknown => answer;

function plain(row: AnyRow | undefined, columns: readonly string[]): AnyRow | undefined {
  return row && Object.fromEntries(columns.map((column) => [column, row[column]!]));
}

export class RandomCalls {
  readonly #random: RandomRows;
  readonly #sqlite: SqliteTwin;

  constructor(random: RandomRows, sqlite: SqliteTwin) {
    this.#random = random;
    this.#sqlite = sqlite;
  }

  /** Fills SQLite: several rows in every table. */
  fill(): void {
    const { draw } = this.#random;
    for (const table of SHARED) {
      if (NUMBERED.has(table)) continue;
      const count = table === "runs" ? this.#random.runs : 4 + draw(14);
      for (let at = 1; at <= count; at++) {
        const row = this.#random.row(table);
        if (table === "runs") Object.assign(row, { run: at, read: draw(3), arrivals: 0, generation: at });
        if (table === "runs") row["arrivals"] = Number(row["read"]) + draw(4);
        if (this.#isFree(table, row)) this.#loose.insert(table, row);
      }
    }
    for (const run of this.#sqlite.all("runs"))
      for (let at = Number(run["read"]) + 1; at <= Number(run["arrivals"]); at++)
        this.#loose.insert("inbox", { ...this.#random.row("inbox"), run: run["run"]!, arrival: at });
    for (let at = 0; at < 30; at++) this.#append(this.#random.pick(["journal", "chunks"] as const)).run(this.#loose);
  }

  get #loose(): LooseRows {
    return this.#sqlite.rows as unknown as LooseRows;
  }

  call(): Call {
    const { draw } = this.#random;
    const roll = draw(100);
    if (roll < 50) return this.read();
    if (roll < 78) return this.#write();
    if (roll < 90) return this.#insertion();
    if (roll < 99) return this.#deletion();
    return { text: "barrier", run: (rows) => rows.barrier(), view: same };
  }

  /** A verb that only reads. */
  read(): Call {
    const { draw } = this.#random;
    const roll = draw(20);
    if (roll < 3) return this.#get();
    if (roll < 12) return this.#select();
    if (roll < 14) return draw(4) === 0 ? this.#sum() : this.#count();
    if (roll < 16) return this.#distinct();
    return roll < 18 ? this.#among() : this.#is();
  }

  #write(): Call {
    const roll = this.#random.draw(12);
    if (roll < 4) return this.#change();
    if (roll < 6) return this.#set();
    if (roll < 8) return this.#increment();
    if (roll < 10) return this.#own();
    return this.#arrive();
  }

  #insertion(): Call {
    const roll = this.#random.draw(10);
    if (roll < 4) return this.#insert();
    return roll < 8 ? this.#add() : this.#append(this.#random.pick(["journal", "chunks"] as const));
  }

  #deletion(): Call {
    const roll = this.#random.draw(10);
    if (roll < 3) return this.#remove();
    if (roll < 5) return this.#drop();
    if (roll < 7) return this.#readInbox();
    return roll < 9 ? this.#clear() : this.#end();
  }

  // ── parts of calls ──

  #text(verb: string, ...args: readonly unknown[]): string {
    return `${verb}(${args.map((one) => JSON.stringify(one)).join(", ")})`;
  }

  /** Mostly the key of a row. */
  #key(table: TableName): Key {
    const rows = this.#sqlite.all(table);
    if (rows.length === 0 || this.#random.draw(4) === 0) return this.#random.key(table);
    const row = this.#random.pick(rows);
    return keyColumns(table).map((column) => row[column]) as Key;
  }

  #prefix(info: PathInfo, most = info.columns.length): Key {
    const { draw } = this.#random;
    const wanted = draw(most + 1);
    const rows = this.#sqlite.all(info.table);
    const row = rows.length === 0 || draw(4) === 0 ? undefined : this.#random.pick(rows);
    const prefix: (number | string)[] = [];
    for (const { name } of info.columns.slice(0, wanted)) {
      const value = row === undefined ? this.#random.value(info.table, name) : row[name]!;
      if (value === null) break;
      prefix.push(value);
    }
    return prefix;
  }

  #bound(info: PathInfo, prefix: Key): number | string | undefined {
    const next = info.columns[prefix.length];
    return next === undefined ? undefined : (this.#random.value(info.table, next.name) ?? undefined);
  }

  #span(info: PathInfo, prefix: Key): LooseSpan | undefined {
    const { draw } = this.#random;
    if (draw(4) === 0) return undefined;
    const span: LooseSpan = {};
    if (draw(2) === 0) span.limit = 1 + draw(4);
    if (draw(3) === 0) span.backwards = true;
    if (draw(4) === 0) span.after = this.#bound(info, prefix);
    if (draw(6) === 0) span.before = this.#bound(info, prefix);
    if (draw(5) === 0) span.upTo = this.#bound(info, prefix);
    if (draw(4) === 0) span.also = this.#also(info.table);
    if (draw(3) === 0) span.peek = true;
    if (draw(6) === 0) span.ahead = 1 + draw(8);
    return span;
  }

  #also(table: TableName): Record<string, unknown> {
    const also: Record<string, unknown> = {};
    for (const column of this.#random.some(storedColumns(table)).slice(0, 2)) also[column] = this.#test(table, column);
    return also;
  }

  #test(table: TableName, column: string): unknown {
    const { draw } = this.#random;
    const value = this.#random.value(table, column);
    // A payload is only tested for null: it may be encoded.
    if (columnType(table, column) === "payload" || value === null) return draw(2) === 0 ? null : { not: null };
    const tests = [value, { not: value }, { above: value }, { least: value }, { most: value }];
    const other = this.#random.value(table, column);
    return this.#random.pick<unknown>([...tests, { in: other === null ? [value] : [value, other] }]);
  }

  #expected(table: TableName, key: Key): AnyRow {
    const row = this.#sqlite.all(table).find((one) => keyColumns(table).every((column, at) => one[column] === key[at]));
    const expected: AnyRow = {};
    for (const column of this.#random.some(storedColumns(table))) {
      const value = row === undefined || this.#random.draw(5) === 0 ? this.#random.value(table, column) : row[column]!;
      expected[column] = columnType(table, column) === "payload" ? null : value;
    }
    return expected;
  }

  #isFree(table: TableName, row: AnyRow): boolean {
    const unique = UNIQUE.filter((path) => pathInfo(path).table === table);
    return [table, ...unique].every((path) => this.#isFreeIn(path, row));
  }

  #isFreeIn(path: Path, row: AnyRow): boolean {
    const { table, columns } = pathInfo(path);
    return !this.#sqlite.all(table).some((one) => columns.every(({ name }) => one[name] === row[name]));
  }

  /** A row whose primary key is free, and for `isFree` also its unique values. */
  #newRow(table: TableName, isFree: boolean): AnyRow | undefined {
    for (let attempt = 0; attempt < 20; attempt++) {
      const row = this.#random.row(table);
      if (table === "runs") {
        row["run"] = this.#random.runs + 1;
        Object.assign(row, { read: 0, arrivals: 0 });
      }
      if (!(isFree ? this.#isFree(table, row) : this.#isFreeIn(table, row))) continue;
      if (table === "runs") this.#random.runs += 1;
      return row;
    }
    return undefined;
  }

  // ── reads ──

  #columns(info: PathInfo): readonly string[] {
    const stored = storedColumns(info.table);
    if (this.#random.draw(2) === 0) return stored;
    const needed = new Set([...keyColumns(info.table), ...info.columns.map(({ name }) => name)]);
    const some = new Set(this.#random.some(stored));
    return stored.filter((column) => needed.has(column) || some.has(column));
  }

  #get(): Call {
    const table = this.#random.pick(SHARED);
    const key = this.#key(table);
    const columns = this.#random.some(storedColumns(table));
    return {
      text: this.#text("get", table, key, columns),
      run: (rows) => rows.get(table, key, columns),
      view: (row: AnyRow | undefined) => plain(row, columns),
    };
  }

  #select(): Call {
    const path = this.#random.pick(PATHS);
    const info = pathInfo(path);
    // An index without the rows whose two columns are equal is only read below a prefix (indexes.ts, `apart`).
    let prefix = this.#prefix(info);
    if (info.apart !== undefined && prefix.length === 0)
      prefix = [this.#random.value(info.table, info.columns[0]!.name)!];
    const columns = this.#columns(info);
    const span = this.#span(info, prefix);
    if (this.#random.draw(3) > 0) {
      return {
        text: this.#text("select", path, prefix, columns, span),
        run: (rows) => rows.select(path, prefix, columns, span),
        view: (rows: readonly AnyRow[]) => this.#ordered(info, columns, rows, span?.limit !== undefined),
      };
    }
    return {
      text: this.#text("first", path, prefix, columns, span),
      run: (rows) => rows.first(path, prefix, columns, span),
      view: (row: AnyRow | undefined) => this.#ordered(info, columns, row === undefined ? [] : [row], true),
    };
  }

  /** indexes.X1. Of rows that are equal in the columns of the path, any may come first. */
  #ordered(info: PathInfo, columns: readonly string[], rows: readonly AnyRow[], isLimited: boolean): unknown {
    const ordered = info.columns.map(({ name }) => name);
    const isTotal = UNIQUE.includes(info.name) || keyColumns(info.table).every((column) => ordered.includes(column));
    if (isTotal) return rows.map((row) => plain(row, columns));
    const inOrder = rows.map((row) => plain(row, ordered));
    if (isLimited) return inOrder;
    return [inOrder, rows.map((row) => JSON.stringify(plain(row, columns))).sort()];
  }

  #count(): Call {
    const info = pathInfo(this.#random.pick(PATHS.filter((path) => pathInfo(path).apart === undefined)));
    const prefix = this.#prefix(info);
    const upTo = this.#random.draw(2) === 0 ? undefined : 1 + this.#random.draw(4);
    return {
      text: this.#text("count", info.name, prefix, upTo),
      run: (rows) => rows.count(info.name, prefix, upTo),
      view: same,
    };
  }

  #sum(): Call {
    const { table } = pathInfo("begun");
    const prefix = this.#prefix(pathInfo("begun"), 3);
    const after = this.#random.value(table, pathInfo("begun").columns[prefix.length]!.name)!;
    return {
      text: this.#text("sum", "begun", prefix, after),
      run: (rows) => rows.sum("begun", prefix, "count", after),
      view: same,
    };
  }

  #distinct(): Call {
    const { draw } = this.#random;
    const candidates = PATHS.map((path) => pathInfo(path)).filter(({ apart }) => apart === undefined);
    for (;;) {
      const info = this.#random.pick(candidates);
      const prefix = this.#prefix(info, info.columns.length - 1);
      const columns: string[] = [];
      for (const { name } of info.columns.slice(prefix.length, prefix.length + 1 + draw(3))) columns.push(name);
      if (columns.length === 0) continue;
      return {
        text: this.#text("distinct", info.name, prefix, columns),
        run: (rows) => rows.distinct(info.name, prefix, columns),
        view: (rows: readonly AnyRow[]) => rows.map((row) => plain(row, columns)),
      };
    }
  }

  /** The answer may name values without rows, but must name all that have rows. */
  #among(): Call {
    const infos = PATHS.map((path) => pathInfo(path)).filter(
      ({ table, columns: [first], apart }) => columnType(table, first!.name) === "text" && apart === undefined,
    );
    const info = this.#random.pick(infos.filter((one) => isNeverNull(one, one.columns[0]!.name)));
    const names = this.#random.some(TEXTS);
    const isMany = this.#random.draw(2) === 0;
    if (isMany) for (let at = 0; at < MANY; at++) names.push(`name ${at}`);
    const first = info.columns[0]!.name;
    const existing = this.#loose.distinct(info.name, [], [first]).map((row) => String(row[first]));
    const exact = names.filter((name) => existing.includes(name)).sort();
    return {
      text: this.#text("among", info.name, names),
      run: (rows) => rows.among(info.name, names),
      view: (found: readonly string[]) => ({
        missing: exact.filter((name) => !found.includes(name)),
        unasked: found.filter((name) => !names.includes(name)),
        found: isMany ? [...found].sort() : undefined,
      }),
    };
  }

  #is(): Call {
    const table = this.#random.pick(SHARED);
    const key = this.#key(table);
    const expected = this.#expected(table, key);
    return {
      text: this.#text("is", table, key, expected),
      run: (rows) => rows.is(table, key, expected),
      view: same,
    };
  }

  /** Reads without a lock, locks the rows, and reads them again. */
  #own(): Call {
    const table = this.#random.pick(["queue", "runs", "outbox", "schedules", "langgraph_values", "once"] as const);
    const info = pathInfo(table);
    const prefix = this.#prefix(info, info.columns.length - 1);
    const columns = storedColumns(table);
    return {
      text: this.#text("own", table, prefix),
      run: (rows) => {
        const found = rows.select(table, prefix, columns, { peek: true, limit: 5 });
        const owned = found.map((row) => rows.own(table, keyColumns(table).map((column) => row[column]) as Key));
        return [found, owned];
      },
      view: ([found, owned]: readonly [readonly AnyRow[], readonly boolean[]]) => [
        found.map((row) => plain(row, columns)),
        owned,
      ],
    };
  }

  // ── changes ──

  #settable(table: TableName): readonly string[] {
    return storedColumns(table).filter(
      (column) => !keyColumns(table).includes(column) && !FIXED.has(`${table}.${column}`),
    );
  }

  /** A column of a payload's place is set together with the payload. */
  #values(table: TableName): AnyRow {
    const columns = this.#random.some(this.#settable(table));
    const payload = PAYLOADS[table];
    const isMoved = payload?.place.some((column) => columns.includes(column)) === true;
    return this.#random.values(table, isMoved ? [...new Set([...columns, payload.column])] : columns);
  }

  /** A table with columns that may change. */
  #changeable(): TableName {
    return this.#random.pick(SHARED.filter((table) => this.#settable(table).length > 0));
  }

  #change(): Call {
    const table = this.#changeable();
    const key = this.#key(table);
    const values = this.#values(table);
    const expected = this.#random.draw(2) === 0 ? undefined : this.#expected(table, key);
    return {
      text: this.#text("change", table, key, values, expected),
      run: (rows) => rows.change(table, key, values, expected),
      view: same,
    };
  }

  #set(): Call {
    const table = this.#changeable();
    const key = this.#key(table);
    const values = this.#values(table);
    return {
      text: this.#text("set", table, key, values),
      run: (rows) => rows.set(table, key, values),
      view: same,
    };
  }

  /** A computed change: reads, computes, sets. */
  #increment(): Call {
    const ints = (table: TableName): readonly string[] =>
      this.#settable(table).filter((column) => columnType(table, column) === "int");
    const table = this.#random.pick(SHARED.filter((one) => ints(one).length > 0));
    const columns = [this.#random.pick(ints(table))];
    const column = columns[0]!;
    const key = this.#key(table);
    return {
      text: this.#text("increment", table, key, column),
      run: (rows) => {
        const row = rows.get(table, key, columns);
        if (row !== undefined) rows.set(table, key, { [column]: Number(row[column]) + 1 });
        return row;
      },
      view: (row: AnyRow | undefined) => plain(row, columns),
    };
  }

  #insert(): Call {
    const table = this.#random.pick(FREE);
    const row = this.#newRow(table, true);
    if (row === undefined) return this.#get();
    return { text: this.#text("insert", table, row), run: (rows) => rows.insert(table, row), view: same };
  }

  #add(): Call {
    const { draw } = this.#random;
    const uniqueTables = UNIQUE.map((path) => pathInfo(path).table);
    const table = draw(2) === 0 ? this.#random.pick(uniqueTables) : this.#random.pick(FREE);
    const unique = UNIQUE.filter((path) => pathInfo(path).table === table);
    let paths: readonly Path[] = [];
    let row: AnyRow | undefined;
    if (unique.length > 0 && draw(3) > 0) {
      // Only the unique values may be taken; with both paths, also the primary key.
      const isBoth = table !== "runs" && draw(2) === 0;
      paths = isBoth ? [table, ...unique] : unique;
      row = isBoth ? this.#random.row(table) : this.#newRow(table, false);
    } else {
      row = this.#random.row(table);
      const isTaken = !this.#isFreeIn(table, row);
      if (!isTaken) row = this.#newRow(table, true);
    }
    if (row === undefined) return this.#get();
    const added = row;
    return {
      text: this.#text("add", table, added, ...paths),
      run: (rows) => rows.add(table, added, ...paths),
      view: same,
    };
  }

  #remove(): Call {
    const table = this.#random.pick(FREE);
    const key = this.#key(table);
    const expected = this.#random.draw(2) === 0 ? undefined : this.#expected(table, key);
    return {
      text: this.#text("remove", table, key, expected),
      run: (rows) => rows.remove(table, key, expected),
      view: same,
    };
  }

  #drop(): Call {
    const table = this.#random.pick(FREE);
    const key = this.#key(table);
    return { text: this.#text("drop", table, key), run: (rows) => rows.drop(table, key), view: same };
  }

  #clear(): Call {
    const { draw } = this.#random;
    const table = this.#random.pick(SHARED.filter((one) => one !== "inbox"));
    const info = pathInfo(table);
    let prefix = this.#prefix(info);
    if (prefix.length === 0) prefix = this.#key(table).slice(0, 1);
    const isWhole = prefix.length === info.columns.length;
    const span: LooseSpan = {};
    if (!isWhole && draw(2) === 0) span.limit = 1 + draw(4);
    if (!isWhole && draw(4) === 0) span.upTo = this.#bound(info, prefix);
    // Numbered rows are deleted from the first on.
    if (NUMBERED.has(table)) prefix = prefix.slice(0, info.columns.length - 1);
    return {
      text: this.#text("clear", table, prefix, span),
      run: (rows) => rows.clear(table, prefix, span),
      view: same,
    };
  }

  // ── rows with numbers ──

  #append(table: "journal" | "chunks"): Call {
    const row = this.#random.row(table);
    const number = table === "journal" ? "seq" : "position";
    const before = this.#sqlite
      .all(table)
      .filter((one) => keyColumns(table).every((column) => column === number || one[column] === row[column]));
    row[number] = Math.max(0, ...before.map((one) => Number(one[number]))) + 1;
    return { text: this.#text("insert", table, row), run: (rows) => rows.insert(table, row), view: same };
  }

  #run(isLive: boolean): AnyRow | undefined {
    const runs = this.#sqlite.all("runs").filter((run) => !isLive || run["ended_at"] === null);
    return runs.length === 0 ? undefined : this.#random.pick(runs);
  }

  #arrive(): Call {
    const run = this.#run(false);
    if (run === undefined) return this.#insert();
    const arrival = Number(run["arrivals"]) + 1;
    const key = [Number(run["run"])];
    const row: AnyRow = { ...this.#random.row("inbox"), run: key[0]!, arrival };
    return {
      text: this.#text("arrive", row),
      run: (rows) => {
        rows.set("runs", key, { arrivals: arrival });
        rows.insert("inbox", row);
      },
      view: same,
    };
  }

  #readInbox(): Call {
    const run = this.#run(true);
    if (run === undefined) return this.#insert();
    const [number, read] = [Number(run["run"]), Number(run["read"])];
    const upTo = read + this.#random.draw(Number(run["arrivals"]) - read + 1);
    return {
      text: this.#text("read inbox", number, upTo),
      run: (rows) => {
        rows.set("runs", [number], { read: upTo });
        return rows.clear("inbox", [number], { upTo });
      },
      view: same,
    };
  }

  /** Ends a run, and deletes the first messages that it did not read. */
  #end(): Call {
    const run = this.#run(false);
    const number = Number(run?.["run"] ?? 1);
    const span = this.#random.draw(2) === 0 ? {} : { limit: 1 + this.#random.draw(3) };
    return {
      text: this.#text("end", number, span),
      run: (rows) => {
        rows.set("runs", [number], { ended_at: 1 });
        return rows.clear("inbox", [number], span);
      },
      view: same,
    };
  }
}

function isNeverNull({ table, where }: PathInfo, column: string): boolean {
  const { nullable } = (TABLES[table].columns as Record<string, { nullable: boolean }>)[column]!;
  const test = where?.[column] as { readonly not?: Value } | undefined;
  return !nullable || test?.not === null;
}
