// Seed 002 §3 to §5 on a home: order, bounds, conflicts (ACCEPTANCE 27 to 29), and snapshots.

import { expect, test } from "vitest";
import { compareRecords } from "../../../src/federation/log/record-order.ts";
import { foldRecords, stateHashOf } from "../../../src/federation/log/state-hash.ts";
import type { Content } from "../../../src/federation/log/content.ts";
import { drawOf, freshHome, linkOf, sync, TestOrigin, valueOf, world } from "./origin.ts";

test("homes with other shards that take the logs in any order and size have one state, the fold of all records", () => {
  for (let round = 0; round < 3; round += 1) {
    const seed = `order ${round}`;
    const draw = drawOf(seed);
    const origins = world(seed, 60);
    const records = origins.flatMap((origin) => origin.records);
    const homes = [freshHome(), freshHome({ shards: 7 })];
    for (const [h, home] of homes.entries()) {
      for (const origin of origins) origin.admitTo(home);
      for (let i = 0; origins.some((origin) => home.origin(origin.origin)!.size < origin.size); i += 1) {
        const origin = origins[draw(3, `${h} who ${i}`)]!;
        const { size } = home.origin(origin.origin)!;
        const upTo = Math.min(origin.size, size + draw(6, `${h} size ${i}`));
        // Some of it was sent before.
        const from = Math.max(0, size - draw(4, `${h} again ${i}`));
        expect(home.ingest(origin.batchFrom(from, upTo)).status, seed).not.toBe("refused");
      }
    }
    const expected = stateHashOf(foldRecords(records));
    for (const home of homes) {
      expect(home.stateHash(), seed).toBe(expected);
      expect([...home.snapshots.provenance()].map(({ origin, n }) => `${origin} ${n}`)).toEqual(
        records.toSorted(compareRecords).map(({ o, n }) => `${o} ${n}`),
      );
    }
  }
});

test("with 40 records here only those after them are taken, up to the target, and the rest later gives the same as all at once", () => {
  const home = freshHome();
  const direct = freshHome();
  const edge = new TestOrigin("edge").admitTo(home).admitTo(direct);
  for (let i = 0; i < 60; i += 1) edge.value(i);
  home.ingest(edge.batch(home, 40));
  expect(home.ingest(edge.batch(home, 50))).toMatchObject({ status: "ingested", records: 10, contents: 10 });
  expect(home.cell(`a:${valueOf(50).key}`)).toBeUndefined();
  expect(home.readLog(edge.origin, 40, 100)).toHaveLength(10);
  sync(home, edge);
  sync(direct, edge);
  expect(home.stateHash()).toBe(direct.stateHash());
  expect(home.origin(edge.origin)!.root).toBe(direct.origin(edge.origin)!.root);
});

test("the same key with the same bytes is counted, and with other bytes it is a conflict that applies nothing", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const hub = new TestOrigin("hub").admitTo(home);
  edge.value(1);
  sync(home, edge);
  hub.value(1);
  expect(home.ingest({ ...hub.batch(home), from: "hub" })).toMatchObject({ contents: 0, duplicates: 1 });
  expect(home.counters()).toEqual({ duplicates: 1 });

  hub.value(2);
  const forged = { ...valueOf(2), bytes: Buffer.from("3") };
  const batch = hub.batch(home, 2, { contents: [forged], from: "hub" });
  expect(home.ingest(batch)).toMatchObject({ status: "refused", code: "CONTENT_DAMAGED" });
  expect(home.ingest(batch)).toMatchObject({ status: "refused" });
  expect(home.origin(hub.origin)).toMatchObject({ size: 1 });
  expect(home.conflicts()).toMatchObject([
    { kind: "content", cell: `a:${forged.key}`, peer: "hub", times: 2, state: "open" },
  ]);
  // The first peer whose bytes fit settles it.
  expect(home.ingest(hub.batch(home, 2, { from: "edge" }))).toMatchObject({ status: "ingested" });
  expect(home.conflicts()).toMatchObject([{ state: "resolved", resolution: "the bytes came from edge" }]);
});

test("of two links of one slot the later one wins at the snapshots that have it, and a tombstone hides it from its own on", () => {
  const home = freshHome();
  const edge = new TestOrigin("edge").admitTo(home);
  const link = (data: number): Content => linkOf({ type: "t", from: ["run:a"], to: ["run:b"], data });
  const snapshots: string[] = [""];
  let slot = "";
  for (let n = 1; n <= 9; n += 1) {
    if (n === 5) slot = edge.put(link(5)).s!;
    else if (n === 7) edge.put(link(7));
    else if (n === 8) edge.tomb(`s:${slot}`);
    else edge.value(n);
    sync(home, edge);
    snapshots.push(home.snapshots.create().id);
  }
  const at = (n: number): unknown => home.cell(`s:${slot}`, snapshots[n]);
  expect(at(4)).toBeUndefined();
  expect(at(5)).toMatchObject({ state: "visible", add: { id: link(5).key } });
  expect(at(6)).toMatchObject({ state: "visible", add: { id: link(5).key } });
  expect(at(7)).toMatchObject({ state: "visible", add: { id: link(7).key } });
  expect(at(8)).toMatchObject({ state: "hidden", add: { id: link(7).key } });
  expect(home.cell(`s:${slot}`)).toMatchObject({ state: "hidden" });
  expect(home.content(link(5).key)).toBeDefined();
});

