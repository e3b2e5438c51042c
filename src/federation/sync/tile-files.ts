// Tile files: the tiles of a log that a carrier lacks, made of the records in a home.
//
// tile-files.F1. The right edge of the tiles continues from the partial tiles that the carrier has, if they give the root of its
//   checkpoint. Otherwise it is computed from the records: the carrier is never believed (carrier.C1).

import type { Carrier } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import { leafHash, MerkleTree, nodeHash } from "../../receipts/index.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import { LogTree } from "../log/log-tree.ts";
import type { Origin } from "../log/origin.ts";
import { TileStack } from "../log/tile-stack.ts";
import { decodeTile, encodeEntries, TILE_WIDTH, tilePath } from "../log/tiles.ts";

/** A file under the folder of its origin. */
export interface LogFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const PAGE = 4_096;

/** The tiles and entry bundles of the records after `before`, up to `size`: what a carrier at `before` lacks. */
export function* tileFiles(
  home: Home,
  origin: Origin,
  before: number,
  size: number,
  edge: TileStack,
): Generator<LogFile> {
  // The last bundle of the carrier may have been partial: it begins again at its first record.
  let bundle: string[] = [];
  for (const { n, rec } of readRecords(home, origin, before - (before % TILE_WIDTH), size)) {
    bundle.push(rec);
    if (n > before)
      for (const tile of edge.push(leafHash(rec))) yield { path: tilePath(tile.level, tile.n), bytes: tile.bytes };
    if (bundle.length < TILE_WIDTH) continue;
    yield { path: tilePath("entries", n / TILE_WIDTH - 1), bytes: encodeEntries(bundle) };
    bundle = [];
  }
  if (bundle.length > 0)
    yield {
      path: tilePath("entries", Math.floor(size / TILE_WIDTH), bundle.length),
      bytes: encodeEntries(bundle),
    };
  for (const { level, n, width, bytes } of edge.partials()) yield { path: tilePath(level, n, width), bytes };
}

/** The records after a number, up to another. */
export function* readRecords(
  home: Home,
  origin: Origin,
  after: number,
  upTo: number,
): Generator<{ n: number; rec: string }> {
  for (let at = after; at < upTo;) {
    const page = home.readLog(origin, at, Math.min(PAGE, upTo - at));
    if (page.length === 0) return;
    yield* page;
    at = page.at(-1)!.n;
  }
}

/** tile-files.F1. The edge of a log at `size`. */
export async function edgeAt(
  home: Home,
  carrier: Carrier,
  origin: Origin,
  known: Pick<Checkpoint, "size" | "root">,
): Promise<TileStack> {
  const there = await edgeOf(carrier, origin, known.size);
  if (there !== undefined && rootOfEdge(there).toString("base64") === known.root)
    return new TileStack(there, known.size);
  return edgeFromRecords(home, origin, known.size);
}

/** The edge of a log at `size`, from its records. */
export function edgeFromRecords(home: Home, origin: Origin, size: number): TileStack {
  const edge = new TileStack();
  for (const { rec } of readRecords(home, origin, 0, size)) edge.push(leafHash(rec));
  return edge;
}

/** The root over the first `size` records. */
export function rootAt(home: Home, origin: Origin, size: number): Buffer {
  return LogTree.ofTexts(recordTexts(home, origin, size)).root();
}

function* recordTexts(home: Home, origin: Origin, size: number): Generator<string> {
  for (const { rec } of readRecords(home, origin, 0, size)) yield rec;
}

/** The partial tiles that a carrier has at this size, by level; undefined: one is missing or damaged. */
async function edgeOf(carrier: Carrier, origin: Origin, size: number): Promise<Buffer[][] | undefined> {
  const levels: Buffer[][] = [];
  for (let level = 0, count = size; count > 0; level += 1, count = Math.floor(count / TILE_WIDTH)) {
    const width = count % TILE_WIDTH;
    if (width === 0) {
      levels.push([]);
      continue;
    }
    const path = tilePath(level, Math.floor(count / TILE_WIDTH), width);
    const file = await carrier.get(`${origin}/${path}`, { maxBytes: TILE_WIDTH * 32 });
    if (file === undefined || file === "unchanged") return undefined;
    try {
      levels.push(decodeTile(file.bytes, width));
    } catch {
      return undefined;
    }
  }
  return levels;
}

/** The root that partial tiles give: each hash of a level covers 256 of the level below. */
function rootOfEdge(levels: readonly (readonly Buffer[])[]): Buffer {
  const peaks = levels.toReversed().flatMap((hashes) => {
    const tree = new MerkleTree();
    for (const hash of hashes) tree.push(hash);
    return tree.peaks();
  });
  const root = peaks.reduceRight<Buffer | undefined>(
    (right, left) => (right === undefined ? left : nodeHash(left, right)),
    undefined,
  );
  return root ?? new MerkleTree().rootHash();
}
