// Merkle: the tree of RFC 6962 over a list that is only appended to.
//
// merkle.M1. leaf = SHA-256(0x00 ‖ bytes), node = SHA-256(0x01 ‖ left ‖ right). The root of no leaves is the SHA-256 of nothing.
// merkle.M2. Memory is one hash per level: a tree of any size can be computed from a stream.

import { hash } from "node:crypto";

type Hash = Buffer;

/** merkle.M1 */
export function leafHash(text: string): Hash {
  return hash("sha256", `\0${text}`, "buffer");
}

function nodeHash(left: Hash, right: Hash): Hash {
  const bytes = Buffer.allocUnsafe(65);
  bytes[0] = 1;
  left.copy(bytes, 1);
  right.copy(bytes, 33);
  return hash("sha256", bytes, "buffer");
}

export class MerkleTree {
  /** merkle.M2. The roots of the complete subtrees, largest first: one for each bit of `size`. */
  readonly #peaks: Hash[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(leaf: Hash): void {
    this.#peaks.push(leaf);
    for (let size = this.#size; size % 2 === 1; size = Math.floor(size / 2)) {
      const right = this.#peaks.pop()!;
      const left = this.#peaks.pop()!;
      this.#peaks.push(nodeHash(left, right));
    }
    this.#size += 1;
  }

  /** The root over all leaves so far, in hex. */
  root(): string {
    const root = this.#peaks.reduceRight<Hash | undefined>(
      (right, left) => (right === undefined ? left : nodeHash(left, right)),
      undefined,
    );
    return (root ?? hash("sha256", "", "buffer")).toString("hex");
  }
}
