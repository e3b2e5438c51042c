// Tile stack: the right edge of the tiles of a log. It turns appended leaves into the tiles that a push writes.
//
// tile-stack.E1. It holds the last, partial tile of every level: at most 255 hashes each. A tile that fills up is handed out, and its root
//   goes to the level above.

import { nodeHash } from "../../receipts/index.ts";
import { encodeTile, TILE_WIDTH, type TileName } from "./tiles.ts";

export interface Tile extends TileName {
  readonly bytes: Buffer;
}

export class TileStack {
  /** tile-stack.E1. By level. */
  readonly #partial: Buffer[][] = [];
  #size: number;

  /** Continues a log of `size` records whose last, partial tiles have these hashes, by level. */
  constructor(partial: readonly (readonly Buffer[])[] = [], size = 0) {
    this.#partial = partial.map((hashes) => [...hashes]);
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  /** Appends a leaf hash; returns the tiles that it fills, lowest first. */
  push(leaf: Buffer): Tile[] {
    const full: Tile[] = [];
    let hash = leaf;
    this.#size += 1;
    for (let level = 0; ; level += 1) {
      const hashes = (this.#partial[level] ??= []);
      hashes.push(hash);
      if (hashes.length < TILE_WIDTH) return full;
      const n = Math.floor(this.#size / TILE_WIDTH ** (level + 1)) - 1;
      full.push({ level, n, width: TILE_WIDTH, bytes: encodeTile(hashes) });
      hash = tileRoot(hashes);
      this.#partial[level] = [];
    }
  }

  /** The partial tiles at this size. */
  partials(): Tile[] {
    return this.#partial.flatMap((hashes, level) =>
      hashes.length === 0
        ? []
        : {
            level,
            n: Math.floor(this.#size / TILE_WIDTH ** (level + 1)),
            width: hashes.length,
            bytes: encodeTile(hashes),
          },
    );
  }
}

/** The root of a full tile. */
export function tileRoot(hashes: readonly Buffer[]): Buffer {
  let level = hashes;
  while (level.length > 1)
    level = Array.from({ length: level.length / 2 }, (_, i) => nodeHash(level[2 * i]!, level[2 * i + 1]!));
  return level[0]!;
}
