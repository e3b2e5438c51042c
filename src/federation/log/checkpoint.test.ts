import { createPublicKey, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import { RepriseError } from "../../base/index.ts";
import { parseVkey, signingKeyOf, signNote, type VerifyingKey } from "../../receipts/index.ts";
import { openCheckpoint, parseCheckpoint, signCheckpoint } from "./checkpoint.ts";
import { batchLength, KeyHistory } from "./key-history.ts";
import { areForkedHeads } from "./log-relation.ts";
import { LogTree } from "./log-tree.ts";
import { cosignNote, findSigners, parseNote } from "./note.ts";
import { nextEpoch } from "./origin.ts";

const seed = (byte: number): Buffer => Buffer.alloc(32, byte);
const site = signingKeyOf(seed(1), "site");
const other = signingKeyOf(seed(2), "other");
const ROOT = LogTree.ofTexts(["x"]).root();
const GOOD = signCheckpoint(site, site.origin, 1, ROOT);

function refusal(code: string): unknown {
  return expect.objectContaining({ code, constructor: RepriseError });
}

test("a note of another implementation is verified: the example of C2SP signed-note", () => {
  const raw = Buffer.from("AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "base64").subarray(1);
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]);
  const publicKey = createPublicKey({ key: spki, format: "der", type: "spki" });
  const key: VerifyingKey = {
    ...site,
    id: "example.com/foo+530d903a",
    verify: (text, signature) => verify(null, Buffer.from(text), publicKey, signature),
  };
  const note = parseNote(
    "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n",
  );
  expect(findSigners(note, [key])).toEqual([key]);
});

test("a checkpoint is opened by the key of its origin, with signatures of witnesses around it", () => {
  expect(openCheckpoint(GOOD.note, [other, parseVkey(site.vkey)])).toEqual(GOOD);
  const witnessed = cosignNote(GOOD.note, other);
  expect(openCheckpoint(witnessed, [site])).toEqual({ ...GOOD, note: witnessed });
  expect(openCheckpoint(witnessed, [site, other]).note).toBe(witnessed);
  const many = Array.from({ length: 15 }, (_, i) => signingKeyOf(seed(i + 10), "witness")).reduce(
    cosignNote,
    GOOD.note,
  );
  expect(openCheckpoint(many, [site]).size).toBe(1);
});

test("a key that is not admitted, or is of another origin, opens nothing", () => {
  expect(() => openCheckpoint(GOOD.note, [])).toThrow(refusal("NOT_ADMITTED"));
  expect(() => openCheckpoint(GOOD.note, [other])).toThrow(refusal("NOT_ADMITTED"));
  // An admitted site signs a head for the log of another one.
  const stolen = signNote(`${site.origin}\n9\n${ROOT.toString("base64")}\n`, other);
  expect(() => openCheckpoint(stolen, [site, other])).toThrow(refusal("NOT_ADMITTED"));
});

describe("a note that is no checkpoint is refused with CHECKPOINT_INVALID", () => {
  const body = `${site.origin}\n1\n${ROOT.toString("base64")}\n`;
  const signed = (text: string): string => signNote(text, site);
  const notes: Readonly<Record<string, string>> = {
    "no text": "",
    "no signature": `${body}\n`,
    "no empty line": body,
    "two lines": signed(`${site.origin}\n1\n`),
    "a fourth line": signed(`${body}more\n`),
    "an empty line between": signed(`${site.origin}\n\n1\n${ROOT.toString("base64")}\n`),
    "a size with a zero before it": signed(body.replace("\n1\n", "\n01\n")),
    "a negative size": signed(body.replace("\n1\n", "\n-1\n")),
    "a size above 2^53": signed(body.replace("\n1\n", "\n9999999999999999\n")),
    "a root of 31 bytes": signed(`${site.origin}\n1\n${Buffer.alloc(31).toString("base64")}\n`),
    "another base64 of the root": signed(body.replace("=\n", "\n")),
    "an origin that leaves its folder": signed(body.replace(site.origin, "../0123456789abcdef")),
    "a control character": GOOD.note.replace("\n1\n", "\n1\r\n"),
    "a cut signature": GOOD.note.slice(0, -9),
    "a signature in another base64": GOOD.note.replace("=\n\n", "=\n\n").replace(/=\n$/, "\n"),
    "a signature of another text": GOOD.note.replace("\n1\n", "\n2\n"),
    "a line after the signatures": `${GOOD.note}more\n`,
    "more than 128 KiB of signatures": GOOD.note + `${GOOD.note.split("\n").at(-2)}\n`.repeat(1_200),
  };
  for (const [what, note] of Object.entries(notes))
    test(what, () => {
      expect(() => openCheckpoint(note, [site])).toThrow(refusal("CHECKPOINT_INVALID"));
    });
});

