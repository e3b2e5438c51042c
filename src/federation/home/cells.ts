// Cells: the join of the records of each cell, as a table.
//
// cells.J1. A row is the join of the cell's visible records (cell.C1). The table is an accelerator: dropped and joined again from the
//   log, it is the same.
// cells.J2. The past is not in the table. It is read from the cell's records up to the snapshot.

import { createHash } from "node:crypto";
import { cellOf, joinCell, stateOfCell, type Cell, type CellState } from "../log/cell.ts";
import type { LogRecord } from "../log/record.ts";
import { foldRecords, stateLineOf } from "../log/state-hash.ts";
import { cellBlob, cellText, hexOf, keyBlob } from "./blobs.ts";
import type { HomeDatabase, Row } from "./home-database.ts";
import type { Bounds, LogTable } from "./log-table.ts";
import type { Origins } from "./origins.ts";
import { OPS } from "./schema.ts";

export interface FoundCell extends Cell {
  /** `a:<key>` or `s:<slot>`. */
  readonly id: string;
  /** Undefined: only a tombstone is known. */
  readonly state: CellState | undefined;
}

const UPSERT =
  "insert or replace into cell (id, add_c, add_id, add_o, tomb_c, tomb_o, erased) values (?, ?, ?, ?, ?, ?, ?)";

export class Cells {
  readonly #db: HomeDatabase;
  readonly #origins: Origins;
  readonly #log: LogTable;

  constructor(db: HomeDatabase, origins: Origins, log: LogTable) {
    this.#db = db;
    this.#origins = origins;
    this.#log = log;
  }

  find(id: string): FoundCell | undefined {
    const row = this.#db.get("select * from cell where id = ?", cellBlob(id));
    return row && withState(id, this.#cellOf(row, id));
  }

  /** cells.J2 */
  findAt(id: string, bounds: Bounds): FoundCell | undefined {
    const cell = foldRecords(this.#log.ofCell(cellBlob(id), bounds)).get(id);
    return cell && withState(id, cell);
  }

  /** cells.J1. Returns the cells that the records touch, as they are now. The numbers are those of the records' origins. */
  join(records: Iterable<LogRecord>, number: number): Map<string, Cell> {
    const touched = new Map<string, Cell>();
    const select = this.#db.sql("select * from cell where id = ?");
    for (const record of records) {
      const id = cellOf(record);
      if (id === undefined) continue;
      let before = touched.get(id);
      if (before === undefined) {
        const row = select.get(cellBlob(id));
        if (row !== undefined) before = this.#cellOf(row, id);
      }
      touched.set(id, joinCell(before, record));
    }
    for (const [id, cell] of touched) this.#put(id, cell, number);
    return touched;
  }

  /** Joins these cells from nothing, up to the bounds. */
  joinAgain(ids: Iterable<string>, bounds: Bounds): void {
    for (const id of ids) {
      const cell = foldRecords(this.#log.ofCell(cellBlob(id), bounds)).get(id);
      if (cell === undefined) this.#db.run("delete from cell where id = ?", cellBlob(id));
      else this.#put(id, cell);
    }
  }

  /** Writes cells that were joined elsewhere. */
  putAll(cells: Iterable<readonly [id: string, cell: Cell]>): void {
    for (const [id, cell] of cells) this.#put(id, cell);
  }

  /** `number` is that of the origin whose records were joined: most marks are of it. */
  #put(id: string, { add, tomb, erased }: Cell, number?: number): void {
    this.#db
      .sql(UPSERT)
      .run(
        ...([cellBlob(id), add?.c ?? null, add === undefined ? null : keyBlob(add.id)] as const),
        ...([this.#numberOf(add?.o, number), tomb?.c ?? null, this.#numberOf(tomb?.o, number)] as const),
        erased ? 1 : 0,
      );
  }

  #numberOf(origin: string | undefined, hint: number | undefined): number | null {
    if (origin === undefined) return null;
    if (hint !== undefined && this.#origins.idOf(hint) === origin) return hint;
    return this.#origins.numberOf(origin);
  }

  #cellOf(row: Row, id: string): Cell {
    const { add_c: addC, add_id: addId, add_o: addO, tomb_c: tombC, tomb_o: tombO, erased } = row;
    return {
      ...(addC !== null && { add: { c: Number(addC), id: hexOf(addId), o: this.#origins.idOf(Number(addO)) } }),
      ...(tombC !== null && { tomb: { c: Number(tombC), id, o: this.#origins.idOf(Number(tombO)) } }),
      erased: erased === 1,
    };
  }

  /** All cells, in the order of their ids. */
  *all(): Generator<readonly [id: string, cell: Cell]> {
    for (const row of this.#db.sql("select * from cell order by id").iterate()) {
      const id = cellText(row["id"]);
      yield [id, this.#cellOf(row, id)];
    }
  }

  /** cells.J2. All cells as they were, in the order of their ids. */
  *allAt(bounds: Bounds): Generator<readonly [id: string, cell: Cell]> {
    const rows = this.#db.sql("select cell, origin, n, c, op, key from log where cell is not null order by cell");
    let id = "";
    let cell: Cell | undefined;
    for (const row of rows.iterate()) {
      const { origin, n } = row;
      if (Number(n) > (bounds.get(Number(origin)) ?? 0)) continue;
      const next = cellText(row["cell"]);
      if (next !== id && cell !== undefined) yield [id, cell];
      if (next !== id) cell = undefined;
      id = next;
      cell = joinCell(cell, this.#recordOf(row, id));
    }
    if (cell !== undefined) yield [id, cell];
  }

  /** What a join needs of a record, from its columns. */
  #recordOf({ origin, n, c, op, key }: Row, cell: string): LogRecord {
    const id = key === null ? { x: cell } : { k: hexOf(key), ...(cell.startsWith("s:") && { s: cell.slice(2) }) };
    return { c: Number(c), n: Number(n), o: this.#origins.idOf(Number(origin)), op: OPS[Number(op)]!, ...id };
  }
}

function withState(id: string, cell: Cell): FoundCell {
  return { id, ...cell, state: stateOfCell(cell) };
}

/** state-hash.S1, of cells in the order of their ids: nothing has to be sorted or kept. */
export function stateHashInOrder(cells: Iterable<readonly [id: string, cell: Cell]>): string {
  const hash = createHash("sha256");
  let text = "";
  for (const [id, cell] of cells) {
    const line = stateLineOf(id, cell);
    if (line === undefined) continue;
    text += `${line.join("\t")}\n`;
    if (text.length < HASHED_AT_ONCE) continue;
    hash.update(text);
    text = "";
  }
  return hash.update(text).digest("hex");
}

const HASHED_AT_ONCE = 65_536;
