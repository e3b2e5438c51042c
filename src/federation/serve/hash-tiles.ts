// Hash tiles: the tiles of a log of any level, made of its records without hashing the log for each request.
//
// hash-tiles.T1. The root of a full tile is computed once and kept in `serve.db`: 32 bytes for 256 records, 1/256 of that for each level
//   above. A tile of level 0 needs 256 records; a tile above needs 256 kept roots (docs/decisions/0169).
// hash-tiles.T2. The kept roots are a cache. Before a tile of a higher level is handed out under a new checkpoint, the root that they give
//   is compared with the checkpoint's; if it differs (the home was replaced, a fork was resolved) they are made again.
// hash-tiles.T3. The event loop gets a turn between tiles: the first request after 10^6 records were taken blocks no other.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RepriseError, type Timers } from "../../base/index.ts";
import { leafHash, MerkleTree } from "../../receipts/index.ts";
import { encodeTile, TILE_WIDTH } from "../log/tiles.ts";
import { tileRoot } from "../log/tile-stack.ts";

/** The records of a log: texts, from record `first` (counted from 1). */
export type ReadRecords = (origin: string, first: number, count: number) => readonly string[];

export interface LogHead {
  readonly origin: string;
  readonly size: number;
  /** In base64. */
  readonly root: string;
}

export class HashTiles {
  readonly #read: ReadRecords;
  readonly #timers: Timers;
  readonly #find: StatementSync;
  readonly #insert: StatementSync;
  readonly #forget: StatementSync;
  /** The root of the checkpoint that the kept roots of an origin were compared with. */
  readonly #checked = new Map<string, string>();

  constructor(db: DatabaseSync, read: ReadRecords, timers: Timers) {
    this.#read = read;
    this.#timers = timers;
    this.#find = db.prepare("select root from tile_root where origin = ? and level = ? and n = ?");
    this.#insert = db.prepare(
      "insert into tile_root (origin, level, n, root) values (?, ?, ?, ?) on conflict do update set root = excluded.root",
    );
    this.#forget = db.prepare("delete from tile_root where origin = ?");
  }

  /** The bytes of a tile that the log of this head has. */
  async read(head: LogHead, level: number, n: number, width: number): Promise<Buffer> {
    if (level > 0) await this.#check(head);
    return encodeTile(await this.#hashes(head.origin, level, n * TILE_WIDTH, width));
  }

  /** The hashes of a level, from the one with number `first`. */
  async #hashes(origin: string, level: number, first: number, count: number): Promise<Buffer[]> {
    if (level === 0) return this.#read(origin, first + 1, count).map(leafHash);
    const hashes: Buffer[] = [];
    for (let n = first; n < first + count; n += 1) hashes.push(await this.#rootOf(origin, level, n));
    return hashes;
  }

  /** hash-tiles.T1. The root of the full tile `n` below `level`. */
  async #rootOf(origin: string, level: number, n: number): Promise<Buffer> {
    const kept = this.#find.get(origin, level, n)?.["root"] as Uint8Array | undefined;
    if (kept !== undefined) return Buffer.from(kept);
    if (level === 1) await new Promise<void>((resume) => this.#timers.soon(resume));
    const root = tileRoot(await this.#hashes(origin, level - 1, n * TILE_WIDTH, TILE_WIDTH));
    this.#insert.run(origin, level, n, root);
    return root;
  }

  /** hash-tiles.T2 */
  async #check(head: LogHead): Promise<void> {
    const { origin, size, root } = head;
    if (this.#checked.get(origin) === root) return;
    if ((await this.#rootAt(origin, size)) !== root) {
      this.#forget.run(origin);
      if ((await this.#rootAt(origin, size)) !== root)
        throw new RepriseError(
          "STORE_CORRUPT",
          `The records of ${origin} in this home do not have the root of their checkpoint of size ${size}. Run \`reprise fed rebuild\`.`,
        );
    }
    this.#checked.set(origin, root);
  }

  async #rootAt(origin: string, size: number): Promise<string> {
    return (await this.#treeAt(origin, size)).rootHash().toString("base64");
  }

  /** The tree of a log, to be continued. */
  async tree(head: LogHead): Promise<MerkleTree> {
    await this.#check(head);
    return this.#treeAt(head.origin, head.size);
  }

  /** The tree of the first `size` records, made of the largest tiles: 255 hashes for each level at most. */
  async #treeAt(origin: string, size: number): Promise<MerkleTree> {
    const peaks: Buffer[] = [];
    let level = 0;
    while (TILE_WIDTH ** (level + 1) <= size) level += 1;
    for (let done = 0; level >= 0; level -= 1) {
      const width = TILE_WIDTH ** level;
      const count = Math.floor((size - done) / width);
      const tree = new MerkleTree();
      for (const hash of await this.#hashes(origin, level, done / width, count)) tree.push(hash);
      peaks.push(...tree.peaks());
      done += count * width;
    }
    return new MerkleTree(peaks, size);
  }
}
