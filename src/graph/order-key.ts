// Order keys: where an item stands, as a hash of the path that led to it (G1).
//
// path(root) = SHA-256("reprise/path/v1"); path(child) = SHA-256(path(parent) ‖ u32be(edge) ‖ node); the order key is the
// first eight bytes of SHA-256(path(parent) ‖ u32be(edge)). An item of a spread appends u32be(index) to both, else all
// items of a spread would share randomness, recordings and keys. Paths are 64 hex digits, order keys 16: they sort as text
// everywhere; as a number an order key is a bigint.

import { hash } from "node:crypto";

/** 64 hex digits. */
export type Path = string;
/** 16 hex digits: an unsigned 64-bit number, big-endian. */
export type OrderKey = string;

export const ROOT_PATH: Path = hash("sha256", "reprise/path/v1");

/** One step from a parent to an item: which of its edges, and which item of a spread. */
export interface Step {
  readonly parent: Path;
  readonly edge: number;
  readonly spread?: number | undefined;
}

export function pathOf({ parent, edge, spread }: Step, node: string): Path {
  // A character is at most three bytes.
  if (HEAD_BYTES + node.length * 3 + 4 > scratch.length) scratch = Buffer.alloc(HEAD_BYTES + node.length * 3 + 4);
  writeHead(parent, edge);
  return digest(HEAD_BYTES + scratch.write(node, HEAD_BYTES), spread);
}

export function orderKeyOf({ parent, edge, spread }: Step): OrderKey {
  writeHead(parent, edge);
  return digest(HEAD_BYTES, spread).slice(0, 16);
}

/** What is hashed is written here, one after the other: a wide step has many items, and each two hashes. */
let scratch = Buffer.alloc(256);
/** A path and an edge. */
const HEAD_BYTES = 36;

function writeHead(parent: Path, edge: number): void {
  scratch.write(parent, "hex");
  scratch.writeUInt32BE(edge, 32);
}

function digest(length: number, spread: number | undefined): string {
  const end = spread === undefined ? length : scratch.writeUInt32BE(spread, length);
  return hash("sha256", scratch.subarray(0, end));
}

export function orderKeyNumber(key: OrderKey): bigint {
  return BigInt(`0x${key}`);
}

/** Dispatch order: ascending order key, ties by the whole path. */
export function compareItems(
  a: { readonly orderKey: OrderKey; readonly path: Path },
  b: { readonly orderKey: OrderKey; readonly path: Path },
): number {
  if (a.orderKey !== b.orderKey) return a.orderKey < b.orderKey ? -1 : 1;
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
