// What the records of a snapshot mean, by the definition in the specification: slow, and shares no rule with src.

import { createHash } from "node:crypto";
import type { LogRecord } from "../../../src/federation/index.ts";

interface Said {
  readonly puts: LogRecord[];
  readonly tombs: LogRecord[];
  isErased: boolean;
}

/** A later record in the merge order: (c, id, origin). */
export function isLater(a: LogRecord, b: LogRecord): boolean {
  const place = (record: LogRecord): string =>
    [String(record.c).padStart(16, "0"), record.k ?? record.x ?? record.v ?? "", record.o].join(" ");
  return place(a) > place(b);
}

/** SHA-256 of the sorted lines `cell TAB winner TAB state LF`. */
export function referenceHash(records: readonly LogRecord[]): string {
  const cells = new Map<string, Said>();
  const said = (cell: string): Said => {
    const found = cells.get(cell) ?? { puts: [], tombs: [], isErased: false };
    cells.set(cell, found);
    return found;
  };
  for (const record of records) {
    if (record.op === "put") said(record.s === undefined ? `a:${record.k}` : `s:${record.s}`).puts.push(record);
    if (record.op === "tomb") said(record.x!).tombs.push(record);
    if (record.op === "erase") said(record.x!).isErased = true;
  }
  const lines: string[] = [];
  for (const [cell, { puts, tombs, isErased }] of cells) {
    if (puts.length === 0 && !isErased) continue;
    const winner = puts.reduce<LogRecord | undefined>(
      (best, put) => (best && isLater(best, put) ? best : put),
      undefined,
    );
    // Visible iff c(latest add) > c(latest tomb); equal: hidden.
    const isVisible = Math.max(...puts.map(({ c }) => c)) > Math.max(0, ...tombs.map(({ c }) => c));
    lines.push(`${cell}\t${winner?.k ?? ""}\t${isErased ? "erased" : isVisible ? "visible" : "hidden"}\n`);
  }
  return createHash("sha256").update(lines.sort().join("")).digest("hex");
}
