// SQL text: names and values as SQL. Sessions use UTF-8 with backslash escapes (session.ts), so only quotes and backslashes must be
// escaped.

import type { WireValue } from "../remote/backend.ts";
import type { TableName } from "../rows/tables.ts";
import { PREFIX } from "./schema.ts";

export function tableOf(table: TableName): string {
  return `\`${PREFIX}${table}\``;
}

export function nameOf(column: string): string {
  return `\`${column}\``;
}

export function namesOf(columns: readonly string[]): string {
  return columns.map(nameOf).join(",");
}

export function literal(value: WireValue): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return textLiteral(value);
  return value === null ? "null" : bytesLiteral(value);
}

export function textLiteral(text: string): string {
  return `'${/['\\]/.test(text) ? text.replaceAll(/['\\]/g, String.raw`\$&`) : text}'`;
}

/** Some servers treat an empty `x''` as a number. */
export function bytesLiteral(bytes: Uint8Array): string {
  return bytes.length === 0 ? "''" : `x'${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex")}'`;
}
