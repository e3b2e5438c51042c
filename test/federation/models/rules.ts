// The rules that peers of a model follow: those of src, and mutants that break one rule each.

import {
  cellOf,
  compareRecords,
  joinCell,
  recordId,
  stateOfCell,
  type Cell,
  type CellState,
  type LogRecord,
} from "../../../src/federation/index.ts";

export interface Rules {
  readonly compare: (a: LogRecord, b: LogRecord) => number;
  readonly cellOf: (record: LogRecord) => string | undefined;
  readonly join: (cell: Cell | undefined, record: LogRecord) => Cell;
  readonly stateOf: (cell: Cell) => CellState | undefined;
  /** What a snapshot bounds: a number per origin, or one clock for all. */
  readonly bound: "vector" | "scalar";
  /** A sequencer appends only where it has read the end of the log. */
  readonly isFenced: boolean;
  /** Cursor and records of a batch are one transaction. */
  readonly isAtomic: boolean;
  /** The receiver computes the root. */
  readonly checksRoot: boolean;
}

export const RULES: Rules = {
  compare: compareRecords,
  cellOf,
  join: joinCell,
  stateOf: stateOfCell,
  bound: "vector",
  isFenced: true,
  isAtomic: true,
  checksRoot: true,
};

/** The record that arrives last wins. */
function applyOnArrival(cell: Cell | undefined, record: LogRecord): Cell {
  const mark = { c: record.c, id: recordId(record), o: record.o };
  const { add } = cell ?? {};
  if (record.op === "put") return { add: mark, erased: false };
  if (record.op === "erase") return { ...(add && { add }), erased: true };
  return { ...(add && { add }), tomb: { ...mark, c: Number.MAX_SAFE_INTEGER }, erased: cell?.erased ?? false };
}

function stateWithoutEqual({ add, tomb, erased }: Cell): CellState | undefined {
  if (erased) return "erased";
  if (add === undefined) return undefined;
  return tomb !== undefined && tomb.c > add.c ? "hidden" : "visible";
}

export const MUTANTS: Readonly<Record<string, Rules>> = {
  "apply on arrival": { ...RULES, join: applyOnArrival },
  "scalar snapshot bound": { ...RULES, bound: "scalar" },
  "order without origin": { ...RULES, compare: (a, b) => compareRecords({ ...a, o: "" }, { ...b, o: "" }) },
  "tomb > for >=": { ...RULES, stateOf: stateWithoutEqual },
  "no expect": { ...RULES, isFenced: false },
  "cursor before records": { ...RULES, isAtomic: false },
  "no root check": { ...RULES, checksRoot: false },
};
