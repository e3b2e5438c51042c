// AES-GCM: the reference codec, AES-256-GCM.
//
//   version 1 · length of the key's id · the key's id · nonce, 12 bytes · ciphertext · tag, 16 bytes
//
// The tag also authenticates everything before the nonce, and the payload's context.
//
// Nonces are random, so a key should encrypt at most 2^32 payloads: 49 days at 1,000 per second. Then rotate it.

import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from "node:crypto";
import { inspect } from "node:util";
import { RepriseError } from "./errors.ts";
import { checkOptionNames } from "./options.ts";
import type { PayloadCodec, PayloadContext } from "./payload-codec.ts";
import { systemRandom } from "./system.ts";

const VERSION = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = "aes-256-gcm";
const MAX_KEY_ID_BYTES = 100;

/** The keys of `aesGcm`. */
export interface AesGcmOptions {
  /** By id: 32 bytes, or their base64. Must contain every key that some payload was written with. */
  readonly keys: Readonly<Record<string, Uint8Array | string>>;
  /** The id of the key that new payloads are written with. */
  readonly current: string;
}

/**
 * Encrypts payloads with AES-256-GCM: reads with any of the keys, writes with the current one.
 *
 * @example
 * ```ts
 * import { randomBytes } from "node:crypto";
 * import { aesGcm, createEngine } from "reprise";
 * const key = process.env["PAYLOAD_KEY_2026_11"] ?? randomBytes(32).toString("base64");
 * const codec = aesGcm({ keys: { "2026-11": key }, current: "2026-11" });
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [], codec });
 * ```
 */
export function aesGcm(options: AesGcmOptions): PayloadCodec {
  const keys = checkOptions(options);
  const { current } = options;
  const currentKey = keys.get(current) as KeyObject;
  const header = headerOf(current);
  return {
    name: `${CIPHER} ${current}`,
    encode(text, context) {
      const nonce = systemRandom.bytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, currentKey, nonce);
      cipher.setAAD(Buffer.concat([header, contextBytes(context)]));
      const body = cipher.update(text, "utf8");
      return Buffer.concat([header, nonce, body, cipher.final(), cipher.getAuthTag()]);
    },
    decode(bytes, context) {
      const id = keyIdOf(bytes);
      const key = keys.get(id);
      if (key === undefined) throw keyMissing(id, keys);
      const from = headerOf(id).length + NONCE_BYTES;
      if (bytes.length < from + TAG_BYTES) throw unreadable(id);
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(from - NONCE_BYTES, from), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.concat([bytes.subarray(0, from - NONCE_BYTES), contextBytes(context)]));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        return decipher.update(bytes.subarray(from, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
      } catch (cause) {
        throw unreadable(id, cause);
      }
    },
  };
}

function headerOf(id: string): Buffer {
  const bytes = Buffer.from(id);
  return Buffer.concat([Buffer.of(VERSION, bytes.length), bytes]);
}

/** Neither a field nor a number contains the separator, so no two contexts have the same bytes. */
function contextBytes({ run, field, place }: PayloadContext): Buffer {
  return Buffer.from(`${field}/${run}/${place}`);
}

function keyIdOf(bytes: Uint8Array): string {
  const length = bytes[1] ?? 0;
  if (bytes[0] !== VERSION || length === 0 || bytes.length < 2 + length)
    throw new RepriseError(
      "PAYLOAD_UNREADABLE",
      "aesGcm did not write these bytes. Pass the codec that wrote them, or restore the row from a backup.",
    );
  return Buffer.from(bytes.subarray(2, 2 + length)).toString();
}

function keyMissing(id: string, keys: ReadonlyMap<string, KeyObject>): RepriseError {
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    `it was encrypted with key ${inspect(id)}, and this process has ${[...keys.keys()].map((known) => inspect(known)).join(", ")}. Add the key to \`keys\`.`,
    { details: { key: id, keys: [...keys.keys()] } },
  );
}

function unreadable(id: string, cause?: unknown): RepriseError {
  return new RepriseError(
    "PAYLOAD_UNREADABLE",
    `key ${inspect(id)} does not decrypt it: another key wrote it, or the bytes were changed or moved. Compare the key; if it is right, restore the row from a backup.`,
    { cause, details: { key: id } },
  );
}

function checkOptions(options: unknown): ReadonlyMap<string, KeyObject> {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `aesGcm: expected { keys, current }, got ${inspect(options)}.`);
  checkOptionNames(options, ["current", "keys"], "aesGcm");
  const { keys, current } = options as { keys?: unknown; current?: unknown };
  if (typeof keys !== "object" || keys === null || Object.keys(keys).length === 0)
    throw new RepriseError("BAD_OPTIONS", "aesGcm: expected at least one key in `keys`, by its id.");
  const made = new Map(Object.entries(keys).map(([id, key]) => [checkKeyId(id), keyOf(id, key)]));
  if (typeof current !== "string" || !made.has(current))
    throw new RepriseError(
      "BAD_OPTIONS",
      `aesGcm: expected the id of one of the keys as \`current\` (${[...made.keys()].join(", ")}), got ${inspect(current)}.`,
    );
  return made;
}

function checkKeyId(id: string): string {
  if (id !== "" && Buffer.byteLength(id) <= MAX_KEY_ID_BYTES && /^[\x21-\x7e]+$/.test(id)) return id;
  throw new RepriseError(
    "BAD_OPTIONS",
    `aesGcm: every payload contains the key's id: expected 1 to ${MAX_KEY_ID_BYTES} printable characters without spaces, got ${inspect(id)}.`,
  );
}

/** The message names the length of a key, never the key. */
function keyOf(id: string, key: unknown): KeyObject {
  const bytes = typeof key === "string" ? Buffer.from(key, "base64") : key;
  if (!(bytes instanceof Uint8Array) || bytes.length !== KEY_BYTES) {
    const got = bytes instanceof Uint8Array ? `${bytes.length} bytes` : `a ${typeof key}`;
    throw new RepriseError(
      "BAD_OPTIONS",
      `aesGcm: expected ${KEY_BYTES} bytes or their base64 as key ${inspect(id)}, got ${got}. \`openssl rand -base64 32\` creates one.`,
    );
  }
  return createSecretKey(bytes);
}
