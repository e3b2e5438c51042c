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

/** merkle.M1 */
export function nodeHash(left: Hash, right: Hash): Hash {
  const bytes = Buffer.allocUnsafe(65);
  bytes[0] = 1;
  left.copy(bytes, 1);
  right.copy(bytes, 33);
  return hash("sha256", bytes, "buffer");
}

export class MerkleTree {
  /** merkle.M2. The roots of the complete subtrees, largest first: one for each bit of `size`. */
  readonly #peaks: Hash[];
  #size: number;

  /** Continues a tree of `size` leaves that has these peaks. */
  constructor(peaks: readonly Hash[] = [], size = 0) {
    this.#peaks = [...peaks];
    this.#size = size;
  }

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

  /** merkle.M2. What a tree is continued from. */
  peaks(): readonly Hash[] {
    return [...this.#peaks];
  }

  /** The root over all leaves so far, in hex. */
  root(): string {
    return this.rootHash().toString("hex");
  }

  rootHash(): Hash {
    const root = this.#peaks.reduceRight<Hash | undefined>(
      (right, left) => (right === undefined ? left : nodeHash(left, right)),
      undefined,
    );
    return root ?? hash("sha256", "", "buffer");
  }
}
