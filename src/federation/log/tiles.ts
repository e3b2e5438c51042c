// Tiles: the files of a log (C2SP tlog-tiles), by path and by what they hold.
//
// tiles.F1. A tile has up to 256 hashes. At level 0 they are leaf hashes; above, each is the root of a full tile of the level below.
// tiles.F2. A full tile never changes. A partial one has its width in its path, so its bytes never change either.
// tiles.F3. An entry bundle has the records of a tile of level 0: each is a length of two bytes, big-endian, and its bytes.

import { RepriseError } from "../../base/index.ts";
import { MAX_RECORD_BYTES } from "./record.ts";

export const TILE_WIDTH = 256;
const HASH_BYTES = 32;

/** One file of the tree: `width` is below 256 for a partial tile. */
export interface TileName {
  readonly level: number;
  readonly n: number;
  readonly width: number;
}

/** tiles.F2. `tile/0/x001/067`, `tile/entries/000.p/17`; a width of 256 is a full tile. */
export function tilePath(level: number | "entries", n: number, width = TILE_WIDTH): string {
  return `tile/${level}/${numberedPath(n, width)}`;
}

/** The contents of the records of a tile. */
export function packPath(n: number, width = TILE_WIDTH): string {
  return `pack/${numberedPath(n, width)}`;
}

/** The note of size `n` in which a key hands over to the key that record `n` names (key-history.H2). */
export function handoverPath(n: number): string {
  return `key/${numberedPath(n, TILE_WIDTH)}`;
}

export const CHECKPOINT_PATH = "checkpoint";

export function artifactPath(key: string): string {
  return `artifact/${key.slice(0, 2)}/${key}`;
}

export function journalPath(root: string): string {
  return `journal/${root.slice(0, 2)}/${root}`;
}

/** Groups of three digits, all but the last with an `x`: no path is both a file and a folder. */
function numberedPath(n: number, width: number): string {
  const digits = String(n);
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, "0");
  const groups = padded.match(/\d{3}/g) ?? [];
  const path = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/");
  return width === TILE_WIDTH ? path : `${path}.p/${width}`;
}

/** The tiles of every level that a tree of this size has and one of `before` has not: what a push writes. */
export function tilesOf(size: number, before = 0): TileName[] {
  const tiles: TileName[] = [];
  for (let level = 0; size >= TILE_WIDTH ** level; level += 1) {
    const count = Math.floor(size / TILE_WIDTH ** level);
    const known = Math.floor(before / TILE_WIDTH ** level);
    if (count === known) continue;
    for (let n = Math.floor(known / TILE_WIDTH); n * TILE_WIDTH < count; n += 1)
      tiles.push({ level, n, width: Math.min(TILE_WIDTH, count - n * TILE_WIDTH) });
  }
  return tiles;
}

/** tiles.F1 */
export function encodeTile(hashes: readonly Buffer[]): Buffer {
  return Buffer.concat(hashes);
}

/** tiles.F1. The hashes of a tile that must have `width` of them. */
export function decodeTile(bytes: Uint8Array, width: number): Buffer[] {
  if (bytes.length !== width * HASH_BYTES)
    throw damaged(`A tile of ${width} hashes has ${width * HASH_BYTES} bytes; got ${bytes.length}.`);
  const buffer = Buffer.from(bytes);
  return Array.from({ length: width }, (_, i) => buffer.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
}

/** tiles.F3 */
export function encodeEntries(records: readonly string[]): Uint8Array {
  return Buffer.concat(
    records.flatMap((text) => {
      const bytes = Buffer.from(text);
      if (bytes.length > MAX_RECORD_BYTES)
        throw new RepriseError(
          "RECORD_INVALID",
          `A record has ${bytes.length} bytes; an entry bundle holds at most ${MAX_RECORD_BYTES}.`,
        );
      return [Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes];
    }),
  );
}

/** tiles.F3. The texts of a bundle; refuses one that is cut off or not UTF-8. */
export function decodeEntries(bytes: Uint8Array): string[] {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const texts: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const start = at + 2;
    const end = start + (bytes[at]! << 8) + (bytes[at + 1] ?? 0);
    if (end > bytes.length || start > bytes.length)
      throw damaged(`An entry bundle is cut off in entry ${texts.length + 1}.`);
    try {
      texts.push(decoder.decode(bytes.subarray(start, end)));
    } catch {
      throw damaged(`Entry ${texts.length + 1} of an entry bundle is not UTF-8 text.`);
    }
    if (texts.length > TILE_WIDTH) throw damaged(`An entry bundle has more than ${TILE_WIDTH} entries.`);
    at = end;
  }
  return texts;
}

function damaged(what: string): RepriseError {
  return new RepriseError("LOG_FILE_DAMAGED", what);
}
