// Payload codec: the user's encryption or compression, between the text of a payload and the bytes in a store.

import { inspect } from "node:util";
import { RepriseError } from "./errors.ts";

/** Identifies a payload. Encryption binds a payload to its place, so that swapping two of them is detected. */
export interface PayloadContext {
  /** The run's number in this store; 0: the payload belongs to no run. */
  readonly run: number;
  /** The kind of payload: `journal`, `inbox`, `failures`, `evidence` … */
  readonly field: string;
  /** The place within the field: an entry's number, a message's number, an item. */
  readonly place: string;
}

/**
 * Converts the text of every payload into the bytes that a store keeps, and back. Synchronous: a store calls it between
 * BEGIN and COMMIT, where it cannot wait.
 *
 * @example
 * ```ts
 * import { deflateRawSync, inflateRawSync } from "node:zlib";
 * import { createEngine, type PayloadCodec } from "reprise";
 * const compressed: PayloadCodec = {
 *   name: "deflate",
 *   encode: (text) => deflateRawSync(text),
 *   decode: (bytes) => inflateRawSync(bytes).toString(),
 * };
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [], codec: compressed });
 * ```
 */
export interface PayloadCodec {
  /** How this codec writes payloads, such as `aes-256-gcm 2026-11`. Not secret: the store keeps it, `doctor` shows it. */
  readonly name: string;
  encode(text: string, context: PayloadContext): Uint8Array;
  /** Throws if `encode` did not write the bytes for this context. */
  decode(bytes: Uint8Array, context: PayloadContext): string;
}

export function checkCodec(codec: unknown): PayloadCodec | undefined {
  if (codec === undefined) return undefined;
  const { name, encode, decode } = (typeof codec === "object" && codec !== null ? codec : {}) as Partial<PayloadCodec>;
  if (typeof name === "string" && name !== "" && typeof encode === "function" && typeof decode === "function")
    return codec as PayloadCodec;
  throw new RepriseError(
    "BAD_OPTIONS",
    `codec: expected { name, encode, decode }, such as aesGcm(…) returns, got ${inspect(codec, { depth: 0 })}.`,
  );
}