test("no byte of a checkpoint can be changed", () => {
  for (let at = 0; at < GOOD.note.length; at += 1)
    for (const text of ["0", "A", "\n"]) {
      const note = GOOD.note.slice(0, at) + text + GOOD.note.slice(at + 1);
      if (note !== GOOD.note) expect(() => openCheckpoint(note, [site]), `${at} ${text}`).toThrow();
    }
});

test("two heads of one size with other roots prove a fork, and no others do", () => {
  const head = (size: number, text: string): typeof GOOD =>
    signCheckpoint(site, site.origin, size, LogTree.ofTexts([text]).root());
  expect(areForkedHeads(GOOD, head(1, "y"))).toBe(true);
  expect(areForkedHeads(GOOD, head(1, "x"))).toBe(false);
  expect(areForkedHeads(GOOD, head(2, "y"))).toBe(false);
});

// ── rotation ──

const keys = [1, 3, 4, 5].map((byte) => signingKeyOf(seed(byte), "site").forOrigin(site.origin));
const [first, second, third, fourth] = keys as [typeof site, typeof site, typeof site, typeof site];

function rotated(): KeyHistory {
  const history = KeyHistory.genesis(first.vkey);
  history.add(5, second.vkey);
  history.add(6, third.vkey);
  history.add(20, fourth.vkey);
  return history;
}

test("after three rotations every checkpoint is opened by the key in force at its size", () => {
  const history = rotated();
  for (let size = 0; size <= 30; size += 1) {
    const inForce = size <= 5 ? first : size <= 6 ? second : size <= 20 ? third : fourth;
    expect(history.keyAt(size).vkey).toBe(inForce.vkey);
    for (const key of keys) {
      const { note } = signCheckpoint(key, site.origin, size, ROOT);
      if (key === inForce) expect(history.open(note).size).toBe(size);
      else expect(() => history.open(note)).toThrow(refusal("NOT_ADMITTED"));
    }
  }
  expect(() => history.open(signCheckpoint(other.forOrigin(site.origin), site.origin, 3, ROOT).note)).toThrow(
    refusal("NOT_ADMITTED"),
  );
});

test("an origin has one first key: another key under its name is refused", () => {
  expect(() => KeyHistory.genesis(second.vkey)).toThrow(refusal("NOT_ADMITTED"));
  expect(KeyHistory.genesis(first.vkey).current.vkey).toBe(first.vkey);
});

test("a key record is added once, in order, and for its own origin", () => {
  const history = rotated();
  history.add(20, fourth.vkey);
  expect(history.terms.map(({ n }) => n)).toEqual([0, 5, 6, 20]);
  for (const [n, vkey] of [
    [20, third.vkey],
    [7, third.vkey],
    [21, other.vkey],
  ] as const)
    expect(() => history.add(n, vkey)).toThrow(refusal("RECORD_INVALID"));
});

test("a batch ends at the first key record, so that the key before it signs for it", () => {
  expect(batchLength([{ op: "put" }, { op: "key" }, { op: "put" }])).toBe(2);
  expect(batchLength([{ op: "put" }, { op: "tomb" }])).toBe(2);
  expect(batchLength([])).toBe(0);
});

test("a later epoch is signed by the newest key under the name of the epoch", () => {
  const history = rotated();
  const origin = nextEpoch(site.origin);
  const epoch = history.forEpoch(origin);
  const { note } = signCheckpoint(fourth, origin, 1, ROOT);
  expect(parseCheckpoint(note).origin).toBe(origin);
  expect(parseNote(note).signatures.map(({ name }) => name)).toEqual([origin]);
  expect(epoch.open(note).origin).toBe(origin);
  expect(() => epoch.open(signCheckpoint(first, origin, 1, ROOT).note)).toThrow(refusal("NOT_ADMITTED"));
  expect(() => history.open(note)).toThrow(refusal("NOT_ADMITTED"));
  expect(KeyHistory.genesis(epoch.current.vkey).origin).toBe(origin);
});
