// What leaves a home: erased for good (T-17, the part of one site), or evicted and had again.

import { expect, onTestFinished, test } from "vitest";
import { openHome, type Home } from "../../../src/federation/home/home.ts";
import { journalLine, leafHash, MerkleTree } from "../../../src/receipts/index.ts";
import { freshFolder, freshHome, isOnDisk, linkOf, sync, TestOrigin, valueOf } from "./origin.ts";

function journalOf(result: string): { readonly root: string; readonly lines: Uint8Array } {
  const entry = { seq: 1, type: "RunCompleted" as const, command: "", at: 5, data: JSON.stringify({ output: result }) };
  const tree = new MerkleTree();
  tree.push(leafHash(journalLine(entry)));
  return { root: tree.root(), lines: Buffer.from(`${JSON.stringify([1, entry.type, "", 5, null, entry.data])}\n`) };
}

test("an erasure by the origin that put a content removes the bytes, and the content never comes back", () => {
  const home = freshHome({ shards: 2 });
  const edge = new TestOrigin("edge").admitTo(home);
  const hub = new TestOrigin("hub").admitTo(home);
  const secret = valueOf("the secret");
  const journal = journalOf("also secret");
  edge.put(secret);
  edge.value("harmless");
  sync(home, edge);
  expect(home.putJournal(journal.root, journal.lines)).toMatchObject({ status: "stored", stored: 1 });
  edge.erase(`a:${secret.key}`);
  edge.erase(`a:${journal.root}`);
  // The journal was never put as an artifact, so its origin has no claim to it: the site itself erases it.
  home.admit(edge.key.vkey, { grants: ["erase"] });
  sync(home, edge);

  expect(home.content(secret.key)).toBeUndefined();
  expect(home.contentState(secret.key)).toBe("erased");
  expect(home.journal(journal.root)).toBeUndefined();
  expect(home.hasContents([secret.key, valueOf("harmless").key])).toEqual(new Set([valueOf("harmless").key]));
  expect(home.cell(`a:${secret.key}`)).toMatchObject({ state: "erased" });
  expect(home.readLog(edge.origin, 0, 10)).toHaveLength(4);
  expect(home.missing()).toEqual([]);

  expect(home.putContents([secret])).toEqual({ status: "stored", stored: 0, duplicates: 0, erased: 1 });
  expect(home.putJournal(journal.root, journal.lines)).toMatchObject({ erased: 1, stored: 0 });
  hub.put(secret, [edge]);
  expect(home.ingest(hub.batch(home))).toEqual({
    status: "ingested",
    records: 1,
    contents: 0,
    duplicates: 0,
    erased: 1,
  });
  expect(home.cell(`a:${secret.key}`)).toMatchObject({ state: "erased" });
  expect(home.contentState(secret.key)).toBe("erased");
  home.gc();
  home.rebuild();
  expect(home.contentState(secret.key)).toBe("erased");
  expect(home.putContents([secret])).toMatchObject({ stored: 0, erased: 1 });
  expect(home.missing()).toEqual([]);
});

test("the bytes of an erased content, short or long, are in no file of the home, also while it is open", () => {
  const folder = freshFolder();
  const home = openHome(folder);
  onTestFinished(() => home.close());
  const edge = new TestOrigin("edge").admitTo(home);
  const secrets = [valueOf("a needle in the hay"), valueOf("a needle in the hay ".repeat(10_000))];
  for (const secret of secrets) edge.put(secret);
  for (let i = 0; i < 20; i += 1) edge.value(`some hay ${i}`);
  sync(home, edge);
  expect(isOnDisk(folder, "needle")).toBe(true);
  for (const { key } of secrets) edge.erase(`a:${key}`);
  sync(home, edge);
  expect(isOnDisk(folder, "needle")).toBe(false);
  expect(isOnDisk(folder, "some hay")).toBe(true);
});

test("an erasure by an origin without a right to it erases the cell, keeps the bytes and is a conflict", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const hub = new TestOrigin("hub").admitTo(home);
  edge.value("mine");
  hub.erase(`a:${valueOf("mine").key}`, [edge]);
  sync(home, edge, hub);
  expect(home.cell(`a:${valueOf("mine").key}`)).toMatchObject({ state: "erased" });
  expect(home.content(valueOf("mine").key)).toBeDefined();
  expect(home.conflicts()).toMatchObject([{ kind: "erase", cell: `a:${valueOf("mine").key}`, state: "open" }]);
  home.admit(hub.key.vkey, { grants: ["erase"] });
  home.rebuild();
  expect(home.content(valueOf("mine").key)).toBeUndefined();
});

test("an origin that puts the key of another one cannot erase its bytes", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const hub = new TestOrigin("hub").admitTo(home);
  const mine = valueOf("mine");
  hub.put(mine);
  hub.erase(`a:${mine.key}`);
  edge.put(mine);
  sync(home, edge, hub);
  expect(home.content(mine.key)).toBeDefined();
  expect(home.conflicts()).toMatchObject([{ kind: "erase", cell: `a:${mine.key}`, state: "open" }]);
  edge.erase(`a:${mine.key}`);
  sync(home, edge);
  expect(home.content(mine.key)).toBeUndefined();
});

