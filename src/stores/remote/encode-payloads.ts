// Encode payloads: converts payload columns between text in memory and bytes on the wire.
//
// Without a codec, a payload is sent as text and read as UTF-8 bytes. With a codec, it is encoded with its place (`PAYLOADS`),
// exactly as SQLite does it (../sqlite/row-sql.ts): a store copied from one database to another stays readable.

import type { PayloadContext } from "../../base/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import { SMALLEST_SHARED, type ContentBatch, type NewContent } from "../contents/content-batch.ts";
import type { QueryResult, Change, WireRow, WireValue } from "./backend.ts";
import { PAYLOADS, TABLES, type AnyRow, type PayloadPlace, type TableName } from "../rows/tables.ts";

function placeOf({ place, form }: PayloadPlace, row: WireRow): string {
  if (form === "json") return JSON.stringify(place.map((column) => row[column]));
  return place.length === 0 ? "0" : place.map((column) => String(row[column])).join("/");
}

const TABLES_WITH_RUN: ReadonlySet<string> = new Set(
  (Object.keys(PAYLOADS) as TableName[]).filter((table) => "run" in TABLES[table].columns),
);

function payloadContext(table: TableName, row: WireRow): PayloadContext {
  const payload = PAYLOADS[table]!;
  const run = TABLES_WITH_RUN.has(table) ? Number(row["run"]) : 0;
  return { run, place: placeOf(payload, row), field: payload.field };
}

/** The rows with payloads as text. Changes the given rows, which are used nowhere else. */
export function decodePayloads(
  cipher: PayloadCipher | undefined,
  table: TableName,
  result: QueryResult,
): readonly AnyRow[] {
  const column = PAYLOADS[table]?.column;
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

/**
 * The changes with references in place of payloads that have contents, after the contents. The rows of contents that `isOutside` names
 * have no text.
 */
export function reducePayloads(
  batch: ContentBatch,
  changes: readonly Change[],
  isOutside: (content: NewContent) => boolean = () => false,
): readonly Change[] {
  const reduced = changes.map((change): Change => {
    const payload = PAYLOADS[change.table];
    if (payload?.contents === undefined || change.change === "delete") return change;
    const { column, contents } = payload;
    if (change.change === "update" && !change.columns.includes(column)) return change;
    if (!change.rows.some((row) => isLong(row[column]))) return change;
    const rows = change.rows.map((row) => {
      const text = row[column];
      return isLong(text) ? { ...row, [column]: batch.reduce(Number(row["run"]), text, contents) } : row;
    });
    return { ...change, rows };
  });
  if (batch.added.length === 0) return reduced;
  const unique = new Map(batch.added.map((added) => [`${added.run}/${added.content}`, added]));
  const rows = [...unique.values()]
    .toSorted((a, b) => a.run - b.run || (a.content < b.content ? -1 : 1))
    .map((added): WireRow => {
      const { run, content, text } = added;
      return { run, content, size: text.length, data: isOutside(added) ? null : text };
    });
  return [{ change: "insert", table: "run_contents", rows }, ...reduced];
}

function isLong(text: WireValue | undefined): text is string {
  return typeof text === "string" && text.length >= SMALLEST_SHARED;
}

/** The changes with payloads as bytes. */
export function encodePayloads(cipher: PayloadCipher | undefined, changes: readonly Change[]): readonly Change[] {
  if (cipher === undefined) return changes;
  return changes.map((change) => {
    const column = PAYLOADS[change.table]?.column;
    if (column === undefined || change.change === "delete") return change;
    if (change.change === "update" && !change.columns.includes(column)) return change;
    return { ...change, rows: change.rows.map((row) => encodeRow(cipher, change.table, row, column)) };
  });
}

function encodeRow(cipher: PayloadCipher, table: TableName, row: WireRow, column: string): WireRow {
  const text = row[column];
  return typeof text === "string" ? { ...row, [column]: cipher.encode(text, payloadContext(table, row)) } : row;
}
