// Thread payload: converts the bytes of LangGraph's serializer to text for the codec, and back (thread-store.T4).

import { isUtf8 } from "node:buffer";
import { CODEC_MARK, unreadableReason } from "../base/index.ts";
import type { Serialized } from "./thread-store.ts";

export interface PayloadRow {
  readonly type: string;
  readonly form: string;
  readonly data: string;
}

/** Text stays text, unless a codec's mark could be read into it, or it holds a zero, where SQLite's functions end text. */
export function rowOf({ type, bytes }: Serialized): PayloadRow {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isText = buffer[0] !== CODEC_MARK && !buffer.includes(0) && isUtf8(buffer);
  return isText
    ? { type, form: "text", data: buffer.toString() }
    : { type, form: "base64", data: buffer.toString("base64") };
}

export function serializedOf({ type, form, data }: PayloadRow): Serialized {
  const unreadable = unreadableReason(data);
  if (unreadable !== undefined) throw unreadable;
  // A copy, not a Buffer: some serializers return the bytes to the user.
  return { type, bytes: new Uint8Array(Buffer.from(data, form === "base64" ? "base64" : "utf8")) };
}

export function isSameRow(a: PayloadRow, b: PayloadRow): boolean {
  return a.type === b.type && a.form === b.form && a.data === b.data;
}
