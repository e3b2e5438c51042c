// Log tree: the Merkle tree (RFC 6962) of a log, kept as its peaks and continued from them.
//
// log-tree.T1. The peaks are the roots of the complete subtrees, largest first, one for each bit of the size: 32 bytes each, as hex. Who
//   keeps size and peaks can append, and compute the root, without reading the log.

import { invariant } from "../../base/index.ts";
import { leafHash, MerkleTree } from "../../receipts/index.ts";

const HASH_HEX = 64;

export class LogTree {
  readonly #tree: MerkleTree;

  private constructor(tree: MerkleTree) {
    this.#tree = tree;
  }

  static empty(): LogTree {
    return new LogTree(new MerkleTree());
  }

  /** The tree of the texts of records. */
  static ofTexts(texts: Iterable<string>): LogTree {
    const tree = LogTree.empty();
    for (const text of texts) tree.append(text);
    return tree;
  }

  /** log-tree.T1. Continues a tree that was kept. */
  static of(peaks: string, size: number): LogTree {
    const count = bitsOf(size);
    invariant(peaks.length === count * HASH_HEX, "log-tree.T1: a tree has a peak for each bit of its size");
    const hashes = Array.from({ length: count }, (_, i) =>
      Buffer.from(peaks.slice(i * HASH_HEX, (i + 1) * HASH_HEX), "hex"),
    );
    return new LogTree(new MerkleTree(hashes, size));
  }

  get size(): number {
    return this.#tree.size;
  }

  /** Appends the hash of a leaf. */
  push(leaf: Buffer): void {
    this.#tree.push(leaf);
  }

  /** Appends the text of a record. */
  append(text: string): void {
    this.#tree.push(leafHash(text));
  }

  root(): Buffer {
    return this.#tree.rootHash();
  }

  /** log-tree.T1 */
  peaks(): string {
    return this.#tree
      .peaks()
      .map((hash) => hash.toString("hex"))
      .join("");
  }

  copy(): LogTree {
    return new LogTree(new MerkleTree(this.#tree.peaks(), this.size));
  }
}

function bitsOf(size: number): number {
  invariant(Number.isSafeInteger(size) && size >= 0, "the size of a tree is a whole number");
  let count = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}
