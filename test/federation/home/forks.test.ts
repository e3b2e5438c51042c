import { expect, test } from "vitest";
import type { Home } from "../../../src/federation/home/home.ts";
import { evidenceText, verifyEvidence, type ForkEvidence } from "../../../src/federation/home/fork-evidence.ts";
import { KeyHistory } from "../../../src/federation/log/key-history.ts";
import { foldRecords, stateHashOf } from "../../../src/federation/log/state-hash.ts";
import { leafHash } from "../../../src/receipts/index.ts";
import { freshHome, sync, TestOrigin, valueOf } from "./origin.ts";

/** Two branches of one log that have `common` records, and then others. */
function branches(common: number, left: number, right: number): readonly [TestOrigin, TestOrigin] {
  const a = new TestOrigin("edge");
  for (let i = 0; i < common; i += 1) a.value(i);
  const b = a.fork();
  for (let i = 0; i < left; i += 1) a.value(`left ${i}`);
  for (let i = 0; i < right; i += 1) b.value(`right ${i}`);
  return [a, b];
}

function leavesOf({ texts }: TestOrigin): Buffer[] {
  return texts.map(leafHash);
}

function compare(home: Home, other: TestOrigin): ReturnType<Home["compareBranch"]> {
  return home.compareBranch(other.origin, other.checkpoint(), leavesOf(other));
}

function forkEvidence(home: Home): string {
  const [conflict] = home.conflicts({ kind: "fork" }).slice(-1);
  return evidenceText(conflict!.evidence as ForkEvidence);
}

const keysOf = ({ key }: TestOrigin): KeyHistory => KeyHistory.genesis(key.vkey);

test("two heads of one size quarantine the log, and the evidence verifies with the vkey alone", () => {
  const home = freshHome();
  const other = new TestOrigin("other").admitTo(home);
  const [a, b] = branches(3, 2, 2);
  a.admitTo(home);
  sync(home, a);
  expect(home.ingest(b.batch(home))).toEqual({ status: "forked", at: 4 });
  expect(home.origin(a.origin)).toMatchObject({ status: "forked", size: 4 });
  expect(verifyEvidence(forkEvidence(home), keysOf(a))).toMatchObject({ kind: "heads", at: 4 });
  expect(home.ingest(a.batch(home))).toEqual({ status: "forked", at: 4 });
  other.value("others continue");
  sync(home, other);

  expect(compare(home, b)).toMatchObject({ status: "forked", at: 3 });
  expect(home.origin(a.origin)).toMatchObject({ status: "forked", size: 3 });
  expect(home.stateHash()).toBe(stateHashOf(foldRecords([...a.records.slice(0, 3), ...other.records])));
  expect(home.conflicts().map(({ kind, cell }) => [kind, cell])).toEqual([
    ["fork", `origin:${a.origin}`],
    ["fork", `origin:${a.origin}`],
  ]);
});

test("an older head that is not of the log proves a fork", () => {
  const home = freshHome();
  const [a, b] = branches(1, 8, 3);
  a.admitTo(home);
  sync(home, a);
  expect(home.ingest(b.batchFrom(4, 4))).toEqual({ status: "forked", at: 3 });
  expect(verifyEvidence(forkEvidence(home), keysOf(a))).toMatchObject({ kind: "heads", at: 3 });
});

test("sites that have other suffixes find the same last common record and the same evidence", () => {
  const [a, b] = branches(5, 4, 7);
  const [first, second, third] = [freshHome(), freshHome(), freshHome()];
  for (const home of [first, second, third]) home.admit(a.key.vkey);
  sync(first, a);
  sync(second, b);
  sync(third, a);
  expect(first.ingest(b.batchFrom(9, 12))).toMatchObject({ status: "refused", code: "ROOT_MISMATCH" });
  expect(compare(first, b)).toMatchObject({ status: "forked", at: 5 });
  expect(compare(second, a)).toMatchObject({ status: "forked", at: 5 });
  expect(forkEvidence(first)).toBe(forkEvidence(second));
  expect(third.takeForkEvidence(forkEvidence(first))).toBe(5);
  const expected = stateHashOf(foldRecords(a.records.slice(0, 5)));
  for (const home of [first, second, third]) {
    expect(home.stateHash()).toBe(expected);
    expect(home.origin(a.origin)).toMatchObject({ status: "forked", size: 5 });
  }
});

