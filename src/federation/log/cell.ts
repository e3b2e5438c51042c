// Cell: what all records say together about one artifact or one slot.
//
// cell.C1. A cell is the join of its records: the greatest add, the greatest tombstone, and whether one erased it. The join has neither
//   order nor repetition, so peers that hold the same records have the same cells, whatever arrived first.
// cell.C2. Visible: there is an add, nothing erased it, and c(add) > c(tomb). With equal clocks neither author saw the other: hidden.
// cell.C3. A later put revives. One that is not later stays hidden, and an erased cell stays erased.
// cell.C4. Of the links of a slot the greatest is visible, the others are shadowed.

import type { LogRecord } from "./record.ts";
import { compareMarks, recordId, type Mark } from "./record-order.ts";

export interface Cell {
  readonly add?: Mark;
  readonly tomb?: Mark;
  readonly erased: boolean;
}

export type CellState = "visible" | "hidden" | "erased";

/** `a:<key>` of an artifact, `s:<slot>` of a link; undefined: the record changes no cell. */
export function cellOf({ op, k, s, x }: LogRecord): string | undefined {
  if (op === "key") return undefined;
  return x ?? (s === undefined ? `a:${k}` : `s:${s}`);
}

/** cell.C1 */
export function joinCell(cell: Cell | undefined, record: LogRecord): Cell {
  const { add, tomb, erased = false } = cell ?? {};
  const mark: Mark = { c: record.c, id: recordId(record), o: record.o };
  switch (record.op) {
    case "put":
      return cellWith(later(add, mark), tomb, erased);
    case "tomb":
      return cellWith(add, later(tomb, mark), erased);
    case "erase":
      return cellWith(add, tomb, true);
    case "key":
      return cellWith(add, tomb, erased);
  }
}

function later(a: Mark | undefined, b: Mark): Mark {
  return a === undefined || compareMarks(a, b) < 0 ? b : a;
}

function cellWith(add: Mark | undefined, tomb: Mark | undefined, erased: boolean): Cell {
  return { ...(add !== undefined && { add }), ...(tomb !== undefined && { tomb }), erased };
}

/** cell.C2. Undefined: only a tombstone is known, so there is nothing to see or to hide. */
export function stateOfCell({ add, tomb, erased }: Cell): CellState | undefined {
  if (erased) return "erased";
  if (add === undefined) return undefined;
  return tomb !== undefined && tomb.c >= add.c ? "hidden" : "visible";
}
