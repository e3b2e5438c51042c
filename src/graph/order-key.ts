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
  return hash("sha256", Buffer.concat([Buffer.from(parent, "hex"), u32be(edge), Buffer.from(node), tail(spread)]));
}

export function orderKeyOf({ parent, edge, spread }: Step): OrderKey {
  return hash("sha256", Buffer.concat([Buffer.from(parent, "hex"), u32be(edge), tail(spread)])).slice(0, 16);
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

const NOTHING = Buffer.alloc(0);

function tail(spread: number | undefined): Buffer {
  return spread === undefined ? NOTHING : u32be(spread);
}

function u32be(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
