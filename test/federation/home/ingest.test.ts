import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { openHome } from "../../../src/federation/home/home.ts";
import { foldRecords, stateHashOf } from "../../../src/federation/log/state-hash.ts";
import { signCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { LogTree } from "../../../src/federation/log/log-tree.ts";
import { signingKeyOf } from "../../../src/receipts/index.ts";
import { freshFolder, freshHome, linkOf, sync, TestOrigin, valueOf } from "./origin.ts";

test("a batch brings records, contents and cells, and the same batch again changes nothing", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.value({ a: 1 });
  edge.put(linkOf({ type: "supersedes", from: ["run:b"], to: ["run:a"] }));
  const batch = edge.batch(home);
  expect(home.ingest(batch)).toEqual({ status: "ingested", records: 2, contents: 2, duplicates: 0 });
  expect(home.origin(edge.origin)).toMatchObject({ size: 2, cursor: 2, status: "active" });
  expect(home.readLog(edge.origin, 0, 10).map(({ rec }) => rec)).toEqual(edge.texts);
  expect(home.readLog(edge.origin, 1, 10).map(({ n }) => n)).toEqual([2]);
  expect(home.checkpoint(edge.origin)).toEqual(edge.checkpoint());
  const { key, bytes } = valueOf({ a: 1 });
  expect(Buffer.from(home.content(key)!.bytes)).toEqual(Buffer.from(bytes));
  expect(home.cell(`a:${key}`)).toMatchObject({ state: "visible", add: { c: 1, o: edge.origin } });
  expect(home.stateHash()).toBe(stateHashOf(foldRecords(edge.records)));

  expect(home.ingest(batch)).toEqual({ status: "unchanged" });
  expect(home.ingest(edge.batch(home))).toEqual({ status: "unchanged" });
  expect(home.counters()).toEqual({ duplicates: 4 });
});

test("an older checkpoint of the same log changes nothing and is kept", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 5; i += 1) edge.value(i);
  sync(home, edge);
  expect(home.ingest(edge.batchFrom(2, 2))).toEqual({ status: "unchanged" });
  expect(home.firstCheckpointCovering(edge.origin, 2)).toEqual(edge.checkpoint(2));
  expect(home.firstCheckpointCovering(edge.origin, 3)).toEqual(edge.checkpoint(5));
  expect(home.firstCheckpointCovering(edge.origin, 6)).toBeUndefined();
});

test("a log of an origin that nobody admitted is refused", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge");
  edge.value(1);
  expect(home.ingest(edge.batch(home))).toMatchObject({ status: "refused", code: "NOT_ADMITTED" });
  expect(home.origins()).toEqual([]);
  expect(home.hasContents([valueOf(1).key]).size).toBe(0);
});

test("a checkpoint that another key signed is refused", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const record = edge.value(1);
  const stranger = signingKeyOf(Buffer.alloc(32, 7), "edge");
  const root = LogTree.ofTexts(edge.texts).root();
  const checkpoint = signCheckpoint(stranger, edge.origin, record.n, root);
  expect(home.ingest(edge.batch(home, 1, { checkpoint }))).toMatchObject({ status: "refused", code: "NOT_ADMITTED" });
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 0 });
});

test("records that have another root than their checkpoint are refused, and nothing is written", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.value(1);
  const other = new TestOrigin("edge");
  other.value(2);
  const batch = { ...edge.batch(home), records: other.texts, contents: [valueOf(2)] };
  expect(home.ingest(batch)).toMatchObject({ status: "refused", code: "ROOT_MISMATCH" });
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 0, status: "active" });
  expect(home.hasContents([valueOf(2).key]).size).toBe(0);
  expect(home.conflicts()).toEqual([]);
  sync(home, edge);
});

test("a batch that begins after the cursor is refused", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 3; i += 1) edge.value(i);
  expect(home.ingest(edge.batchFrom(1, 3))).toMatchObject({ status: "refused", code: "OUTDATED_CURSOR" });
});

test("a record beyond its checkpoint is refused", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 3; i += 1) edge.value(i);
  const batch = { ...edge.batchFrom(0, 3), checkpoint: edge.checkpoint(2) };
  expect(home.ingest(batch)).toMatchObject({ status: "refused", code: "RECORD_INVALID" });
});

