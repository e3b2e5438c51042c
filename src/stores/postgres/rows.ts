// Rows: converts the server's text rows to rows of the port.

import type { WireRow, WireValue } from "../remote/backend.ts";
import type { WireType } from "./wire.ts";

export interface OutColumn {
  readonly name: string;
  readonly type: WireType;
}

function valueOf(type: WireType, text: string | null): WireValue {
  if (text === null) return null;
  if (type === "int") return Number(text);
  // After "\x".
  return type === "text" ? text : Buffer.from(text.slice(2), "hex");
}

export function rowsOf(columns: readonly OutColumn[], rows: readonly (readonly (string | null)[])[]): WireRow[] {
  return rows.map((fields) => {
    const row: WireRow = {};
    for (let index = 0; index < columns.length; index += 1) {
      const { name, type } = columns[index] as OutColumn;
      row[name] = valueOf(type, fields[index] as string | null);
    }
    return row;
  });
}