test("a snapshot says the same for ever, whatever comes later", () => {
  const origins = world("for ever", 80);
  const home = freshHome({ shards: 3 });
  for (const origin of origins) origin.admitTo(home);
  const taken: { id: string; hash: string; expected: string }[] = [];
  for (let part = 1; part <= 4; part += 1) {
    for (const origin of origins) {
      const upTo = Math.floor((origin.size * part) / 4);
      if (upTo > home.origin(origin.origin)!.size) home.ingest(origin.batch(home, upTo));
    }
    const { id, heads } = home.snapshots.create();
    const under = origins.flatMap(({ origin, records }) => records.filter(({ n }) => n <= (heads[origin]?.[0] ?? 0)));
    taken.push({ id, hash: home.stateHash(id), expected: stateHashOf(foldRecords(under)) });
  }
  for (const { id, hash, expected } of taken) {
    expect(hash).toBe(expected);
    expect(home.stateHash(id)).toBe(expected);
  }
  home.gc();
  home.rebuild();
  for (const { id, expected } of taken) expect(home.stateHash(id)).toBe(expected);
});

test("a snapshot that is created is closed: it leaves out a record whose author saw more than is here", () => {
  const home = freshHome();
  const a = new TestOrigin("a").admitTo(home);
  const b = new TestOrigin("b").admitTo(home);
  a.value(1);
  b.value("before");
  sync(home, a, b);
  a.value(2);
  b.value("saw two", [a]);
  b.value("after");
  sync(home, b);
  const first = home.snapshots.create();
  expect(first.closed).toBe(true);
  expect(first.heads[b.origin]![0]).toBe(1);
  const open = home.snapshots.get({
    [a.origin]: [1, home.origin(a.origin)!.root],
    [b.origin]: [3, home.origin(b.origin)!.root],
  });
  expect(open.closed).toBe(false);
  expect(home.stateHash(open.heads)).toBe(home.stateHash());
  sync(home, a);
  const second = home.snapshots.create();
  expect(second.heads[b.origin]![0]).toBe(3);
  expect(
    home.snapshots
      .list()
      .map(({ id }) => id)
      .sort(),
  ).toEqual([first.id, second.id].sort());
  expect(home.snapshots.diff(first.id, second.id).map(({ before, after }) => [before, after])).toEqual(
    Array.from({ length: 3 }, () => [undefined, expect.stringMatching(/^visible /)]),
  );
  expect(home.snapshots.presence(`a:${valueOf("after").key}`)).toEqual({ first: second.id, last: second.id });
  expect(home.snapshots.presence(`a:${valueOf("before").key}`)).toEqual({ first: first.id, last: second.id });
  expect(home.snapshots.presence(`a:${valueOf("never").key}`)).toBeUndefined();
});

test("equal cuts have equal ids on two sites, and every batch is in the history with the cut that it made", () => {
  const [first, second] = [freshHome(), freshHome({ shards: 5 })];
  const a = new TestOrigin("a").admitTo(first).admitTo(second);
  const b = new TestOrigin("b").admitTo(first).admitTo(second);
  a.value(1);
  b.value(2);
  first.ingest({ ...a.batch(first), from: "left" });
  first.ingest({ ...b.batch(first), from: "left" });
  second.ingest({ ...b.batch(second), from: "right" });
  second.ingest({ ...a.batch(second), from: "left" });
  expect(first.snapshots.create().id).toBe(second.snapshots.create().id);
  const history = first.applied({ peer: "left" });
  expect(history.map(({ origin, n, key }) => [origin, n, key])).toEqual([
    [b.origin, 1, valueOf(2).key],
    [a.origin, 1, valueOf(1).key],
  ]);
  expect(history[0]!.snapshot).toBe(first.snapshots.create().id);
  expect(first.stateHash(history[1]!.snapshot)).toBe(stateHashOf(foldRecords(a.records)));
  expect(second.applied({ peer: "left" })).toHaveLength(1);
  expect(second.applied({ origin: b.origin })).toMatchObject([{ peer: "right", n: 1 }]);
});

test("a snapshot with records that are not here cannot be read, and the message names the log", () => {
  const home = freshHome();
  const a = new TestOrigin("a").admitTo(home);
  a.value(1);
  sync(home, a);
  const heads = { [a.origin]: [2, home.origin(a.origin)!.root] as const };
  expect(home.snapshots.get(heads).closed).toBe(false);
  expect(() => home.stateHash(heads)).toThrow(new RegExp(`2 records of ${a.origin}`));
  expect(() => home.stateHash("12ab")).toThrow(/There is no snapshot 12ab/);
});
