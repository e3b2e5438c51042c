// T-02 on a home: every byte of a small batch and of its rows changed. Never accepted, nothing half written, the place named.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { Home } from "../../../src/federation/home/home.ts";
import type { Batch } from "../../../src/federation/home/ingest.ts";
import { parseCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { packText, parsePack } from "../../../src/federation/log/pack.ts";
import { journalLine, leafHash, MerkleTree } from "../../../src/receipts/index.ts";
import { freshHome, linkOf, sync, TestOrigin, valueOf } from "./origin.ts";

function smallJournal(): { readonly root: string; readonly lines: Uint8Array } {
  const tree = new MerkleTree();
  const lines = [1, 2].map((seq) => {
    const entry = { seq, type: "SignalReceived" as const, command: "", at: 7, data: `{"n":${seq}}` };
    tree.push(leafHash(journalLine(entry)));
    return `${JSON.stringify([seq, entry.type, "", 7, null, entry.data])}\n`;
  });
  return { root: tree.root(), lines: Buffer.from(lines.join("")) };
}

/** The text with one character changed, at every place. */
function* changedTexts(text: string): Generator<string> {
  for (let i = 0; i < text.length; i += 1)
    yield `${text.slice(0, i)}${String.fromCharCode(text.charCodeAt(i) ^ 1)}${text.slice(i + 1)}`;
}

function* changedBytes(bytes: Uint8Array): Generator<Uint8Array> {
  for (let i = 0; i < bytes.length; i += 1) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    yield changed;
  }
}

function expectNothing(home: Home, edge: TestOrigin): void {
  expect(home.origin(edge.origin)).toMatchObject({ size: 0, cursor: 0, status: "active" });
  expect(home.hasContents(edge.contents.keys()).size).toBe(0);
  expect(home.journal(smallJournal().root)).toBeUndefined();
  expect(home.applied()).toEqual([]);
}

test("a batch with any byte of its records, checkpoint, contents or journal changed is refused as a whole", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.value("content");
  edge.put(linkOf({ type: "t", from: ["run:a"], to: ["run:b"] }));
  edge.tomb(`a:${valueOf("content").key}`);
  const batch: Batch = { ...edge.batch(home), journals: [smallJournal()], from: "hub" };
  const refused = (changed: Batch, what: string): void => {
    const outcome = home.ingest(changed);
    expect(outcome.status, what).toBe("refused");
  };
  for (const [i, text] of batch.records.entries())
    for (const changed of changedTexts(text)) refused({ ...batch, records: batch.records.with(i, changed) }, changed);
  for (const note of changedTexts(batch.checkpoint.note)) {
    refused({ ...batch, checkpoint: { ...batch.checkpoint, note } }, note);
    try {
      refused({ ...batch, checkpoint: parseCheckpoint(note) }, note);
    } catch (error) {
      expect(error).toMatchObject({ code: "CHECKPOINT_INVALID" });
    }
  }
  for (const [i, content] of batch.contents.entries()) {
    for (const bytes of changedBytes(content.bytes))
      refused({ ...batch, contents: batch.contents.with(i, { ...content, bytes }) }, "bytes");
    for (const type of changedTexts(content.type))
      refused({ ...batch, contents: batch.contents.with(i, { ...content, type }) }, type);
    for (const key of changedTexts(content.key))
      refused({ ...batch, contents: batch.contents.with(i, { ...content, key }) }, key);
  }
  const [journal] = batch.journals;
  for (const lines of changedBytes(journal!.lines)) refused({ ...batch, journals: [{ ...journal!, lines }] }, "lines");
  for (const root of changedTexts(journal!.root)) refused({ ...batch, journals: [{ ...journal!, root }] }, root);
  for (let cut = 0; cut < batch.records.length; cut += 1)
    if (cut > 0) refused({ ...batch, records: batch.records.slice(cut) }, "a cut at the beginning");
  expectNothing(home, edge);
  expect(home.ingest(batch)).toMatchObject({ status: "ingested", records: 3, contents: 3 });
  expect(home.check()).toEqual([]);
});

test("a pack with any byte changed is refused, or has contents that do not fit the log's keys", () => {
  const pack = packText([valueOf("content"), valueOf({ a: 1 })]);
  for (const changed of changedTexts(pack)) expect(() => parsePack(changed), changed).toThrow();
});

test("a row with any byte changed is found by the check, which names its place", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  edge.value("content");
  edge.tomb(`a:${valueOf("other").key}`);
  sync(home, edge);
  const journal = smallJournal();
  home.putJournal(journal.root, journal.lines);
  const content = valueOf("content");
  const main = new DatabaseSync(join(home.dir, "federation.db"));
  const shard = new DatabaseSync(join(home.dir, "federation", "00.db"));
  // A row that was changed is found as such, and not only because SQLite finds the file changed.
  for (const db of [main, shard]) db.exec("pragma synchronous = off");

  for (const [i, text] of edge.texts.entries()) {
    const set = main.prepare("update log set rec = ? where n = ?");
    for (const changed of changedTexts(text)) {
      set.run(changed, i + 1);
      expect(home.check()[0]?.place, changed).toMatch(new RegExp(`^${edge.origin} ${i + 1}$|^${edge.origin} 2$`));
    }
    set.run(text, i + 1);
  }
  const setNote = main.prepare("update checkpoint set note = ?");
  for (const note of changedTexts(edge.checkpoint().note)) {
    setNote.run(note);
    expect(home.check()[0]?.place, note).toBe(`${edge.origin} 2`);
  }
  setNote.run(edge.checkpoint().note);
  const setBytes = shard.prepare("update artifact set bytes = ?");
  for (const bytes of changedBytes(content.bytes)) {
    setBytes.run(bytes);
    expect(home.check()).toMatchObject([{ place: content.key }]);
  }
  setBytes.run(content.bytes);
  const setLines = shard.prepare("update journal set bytes = ?");
  for (const lines of changedBytes(journal.lines)) {
    setLines.run(lines);
    expect(home.check()).toMatchObject([{ place: journal.root }]);
  }
  setLines.run(journal.lines);
  const cells = main.prepare("select id, add_c, add_id, tomb_c from cell").all();
  for (const { id } of cells) {
    main
      .prepare(
        "update cell set add_c = coalesce(add_c, 0) + 1, add_id = coalesce(add_id, zeroblob(32)), add_o = 1 where id = ?",
      )
      .run(id as Uint8Array);
    expect(home.check()).toHaveLength(1);
    home.rebuild();
    expect(home.check()).toEqual([]);
  }
  main.exec("delete from log where n = 1");
  expect(home.check()[0]).toMatchObject({ place: `${edge.origin} 2` });
  main.close();
  shard.close();
});

test("bytes that changed on the disk are not given out, and can be had again", () => {
  const home = freshHome();
  const journal = smallJournal();
  home.putContents([valueOf("content")]);
  home.putJournal(journal.root, journal.lines);
  const shard = new DatabaseSync(join(home.dir, "federation", "00.db"));
  shard.exec("update artifact set bytes = x'00'; update journal set bytes = x'00'");
  shard.close();
  expect(home.content(valueOf("content").key)).toBeUndefined();
  expect(home.journal(journal.root)).toBeUndefined();
  expect(home.contentState(valueOf("content").key)).toBe("evicted");
  expect(home.putContents([valueOf("content")])).toMatchObject({ stored: 1 });
  expect(home.putJournal(journal.root, journal.lines)).toMatchObject({ stored: 1 });
  expect(home.content(valueOf("content").key)).toBeDefined();
  expect(home.journal(journal.root)).toBeDefined();
});
