// Wire payload: payloads of runs as JSON on the wire.
//
// wire-payload.W1. Plain: a payload as programs without Reprise expect it. What JSON lacks has the usual form: a date is ISO 8601, a
//   bigint and bytes (base64) are text, a set is a list, a map is a list of pairs, `undefined` is null, an error is name, message, code.
// wire-payload.W2. Tagged: the form of the codec (base/codec.ts), in which every value survives both ways. `?payloads=tagged` selects it
//   for the payloads of the request and of the answer.

import { decode, encode } from "../base/index.ts";

export type PayloadForm = "plain" | "tagged";

/** The value as JSON of the form. */
export function payloadToWire(value: unknown, form: PayloadForm): unknown {
  if (value === undefined) return null;
  return form === "tagged" ? (JSON.parse(encode(value)) as unknown) : plain(value);
}

/** The value of JSON that a client sent. */
export function payloadFromWire(value: unknown, form: PayloadForm): unknown {
  return form === "tagged" ? decode(JSON.stringify(value)) : value;
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "function" || typeof value === "symbol" || value === undefined) return null;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof Map) return [...value].map(([key, one]) => [plain(key), plain(one)]);
  if (value instanceof Set) return [...value].map(plain);
  if (value instanceof Error) return plainError(value);
  if (Array.isArray(value)) return value.map(plain);
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.map(([name, one]) => [name, plain(one)]));
}

function plainError(error: Error & { readonly code?: unknown }): object {
  const { name, message, code } = error;
  return { name, message, ...(typeof code === "string" && { code }) };
}
