import fc from "fast-check";
import { expect, test } from "vitest";
import { RepriseError } from "../../base/index.ts";
import { leafHash } from "../../receipts/index.ts";
import { contentOf, decodeArtifact, encodeArtifact } from "./content.ts";
import { packText, parsePack } from "./pack.ts";
import { TileStack, tileRoot, type Tile } from "./tile-stack.ts";
import { hashesOf } from "./tree-proof.ts";
import {
  artifactPath,
  decodeEntries,
  decodeTile,
  encodeEntries,
  handoverPath,
  journalPath,
  packPath,
  tilePath,
  tilesOf,
} from "./tiles.ts";

test("paths are those of the specification", () => {
  expect(tilePath(0, 1_234_067)).toBe("tile/0/x001/x234/067");
  expect(tilePath(1, 0)).toBe("tile/1/000");
  expect(tilePath("entries", 0, 17)).toBe("tile/entries/000.p/17");
  expect(tilePath("entries", 999)).toBe("tile/entries/999");
  expect(tilePath(2, 1_000, 1)).toBe("tile/2/x001/000.p/1");
  expect(packPath(67, 3)).toBe("pack/067.p/3");
  expect(handoverPath(1_067)).toBe("key/x001/067");
  expect(artifactPath("abcd")).toBe("artifact/ab/abcd");
  expect(journalPath("cdef")).toBe("journal/cd/cdef");
});

test("a tree of 70,000 records has the tiles that the specification names", () => {
  const tiles = tilesOf(70_000);
  expect(tiles.filter(({ level, width }) => level === 0 && width === 256)).toHaveLength(273);
  expect(tiles.filter(({ width }) => width < 256)).toEqual([
    { level: 0, n: 273, width: 112 },
    { level: 1, n: 1, width: 17 },
    { level: 2, n: 0, width: 1 },
  ]);
  expect(tiles.filter(({ level }) => level === 1)[0]).toEqual({ level: 1, n: 0, width: 256 });
  expect(tilesOf(256)).toEqual([
    { level: 0, n: 0, width: 256 },
    { level: 1, n: 0, width: 1 },
  ]);
  expect(tilesOf(0)).toEqual([]);
});

test("a push writes the tiles that the larger tree has and the smaller one has not", () => {
  fc.assert(
    fc.property(fc.nat(70_000), fc.oneof(fc.nat(300), fc.nat(70_000)), (before, more) => {
      const size = before + more;
      const known = new Set(tilesOf(before).map(({ level, n, width }) => tilePath(level, n, width)));
      const expected = tilesOf(size)
        .map(({ level, n, width }) => tilePath(level, n, width))
        .filter((path) => !known.has(path));
      expect(tilesOf(size, before).map(({ level, n, width }) => tilePath(level, n, width))).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test("appended leaves give the tiles of every level, from any size on", () => {
  const size = 66_000;
  const leaves = Array.from({ length: size }, (_, index) => leafHash(String(index)));
  const stack = new TileStack();
  const files = new Map<string, Buffer>();
  const keep = ({ level, n, width, bytes }: Tile): void => void files.set(tilePath(level, n, width), bytes);
  const hashAt = hashesOf(leaves);
  for (const [index, leaf] of leaves.entries()) {
    stack.push(leaf).forEach(keep);
    if (index % 9_000 === 17 || index === size - 1) stack.partials().forEach(keep);
  }
  for (const { level, n, width } of tilesOf(size)) {
    const hashes = decodeTile(files.get(tilePath(level, n, width))!, width);
    for (const [i, hash] of hashes.entries()) expect(hash.equals(hashAt(level * 8, n * 256 + i))).toBe(true);
    if (width === 256) expect(tileRoot(hashes).equals(hashAt(level * 8 + 8, n))).toBe(true);
  }
  const partial = tilesOf(size).filter(({ width }) => width < 256);
  const edge = partial.map(({ level, n, width }) => decodeTile(files.get(tilePath(level, n, width))!, width));
  const continued = new TileStack(edge, size);
  for (const more of ["a", "b"]) {
    expect(continued.push(leafHash(more))).toEqual(stack.push(leafHash(more)));
    expect(continued.partials()).toEqual(stack.partials());
  }
});

test("a tile that is cut off is refused", () => {
  expect(() => decodeTile(Buffer.alloc(63), 2)).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
});

test("an entry bundle is read back, and a damaged one is refused", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary" }), { maxLength: 256 }), (texts) => {
      const wellFormed = texts.map((text) => text.toWellFormed());
      expect(decodeEntries(encodeEntries(wellFormed))).toEqual(wellFormed);
    }),
  );
  const long = "x".repeat(65_535);
  expect(decodeEntries(encodeEntries([long, ""]))).toEqual([long, ""]);
  expect(() => encodeEntries([`${long}x`])).toThrow(expect.objectContaining({ code: "RECORD_INVALID" }));
  const bytes = encodeEntries(["ab", "cd"]);
  for (const damaged of [bytes.subarray(0, 1), bytes.subarray(0, 3), bytes.subarray(0, 5), bytes.subarray(0, -1)])
    expect(() => decodeEntries(damaged)).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
  expect(() => decodeEntries(Buffer.of(0, 1, 0xff))).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
  expect(() => decodeEntries(Buffer.alloc(2 * 257))).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
});

const contents = fc.array(
  fc.record({
    type: fc.constantFrom("application/octet-stream", "text/plain", "application/vnd.reprise.value.v1+json"),
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.string({ unit: "binary" }).map((text) => Uint8Array.from(Buffer.from(text))),
    ),
  }),
);

