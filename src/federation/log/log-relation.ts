// Log relation: how two copies of one log stand to each other, and where they part.
//
// log-relation.R1. Roots of prefixes decide: if two logs have the same root at size m, they have the same records up to m. So the last
//   common record is found with a binary search, and two signed heads of one size with other roots prove a fork by themselves.
// log-relation.R2. A site that meets a longer log of its own takes it back if its own is a prefix. Otherwise both were written: it closes
//   this epoch and continues as the next one (origin.O2).

import type { Checkpoint } from "./checkpoint.ts";

/** A copy of a log. */
export interface LogCopy {
  readonly size: number;
  /** The root over the first `size` records. */
  rootAt(size: number): Buffer;
}

export type LogRelation =
  | { readonly status: "equal" }
  /** The first is a prefix of the second. */
  | { readonly status: "prefix" }
  /** The second is a prefix of the first. */
  | { readonly status: "extends" }
  /** Record `at + 1` differs. */
  | { readonly status: "forked"; readonly at: number };

/** log-relation.R1 */
export function relationOf(first: LogCopy, second: LogCopy): LogRelation {
  const shorter = Math.min(first.size, second.size);
  const isSame = (size: number): boolean => first.rootAt(size).equals(second.rootAt(size));
  if (!isSame(shorter)) return { status: "forked", at: lastCommon(shorter, isSame) };
  if (first.size === second.size) return { status: "equal" };
  return { status: first.size < second.size ? "prefix" : "extends" };
}

/** The greatest size below `size` at which both are the same: they are at 0, and are not at `size`. */
function lastCommon(size: number, isSame: (size: number) => boolean): number {
  let same = 0;
  let other = size;
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2);
    if (isSame(middle)) same = middle;
    else other = middle;
  }
  return same;
}

/** log-relation.R1. Whether two heads, both verified, prove a fork without any record. */
export function areForkedHeads(a: Checkpoint, b: Checkpoint): boolean {
  return a.origin === b.origin && a.size === b.size && a.root !== b.root;
}
