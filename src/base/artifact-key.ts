// Artifact key: the name of bytes by their content and type.
//
// artifact-key.A1. key(type, bytes) = SHA-256(PAE(type, bytes)), in lower-case hex. PAE is that of DSSE v1: lengths in bytes, in decimal.
// artifact-key.A2. The type is never absent from what is hashed.

import { createHash, createHmac } from "node:crypto";
import { sha256Hex, sha256HexOf } from "./digest.ts";

/** What this package names by its key. */
export type ArtifactName =
  | "value"
  | "claim"
  | "run"
  | "memo"
  | "link"
  | "slot"
  | "snapshot"
  | "evidence"
  | "memo-answer"
  | "step";

/** The type of an artifact of this package: `application/vnd.reprise.claim.v1+json`. */
export function mediaType(name: ArtifactName): string {
  return `application/vnd.reprise.${name}.v1+json`;
}

/** What DSSE signs, and what the key of an artifact hashes. */
export function pae(type: string, text: string): string {
  return `DSSEv1 ${Buffer.byteLength(type)} ${type} ${Buffer.byteLength(text)} ${text}`;
}

const SHORT_BYTES = 8_192;

/** artifact-key.A1 */
export function artifactKey(type: string, content: string | Uint8Array): string {
  if (typeof content === "string") return sha256Hex(pae(type, content));
  const head = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${content.length} `;
  // One call into crypto is worth a copy of short bytes: 1.6 against 3.1 µs for 300 bytes.
  if (content.length < SHORT_BYTES) return sha256Hex(Buffer.concat([Buffer.from(head), content]));
  return createHash("sha256").update(head).update(content).digest("hex");
}

/** As `artifactKey`, under a secret: who does not have it cannot guess the text from the key. */
export function secretArtifactKey(secret: string, type: string, text: string): string {
  return createHmac("sha256", secret).update(pae(type, text)).digest("hex");
}

const VALUE = mediaType("value");
const VALUE_HEAD = `DSSEv1 ${VALUE.length} ${VALUE} `;

/** The key of a value, of its canonical text. */
export function valueKey(text: string): string {
  return sha256HexOf(`${VALUE_HEAD}${Buffer.byteLength(text)} `, text);
}
