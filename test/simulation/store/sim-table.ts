// SimTable: the committed rows of one table, its conditions and its order.
//
// sim-table.T1. Rows are immutable: a snapshot is a copy of the map.
// sim-table.T2. Texts compare by their UTF-8 bytes. NULL is neither equal to, less than nor greater than anything; NULLs sort first.

import { InvariantError } from "../../../src/base/index.ts";
import {
  columnsOf,
  columnType,
  keyColumns,
  TABLES,
  type Condition,
  type TableName,
  type WireRow,
  type WireValue,
} from "../../../src/stores/remote/index.ts";

/** A committed row. */
export type SimRow = Readonly<WireRow>;

/** Unique keys besides the primary key. */
const UNIQUE: Partial<Record<TableName, readonly (readonly string[])[]>> = {
  runs: [["id", "generation"]],
  checkpoints: [["key"]],
  langgraph_checkpoints: [["thread", "namespace", "id"]],
};
/** Indexed columns. */
const FOUND_BY: Partial<Record<TableName, readonly string[]>> = {
  runs: ["run", "id", "turn_worker"],
  checkpoints: ["run", "key"],
  queue: ["run", "worker"],
  outbox: ["run"],
};

export class SimTable {
  readonly name: TableName;
  readonly #key: readonly string[];
  readonly #rows = new Map<string, SimRow>();
  readonly #unique: readonly (readonly string[])[];
  readonly #taken: readonly Map<string, string>[];
  readonly #foundBy: ReadonlyMap<string, Map<WireValue, Map<string, SimRow>>>;

  constructor(name: TableName) {
    this.name = name;
    this.#key = keyColumns(name);
    this.#unique = UNIQUE[name] ?? [];
    this.#taken = this.#unique.map(() => new Map<string, string>());
    this.#foundBy = new Map((FOUND_BY[name] ?? [this.#key[0]!]).map((column) => [column, new Map()]));
  }

  get size(): number {
    return this.#rows.size;
  }

  keyOf(row: SimRow): string {
    return textOf(this.#key, row);
  }

  /** The names of unique values: two rows with a common name cannot both exist. */
  uniqueOf(row: SimRow): readonly string[] {
    return this.#unique.map((columns, index) => `${index}:${textOf(columns, row)}`);
  }

  get(key: string): SimRow | undefined {
    return this.#rows.get(key);
  }

  /** The key of the row with one of these names. */
  findUnique(name: string): string | undefined {
    const colon = name.indexOf(":");
    return this.#taken[Number(name.slice(0, colon))]!.get(name.slice(colon + 1));
  }

  set(key: string, row: SimRow): void {
    this.remove(key);
    this.#rows.set(key, row);
    for (const [column, byValue] of this.#foundBy) {
      let rows = byValue.get(row[column]!);
      if (rows === undefined) byValue.set(row[column]!, (rows = new Map()));
      rows.set(key, row);
    }
    for (const [index, columns] of this.#unique.entries()) this.#taken[index]!.set(textOf(columns, row), key);
  }

  remove(key: string): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    for (const [column, byValue] of this.#foundBy) {
      const rows = byValue.get(row[column]!)!;
      rows.delete(key);
      if (rows.size === 0) byValue.delete(row[column]!);
    }
    for (const [index, columns] of this.#unique.entries()) this.#taken[index]!.delete(textOf(columns, row));
  }

  snapshot(): ReadonlyMap<string, SimRow> {
    return new Map(this.#rows);
  }

  /** Rows that may match, by the most selective index. */
  candidates(where: readonly Condition[]): Iterable<SimRow> {
    for (const condition of where) {
      const byValue = this.#foundBy.get(condition.column);
      if (byValue === undefined) continue;
      if (condition.is === "=") return byValue.get(condition.value)?.values() ?? [];
      if (condition.is === "in")
        return [...new Set(condition.values)].flatMap((value) => [...(byValue.get(value)?.values() ?? [])]);
    }
    return this.#rows.values();
  }

  all(): Iterable<SimRow> {
    return this.#rows.values();
  }
}

export function matches(row: SimRow, where: readonly Condition[]): boolean {
  return where.every((condition) => {
    const value = row[condition.column]!;
    switch (condition.is) {
      case "null":
        return value === null;
      case "not null":
        return value !== null;
      case "in":
        return value !== null && (condition.values as readonly WireValue[]).includes(value);
      case "contains":
        return value !== null && String(value).includes(condition.value);
      default: {
        if (value === null || condition.value === null) return false; // T2
        const order = compareValues(value, condition.value);
        return COMPARED[condition.is](order);
      }
    }
  });
}

const COMPARED = {
  "=": (order: number) => order === 0,
  "<>": (order: number) => order !== 0,
  "<": (order: number) => order < 0,
  "<=": (order: number) => order <= 0,
  ">": (order: number) => order > 0,
  ">=": (order: number) => order >= 0,
};

export function inOrder(rows: Iterable<SimRow>, order: readonly (readonly [string, "asc" | "desc"])[]): SimRow[] {
  return [...rows].sort((a, b) => {
    for (const [column, direction] of order) {
      const compared = compareValues(a[column]!, b[column]!);
      if (compared !== 0) return direction === "asc" ? compared : -compared;
    }
    return 0;
  });
}

export function inKeyOrder(table: TableName, rows: Iterable<SimRow>): SimRow[] {
  return inOrder(
    rows,
    keyColumns(table).map((column) => [column, "asc"]),
  );
}

export function sameValue(a: WireValue, b: WireValue): boolean {
  if (a === null || b === null) return a === b;
  return compareValues(a, b) === 0;
}

/** sim-table.T2 */
function compareValues(a: WireValue, b: WireValue): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return compareTexts(a, b);
  return Buffer.compare(bytesOf(a), bytesOf(b));
}

/** In UTF-8 order, which is code point order: UTF-16 sorts surrogates before U+E000. */
function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return x >= 0xd800 && y >= 0xd800 ? rank(x) - rank(y) : x - y;
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}

/** Refuses values that no real database would accept. */
export function stored(table: TableName, given: SimRow, columns: readonly string[] = columnsOf(table)): WireRow {
  const row: WireRow = {};
  for (const column of columns) {
    const value = given[column] ?? null;
    if (value === null && !isNullable(table, column)) throw refused(table, column, value, "a value");
    row[column] = value === null ? null : storedValue(table, column, value);
  }
  return row;
}

function isNullable(table: TableName, column: string): boolean {
  return (TABLES[table].columns as Readonly<Record<string, { readonly nullable: boolean }>>)[column]!.nullable;
}

function storedValue(table: TableName, column: string, value: number | string | Uint8Array): WireValue {
  const type = columnType(table, column);
  if (type === "payload") return bytesOf(value);
  const fits =
    type === "int"
      ? Number.isSafeInteger(value)
      : typeof value === "string" && value.isWellFormed() && !value.includes("\0");
  if (!fits) throw refused(table, column, value, type);
  return value;
}

function bytesOf(value: WireValue): Uint8Array {
  return typeof value === "string" ? Buffer.from(value, "utf8") : (value as Uint8Array);
}

function refused(table: string, column: string, value: unknown, expected: string): InvariantError {
  return new InvariantError(`simulated database: ${table}.${column} expects ${expected}`, { details: { value } });
}

function textOf(columns: readonly string[], row: SimRow): string {
  return columns.length === 1 ? String(row[columns[0]!]) : JSON.stringify(columns.map((column) => row[column]));
}