test("a longer branch whose clocks do not follow ours does not have the root, which is said first", () => {
  const home = freshHome();
  const [a, b] = branches(2, 3, 0);
  a.admitTo(home);
  const seen = new TestOrigin("seen");
  for (let i = 0; i < 9; i += 1) seen.value(i);
  for (let i = 0; i < 5; i += 1) b.value(`right ${i}`, [seen]);
  sync(home, a);
  expect(home.ingest(b.batchFrom(5, 7))).toMatchObject({ status: "refused", code: "ROOT_MISMATCH" });
});

test("a copy that extends the log, or that it extends, is consistent", () => {
  const home = freshHome();
  const a = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 9; i += 1) a.value(i);
  home.ingest(a.batch(home, 6));
  expect(home.compareBranch(a.origin, a.checkpoint(4), leavesOf(a).slice(0, 4))).toEqual({ status: "consistent" });
  expect(compare(home, a)).toEqual({ status: "consistent" });
  expect(home.origin(a.origin)).toMatchObject({ status: "active", size: 6 });
});

test("hashes that do not have the root of their checkpoint prove nothing", () => {
  const home = freshHome();
  const [a, b] = branches(2, 2, 2);
  a.admitTo(home);
  sync(home, a);
  const damaged = leavesOf(b).with(1, leafHash("x"));
  expect(() => home.compareBranch(a.origin, b.checkpoint(), damaged)).toThrow(
    expect.objectContaining({ code: "CHECKPOINT_INVALID" }) as Error,
  );
  expect(home.origin(a.origin)).toMatchObject({ status: "active" });
});

test("evidence with any byte changed quarantines nothing", () => {
  const home = freshHome();
  const [a, b] = branches(2, 1, 2);
  a.admitTo(home);
  sync(home, a);
  const finder = freshHome();
  finder.admit(a.key.vkey);
  sync(finder, a);
  const { evidence } = compare(finder, b) as { evidence: string };
  for (let i = 0; i < evidence.length; i += 1) {
    const changed = `${evidence.slice(0, i)}${evidence[i] === "0" ? "1" : "0"}${evidence.slice(i + 1)}`;
    expect(() => home.takeForkEvidence(changed), changed).toThrow();
  }
  expect(home.origin(a.origin)).toMatchObject({ status: "active", size: 3 });
});

test("evidence about two records of another place than the first that differs proves nothing", () => {
  const [a, b] = branches(3, 3, 3);
  const finder = freshHome();
  finder.admit(a.key.vkey);
  sync(finder, a);
  const { evidence } = compare(finder, b) as { evidence: string };
  const moved = { ...(JSON.parse(evidence) as Record<string, unknown>), at: 2 };
  expect(() => verifyEvidence(evidenceText(moved as never), keysOf(a))).toThrow(/proves no fork/);
});

test("a snapshot that was made before a quarantine is read as before", () => {
  const home = freshHome();
  const [a, b] = branches(2, 3, 3);
  a.admitTo(home);
  sync(home, a);
  const { id } = home.snapshots.create();
  const before = home.stateHash(id);
  compare(home, b);
  expect(home.origin(a.origin)).toMatchObject({ size: 2 });
  expect(home.stateHash(id)).toBe(before);
  expect(home.cell(`a:${valueOf("left 0").key}`)).toBeUndefined();
  expect(home.cell(`a:${valueOf("left 0").key}`, id)).toMatchObject({ state: "visible" });
});