test("an erased slot takes its links with it, also those that come later", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const link = (data: string) => linkOf({ type: "t", from: ["run:a"], to: ["run:b"], data });
  const slot = edge.put(link("one")).s!;
  sync(home, edge);
  edge.erase(`s:${slot}`);
  edge.put(link("two"));
  sync(home, edge);
  expect(home.contentState(link("one").key)).toBe("erased");
  expect(home.contentState(link("two").key)).toBe("erased");
  expect(home.traverse("run:a", { direction: "forward" }).relations).toEqual([]);
});

test("gc frees what nothing needs and keeps what is visible, pinned, named or in a kept snapshot; it comes back when it is sent again", () => {
  const home = freshHome({ shards: 3 });
  const edge = new TestOrigin("edge").admitTo(home);
  const values = ["visible", "hidden", "pinned", "in a snapshot"].map(valueOf);
  const [visible, hidden, pinned, kept] = values as [
    (typeof values)[0],
    (typeof values)[0],
    (typeof values)[0],
    (typeof values)[0],
  ];
  for (const value of values) edge.put(value!);
  sync(home, edge);
  edge.tomb(`a:${hidden!.key}`);
  edge.tomb(`a:${pinned!.key}`);
  sync(home, edge);
  const { id } = home.snapshots.create();
  edge.tomb(`a:${kept!.key}`);
  sync(home, edge);
  home.putContents([valueOf("unnamed")]);
  home.pin(pinned!.key, "for the audit");
  const states = (): string[] => values.map(({ key }) => home.contentState(key));

  expect(home.gc()).toEqual({ contents: 1, bytes: hidden!.bytes.length });
  expect(states()).toEqual(["present", "evicted", "present", "present"]);
  expect(home.contentState(valueOf("unnamed").key)).toBe("present");
  expect(home.gc()).toEqual({ contents: 0, bytes: 0 });
  home.unpin(pinned!.key, "for the audit");
  home.snapshots.remove(id);
  expect(home.gc({ unnamedBefore: Number.MAX_SAFE_INTEGER, keep: (key) => key === pinned!.key }).contents).toBe(2);
  expect(states()).toEqual(["present", "evicted", "present", "evicted"]);
  expect(home.contentState(valueOf("unnamed").key)).toBe("evicted");

  expect(home.readLog(edge.origin, 0, 100)).toHaveLength(7);
  expect(home.missing()).toEqual([]);
  expect(home.putContents([hidden!])).toMatchObject({ stored: 1 });
  expect(home.content(hidden!.key)).toBeDefined();
  expect(visible).toBeDefined();
});

test("with a bound on bytes, visible contents of other origins go, oldest first, and those of this site stay", () => {
  let now = 0;
  const home = freshHome({ clock: { now: () => (now += 1), monotonic: () => now } });
  const own = new TestOrigin("own");
  home.admit(own.key.vkey, { own: true });
  const edge = new TestOrigin("edge").admitTo(home);
  const content = (name: string) => valueOf(name.padEnd(1_000, "."));
  own.put(content("own"));
  sync(home, own);
  for (const name of ["first", "second", "third"]) {
    edge.put(content(name));
    sync(home, edge);
  }
  expect(home.gc({ maxBytes: 2_100 })).toMatchObject({ contents: 2 });
  const stateOf = (name: string): string => home.contentState(content(name).key);
  expect(["own", "first", "second", "third"].map(stateOf)).toEqual(["present", "evicted", "evicted", "present"]);
});

function journalForms(home: Home): string {
  return Buffer.from(home.journal(journalOf("x").root)!)
    .toString()
    .slice(0, 1);
}

test("a journal is kept under the root of its entries; its full form replaces its leaves, and not the other way round", () => {
  const home = freshHome();
  const { root, lines } = journalOf("x");
  const entry = { seq: 1, type: "RunCompleted" as const, command: "", at: 5, data: JSON.stringify({ output: "x" }) };
  const leaves = Buffer.from(`${journalLine(entry)}\n`);
  expect(home.putJournal(root, leaves)).toMatchObject({ stored: 1 });
  expect(journalForms(home)).toBe("{");
  expect(home.putJournal(root, lines)).toMatchObject({ stored: 1 });
  expect(journalForms(home)).toBe("[");
  expect(home.putJournal(root, leaves)).toMatchObject({ stored: 0, duplicates: 1 });
  expect(journalForms(home)).toBe("[");
  for (const [what, wrong] of [
    ["another root", journalOf("y").lines],
    ["a line cut off", lines.subarray(0, -1)],
    ["an entry twice", Buffer.concat([lines, lines])],
    ["no entries", Buffer.alloc(0)],
  ] as const)
    expect(home.putJournal(root, wrong), what).toMatchObject({ status: "refused", code: "CONTENT_DAMAGED" });
});
