import { verify as verifySignature, createPublicKey } from "node:crypto";
import { expect, test } from "vitest";
import { artifactKey, canonicalJson, mediaType, pae, sha256Hex, valueKey } from "../base/index.ts";
import { CHAIN_START, chainAfter, type EntryType } from "../kernel/index.ts";
import { runRecordKey, runRecordText, type BundledRun } from "./bundled-run.ts";
import { checkSignature, envelopeText, STATEMENT_TYPE, type Envelope } from "./dsse.ts";
import { journalLine, type PlainEntry } from "./journal-tree.ts";
import { leafHash, MerkleTree } from "./merkle.ts";
import { parseVkey, signingKeyOf, signNote } from "./signing-key.ts";
import { statementText, type Predicate } from "./statement.ts";

const AT = 1_763_280_000_000;
const entry = (
  seq: number,
  type: EntryType,
  command: string,
  data: string,
  at: number,
  tookMs?: number,
): PlainEntry => ({
  seq,
  type,
  command,
  data,
  at,
  ...(tookMs !== undefined && { tookMs }),
});
const ENTRIES = [
  entry(1, "RunStarted", "", '{"definition":"kid","flags":[1],"input":4,"version":1}', AT),
  entry(
    2,
    "OperationCompleted",
    "Operation(0)",
    '{"index":0,"input":{"n":4},"operationName":"double","result":8}',
    AT + 5,
    2,
  ),
  entry(3, "RunCompleted", "", '{"output":8}', AT + 6),
];
const SALT = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
const SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const CLAIM_KEY = "42fb91fce68a961e178d1a91db8a72a958445f8a1c1cd56a9e39089ea900b401";
const CLAIM = canonicalJson({
  end: "completed",
  input: valueKey("4"),
  kind: "workflow",
  name: "kid",
  output: valueKey("8"),
  root: "cef203bf797513ebc6196fc1fe7ae403baeca02a126706ad60dc6686ab1a2082",
  steps: 1,
  v: 1,
  version: 1,
});
const ROOT = "74a70baadf4428fcf6e2f90e570ce030d77de659744ed840510115411417b3cf";
const key = signingKeyOf(SEED, "edge7");
const chain = ENTRIES.reduce((before, { type, command, data }) => chainAfter(before, type, command, data), CHAIN_START);

function rootOf(lines: readonly string[]): string {
  const tree = new MerkleTree();
  for (const line of lines) tree.push(leafHash(line));
  return tree.root();
}

test("values, claims and chains have the keys of the specification", () => {
  expect(valueKey("13")).toBe("6232d194695c5dcd98fe7f946e9acf3fecc79a2bb63ed660dc712088482e4b41");
  expect(pae("http://example.com/HelloWorld", "hello world")).toBe(
    "DSSEv1 29 http://example.com/HelloWorld 11 hello world",
  );
  expect(chain).toBe("079c0e0a774649cef13d62dbaaede3e196f11875f0a745c57db9de938775e2d6");
  expect(artifactKey(mediaType("claim"), CLAIM)).toBe(CLAIM_KEY);
});

test("the journal tree has the leaf and the root of the specification, plain and blind", () => {
  expect(leafHash(journalLine(ENTRIES[1]!)).toString("hex")).toBe(
    "bce399ec90332e0403ef4446c568dd46cbab36d2c16e0bc660d002a1cc910327",
  );
  expect(rootOf(ENTRIES.map((one) => journalLine(one)))).toBe(ROOT);
  expect(rootOf(ENTRIES.map((one) => journalLine(one, SALT)))).toBe(
    "df08aa2e643768bcb8cfd5f71c3ca0ed462cf0d73cfc4dc9907086163df4699b",
  );
});

test("the line of an entry is canonical, with every field an entry can have", () => {
  const whole = { ...ENTRIES[1]!, command: 'Node("ä")', execution: 3, startedAt: AT, worker: "w\n1" };
  for (const line of [journalLine(whole), journalLine(whole, SALT)]) {
    expect(canonicalJson(JSON.parse(line))).toBe(line);
    expect(JSON.parse(line)).toMatchObject({ command: 'Node("ä")', execution: 3, startedAt: AT, worker: "w\n1" });
  }
});

