// Payload codec: what stands between the text of a payload and the bytes a store keeps of it.

import { inspect } from "node:util";
import { RepriseError } from "./errors.ts";

/** Which payload it is: an encryption binds it to its place, so that two of them cannot be exchanged unnoticed. */
export interface PayloadContext {
  /** The run's number in this store; 0 where there is none. */
  readonly run: number;
  /** What it is: `journal`, `inbox`, `failures`, `evidence` … */
  readonly field: string;
  /** Where in that field: an entry's number, a message's number, an item. */
  readonly place: string;
}

/**
 * Turns the text of every payload into the bytes a store keeps, and back. Synchronous: a store calls it between BEGIN and
 * COMMIT, where nothing may be waited for.
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
  /** How payloads are written now, such as `aes-256-gcm 2026-11`. No secret: the store keeps it, `doctor` shows it. */
  readonly name: string;
  encode(text: string, context: PayloadContext): Uint8Array;
  /** Throws when the bytes are not what `encode` made of a text for this context. */
  decode(bytes: Uint8Array, context: PayloadContext): string;
}

export function checkCodec(codec: unknown): PayloadCodec | undefined {
  if (codec === undefined) return undefined;
  const { name, encode, decode } = (typeof codec === "object" && codec !== null ? codec : {}) as Partial<PayloadCodec>;
  if (typeof name === "string" && name !== "" && typeof encode === "function" && typeof decode === "function")
    return codec as PayloadCodec;
  throw new RepriseError(
    "BAD_OPTIONS",
    `codec: expected { name, encode, decode } such as aesGcm(…) gives, got ${inspect(codec, { depth: 0 })}.`,
  );
}
