// Record order: the one order of the records of all origins.
//
// record-order.M1. (c, id, origin), compared as bytes; id = `k`, `x` or `v`. Within an origin `c` rises with `n`, so a log is in this
//   order as it is sent. No two records are equal in it.

import type { LogRecord } from "./record.ts";

/** The id that breaks ties. */
export function recordId({ k, x, v }: LogRecord): string {
  return k ?? x ?? v ?? "";
}

/** record-order.M1. Every text is ASCII: its order is that of its bytes. */
export function compareRecords(a: LogRecord, b: LogRecord): number {
  return compareMarks({ c: a.c, id: recordId(a), o: a.o }, { c: b.c, id: recordId(b), o: b.o });
}

/** The place of a record in the order. */
export interface Mark {
  readonly c: number;
  readonly id: string;
  readonly o: string;
}

export function compareMarks(a: Mark, b: Mark): number {
  return a.c - b.c || compareText(a.id, b.id) || compareText(a.o, b.o);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
