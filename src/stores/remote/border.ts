// Border: where payloads turn from text into the bytes that travel, and back.
//
// Without a codec a payload's text travels as it is, and bytes that come are its UTF-8. With one, both ends are sealed and
// opened with the payload's place, exactly as SQLite's border does it (../sqlite/payload-columns.ts has the places): a store
// that was copied from one database to another can be read there.

import type { PayloadContext } from "../../base/index.ts";
import type { Seal } from "../seal.ts";
import type { Answer, Change, WireRow } from "./backend.ts";
import { TABLES, type AnyRow, type TableName } from "./tables.ts";

type PlaceOf = (row: WireRow) => PayloadContext;

const ofRun =
  (field: string, place: string): PlaceOf =>
  (row) => ({ run: Number(row["run"]), place: String(row[place]), field });

/** By table; no table has more than one column of payloads. */
const PLACES: Partial<Record<TableName, PlaceOf>> = {
  journal: ofRun("journal", "seq"),
  inbox: ofRun("inbox", "arrival"),
  queue: ofRun("failures", "item"),
  checkpoints: ofRun("checkpoint", "step"),
  chunks: (row) => ({
    run: Number(row["run"]),
    place: `${String(row["stream"])}/${String(row["position"])}`,
    field: "chunk",
  }),
  runs: (row) => ({ run: Number(row["run"]), place: "0", field: "evidence" }),
  schedules: (row) => ({ run: 0, place: String(row["name"]), field: "schedule" }),
  langgraph_values: (row) => ({
    run: 0,
    place: JSON.stringify([row["value"], row["thread"], row["place"]]),
    field: "langgraph",
  }),
  langgraph_writes: (row) => ({
    run: 0,
    place: JSON.stringify([row["thread"], row["namespace"], row["id"], row["task"], row["position"], row["channel"]]),
    field: "langgraph_write",
  }),
};

/** The column of payloads, by table. */
export const PAYLOADS: ReadonlyMap<TableName, string> = new Map(
  (Object.keys(TABLES) as TableName[]).flatMap((table) => {
    const column = Object.entries(TABLES[table].columns).find(([, { type }]) => type === "payload")?.[0];
    return column === undefined ? [] : [[table, column] as const];
  }),
);

export function placeOf(table: TableName, row: WireRow): PayloadContext {
  return PLACES[table]!(row);
}

/** Rows as the rules see them. The rows that came are changed: nobody else has them. */
export function opened(seal: Seal | undefined, table: TableName, answer: Answer): readonly AnyRow[] {
  const column = PAYLOADS.get(table);
  if (column === undefined) return answer as readonly AnyRow[];
  for (const row of answer) {
    const bytes = row[column];
    if (!(bytes instanceof Uint8Array)) continue;
    row[column] = seal === undefined ? textOf(bytes) : seal.open(bytes, placeOf(table, row));
  }
  return answer as readonly AnyRow[];
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** As it travels. */
export function sealed(seal: Seal | undefined, changes: readonly Change[]): readonly Change[] {
  if (seal === undefined) return changes;
  return changes.map((change) => {
    const column = PAYLOADS.get(change.table);
    if (column === undefined || change.change === "delete") return change;
    if (change.change === "update" && !change.columns.includes(column)) return change;
    return { ...change, rows: change.rows.map((row) => sealedRow(seal, change.table, row, column)) };
  });
}

function sealedRow(seal: Seal, table: TableName, row: WireRow, column: string): WireRow {
  const text = row[column];
  return typeof text === "string" ? { ...row, [column]: seal.seal(text, placeOf(table, row)) } : row;
}
