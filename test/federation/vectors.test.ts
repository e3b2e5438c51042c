// The vectors of the specification that concern the log, computed without the code of this repository.

import { expect, test } from "vitest";
import {
  compareRecords,
  foldRecords,
  hashesOf,
  inclusionProof,
  linkId,
  linkText,
  LogTree,
  nextRecord,
  openCheckpoint,
  parseRecord,
  recordText,
  signCheckpoint,
  slotOf,
  snapshotId,
  stateHashOf,
  verifyInclusion,
  type LogRecord,
} from "../../src/federation/index.ts";
import { leafHash, parseVkey, signingKeyOf } from "../../src/receipts/index.ts";

const ORIGIN = "edge7/56475aa75463474c";
const VKEY = "edge7/56475aa75463474c+8b74b291+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
const RUN = "48c8b839306ae03fad3d036459a2fb294b7b2c087a877337aaa17d3c6b292b67";
const STATEMENT = "c4a3d4d1d44f277be542d718818534a736d91063bd0b86ad4bf817893cde6a86";
const CLAIM = "42fb91fce68a961e178d1a91db8a72a958445f8a1c1cd56a9e39089ea900b401";
const LINK = { type: "supersedes", from: [CLAIM], to: ["run:kid-0"], v: 1 } as const;
const SLOT = "9cd403e7b01f96bf5d45248918b5d721f4301cfa97c8094eab1be0dd36a684e5";
const LINK_ID = "1634daad882784336b8697f19ad9ca7c937494934f3fa9a446d43dfb1f1b0186";
const ROOT = "LsS7Jn4S8FsyUkOnoO/FgM9AJWM3EpcGETN5TARcxus=";
const NOTE =
  `${ORIGIN}\n2\n${ROOT}\n\n— ${ORIGIN} ` +
  "i3SykQi021A+aYrAI7sDzsEeIaEi8t6qBfZTgU4bEbj/W0L21NJglFxe0gr40+RigLq8OSDGwTxbncgfSHP0qLB+bQA=\n";

const key = signingKeyOf(Buffer.from(Array.from({ length: 32 }, (_, index) => index)), "edge7");

function logOf(bodies: readonly Pick<LogRecord, "k" | "s">[]): LogRecord[] {
  const records: LogRecord[] = [];
  for (const body of bodies) {
    const end = { origin: ORIGIN, size: records.length, clock: records.at(-1)?.c ?? 0 };
    records.push(nextRecord(end, { op: "put", ...body }));
  }
  return records;
}
const records = logOf([{ k: RUN }, { k: STATEMENT }, { k: LINK_ID, s: SLOT }]);
const texts = records.map(recordText);

test("records have the texts of the specification, and are read back", () => {
  expect(texts).toEqual([
    `{"c":1,"k":"${RUN}","n":1,"o":"${ORIGIN}","op":"put"}`,
    `{"c":2,"k":"${STATEMENT}","n":2,"o":"${ORIGIN}","op":"put"}`,
    `{"c":3,"k":"${LINK_ID}","n":3,"o":"${ORIGIN}","op":"put","s":"${SLOT}"}`,
  ]);
  expect(texts.map((text, i) => parseRecord(text, { origin: ORIGIN, n: i + 1, after: i }))).toEqual(records);
  expect([...records].reverse().sort(compareRecords)).toEqual(records);
});

test("the tree has the leaf, the root and the proof of the specification", () => {
  const leaves = texts.map(leafHash);
  expect(leaves[0]!.toString("hex")).toBe("e880fee9bf318cb2e7cacb89e1b063410a3d4db7e0ab0aba8ed127dbc175dc84");
  const root = LogTree.ofTexts(texts.slice(0, 2)).root();
  expect(root.toString("base64")).toBe(ROOT);
  const proof = inclusionProof(0, 2, hashesOf(leaves.slice(0, 2)));
  expect(proof.map((hash) => hash.toString("hex"))).toEqual([
    "7bf362ee5b8a51592d950f3ddd38ec78185a9143ec21261080ccd117e502da15",
  ]);
  expect(verifyInclusion(leaves[0]!, 0, 2, root, proof)).toBe(true);
});

test("the checkpoint has the signature of the specification, and the vkey opens it", () => {
  expect(key.vkey).toBe(VKEY);
  const signed = signCheckpoint(key, ORIGIN, 2, LogTree.ofTexts(texts.slice(0, 2)).root());
  expect(signed).toEqual({ origin: ORIGIN, size: 2, root: ROOT, note: NOTE });
  expect(openCheckpoint(NOTE, [parseVkey(VKEY)])).toEqual(signed);
});

test("link, slot, snapshot and state hash are those of the specification", () => {
  expect(linkId(linkText(LINK))).toBe(LINK_ID);
  expect(slotOf(LINK)).toBe(SLOT);
  const root = LogTree.ofTexts(texts).root().toString("hex");
  expect(snapshotId({ [ORIGIN]: [3, root] })).toBe("cb5a2684f022274d6f676c804a994234f1995e822c796f84859c811b48ddebda");
  expect(stateHashOf(foldRecords(records))).toBe("de5dca44e95577ed5b33ba4f8165c938c3208bc92642fddbc345d1a52c762b70");
});
