// What src writes is read by a reader that was written from the specifications alone.

import { expect, test } from "vitest";
import {
  CHECKPOINT_PATH,
  encodeEntries,
  LogTree,
  signCheckpoint,
  tilePath,
  tilesOf,
  TileStack,
  type Tile,
} from "../../src/federation/index.ts";
import { leafHash, signingKeyOf } from "../../src/receipts/index.ts";
import { checkInclusion, readHead, readTiledLog, type GetFile } from "./tlog-reader.ts";

const key = signingKeyOf(Buffer.alloc(32, 7), "site");
type Files = Map<string, Uint8Array>;

/** The files of a log that was pushed at these sizes, one after the other. */
function filesOf(texts: readonly string[], sizes: readonly number[]): Files {
  const files: Files = new Map();
  const keep = ({ level, n, width, bytes }: Tile): void => void files.set(tilePath(level, n, width), bytes);
  const stack = new TileStack();
  const tree = LogTree.empty();
  let before = 0;
  for (const size of sizes) {
    for (const text of texts.slice(before, size)) {
      stack.push(leafHash(text)).forEach(keep);
      tree.append(text);
    }
    stack.partials().forEach(keep);
    for (const { level, n, width } of tilesOf(size, before)) {
      expect(files.has(tilePath(level, n, width)), tilePath(level, n, width)).toBe(true);
      if (level === 0) files.set(tilePath("entries", n, width), encodeEntries(texts.slice(n * 256, n * 256 + width)));
    }
    files.set(CHECKPOINT_PATH, Buffer.from(signCheckpoint(key, key.origin, size, tree.root()).note));
    before = size;
  }
  return files;
}

const reader =
  (files: Files): GetFile =>
  async (path) =>
    files.get(path);
const textsOf = (size: number): string[] =>
  Array.from({ length: size }, (_, i) => `{"entry":${i},"ä":"${"x".repeat(i % 40)}"}`);

test("a log of any size, pushed in any steps, is read back and every entry is proved", async () => {
  for (const sizes of [[0], [1], [2], [255], [256], [257], [1, 3, 255, 256, 300, 511, 512, 513, 1000]]) {
    const size = sizes.at(-1)!;
    const texts = textsOf(size);
    const get = reader(filesOf(texts, sizes));
    const log = await readTiledLog(get, key.vkey);
    expect(log.origin).toBe(key.origin);
    expect(log.entries.map(String)).toEqual(texts);
    for (const index of [0, 1, 127, 128, 254, 255, 256, 299, 511, size - 1].filter((at) => at >= 0 && at < size)) {
      await checkInclusion(get, log, index, Buffer.from(texts[index]!));
      await expect(checkInclusion(get, log, index, Buffer.from("other"))).rejects.toThrow("is not in the log");
    }
  }
});

test("a log with tiles of three levels is read back", async () => {
  const texts = textsOf(65_800);
  const get = reader(filesOf(texts, [65_536, 65_800]));
  const log = await readTiledLog(get, key.vkey);
  expect(log.entries).toHaveLength(65_800);
  for (const index of [0, 65_535, 65_536, 65_799]) await checkInclusion(get, log, index, Buffer.from(texts[index]!));
});

test("the reader takes the full tile where the partial one is gone", async () => {
  const texts = textsOf(300);
  const files = filesOf(texts, [100, 300]);
  const early = filesOf(texts, [100]).get(CHECKPOINT_PATH)!;
  for (const path of [tilePath(0, 0, 100), tilePath("entries", 0, 100)]) expect(files.delete(path)).toBe(true);
  const log = await readTiledLog(async (path) => (path === CHECKPOINT_PATH ? early : files.get(path)), key.vkey);
  expect(log.entries).toHaveLength(100);
});

test("no byte of any file can be changed, and no file can be missing", async () => {
  const files = filesOf(textsOf(5), [5]);
  for (const [path, bytes] of files) {
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Uint8Array.from(bytes);
      changed[at]! ^= 1;
      await expect(
        readTiledLog(reader(new Map(files).set(path, changed)), key.vkey),
        `${path} ${at}`,
      ).rejects.toThrow();
    }
    const fewer = new Map(files);
    fewer.delete(path);
    await expect(readTiledLog(reader(fewer), key.vkey), path).rejects.toThrow();
  }
});

test("the reader refuses a log of another key", async () => {
  const other = signingKeyOf(Buffer.alloc(32, 8), "site");
  await expect(readTiledLog(reader(filesOf(textsOf(3), [3])), other.vkey)).rejects.toThrow("is not signed by");
  await expect(readTiledLog(reader(filesOf(textsOf(3), [3])), other.forOrigin(key.origin).vkey)).rejects.toThrow(
    "is not signed by",
  );
});

test("the reader opens the checkpoint of the specification", () => {
  const origin = "edge7/56475aa75463474c";
  const root = "LsS7Jn4S8FsyUkOnoO/FgM9AJWM3EpcGETN5TARcxus=";
  const signature = "i3SykQi021A+aYrAI7sDzsEeIaEi8t6qBfZTgU4bEbj/W0L21NJglFxe0gr40+RigLq8OSDGwTxbncgfSHP0qLB+bQA=";
  const note = `${origin}\n2\n${root}\n\n— ${origin} ${signature}\n`;
  const vkey = `${origin}+8b74b291+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4`;
  expect(readHead(note, vkey)).toEqual({ origin, size: 2, root });
});
