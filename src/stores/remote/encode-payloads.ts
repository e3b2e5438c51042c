// Encode payloads: converts payload columns between text in memory and bytes on the wire.
//
// Without a codec, a payload is sent as text and read as UTF-8 bytes. With a codec, it is encoded with its place, exactly as
// SQLite does it (../sqlite/payload-columns.ts): a store copied from one database to another stays readable.

import type { PayloadContext } from "../../base/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import type { QueryResult, Change, WireRow } from "./backend.ts";
import { TABLES, type AnyRow, type TableName } from "../rows/tables.ts";

type ContextOf = (row: WireRow) => PayloadContext;

const ofRun =
  (field: string, place: string): ContextOf =>
  (row) => ({ run: Number(row["run"]), place: String(row[place]), field });

/** By table; no table has more than one payload column. */
const CONTEXTS: Partial<Record<TableName, ContextOf>> = {
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

/** The payload column of each table that has one. */
export const PAYLOAD_COLUMNS: ReadonlyMap<TableName, string> = new Map(
  (Object.keys(TABLES) as TableName[]).flatMap((table) => {
    const column = Object.entries(TABLES[table].columns).find(([, { type }]) => type === "payload")?.[0];
    return column === undefined ? [] : [[table, column] as const];
  }),
);

export function payloadContext(table: TableName, row: WireRow): PayloadContext {
  return CONTEXTS[table]!(row);
}

/** The rows with payloads as text. Changes the given rows, which are used nowhere else. */
export function decodePayloads(
  cipher: PayloadCipher | undefined,
  table: TableName,
  result: QueryResult,
): readonly AnyRow[] {
  const column = PAYLOAD_COLUMNS.get(table);
  if (column === undefined) return result as readonly AnyRow[];
  for (const row of result) {
    const bytes = row[column];
    if (!(bytes instanceof Uint8Array)) continue;
    row[column] = cipher === undefined ? textOf(bytes) : cipher.decode(bytes, payloadContext(table, row));
  }
  return result as readonly AnyRow[];
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

/** The changes with payloads as bytes. */
export function encodePayloads(cipher: PayloadCipher | undefined, changes: readonly Change[]): readonly Change[] {
  if (cipher === undefined) return changes;
  return changes.map((change) => {
    const column = PAYLOAD_COLUMNS.get(change.table);
    if (column === undefined || change.change === "delete") return change;
    if (change.change === "update" && !change.columns.includes(column)) return change;
    return { ...change, rows: change.rows.map((row) => encodeRow(cipher, change.table, row, column)) };
  });
}

function encodeRow(cipher: PayloadCipher, table: TableName, row: WireRow, column: string): WireRow {
  const text = row[column];
  return typeof text === "string" ? { ...row, [column]: cipher.encode(text, payloadContext(table, row)) } : row;
}
