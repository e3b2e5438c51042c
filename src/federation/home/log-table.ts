// Log table: the records of all origins, and the order they are read in.
//
// log-table.L1. Within an origin `c` rises with `n`. So the logs, merged, give the records of all origins in merge order without sorting.

import type { SnapshotHeads } from "../log/snapshot.ts";
import type { LogRecord } from "../log/record.ts";
import { compareRecords } from "../log/record-order.ts";
import type { Origin } from "../log/origin.ts";
import { cellBlob, keyBlob } from "./blobs.ts";
import { cellOf } from "../log/cell.ts";
import type { HomeDatabase } from "./home-database.ts";
import type { Origins } from "./origins.ts";
import { OPS } from "./schema.ts";

export interface LogRow {
  readonly n: number;
  readonly rec: string;
}

/** How far each log counts, by the number of its origin. */
export type Bounds = ReadonlyMap<number, number>;

const INSERT = "insert into log (origin, n, c, op, cell, key, names, rec) values (?, ?, ?, ?, ?, ?, ?, ?)";
const PAGE = 1_000;

export class LogTable {
  readonly #db: HomeDatabase;
  readonly #origins: Origins;

  constructor(db: HomeDatabase, origins: Origins) {
    this.#db = db;
    this.#origins = origins;
  }

  insert(origin: number, record: LogRecord, rec: string): void {
    const { n, c, op, k, y } = record;
    const cell = cellOf(record);
    this.#db
      .sql(INSERT)
      .run(
        ...([origin, n, c, OPS.indexOf(op), cell === undefined ? null : cellBlob(cell)] as const),
        ...([k === undefined ? null : keyBlob(k), y === undefined ? 0 : 1, rec] as const),
      );
  }

  read(origin: number, after: number, upTo: number, limit: number): LogRow[] {
    return this.#db
      .all(
        "select n, rec from log where origin = ? and n > ? and n <= ? order by n limit ?",
        origin,
        after,
        upTo,
        limit,
      )
      .map(({ n, rec }) => ({ n: Number(n), rec: String(rec) }));
  }

  /** Every record of a log up to `upTo`, in order. */
  *records(origin: number, upTo: number, after = 0): Generator<LogRecord & { readonly rec: string }> {
    for (let from = after; from < upTo;) {
      const page = this.read(origin, from, upTo, PAGE);
      if (page.length === 0) return;
      from = page.at(-1)!.n;
      for (const { rec } of page) yield { ...(JSON.parse(rec) as LogRecord), rec };
    }
  }

  /** The first record of a log that puts a cell. */
  findPut(origin: number, cell: string, upTo: number): LogRow | undefined {
    const row = this.#db.get(
      "select n, rec from log where cell = ? and origin = ? and n <= ? and op = 0 order by n limit 1",
      ...([cellBlob(cell), origin, upTo] as const),
    );
    return row && { n: Number(row["n"]), rec: String(row["rec"]) };
  }

  clockOf(origin: number, n: number): number | undefined {
    const row = this.#db.get("select c from log where origin = ? and n = ?", origin, n);
    return row && Number(row["c"]);
  }

  /** The records of a cell up to the bounds. */
  ofCell(cell: Uint8Array, bounds: Bounds): LogRecord[] {
    return this.#db
      .all("select origin, n, rec from log where cell = ?", cell)
      .filter(({ origin, n }) => Number(n) <= (bounds.get(Number(origin)) ?? 0))
      .map(({ rec }) => JSON.parse(String(rec)) as LogRecord);
  }

  /** log-table.L1. Records of all origins up to the bounds, in merge order. */
  *merged(bounds: Bounds): Generator<LogRecord> {
    const heads: { record: LogRecord; rest: Iterator<LogRecord> }[] = [];
    for (const [origin, upTo] of bounds) {
      const rest = this.records(origin, upTo);
      const first = rest.next();
      if (first.done !== true) heads.push({ record: first.value, rest });
    }
    while (heads.length > 0) {
      const least = heads.reduce((a, b) => (compareRecords(b.record, a.record) < 0 ? b : a));
      yield least.record;
      const next = least.rest.next();
      if (next.done === true) heads.splice(heads.indexOf(least), 1);
      else least.record = next.value;
    }
  }

  /** What is visible now. */
  visibleBounds(): Map<number, number> {
    return new Map(this.#origins.list().map(({ number, size }) => [number, size]));
  }

  /** Origins that this home does not have are left out. */
  boundsOf(heads: SnapshotHeads): Map<number, number> {
    const bounds = new Map<number, number>();
    for (const [origin, [n]] of Object.entries(heads)) {
      const row = this.#origins.find(origin);
      if (row !== undefined) bounds.set(row.number, n);
    }
    return bounds;
  }

  /** The records after `after` that name heads of other origins. */
  naming(origin: number, after: number, upTo: number): Pick<LogRecord, "n" | "y">[] {
    return this.#db
      .all(
        "select rec from log where origin = ? and n > ? and n <= ? and names = 1 order by n",
        ...([origin, after, upTo] as const),
      )
      .map(({ rec }) => JSON.parse(String(rec)) as LogRecord);
  }

  originOf(id: Origin): number | undefined {
    return this.#origins.find(id)?.number;
  }
}