test("packs and artifact files are read back, texts as texts", () => {
  fc.assert(
    fc.property(contents, (drawn) => {
      const all = drawn.map(({ type, bytes }) => contentOf(type, bytes));
      const plain = (list: readonly ReturnType<typeof contentOf>[]): unknown[] =>
        list.map(({ key, type, bytes }) => [key, type, Buffer.from(bytes).toString("hex")]);
      expect(plain(parsePack(packText(all)))).toEqual(plain(all));
      for (const one of all) expect(plain([decodeArtifact(encodeArtifact(one), one.key)])).toEqual(plain([one]));
    }),
  );
  expect(packText([contentOf("text/plain", "hä\n")])).toContain('"s":"hä\\n"');
  expect(packText([contentOf("text/plain", Buffer.of(0xff))])).toContain('"b":"/w=="');
});

test("no byte of a pack or of an artifact file can be changed", () => {
  const text = contentOf("text/plain", "text ä");
  const octets = contentOf("application/octet-stream", Buffer.of(0, 255, 7));
  const refused = expect.objectContaining({
    code: expect.stringMatching(/^(?:CONTENT_DAMAGED|LOG_FILE_DAMAGED)$/),
    constructor: RepriseError,
  });
  const pack = packText([text, octets]);
  for (let at = 0; at < pack.length; at += 1)
    for (const other of ["0", '"', "x", "\n", " "]) {
      const changed = pack.slice(0, at) + other + pack.slice(at + 1);
      if (changed !== pack) expect(() => parsePack(changed), `${at}: ${changed}`).toThrow(refused);
    }
  for (let end = 1; end < pack.length; end += 1)
    if (pack[end - 1] !== "\n") expect(() => parsePack(pack.slice(0, end))).toThrow(refused);
  const file = encodeArtifact(octets);
  for (let at = 0; at < file.length; at += 1) {
    const changed = Uint8Array.from(file);
    changed[at]! ^= 1;
    expect(() => decodeArtifact(changed, octets.key), `${at}`).toThrow(refused);
    expect(() => decodeArtifact(file.subarray(0, at), octets.key)).toThrow(refused);
  }
  expect(() => decodeArtifact(file, text.key)).toThrow(refused);
});

test("a line of a pack has one text", () => {
  const pack = packText([contentOf("text/plain", "text")]);
  const { s, ...rest } = JSON.parse(pack) as { readonly s: string };
  const lines = [
    pack.replace('"h":', ' "h":'),
    `${JSON.stringify({ ...rest, s })}\n`,
    `${JSON.stringify({ b: Buffer.from(s).toString("base64"), ...rest })}\n`,
    `${JSON.stringify({ a: 1, ...rest, s })}\n`,
    pack.replace('"s":"text"', '"s":"text","s":"text"'),
    `${pack}\n`,
  ];
  for (const line of lines)
    expect(() => parsePack(line), line).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
});

test("a pack takes no content above 32 KiB", () => {
  const most = contentOf("text/plain", "x".repeat(32 * 1024));
  expect(parsePack(packText([most]))).toHaveLength(1);
  const bomb = packText([most]).replace('"z":32768', '"z":32769').replace('"s":"', '"s":"x');
  expect(() => parsePack(bomb)).toThrow(expect.objectContaining({ code: "LOG_FILE_DAMAGED" }));
});