test("records that wait for the rest of their checkpoint are not visible before it is complete", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 10; i += 1) edge.value(i);
  const checkpoint = edge.checkpoint();
  const part = (after: number, size: number) => home.ingest({ ...edge.batchFrom(after, size), checkpoint });
  expect(part(0, 4)).toMatchObject({ status: "ingested", records: 4 });
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 4 });
  expect(home.cell(`a:${valueOf(0).key}`)).toBeUndefined();
  expect(home.readLog(edge.origin, 0, 10)).toEqual([]);
  expect(home.checkpoint(edge.origin)).toBeUndefined();
  expect(part(4, 8)).toMatchObject({ status: "ingested", records: 4 });
  expect(part(8, 10)).toMatchObject({ status: "ingested", records: 2 });
  expect(home.origin(edge.origin)).toMatchObject({ size: 10, cursor: 10 });
  expect(home.stateHash()).toBe(stateHashOf(foldRecords(edge.records)));
});

test("records that waited for a checkpoint with another root are dropped", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 4; i += 1) edge.value(i);
  const wrong = new TestOrigin("edge");
  wrong.value("other");
  home.ingest({ ...wrong.batchFrom(0, 1), checkpoint: edge.checkpoint() });
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 1 });
  expect(home.ingest({ ...edge.batchFrom(1, 4) })).toMatchObject({ status: "refused", code: "ROOT_MISMATCH" });
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 0 });
  sync(home, edge);
  expect(home.origin(edge.origin)).toMatchObject({ size: 4 });
});

test("a log that waited is longer than a page and becomes visible as a whole", () => {
  const home = freshHome({ limits: { batchRecords: 3 } });
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 11; i += 1) edge.value(i);
  const checkpoint = edge.checkpoint();
  for (let at = 0; at < 11; at += 3)
    expect(home.ingest({ ...edge.batchFrom(at, Math.min(11, at + 3)), checkpoint })).toMatchObject({
      status: "ingested",
    });
  expect(home.origin(edge.origin)).toMatchObject({
    size: 11,
    root: Buffer.from(checkpoint.root, "base64").toString("hex"),
  });
  expect(home.stateHash()).toBe(stateHashOf(foldRecords(edge.records)));
});

test("a clock that does not follow from the records that it names is refused where they are held", () => {
  const home = freshHome();
  const a = new TestOrigin("a").admitTo(home);
  const b = new TestOrigin("b").admitTo(home);
  for (let i = 0; i < 5; i += 1) a.value(i);
  b.value("saw", [a]);
  sync(home, a, b);
  expect(b.records[0]).toMatchObject({ c: 6 });
  const c = new TestOrigin("c").admitTo(home);
  c.append({ op: "put", k: valueOf(1).key }, [a]);
  c.records[0] = { ...c.records[0]!, c: 7 };
  c.texts[0] = c.texts[0]!.replace('"c":6', '"c":7');
  expect(home.ingest(c.batch(home))).toMatchObject({ status: "refused", code: "RECORD_INVALID" });
});

test("a key record ends a batch under a checkpoint of the old key, and the new key signs what follows", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.value(1);
  const next = signingKeyOf(Buffer.alloc(32, 9), "edge").forOrigin(edge.origin);
  edge.append({ op: "key", v: next.vkey });
  const handover = edge.checkpoint(2);
  edge.value(2);
  edge.signer = next;
  expect(home.ingest(edge.batch(home))).toMatchObject({ status: "refused", code: "NOT_ADMITTED" });
  expect(home.ingest(edge.batchFrom(0, 2, { checkpoint: handover }))).toMatchObject({ records: 2 });
  expect(home.ingest(edge.batch(home))).toMatchObject({ records: 1 });
  expect(home.keys(edge.origin).current.vkey).toBe(next.vkey);
  edge.value(3);
  edge.signer = edge.key;
  expect(home.ingest(edge.batch(home))).toMatchObject({ status: "refused", code: "NOT_ADMITTED" });
});

test("an old key cannot sign a checkpoint in which its key record is not the last one", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.append({ op: "key", v: signingKeyOf(Buffer.alloc(32, 9), "edge").forOrigin(edge.origin).vkey });
  edge.value(2);
  expect(home.ingest(edge.batch(home))).toMatchObject({ status: "refused", code: "RECORD_INVALID" });
  expect(home.origin(edge.origin)).toMatchObject({ cursor: 0 });
});

