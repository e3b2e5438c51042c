// Order keys: the place of an item among the items of its step, as a hash of the path that led to it (rules.G1).
//
// path(root) = SHA-256("reprise/path/v1"); path(child) = SHA-256(path(parent) ‖ u32be(edge) ‖ node); the order key is the
// first eight bytes of SHA-256(path(parent) ‖ u32be(edge)). An item of a spread appends u32be(index) to both; otherwise all
// items of a spread would share randomness, recordings and keys. Paths have 64 hex digits and order keys 16, so both sort
// as text. As a number an order key is a bigint.

import { hash } from "node:crypto";

/** 64 hex digits. */
export type Path = string;
/** 16 hex digits: an unsigned 64-bit number, big-endian. */
export type OrderKey = string;

export const ROOT_PATH: Path = hash("sha256", "reprise/path/v1");

/** How a parent leads to an item: by which of its edges, and by which item of a spread. */
export interface PathStep {
  readonly parent: Path;
  readonly edge: number;
  readonly spread?: number | undefined;
}

export function pathOf({ parent, edge, spread }: PathStep, node: string): Path {
  // UTF-8 uses at most three bytes per UTF-16 unit.
  if (HEAD_BYTES + node.length * 3 + 4 > scratch.length) scratch = Buffer.alloc(HEAD_BYTES + node.length * 3 + 4);
  writeHead(parent, edge);
  return digest(HEAD_BYTES + scratch.write(node, HEAD_BYTES), spread);
}

export function orderKeyOf({ parent, edge, spread }: PathStep): OrderKey {
  writeHead(parent, edge);
  return digest(HEAD_BYTES, spread).slice(0, 16);
}

/** A shared buffer for the input of the hash: a wide step has many items, each with two hashes. */
let scratch = Buffer.alloc(256);
/** The bytes of a path and an edge. */
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