test("a tree of any size has the root that RFC 6962 defines", () => {
  const split = (leaves: readonly Buffer[]): string => {
    const tree = new MerkleTree();
    if (leaves.length <= 1) {
      for (const leaf of leaves) tree.push(leaf);
      return tree.root();
    }
    let half = 1;
    while (half * 2 < leaves.length) half *= 2;
    const [left, right] = [split(leaves.slice(0, half)), split(leaves.slice(half))];
    return sha256Hex(Buffer.from(`01${left}${right}`, "hex"));
  };
  const leaves = Array.from({ length: 70 }, (_, index) => leafHash(String(index)));
  const tree = new MerkleTree();
  expect(tree.root()).toBe(sha256Hex(""));
  for (const [index, leaf] of leaves.entries()) {
    tree.push(leaf);
    expect(tree.root()).toBe(split(leaves.slice(0, index + 1)));
  }
});

test("the run record and the vkey are those of the specification", () => {
  const run: BundledRun = {
    id: "kid-1",
    generation: 0,
    definition: "kid",
    kind: "workflow",
    version: 1,
    status: "completed",
    priority: 0,
    tags: [],
    arrivals: 0,
    read: 0,
    unread: 0,
    lostTurns: 0,
    createdAt: AT,
    endedAt: AT + 6,
  };
  const text = runRecordText({ run, head: 3, chain, nonce: SALT.toString("hex") });
  expect(runRecordKey(text)).toBe("48c8b839306ae03fad3d036459a2fb294b7b2c087a877337aaa17d3c6b292b67");
  expect(key.vkey).toBe("edge7/56475aa75463474c+8b74b291+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4");
  expect(parseVkey(` ${key.vkey}\n`)).toMatchObject({ origin: key.origin, id: key.id, vkey: key.vkey });
  for (const wrong of [key.id, key.vkey.replace("+8b", "+8c"), key.vkey.replace("AQOh", "AgOh"), ""])
    expect(() => parseVkey(wrong)).toThrow(/is not a vkey/);
});

const PREDICATE: Predicate = {
  chain,
  claim: CLAIM_KEY,
  engine: "reprise/0.1.0",
  generation: 0,
  journal: { root: ROOT, size: 3 },
  origin: key.origin,
  run: "kid-1",
  runtimes: [{ arch: "x64", icu: "78.3", node: "24.21.0", tz: "2026c", v8: "13.6.233.17-node.53" }],
};
const STATEMENT = statementText(PREDICATE, CLAIM, "8");

test("the statement has the key and the signature of the specification", () => {
  expect(artifactKey(STATEMENT_TYPE, STATEMENT)).toBe(
    "c4a3d4d1d44f277be542d718818534a736d91063bd0b86ad4bf817893cde6a86",
  );
  const envelope = JSON.parse(envelopeText(STATEMENT, key)) as Envelope;
  expect(envelope.signatures[0]?.sig).toBe(
    "QN3idLVDp7bLOGZNcc19OzBpVjUp785O7dG8YedEnzf/fu/6nyutDYd86nQRP/3m47ELp5pGR8MSzxh14h2CDQ==",
  );
  expect(checkSignature(envelope, STATEMENT, [parseVkey(key.vkey)])).toEqual({ status: "trusted", origin: key.origin });
  expect(checkSignature(envelope, STATEMENT, [])).toEqual({ status: "unknown_key", keyid: key.id });
  expect(checkSignature(envelope, `${STATEMENT} `, [key])).toEqual({ status: "bad_signature", keyid: key.id });
  expect(checkSignature(JSON.parse(envelopeText(STATEMENT, undefined)) as Envelope, STATEMENT, [key])).toEqual({
    status: "unsigned",
  });
});

test("a signed note is that of the specification, and verifies with Ed25519 alone", () => {
  const records = [
    { c: 1, k: "48c8b839306ae03fad3d036459a2fb294b7b2c087a877337aaa17d3c6b292b67", n: 1, o: key.origin, op: "put" },
    { c: 2, k: artifactKey(STATEMENT_TYPE, STATEMENT), n: 2, o: key.origin, op: "put" },
  ].map((record) => canonicalJson(record));
  const root = Buffer.from(rootOf(records), "hex").toString("base64");
  expect(root).toBe("LsS7Jn4S8FsyUkOnoO/FgM9AJWM3EpcGETN5TARcxus=");
  const body = `${key.origin}\n2\n${root}\n`;
  const [, signature = ""] = /— \S+ (\S+)\n$/.exec(signNote(body, key)) ?? [];
  expect(signature).toBe(
    "i3SykQi021A+aYrAI7sDzsEeIaEi8t6qBfZTgU4bEbj/W0L21NJglFxe0gr40+RigLq8OSDGwTxbncgfSHP0qLB+bQA=",
  );
  const bytes = Buffer.from(key.vkey.split("+").slice(2).join("+"), "base64").subarray(1);
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), bytes]);
  const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
  expect(verifySignature(null, Buffer.from(body), publicKey, Buffer.from(signature, "base64").subarray(4))).toBe(true);
});
