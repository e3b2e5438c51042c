import fc from "fast-check";
import { expect, test } from "vitest";
import { leafHash } from "../../receipts/index.ts";
import { LogTree } from "./log-tree.ts";
import { relationOf, type LogCopy } from "./log-relation.ts";
import {
  consistencyProof,
  hashesOf,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from "./tree-proof.ts";

// The published vectors of certificate-transparency: eight leaves, their roots and proofs.
const INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];
const N10 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const N23 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const N4567 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";
const N4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const N67 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const N45 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";

const leaves = INPUTS.map((hex) => leafHash(Buffer.from(hex, "hex").toString("latin1")));
const hex = (hashes: readonly Buffer[]): string[] => hashes.map((hash) => hash.toString("hex"));

test("roots are those of the published vectors, from peaks at any size", () => {
  const hashAt = hashesOf(leaves);
  for (const [size, root] of ROOTS.entries()) {
    const tree = LogTree.empty();
    for (const leaf of leaves.slice(0, size)) tree.push(leaf);
    expect(tree.root().toString("hex")).toBe(root);
    expect(rootOf(size, hashAt).toString("hex")).toBe(root);
    const kept = LogTree.of(tree.peaks(), tree.size);
    for (const leaf of leaves.slice(size)) kept.push(leaf);
    expect(kept.root().toString("hex")).toBe(ROOTS[8]);
    expect(tree.root().toString("hex")).toBe(root);
  }
});

test("proofs are those of the published vectors", () => {
  const hashAt = hashesOf(leaves);
  expect(inclusionProof(0, 1, hashAt)).toEqual([]);
  expect(hex(inclusionProof(0, 8, hashAt))).toEqual([N10, N23, N4567]);
  expect(hex(inclusionProof(5, 8, hashAt))).toEqual([N4, N67, ROOTS[4]]);
  expect(hex(inclusionProof(2, 3, hashAt))).toEqual([ROOTS[2]]);
  expect(hex(inclusionProof(1, 5, hashAt))).toEqual([ROOTS[1], N23, N4]);
  expect(consistencyProof(1, 1, hashAt)).toEqual([]);
  expect(hex(consistencyProof(1, 8, hashAt))).toEqual([N10, N23, N4567]);
  expect(hex(consistencyProof(6, 8, hashAt))).toEqual([N45, N67, ROOTS[4]]);
  expect(hex(consistencyProof(2, 5, hashAt))).toEqual([N23, N4]);
});

const many = Array.from({ length: 70 }, (_, index) => leafHash(`leaf ${index}`));
const hashAt = hashesOf(many);
const roots = Array.from({ length: 71 }, (_, size) => rootOf(size, hashAt));

test("every leaf is proved in every tree that has it, and nowhere else", () => {
  for (let size = 1; size <= 70; size += 1)
    for (let index = 0; index < size; index += 1) {
      const proof = inclusionProof(index, size, hashAt);
      expect(verifyInclusion(many[index]!, index, size, roots[size]!, proof)).toBe(true);
      expect(verifyInclusion(many[index]!, index, size, roots[size - 1]!, proof)).toBe(false);
      if (size > 1) expect(verifyInclusion(many[(index + 1) % size]!, index, size, roots[size]!, proof)).toBe(false);
      expect(verifyInclusion(many[index]!, index, size, roots[size]!, [...proof, roots[1]!])).toBe(false);
      expect(verifyInclusion(many[index]!, size, size, roots[size]!, proof)).toBe(false);
      if (proof.length > 0)
        expect(verifyInclusion(many[index]!, index, size, roots[size]!, proof.slice(1))).toBe(false);
    }
});

test("every tree extends every smaller one, and no changed proof shows it", () => {
  for (let newer = 0; newer <= 70; newer += 1)
    for (let older = 0; older <= newer; older += 1) {
      const proof = consistencyProof(older, newer, hashAt);
      const heads = [
        { size: older, root: roots[older]! },
        { size: newer, root: roots[newer]! },
      ] as const;
      expect(verifyConsistency(...heads, proof)).toBe(true);
      expect(verifyConsistency(...heads, [...proof, roots[3]!])).toBe(false);
      if (proof.length > 0) expect(verifyConsistency(...heads, proof.slice(1))).toBe(false);
      const other = { size: older, root: leafHash("other") };
      expect(verifyConsistency(other, heads[1], proof)).toBe(false);
      if (older > 0) expect(verifyConsistency(heads[0], { size: newer, root: other.root }, proof)).toBe(false);
      if (older < newer) expect(verifyConsistency(heads[1], heads[0], proof)).toBe(false);
    }
});

test("a root is not that of a larger tree, whatever the proof leaves out", () => {
  expect(verifyInclusion(many[0]!, 0, 2, roots[1]!, [])).toBe(false);
  expect(verifyConsistency({ size: 1, root: roots[1]! }, { size: 2, root: roots[1]! }, [])).toBe(false);
  expect(verifyConsistency({ size: 4, root: roots[4]! }, { size: 9, root: roots[4]! }, [])).toBe(false);
});

function copyOf(texts: readonly string[]): LogCopy {
  const at = hashesOf(texts.map(leafHash));
  return { size: texts.length, rootAt: (size) => rootOf(size, at) };
}

test("two copies of a log are equal, a prefix, or part after the last common record", () => {
  const texts = fc.array(fc.constantFrom("x", "y"), { maxLength: 20 });
  fc.assert(
    fc.property(texts, texts, texts, (common, left, right) => {
      const [a, b] = [
        [...common, ...left],
        [...common, ...right],
      ];
      const parts = a.findIndex((text, i) => i < b.length && text !== b[i]);
      const expected =
        parts !== -1
          ? { status: "forked", at: parts }
          : { status: a.length === b.length ? "equal" : a.length < b.length ? "prefix" : "extends" };
      expect(relationOf(copyOf(a), copyOf(b))).toEqual(expected);
    }),
  );
});
