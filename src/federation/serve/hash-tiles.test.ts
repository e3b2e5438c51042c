import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { systemTimers } from "../../base/index.ts";
import { leafHash, MerkleTree } from "../../receipts/index.ts";
import { TileStack } from "../log/tile-stack.ts";
import { tilePath } from "../log/tiles.ts";
import { HashTiles } from "./hash-tiles.ts";
import { prepareServeDatabase } from "./staged-files.ts";

test("tiles of three levels are those of an append, and each record is hashed once for the levels above", async () => {
  const records = Array.from({ length: 65_536 + 300 }, (_, i) => `record ${i + 1}`);
  const stack = new TileStack();
  const tree = new MerkleTree();
  const expected = new Map<string, Buffer>();
  for (const record of records) {
    tree.push(leafHash(record));
    for (const { level, n, bytes } of stack.push(leafHash(record))) expected.set(tilePath(level, n), bytes);
  }
  for (const { level, n, width, bytes } of stack.partials()) expected.set(tilePath(level, n, width), bytes);
  const db = prepareServeDatabase(new DatabaseSync(":memory:"));
  let read = 0;
  const tiles = new HashTiles(
    db,
    (_origin, first, count) => {
      read += count;
      return records.slice(first - 1, first - 1 + count);
    },
    systemTimers,
  );
  const head = { origin: "edge7", size: records.length, root: tree.rootHash().toString("base64") };
  const get = (level: number, n: number, width = 256): Promise<Buffer> => tiles.read(head, level, n, width);
  expect((await get(2, 0, 1)).equals(expected.get(tilePath(2, 0, 1))!)).toBe(true);
  expect((await get(1, 0)).equals(expected.get(tilePath(1, 0))!)).toBe(true);
  expect((await get(1, 1, 1)).equals(expected.get(tilePath(1, 1, 1))!)).toBe(true);
  // The last 44 records are in no full tile.
  expect(read).toBe(65_536 + 300);
  read = 0;
  expect((await get(1, 0)).equals(expected.get(tilePath(1, 0))!)).toBe(true);
  expect(read).toBe(0);
  expect((await tiles.tree(head)).rootHash().toString("base64")).toBe(head.root);
  db.close();
});

test("records that do not have the root of their checkpoint give no tile above level 0", async () => {
  const db = prepareServeDatabase(new DatabaseSync(":memory:"));
  const tiles = new HashTiles(db, (_origin, first, count) => Array(count).fill(`record ${first}`), systemTimers);
  const head = { origin: "edge7", size: 300, root: Buffer.alloc(32).toString("base64") };
  await expect(tiles.read(head, 1, 0, 1)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  db.close();
});
