// State hash: one digest of everything that the records of a snapshot say.
//
// state-hash.S1. SHA-256 of the sorted lines `cell TAB winner TAB state LF`. The winner is the id of the greatest add; an erased cell
//   that was never added has none.
// state-hash.S2. Nothing in it depends on trust, time, or on how a site keeps its cells. Equal records, equal hash.

import { createHash } from "node:crypto";
import { cellOf, joinCell, stateOfCell, type Cell, type CellState } from "./cell.ts";
import type { LogRecord } from "./record.ts";

export type StateLine = readonly [cell: string, winner: string, state: string];

/** state-hash.S1. Sorts the lines. */
export function stateHash(lines: Iterable<StateLine>): string {
  const hash = createHash("sha256");
  for (const line of [...lines].map((parts) => `${parts.join("\t")}\n`).sort()) hash.update(line);
  return hash.digest("hex");
}

/** The line of a cell; undefined for a cell that only a tombstone names. */
export function stateLineOf(id: string, cell: Cell): readonly [string, string, CellState] | undefined {
  const state = stateOfCell(cell);
  return state === undefined ? undefined : [id, cell.add?.id ?? "", state];
}

/** The cells of records, from nothing. */
export function foldRecords(records: Iterable<LogRecord>): Map<string, Cell> {
  const cells = new Map<string, Cell>();
  for (const record of records) {
    const id = cellOf(record);
    if (id !== undefined) cells.set(id, joinCell(cells.get(id), record));
  }
  return cells;
}

/** The state hash of cells. */
export function stateHashOf(cells: Iterable<readonly [id: string, cell: Cell]>): string {
  const lines: StateLine[] = [];
  for (const [id, cell] of cells) {
    const line = stateLineOf(id, cell);
    if (line !== undefined) lines.push(line);
  }
  return stateHash(lines);
}
