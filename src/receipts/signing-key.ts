// Signing key: an Ed25519 key, the name of who signs with it, and signed notes (C2SP signed-note).
//
// signing-key.K1. origin = `<name>/<first 16 hex of SHA-256(public key)>`: a name that no other key has.
// signing-key.K2. A vkey is what a verifier needs: `<origin>+<8 hex>+<base64 of 0x01 ‖ public key>`. The eight digits are the first
//   four bytes of SHA-256(origin ‖ 0x0A ‖ 0x01 ‖ public key).
//   A log that an origin begins again has the origin `<origin>/<epoch>`, and the same public key under that name.
// signing-key.K3. Ed25519 is deterministic: the same text has the same signature.

import {
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { RepriseError, sha256Hex } from "../base/index.ts";

const SEED_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex");
const SEED_BYTES = 32;
const ED25519 = Buffer.of(1);
/** A name is also the name of a folder, so it is neither `.` nor `..`. */
const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const ORIGIN = /^(?!\.{1,2}\/)[A-Za-z0-9._-]{1,100}\/[0-9a-f]{16}(?:\/[1-9][0-9]{0,8})?$/;
const VKEY = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/;

/** What a verifier knows of a signer. */
export interface VerifyingKey {
  readonly origin: string;
  /** `<origin>+<8 hex>`, as in a signature. */
  readonly id: string;
  readonly vkey: string;
  /** The 32 bytes of the Ed25519 key. */
  readonly publicKey: Uint8Array;
  verify(text: string, signature: Uint8Array): boolean;
  /** The same key under the name of another origin: after a rotation, and for a later epoch of the log. */
  forOrigin(origin: string): VerifyingKey;
}

export interface SigningKey extends VerifyingKey {
  sign(text: string): Buffer;
  /** A secret that only the holder of the key can derive: the same for the same use. */
  derive(use: string, bytes: number): Buffer;
  forOrigin(origin: string): SigningKey;
}

/** The key of a seed of 32 bytes. The name may hold neither space nor `+`; in its place stands the origin that a rotated key keeps. */
export function signingKeyOf(seed: Uint8Array, name: string): SigningKey {
  if (!NAME.test(name) && !ORIGIN.test(name))
    throw new RepriseError(
      "BAD_OPTIONS",
      `The name of a signing key has 1 to 100 letters, digits, dots, underscores and hyphens; got ${JSON.stringify(name)}.`,
    );
  if (seed.length !== SEED_BYTES)
    throw new RepriseError("BAD_OPTIONS", `A signing key has a seed of ${SEED_BYTES} bytes; got ${seed.length}.`);
  const secret = createPrivateKey({ key: Buffer.concat([SEED_HEAD, seed]), format: "der", type: "pkcs8" });
  const bytes = createPublicKey(secret).export({ format: "der", type: "spki" }).subarray(-SEED_BYTES);
  // An HMAC under a key object takes 3 µs, under bytes 14; a log derives one value per run.
  const derivation = createSecretKey(seed);
  const named = (origin: string): SigningKey => ({
    ...verifyingKey(origin, bytes),
    sign: (text) => sign(null, Buffer.from(text), secret),
    derive: (use, length) =>
      createHmac("sha256", derivation).update(`reprise/derive/v1/${use}`).digest().subarray(0, length),
    forOrigin: named,
  });
  return named(ORIGIN.test(name) ? name : firstOrigin(name, bytes));
}

/** signing-key.K1. The origin whose first key this is. */
export function firstOrigin(name: string, publicKey: Uint8Array): string {
  return `${name}/${sha256Hex(publicKey).slice(0, 16)}`;
}

/** signing-key.K2. The key of a vkey's text. */
export function parseVkey(text: string): VerifyingKey {
  const [, origin = "", id = "", encoded = ""] = VKEY.exec(text.trim()) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  if (!ORIGIN.test(origin)) throw badVkey(text, "it does not begin with an origin");
  if (bytes.length !== SEED_BYTES + 1 || bytes[0] !== 1) throw badVkey(text, "it is not an Ed25519 vkey");
  const key = verifyingKey(origin, bytes.subarray(1));
  if (key.id !== `${origin}+${id}`) throw badVkey(text, "its digits do not belong to its key");
  // signing-key.K1 holds for the first key of an origin; a later one has the same origin, so it is not checked here.
  return key;
}

function badVkey(text: string, why: string): RepriseError {
  return new RepriseError(
    "BAD_OPTIONS",
    `${JSON.stringify(text.slice(0, 200))} is not a vkey: ${why}. \`reprise key\` prints one: <name>/<16 hex>+<8 hex>+<base64>.`,
  );
}

function verifyingKey(origin: string, bytes: Uint8Array): VerifyingKey {
  const key: KeyObject = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, bytes]), format: "der", type: "spki" });
  const typed = Buffer.concat([ED25519, bytes]);
  const digits = createHash("sha256").update(origin).update("\n").update(typed).digest("hex").slice(0, 8);
  const id = `${origin}+${digits}`;
  return {
    origin,
    id,
    vkey: `${id}+${typed.toString("base64")}`,
    publicKey: bytes,
    verify: (text, signature) => verify(null, Buffer.from(text), key, signature),
    forOrigin: (other) => verifyingKey(other, bytes),
  };
}

/** A signed note of one signature; `text` ends with a newline. */
export function signNote(text: string, key: SigningKey): string {
  const [origin, digits = ""] = key.id.split("+");
  const signature = Buffer.concat([Buffer.from(digits, "hex"), key.sign(text)]);
  return `${text}\n— ${origin} ${signature.toString("base64")}\n`;
}
