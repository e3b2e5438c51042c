// Thread payload: from the bytes of a foreign serializer to text a codec can take, and back (T4).

import { isUtf8 } from "node:buffer";
import { SEALED, unreadableReason } from "../base/index.ts";
import type { Serialized } from "./threads.ts";

export interface PayloadRow {
  readonly type: string;
  readonly form: string;
  readonly data: string;
}

/** As it is where it is text, and text that cannot be taken for a codec's bytes; SQLite's functions end text at a zero. */
export function rowOf({ type, bytes }: Serialized): PayloadRow {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isText = buffer[0] !== SEALED && !buffer.includes(0) && isUtf8(buffer);
  return isText
    ? { type, form: "text", data: buffer.toString() }
    : { type, form: "base64", data: buffer.toString("base64") };
}

export function serializedOf({ type, form, data }: PayloadRow): Serialized {
  const unreadable = unreadableReason(data);
  if (unreadable !== undefined) throw unreadable;
  // Not a Buffer: some serializers give the bytes themselves to the user.
  return { type, bytes: new Uint8Array(Buffer.from(data, form === "base64" ? "base64" : "utf8")) };
}

export function isSameRow(a: PayloadRow, b: PayloadRow): boolean {
  return a.type === b.type && a.form === b.form && a.data === b.data;
}
