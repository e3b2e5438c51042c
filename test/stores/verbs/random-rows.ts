// RandomRows: random values and rows of every table, from small sets, so that keys collide and paths have several rows. Texts go
// beyond ASCII: the order of UTF-16 units is not the order of bytes.

import {
  columnsOf,
  keyColumns,
  TABLES,
  type AnyRow,
  type TableName,
  type Value,
} from "../../../src/stores/rows/tables.ts";

/** A number from 0 to below `max`. */
export type Draw = (max: number) => number;

export const TEXTS = ["a", "b", "B", "é", "ab", "日本", "\uFFFD", "\u{1F600}", "ü/x"];

const KINDS = ["task", "start", "timer"];
const SETS: Readonly<Record<string, readonly Value[]>> = {
  "runs.status": ["queued", "running", "paused", "blocked", "failed", "completed"],
  "runs.turn_due": [0, 1, 1, 2],
  "runs.version": [1, 2],
  "runs.id": ["a", "é", "\uFFFD", "\u{1F600}", "x", "y"],
  "queue.kind": KINDS,
  "queue.state": [0, 1, 1, 2, 3, 4, 5, 6],
  "queue.queue": ["mail", "é"],
  "queue.name": ["a", "\uFFFD", "\u{1F600}"],
  "begun.kind": KINDS,
  "lanes.kind": KINDS,
  "schedules.line": ["[]", "[1]"],
  "schedules.paused": [0, 1],
  "outbox.state": [0, 1, 1, 2],
  "langgraph_checkpoints.thread": ["a", "é"],
  "langgraph_checkpoints.namespace": ["", "\u{1F600}"],
};
/** Columns with the number of a run. */
const RUNS: ReadonlySet<string> = new Set(["run", "root", "parent", "origin", "line"]);
const NUMBERS = 5;

export class RandomRows {
  readonly draw: Draw;
  /** Runs 1 to this exist or existed: only a later number is new. */
  runs = 4;
  #positions = 0;

  constructor(draw: Draw) {
    this.draw = draw;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.draw(from.length)]!;
  }

  value(table: TableName, column: string): Value {
    const { type, nullable } = (TABLES[table].columns as Record<string, { type: string; nullable: boolean }>)[column]!;
    if (nullable && this.draw(3) === 0) return null;
    const set = SETS[`${table}.${column}`];
    if (set !== undefined) return this.pick(set);
    if (table === "tags" && column === "position") return ++this.#positions;
    if (type === "int") return RUNS.has(column) ? 1 + this.draw(this.runs) : this.draw(NUMBERS) - this.draw(2);
    if (type === "payload") return JSON.stringify({ text: this.pick(TEXTS), number: this.draw(100) });
    return this.pick(TEXTS);
  }

  row(table: TableName): AnyRow {
    const row: AnyRow = {};
    for (const column of columnsOf(table)) row[column] = this.value(table, column);
    return row;
  }

  /** A few columns; at least one if there are any. */
  some(columns: readonly string[]): string[] {
    const some = columns.filter(() => this.draw(3) === 0);
    return some.length > 0 || columns.length === 0 ? some : [this.pick(columns)];
  }

  values(table: TableName, columns: readonly string[]): AnyRow {
    return Object.fromEntries(columns.map((column) => [column, this.value(table, column)]));
  }

  key(table: TableName): (number | string)[] {
    return keyColumns(table).map((column) => this.value(table, column) as number | string);
  }
}