test("a batch, a content or a log beyond a limit is refused with one code, and nothing is written", () => {
  const home = freshHome({ limits: { batchRecords: 2, artifactBytes: 100, origins: 1, batchBytes: 2_000 } });
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 3; i += 1) edge.value(i);
  expect(home.ingest(edge.batch(home))).toMatchObject({ status: "refused", code: "LIMIT_EXCEEDED" });
  const long = new TestOrigin("long");
  long.value("x".repeat(200));
  expect(home.putContents([...long.contents.values()])).toMatchObject({ status: "refused", code: "LIMIT_EXCEEDED" });
  expect(() => home.admit(long.key.vkey)).toThrow(expect.objectContaining({ code: "LIMIT_EXCEEDED" }) as Error);
  expect(home.origin(edge.origin)).toMatchObject({ cursor: 0 });
});

test("contents of which records were read earlier are missing until they come", () => {
  const home = freshHome({ shards: 3 });
  const edge = new TestOrigin("edge").admitTo(home);
  for (let i = 0; i < 4; i += 1) edge.value(i);
  home.ingest(edge.batch(home, 4, { contents: [valueOf(2)] }));
  expect(home.missing()).toEqual([0, 1, 3].map((i) => valueOf(i).key));
  expect(home.missing(edge.origin, 2)).toEqual([0, 1].map((i) => valueOf(i).key));
  expect(home.contentState(valueOf(0).key)).toBe("missing");
  expect(home.putContents([valueOf(0), valueOf(2)])).toEqual({ status: "stored", stored: 1, duplicates: 1, erased: 0 });
  expect(home.missing(edge.origin)).toEqual([1, 3].map((i) => valueOf(i).key));
});

test("the files of a home are private", () => {
  const home = freshHome();
  new TestOrigin("edge").admitTo(home);
  home.putContents([valueOf(1)]);
  for (const file of ["federation.db", "federation.db-wal", "federation/00.db", "federation/00.db-wal"])
    expect(statSync(join(home.dir, file)).mode & 0o777, file).toBe(0o600);
  expect(statSync(join(home.dir, "federation")).mode & 0o777).toBe(0o700);
});

test("a home with a newer schema, and a database of another program, are refused unchanged", () => {
  const folder = freshFolder();
  openHome(folder).close();
  const db = new DatabaseSync(join(folder, "federation.db"));
  db.exec("pragma user_version = 99");
  expect(() => openHome(folder)).toThrow(expect.objectContaining({ code: "STORE_NEWER_SCHEMA" }) as Error);
  db.exec("pragma user_version = 1; pragma application_id = 1");
  db.close();
  expect(() => openHome(folder)).toThrow(expect.objectContaining({ code: "STORE_NOT_REPRISE" }) as Error);
});

test("a home keeps the number of shards that it was made with", () => {
  const folder = freshFolder();
  openHome(folder, { shards: 7 }).close();
  const home = openHome(folder);
  expect(home.shards).toBe(7);
  home.close();
  expect(() => openHome(folder, { shards: 8 })).toThrow(expect.objectContaining({ code: "BAD_OPTIONS" }) as Error);
  expect(() => openHome(freshFolder(), { shards: 257 })).toThrow(
    expect.objectContaining({ code: "BAD_OPTIONS" }) as Error,
  );
});

test("two processes that open one home see each other's batches", () => {
  const folder = freshFolder();
  const [first, second] = [openHome(folder), openHome(folder)];
  const edge = new TestOrigin("edge").admitTo(first);
  for (let i = 0; i < 6; i += 1) {
    edge.value(i);
    sync(i % 2 === 0 ? first : second, edge);
  }
  expect(second.stateHash()).toBe(first.stateHash());
  expect(first.origin(edge.origin)).toMatchObject({ size: 6 });
  first.close();
  second.close();
});

test("a later epoch is admitted with the key of the epoch before, and no other", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge");
  const later = edge.key.forOrigin(`${edge.origin}/2`);
  expect(() => home.admit(later.vkey)).toThrow(expect.objectContaining({ code: "NOT_ADMITTED" }) as Error);
  edge.admitTo(home);
  expect(home.admit(later.vkey)).toMatchObject({ id: `${edge.origin}/2`, size: 0 });
  const stranger = signingKeyOf(Buffer.alloc(32, 7), "x").forOrigin(`${edge.origin}/3`);
  expect(() => home.admit(stranger.vkey)).toThrow(expect.objectContaining({ code: "NOT_ADMITTED" }) as Error);
});
