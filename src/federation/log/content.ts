// Content: bytes with their type and the key that both give.
//
// content.B1. Type, size and SHA-256 travel with the bytes. If one of them or the key does not fit, nothing of it is taken.
// content.B2. An artifact file is a line {h, k, t, z} and the bytes.

import { artifactKey, canonicalJson, RepriseError, sha256Hex } from "../../base/index.ts";

export interface Content {
  readonly key: string;
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** What is said about bytes beside them. */
export interface ContentHead {
  /** SHA-256 of the bytes, in hex. */
  readonly h: string;
  /** Their key. */
  readonly k: string;
  /** Their type. */
  readonly t: string;
  /** Their number. */
  readonly z: number;
}

/** A content, with the key that its type and its bytes give. */
export function contentOf(type: string, content: string | Uint8Array): Content {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return { key: artifactKey(type, bytes), type, bytes };
}

export function contentHead({ key, type, bytes }: Content): ContentHead {
  return { h: sha256Hex(bytes), k: key, t: type, z: bytes.length };
}

/** content.B1. The content that the bytes are, if they fit what is said about them. */
export function checkContent({ h, k, t, z }: ContentHead, bytes: Uint8Array): Content {
  if (bytes.length !== z) throw damaged(k, `has ${bytes.length} bytes, where its head says ${z}`);
  const sum = sha256Hex(bytes);
  if (sum !== h) throw damaged(k, `has the SHA-256 ${sum}, where its head says ${h}`);
  const key = artifactKey(t, bytes);
  if (key !== k) throw damaged(k, `has the key ${key} as ${JSON.stringify(t.slice(0, 100))}`);
  return { key, type: t, bytes };
}

export function isContentHead(value: unknown): value is ContentHead {
  if (typeof value !== "object" || value === null) return false;
  const { h, k, t, z } = value as Readonly<Record<string, unknown>>;
  return isHash(h) && isHash(k) && isType(t) && Number.isSafeInteger(z) && (z as number) >= 0;
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function isType(value: unknown): boolean {
  return typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value);
}

const NEWLINE = 10;
const MAX_HEAD_BYTES = 1_024;

/** content.B2 */
export function encodeArtifact(content: Content): Uint8Array {
  return Buffer.concat([Buffer.from(`${canonicalJson(contentHead(content))}\n`), content.bytes]);
}

/** content.B2. The content of an artifact file that must have this key. */
export function decodeArtifact(file: Uint8Array, key: string): Content {
  const end = file.subarray(0, MAX_HEAD_BYTES).indexOf(NEWLINE);
  const text = Buffer.from(file.subarray(0, Math.max(end, 0))).toString();
  const head = findHead(text);
  if (head === undefined) throw damaged(key, "has no canonical head {h, k, t, z}");
  if (head.k !== key) throw damaged(key, `has a head for ${head.k}`);
  return checkContent(head, file.subarray(end + 1));
}

function findHead(text: string): ContentHead | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isContentHead(value) && canonicalJson(value) === text && Object.keys(value).length === 4 ? value : undefined;
  } catch {
    return undefined;
  }
}

export function damaged(key: string, why: string): RepriseError {
  return new RepriseError("CONTENT_DAMAGED", `The content ${key} ${why}. It is not taken.`, { details: { key } });
}
