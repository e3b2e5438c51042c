// Wire payload: payloads of runs as JSON on the wire.
//
// wire-payload.W1. Plain: a payload as programs without Reprise expect it. What JSON lacks has the usual form: a date is ISO 8601, a
//   bigint and bytes (base64) are text, a set is a list, a map is a list of pairs, `undefined` is null, an error is name, message, code.
// wire-payload.W2. Tagged: the form of the codec (base/codec.ts), in which every value survives both ways. `?payloads=tagged` selects it
//   for the payloads of the request and of the answer.

import { decode, encode, plainJson } from "../base/index.ts";

export type PayloadForm = "plain" | "tagged";

/** The value as JSON of the form. */
export function payloadToWire(value: unknown, form: PayloadForm): unknown {
  if (value === undefined) return null;
  return form === "tagged" ? (JSON.parse(encode(value)) as unknown) : plainJson(value);
}

/** The value of JSON that a client sent. */
export function payloadFromWire(value: unknown, form: PayloadForm): unknown {
  return form === "tagged" ? decode(JSON.stringify(value)) : value;
}
