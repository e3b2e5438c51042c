// Tree proof: that a record is in a log, and that a log extends an earlier one (RFC 6962, 2.1; verified as in RFC 9162).
//
// tree-proof.P1. Proofs are made of the hashes of complete subtrees: `hashAt(level, index)` covers the leaves from index * 2^level on.
//   These never change, and tiles hold them.
// tree-proof.P2. Verifying takes roots and hashes alone, and never throws: what does not fit is not proved.

import { invariant } from "../../base/index.ts";
import { nodeHash } from "../../receipts/index.ts";
import { LogTree } from "./log-tree.ts";

/** tree-proof.P1 */
export type HashAt = (level: number, index: number) => Buffer;

/** The subtrees of a list of leaf hashes; each is computed once. */
export function hashesOf(leaves: readonly Buffer[]): HashAt {
  const levels: (readonly Buffer[])[] = [leaves];
  return (level, index) => {
    for (let at = levels.length; at <= level; at += 1) {
      const below = levels[at - 1]!;
      levels.push(
        Array.from({ length: Math.floor(below.length / 2) }, (_, i) => nodeHash(below[2 * i]!, below[2 * i + 1]!)),
      );
    }
    const hash = levels[level]![index];
    invariant(hash !== undefined, "tree-proof.P1: the subtree is complete");
    return hash;
  };
}

/** The root over the first `size` leaves. */
export function rootOf(size: number, hashAt: HashAt): Buffer {
  return size === 0 ? LogTree.empty().root() : rangeHash(0, size, hashAt);
}

/** The hashes that lead from the leaf at `index`, which counts from 0, to the root over `size` leaves. */
export function inclusionProof(index: number, size: number, hashAt: HashAt): Buffer[] {
  invariant(index >= 0 && index < size, "a leaf is proved in a tree that has it");
  return path(index, 0, size, hashAt);
}

function path(index: number, start: number, end: number, hashAt: HashAt): Buffer[] {
  if (end - start === 1) return [];
  const middle = start + splitOf(end - start);
  return index < middle
    ? [...path(index, start, middle, hashAt), rangeHash(middle, end, hashAt)]
    : [...path(index, middle, end, hashAt), rangeHash(start, middle, hashAt)];
}

/** The hashes that show that the tree of `older` leaves is a prefix of the tree of `newer`. */
export function consistencyProof(older: number, newer: number, hashAt: HashAt): Buffer[] {
  invariant(older >= 0 && older <= newer, "a log extends a shorter one");
  return older === 0 || older === newer ? [] : subproof(older, 0, newer, true, hashAt);
}

function subproof(older: number, start: number, end: number, isWhole: boolean, hashAt: HashAt): Buffer[] {
  if (older === end) return isWhole ? [] : [rangeHash(start, end, hashAt)];
  const middle = start + splitOf(end - start);
  return older <= middle
    ? [...subproof(older, start, middle, isWhole, hashAt), rangeHash(middle, end, hashAt)]
    : [...subproof(older, middle, end, false, hashAt), rangeHash(start, middle, hashAt)];
}

/** The greatest power of two below `count`. */
function splitOf(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

/** Splits where the tree does, so `start` is a multiple of every power of two that fits. */
function rangeHash(start: number, end: number, hashAt: HashAt): Buffer {
  const level = Math.round(Math.log2(end - start));
  if (2 ** level === end - start) return hashAt(level, start / 2 ** level);
  const middle = start + splitOf(end - start);
  return nodeHash(rangeHash(start, middle, hashAt), rangeHash(middle, end, hashAt));
}

/** tree-proof.P2. Whether the leaf is at `index` of the tree of `size` leaves with this root. */
export function verifyInclusion(
  leaf: Buffer,
  index: number,
  size: number,
  root: Buffer,
  proof: readonly Buffer[],
): boolean {
  if (!isSize(index) || !isSize(size) || index >= size) return false;
  let hash = leaf;
  let at = index;
  let last = size - 1;
  for (const sibling of proof) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      hash = nodeHash(sibling, hash);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else hash = nodeHash(hash, sibling);
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && hash.equals(root);
}

/** A tree as a checkpoint says it. */
export interface TreeHead {
  readonly size: number;
  readonly root: Buffer;
}

/** tree-proof.P2. Whether the older tree is a prefix of the newer one. */
export function verifyConsistency(older: TreeHead, newer: TreeHead, proof: readonly Buffer[]): boolean {
  if (!isSize(older.size) || !isSize(newer.size) || older.size > newer.size) return false;
  if (older.size === newer.size) return proof.length === 0 && older.root.equals(newer.root);
  if (older.size === 0) return proof.length === 0 && older.root.equals(LogTree.empty().root());
  let at = older.size - 1;
  let last = newer.size - 1;
  while (at % 2 === 1) [at, last] = [half(at), half(last)];
  // A complete older tree is its own first hash.
  const hashes = at === 0 ? [older.root, ...proof] : [...proof];
  const [first, ...rest] = hashes;
  if (first === undefined) return false;
  let olderHash = first;
  let newerHash = first;
  for (const hash of rest) {
    if (last === 0) return false;
    if (at % 2 === 1 || at === last) {
      olderHash = nodeHash(hash, olderHash);
      newerHash = nodeHash(hash, newerHash);
      while (at % 2 === 0 && at !== 0) [at, last] = [half(at), half(last)];
    } else newerHash = nodeHash(newerHash, hash);
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && olderHash.equals(older.root) && newerHash.equals(newer.root);
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function half(value: number): number {
  return Math.floor(value / 2);
}
